// pass: --affine-loop-tile=tile-size=2
// A subscript with a product of symbols hides the dependence that forbids tiles.
func.func @shear_slice(%cube: memref<?x5x5xi16>, %p: index, %q: index) {
  affine.for %row = 1 to 4 {
    affine.for %column = 1 to 4 {
      %slice = affine.apply affine_map<()[s0, s1] -> (s0 * s1)>()[%p, %q]
      %above = affine.load %cube[%slice, %row - 1, %column + 1] : memref<?x5x5xi16>
      affine.store %above, %cube[%slice, %row, %column] : memref<?x5x5xi16>
    }
  }
  return
}
