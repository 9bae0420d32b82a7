// pass: --lower-vector-mask
// A reduction along no dim loses its initial value and its mask.
func.func @add_where(%where: vector<2xi1>, %values: vector<2xi16>, %totals: vector<2xi16>) -> vector<2xi16> {
  %sums = vector.mask %where {
    vector.multi_reduction <add>, %values, %totals [] : vector<2xi16> to vector<2xi16>
  } : vector<2xi1> -> vector<2xi16>
  return %sums : vector<2xi16>
}
