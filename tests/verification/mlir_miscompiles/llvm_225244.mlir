// pass: --lower-vector-mask
// The mask of the write itself is dropped.
func.func @write_between(%target: memref<8xi16>, %lanes: vector<8xi16>, %below: index, %own: vector<8xi1>) {
  %zero = arith.constant 0 : index
  %outer = vector.create_mask %below : vector<8xi1>
  vector.mask %outer {
    vector.transfer_write %lanes, %target[%zero], %own {in_bounds = [true]} : vector<8xi16>, memref<8xi16>
  } : vector<8xi1>
  return
}
