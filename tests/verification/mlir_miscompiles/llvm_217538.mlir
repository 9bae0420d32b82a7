// pass: '--affine-data-copy-generate=generate-dma=false fast-mem-space=0'
// A buffer is copied back that nothing wrote, because the loop also stores by an op outside of `affine`.
func.func @stores(%cells: memref<2xi16>, %first: i16, %second: i16) {
  %zero = arith.constant 0 : index
  affine.for %i = 0 to 2 {
    affine.store %first, %cells[0] : memref<2xi16>
    memref.store %second, %cells[%zero] : memref<2xi16>
  }
  return
}
