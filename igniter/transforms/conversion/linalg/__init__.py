"""The parts of `lower-linalg-to-loop`.

errors      an error that names the op and its line
known       scalars known as expressions over the sizes: indices, i64, conditions
facts       equal dims, and requirements that a call checks
scalars     one op of `arith` or `math` on scalars of a body
bodies      the body of an op, as the body of a nest
folds       reductions: the combiner, the initial value
structured  an op with a structure, as nests
general     a reduction without a combiner, as a procedure
tensors     the ops of `tensor`
function    a function, op by op
"""
