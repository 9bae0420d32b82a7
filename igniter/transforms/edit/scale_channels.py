"""Scales of channels put into a model, and taken into its quantised form.

    %y = onnx.Conv(%x, %w)    ->    %s = onnx.Mul(%x, %inverse)              // 1 / s, a number for each channel
                                    %y = onnx.Conv(%s, %scaled)              // w * s

What the model computes stays, up to rounding. Where %x is of a convolution or product alone, through ops that keep
factors, the weight and the bias of that are divided instead. Once quantised, the multiplication is in the scales of
QuantizeLinear, which has one for each channel then; the tensor of codes, and what dequantises it, have one:

    %s = onnx.Mul(%x, %inverse)                   %q = onnx.QuantizeLinear(%x, %scale * s, %zeros) {axis = 1}
    %q = onnx.QuantizeLinear(%s, %scale, %zero)   ->
    %d = onnx.DequantizeLinear(%q, %scale, %zero) %d = onnx.DequantizeLinear(%q, %scale, %zero)

ONNX Runtime joins an op whose factors are all dequantised with the QuantizeLinear behind it, and its kernels for that
want one scale. So that is done behind inputs and behind elementwise ops with a factor in float alone. The result of a
convolution is divided by its weight, multiplied behind it, and that is in the scales of DequantizeLinear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.ir import BlockArgument, Operation, SSAValue

from igniter.analysis.model.channel_sites import UNJOINED, WITH_TWO, Site, depth_axis, row_axis, sites
from igniter.analysis.model.quantization_plan import Candidate
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_value, constant_weight, make_constant, make_op
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.onnx.weights import Weight

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

MARK, RESTORED = ".scaled", ".restored"
"""Behind the name of a value in that of the divided one, and of a divided one in that of what it was."""


@dataclass(frozen=True)
class ScaledAxis:
    """A weight that is multiplied by one number for each index along an axis; of `groups`, each group has its own part
    of the numbers, and is one of as many parts of the first axis."""

    source: Weight
    factors: tuple[float, ...]
    axis: int
    groups: int = 1

    def compute(self) -> Array:
        import numpy as np

        plain, factors = self.source.array(), np.array(self.factors, np.float64)
        if self.groups == 1:
            shape = [-1 if k == self.axis else 1 for k in range(plain.ndim)]
            return (plain * factors.reshape(shape)).astype(plain.dtype)
        apart = plain.reshape(self.groups, -1, *plain.shape[1:])
        wide = [self.groups, 1, -1, *(1 for _ in plain.shape[2:])]
        return (apart * factors.reshape(wide)).astype(plain.dtype).reshape(plain.shape)


def scale_channels(graph: GraphOp, nodes: Sequence[Candidate], scales: Mapping[str, Array]) -> list[str]:
    """Divides the channels of values by `scales`, in place; the names of those for which that was done."""
    done: list[str] = []
    for site in sites(graph, nodes):
        if site.name in scales and _fits(site, scales[site.name]):
            _scale(site, scales[site.name])
            done.append(site.name)
    return done


def _fits(site: Site, scale: Array) -> bool:
    if site.producer is not None:
        weight, axis = constant_weight(site.producer.op.operands[1]), row_axis(site.producer)
        if weight is None or axis is None or weight.shape[axis] != scale.size:
            return False
    for node in site.readers:
        weight = constant_weight(node.op.operands[1])
        axis, groups = depth_axis(node)
        if weight is None or weight.shape[axis] * groups != scale.size:
            return False
    return True


def _scale(site: Site, scale: Array) -> None:
    import numpy as np

    exact = scale.astype(np.float64)
    if not site.readers:
        _restore(site, scale)
        return
    if site.producer is not None:
        _divide(site.producer, exact)
    else:
        rank = len(_weight(site.readers[0].op).shape)
        inverse = (1.0 / exact).astype(np.float32)
        # What the weight is multiplied by is the inverse of the rounded number.
        exact = 1.0 / inverse.astype(np.float64)
        shaped = inverse.reshape(1, -1, *(1 for _ in range(rank - 2))) if site.axis == 1 else inverse
        constant = make_constant(shaped, f"{site.name}.inverse")
        names = [f"{site.name}{MARK}"]
        divided = make_op("Mul", [site.value, constant.results[0]], [site.value.type], output_names=names)
        first = min((r.op for r in site.readers), key=_place)
        for made in (constant, divided):
            assert first.parent is not None
            first.parent.insert_op_before(made, first)
        for reader in site.readers:
            reader.op.operands[0] = divided.results[0]
    for reader in site.readers:
        axis, groups = depth_axis(reader)
        _multiply(reader.op, 1, exact, axis, groups)


def _restore(site: Site, scale: Array) -> None:
    assert site.producer is not None
    op = site.producer.op
    _divide(site.producer, scale.astype("float64"))
    shaped = scale.astype("float32").reshape(1, -1, *(1 for _ in range(len(_weight(op).shape) - 2)))
    constant = make_constant(shaped, f"{site.name}.factors")
    uses = list(site.value.uses)
    names = [f"{site.name}{RESTORED}"]
    made = make_op("Mul", [site.value, constant.results[0]], [site.value.type], output_names=names)
    assert op.parent is not None
    op.parent.insert_op_after(made, op)
    op.parent.insert_op_after(constant, op)
    for use in uses:
        use.operation.operands[use.index] = made.results[0]


def _place(op: Operation) -> int:
    block = op.parent
    assert block is not None
    return block.get_operation_index(op)


def _divide(node: Candidate, scale: Array) -> None:
    """Divides a node's results by a number for each channel."""
    axis = row_axis(node)
    assert axis is not None
    _multiply(node.op, 1, 1.0 / scale, axis, 1)
    if len(node.op.operands) > 2 and not isinstance(node.op.operands[2].owner, NoValueOp):
        _multiply(node.op, 2, 1.0 / scale, 0, 1)


def _multiply(op: OnnxOp, index: int, factors: Array, axis: int, groups: int) -> None:
    from igniter.analysis.model.weight_plan import weight_name

    value = op.operands[index]
    weight, place = constant_weight(value), value.owner
    assert weight is not None and isinstance(place, OnnxOp) and op.parent is not None
    scaled = ScaledAxis(weight, tuple(factors.tolist()), axis, groups)
    name = weight_name(place)
    if value.get_unique_use() is None:
        name = f"{name}.{op.node_name or op.output_names[0]}"
    made = make_constant(Weight(weight.shape, weight.element_type, derivation=scaled), name)
    op.parent.insert_op_before(made, op)
    op.operands[index] = made.results[0]
    if value.first_use is None:
        assert place.parent is not None
        place.parent.erase_op(place)


def _weight(op: OnnxOp) -> Weight:
    weight = constant_weight(op.operands[1])
    assert weight is not None
    return weight


# -- into the quantised form ------------------------------------------------------------------------------------------


def fold_scales(graph: GraphOp) -> None:
    """Takes multiplications that `scale_channels` put in front of QuantizeLinear, or behind DequantizeLinear, into the
    scales of these."""
    for op in list(graph.body.ops):
        if isinstance(op, OnnxOp) and op.op_type == "Mul" and op.output_names[:1]:
            if op.output_names[0].endswith(MARK):
                _fold(graph, op)
            elif op.output_names[0].endswith(RESTORED):
                _fold_behind(graph, op)


def _fold_behind(graph: GraphOp, op: OnnxOp) -> None:
    import numpy as np

    back, factors = op.operands[0].owner, constant_value(op.operands[1])
    if not isinstance(back, OnnxOp) or back.op_type != "DequantizeLinear" or factors is None:
        return
    scale, zero = constant_value(back.operands[1]), constant_value(back.operands[2])
    if scale is None or zero is None or back.results[0].get_unique_use() is None:
        return
    scales = (scale.astype(np.float64) * factors.astype(np.float64)).astype(np.float32).reshape(-1)
    name = op.output_names[0].removesuffix(RESTORED)
    made = [make_constant(scales, f"{name}.scales"), make_constant(np.full(scales.shape, zero), f"{name}.zeros")]
    inputs = [back.operands[0], *(m.results[0] for m in made)]
    restored = make_op("DequantizeLinear", inputs, [op.results[0].type], {"axis": 1})
    for each in (*made, restored):
        graph.body.insert_op_before(each, op)
    op.results[0].replace_all_uses_with(restored.results[0])
    graph.body.erase_op(op)
    graph.body.erase_op(back)


def _fold(graph: GraphOp, op: OnnxOp) -> None:
    import numpy as np

    use = op.results[0].get_unique_use()
    reader = use.operation if use is not None else None
    inverse = constant_value(op.operands[1])
    if not isinstance(reader, OnnxOp) or reader.op_type != "QuantizeLinear" or inverse is None or inverse.ndim < 2:
        return
    scale, zero = constant_value(reader.operands[1]), constant_value(reader.operands[2])
    if scale is None or zero is None or not _in_float(op.operands[0]):
        return
    scales = (scale.astype(np.float64) / inverse.astype(np.float64)).astype(np.float32).reshape(-1)
    name = op.output_names[0].removesuffix(MARK)
    made = [
        make_constant(scales, f"{name}.scales"),
        make_constant(np.full(scales.shape, zero), f"{name}.zeros"),
    ]
    codes = make_op(
        "QuantizeLinear", [op.operands[0], *(m.results[0] for m in made)], [reader.results[0].type], {"axis": 1}
    )
    for each in (*made, codes):
        graph.body.insert_op_before(each, reader)
    reader.results[0].replace_all_uses_with(codes.results[0])
    graph.body.erase_op(reader)
    graph.body.erase_op(op)


def _in_float(value: SSAValue) -> bool:
    """Whether nothing joins what gives a value with a QuantizeLinear behind it."""
    if isinstance(value, BlockArgument):
        return True
    op = value.owner
    if not isinstance(op, OnnxOp) or op.domain:
        return False
    return op.op_type in UNJOINED or (op.op_type in WITH_TWO and any(not _dequantised(v) for v in op.operands))


def _dequantised(value: SSAValue) -> bool:
    return isinstance(value.owner, OnnxOp) and value.owner.op_type == "DequantizeLinear"


__all__ = ["ScaledAxis", "fold_scales", "scale_channels"]
