// pass: --affine-super-vectorize=virtual-vector-size=4
// The last vector covers more elements than the loop.
func.func @triple(%row: memref<8xi16>) {
  %three = arith.constant 3 : i16
  affine.for %i = 0 to 5 {
    %value = affine.load %row[%i] : memref<8xi16>
    %tripled = arith.muli %value, %three : i16
    affine.store %tripled, %row[%i] : memref<8xi16>
  }
  return
}
