// pass: --affine-loop-fusion
// The second loop reads what the calls in the first one write.
func.func private @observe(memref<6xi32>)
func.func @copy_twice(%source: memref<6xi32>, %shared: memref<6xi32>, %target: memref<6xi32>) {
  affine.for %i = 0 to 6 {
    %value = affine.load %source[%i] : memref<6xi32>
    affine.store %value, %shared[%i] : memref<6xi32>
    func.call @observe(%shared) : (memref<6xi32>) -> ()
  }
  affine.for %i = 0 to 6 {
    %value = affine.load %shared[%i] : memref<6xi32>
    affine.store %value, %target[%i] : memref<6xi32>
  }
  return
}
