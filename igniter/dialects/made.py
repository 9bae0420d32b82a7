"""`fusion.make`: a constant that a kernel of the library computes from another one whenever a session is created.

    make ::= %t = fusion.make @kernel(%w) or %c : type to type

`%w` and `%c` are constants; `@kernel` is a `loop.kernel` with one argument, the tensor `%w`, and one result, which has
the bits of `%c`. A reader outside a region gets either: `%c` is what the model stores if the kernel cannot be compiled.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, SymbolRefAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure


@irdl_op_definition
class MakeOp(IRDLOperation):
    """A constant computed by a kernel when a session is created."""

    T: ClassVar = VarConstraint("T", base(TensorType))

    name = "fusion.make"
    kernel = prop_def(FlatSymbolRefAttrConstr)
    source = operand_def(TensorType)
    constant = operand_def(T)
    result = result_def(T)
    assembly_format = "$kernel `(` $source `)` `or` $constant `:` type($source) `to` type($result) attr-dict"
    traits = traits_def(Pure())

    def __init__(self, kernel: str, source: SSAValue, constant: SSAValue):
        super().__init__(
            operands=[source, constant],
            properties={"kernel": SymbolRefAttr(kernel)},
            result_types=[constant.type],
        )

    @property
    def kernel_name(self) -> str:
        return self.kernel.root_reference.data
