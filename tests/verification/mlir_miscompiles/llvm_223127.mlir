// pass: --canonicalize
// The folder negates the least integer.
func.func @quarter_up() -> index {
  %least = index.constant -9223372036854775808
  %four = index.constant 4
  %quarter = index.ceildivs %least, %four
  return %quarter : index
}
