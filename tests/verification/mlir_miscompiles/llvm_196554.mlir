// pass: --affine-loop-unroll-jam=unroll-jam-factor=2
// Jamming reverses a dependence between the rows.
func.func @shear(%grid: memref<3x3xi16>) {
  affine.for %row = 1 to 3 {
    affine.for %column = 0 to 2 {
      %above = affine.load %grid[%row - 1, %column + 1] : memref<3x3xi16>
      affine.store %above, %grid[%row, %column] : memref<3x3xi16>
    }
  }
  return
}
