// Half of a number, rounded up.
func.func @halve_up(%value: i8) -> i8 {
  %two = arith.constant 2 : i8
  %half = arith.ceildivsi %value, %two : i8
  return %half : i8
}
