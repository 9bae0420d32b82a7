// pass: --affine-loop-invariant-code-motion
// A store is hoisted out of a loop without iterations.
func.func @never(%cell: memref<2xi32>, %value: i32) {
  affine.for %i = 3 to 3 {
    affine.store %value, %cell[1] : memref<2xi32>
  }
  return
}
