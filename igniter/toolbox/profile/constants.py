"""The constants of a model in their uses by nodes: weights, values computed from weights alone, and parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import NoneType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.traits import Pure

from igniter.dialects.onnx.attributes import TensorAttr, text_of
from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.sym.expr import Expr
from igniter.toolbox.profile.profile import Sparsity, Tensor, WeightUse
from igniter.toolbox.profile.sparsity import sparsity_of
from igniter.toolbox.profile.tensors import TensorTable

if TYPE_CHECKING:
    from igniter.dialects.onnx.weights import Weight

UNLEARNED = frozenset(("int64", "bool", "string"))
"""Element types of constants that encode shapes, indices and choices."""

KEPT = frozenset(("DequantizeLinear", "QuantizeLinear"))
"""Ops that runtimes do not fold even if all their operands are constants: folding would undo the compression of
weights."""

SAME_ELEMENTS = frozenset(("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))
"""Ops whose result has the elements of their first operand: these are the same parameters."""

PACKED: dict[str, tuple[tuple[int, ...], str, int]] = {
    "com.microsoft.GatherBlockQuantized": ((0,), "bits", 4),
    "com.microsoft.MatMulBlockQuantizedFp4Weight": ((1,), "", 4),
    "com.microsoft.MatMulBnb4": ((1,), "", 4),
    "com.microsoft.MatMulFpQ4": ((1,), "", 4),
    "com.microsoft.MatMulNBits": ((1,), "bits", 4),
    "com.microsoft.MatMulNBitsMlp": ((3, 6), "bits", 4),
    "com.microsoft.MatMulNBitsQLoRA": ((1,), "bits", 4),
    "com.microsoft.MatMulNBitsQkv": ((3, 5, 7), "bits", 4),
    "com.microsoft.QMoE": ((2, 5, 8), "expert_weight_bits", 4),
}
"""Operands whose bytes hold several parameters: their indices, the attribute with the bits of one, its default."""


class Constant(NamedTuple):
    """A value independent of the model's inputs. `root` is the constant whose elements it has."""

    root: object
    name: str
    tensor: Tensor
    elements: int
    nbytes: int
    weight: Weight | None

    def use(self, op: OnnxOp, index: int) -> WeightUse:
        """Returns the constant as operand `index` of a node."""
        learned = bool(self.tensor.dims) and self.tensor.element not in UNLEARNED
        count = self.elements if learned else 0
        packed = PACKED.get(op.qualified_name)
        if count and packed is not None and index in packed[0] and self.tensor.element in ("uint8", "int8"):
            count *= 8 // int((op.attr(packed[1], packed[2]) if packed[1] else None) or packed[2])
        return WeightUse(self.root, self.name, self.tensor, count, self.nbytes)


def _is_packed(op: OnnxOp, index: int) -> bool:
    return index in PACKED.get(op.qualified_name, ((),))[0]


class Constants:
    """The constants found so far; nodes are offered in the order of the graph."""

    def __init__(self, tensors: TensorTable, fold: bool, sparsity: bool):
        self.known: dict[SSAValue, Constant] = {}
        self.tensors = tensors
        self._fold = fold
        self._sparsity = sparsity
        self._tensors: dict[tuple[int, tuple[int, ...]], Tensor] = {}
        self._zeros: dict[object, Sparsity | None] = {}

    def use(self, value: SSAValue, op: OnnxOp, index: int) -> WeightUse:
        """Returns a constant as operand `index` of a node, with its sparsity on request."""
        constant = self.known[value]
        found = constant.use(op, index)
        if not self._sparsity or constant.weight is None or not found.parameters or _is_packed(op, index):
            return found
        zero = 0
        if op.op_type == "DequantizeLinear" and index == 0 and len(op.inputs) > 2:
            point = constant_value(op.inputs[2])
            zero = int(point.reshape(-1)[0]) if point is not None and point.size == 1 else 0
        if constant.root not in self._zeros:
            self._zeros[constant.root] = sparsity_of(constant.weight, zero)
        return replace(found, sparsity=self._zeros[constant.root])

    def add(self, op: OnnxOp) -> None:
        """Records the result of an `onnx.Constant`."""
        result = op.results[0]
        value = op.attributes.get("value")
        weight = value.data if type(value) is TensorAttr else None
        # Two initializers of one range of a file are one constant.
        root: object = op if weight is None or weight.file is None else weight.file
        name = text_of(op.properties.get("initializer_name")) or "".join(op.output_names[:1])
        if weight is None:
            self._note(result, root, name)
            return
        tensor = self._tensors.get((weight.element.code, weight.shape))
        if tensor is None:
            tensor = Tensor(weight.element.onnx_name, tuple(map(Expr.of, weight.shape)))
            self._tensors[weight.element.code, weight.shape] = tensor
        self.known[result] = Constant(root, name, tensor, weight.size, weight.nbytes, weight)

    def add_default(self, arg: BlockArgument, name: str) -> None:
        """Records an input with a default value."""
        self._note(arg, arg, name)

    def fold(self, op: OnnxOp) -> bool:
        """True if a node depends on constants alone; its results are then constants."""
        if not self._fold or op.regions:
            return False
        known = self.known
        given: list[SSAValue] = []
        for value in op.operands:
            if value in known:
                given.append(value)
            elif type(value.type) is not NoneType:
                return False
        if op.op_type in KEPT or not op.has_trait(Pure):
            return False
        found = [self.tensors.of(r.type) for r in op.results]
        if any(t is None or t.size is None or t.size.elements.constant is None for t in found):
            return False
        first = self.known[given[0]] if given else None
        for k, result in enumerate(op.results):
            names = op.output_names
            same = op.domain == "" and op.op_type in SAME_ELEMENTS and first is not None
            root = first.root if same and first is not None else result
            self._note(result, root, names[k] if k < len(names) else "")
        return True

    def _note(self, value: SSAValue, root: object, name: str) -> None:
        fact = self.tensors.of(value.type)
        if fact is None or fact.size is None or (elements := fact.size.elements.constant) is None:
            return
        self.known[value] = Constant(root, name, fact.tensor, elements, fact.size.nbytes.constant or 0, None)
