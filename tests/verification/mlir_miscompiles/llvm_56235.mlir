// pass: --scf-for-loop-range-folding
// The lower bound of the loop is not scaled.
func.func @every(%cells: memref<24xi16>, %stride: index, %mark: i16) {
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %one = arith.constant 1 : index
  scf.for %i = %two to %three step %one {
    %place = arith.muli %i, %stride : index
    memref.store %mark, %cells[%place] : memref<24xi16>
  }
  return
}
