// pass: --convert-vector-to-llvm
// Bounds over 32 bits are cut off.
func.func @first_lanes(%count: index) -> vector<4xi1> {
  %mask = vector.create_mask %count : vector<4xi1>
  return %mask : vector<4xi1>
}
