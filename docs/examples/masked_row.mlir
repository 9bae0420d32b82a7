// The elements that a mask selects, doubled and written back over a row; the rest of the row becomes 0.
func.func @double_selected(%row: tensor<6xi16>, %select: vector<6xi1>) -> (tensor<6xi16>, index) {
  %start = arith.constant 0 : index
  %one = arith.constant 1 : index
  %six = arith.constant 6 : index
  %zero = arith.constant 0 : i16
  %kept = vector.transfer_read %row[%start], %zero, %select {in_bounds = [true]} : tensor<6xi16>, vector<6xi16>
  %cleared = vector.transfer_write %kept, %row[%start] {in_bounds = [true]} : vector<6xi16>, tensor<6xi16>
  %count = scf.for %i = %start to %six step %one iter_args(%n = %start) -> index {
    %lane = vector.extractelement %select[%i : index] : vector<6xi1>
    %more = arith.addi %n, %one : index
    %next = arith.select %lane, %more, %n : index
    scf.yield %next : index
  }
  %doubled = arith.addi %kept, %kept : vector<6xi16>
  %result = vector.transfer_write %doubled, %cleared[%start], %select {in_bounds = [true]} : vector<6xi16>, tensor<6xi16>
  return %result, %count : tensor<6xi16>, index
}
