"""The mean error of each channel in the quantised model, for biases to compensate, node by node from the front.

Rounding and clipping have a mean error, and so do the inputs from earlier nodes. A node is corrected after the nodes
before it: the quantised model gets an input beside each node, added to the node's result, and runs up to the node, with
the corrections of the nodes before it (empirical bias correction: Nagel et al., ICCV 2019). Independent nodes are
corrected together.

A mean over few samples is partly noise. It is shrunk by the share of the variance of such a mean in its square (the
positive part of James and Stein's estimator, channel by channel): differences between samples are left alone, and the
common part is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.toolbox.quantize.calibration.calibrate import groups_of
from igniter.toolbox.quantize.quantization_plan import Candidate, value_name

if TYPE_CHECKING:
    import onnx
    from xdsl.ir import SSAValue

    from igniter.dialects.onnx.structure import GraphOp

    Array = np.ndarray[Any, Any]

Samples = Callable[[], Iterator[Mapping[str, Any]]]

MOST_SAMPLES = 64
"""The limit of samples for means; more change them little, and each sample is run once for each level of nodes."""
FEW_PLACES = 16
"""The number of places of a channel below which the mean of a single sample is indistinguishable from chance."""
SHIFT = ".shift"


def channels_of(node: Candidate) -> int | None:
    """Returns the number of channels of a node's results, each with a mean; `None` if the weight is no constant."""
    weight = constant_weight(node.op.operands[1])
    if weight is None or weight.elided:
        return None
    if node.op.op_type == "ConvTranspose":
        return weight.shape[1] * int(node.op.attr("group", 1))
    if node.op.op_type == "MatMul" and len(weight.shape) != 2:
        return None
    return weight.shape[node.weight_axis]


def shift_dims(node: Candidate) -> tuple[int, int]:
    """Returns the number of channels of a node's results, and the number of dims after the channels."""
    weight, count = constant_weight(node.op.operands[1]), channels_of(node)
    assert weight is not None and count is not None
    return count, len(weight.shape) - 2 if node.op.op_type in ("Conv", "ConvTranspose") else 0


def levels(graph: GraphOp, nodes: Sequence[Candidate]) -> list[list[Candidate]]:
    """Returns the nodes in the order of their correction, in levels of independent nodes."""
    depth: dict[SSAValue, int] = {}
    by_op = {node.op: node for node in nodes}
    found: dict[int, list[Candidate]] = {}
    for op in graph.body.ops:
        at = max((depth.get(v, 0) for inner in op.walk() for v in inner.operands), default=0)
        node = by_op.get(op) if isinstance(op, OnnxOp) else None
        if node is not None:
            found.setdefault(at, []).append(node)
            at += 1
        for result in op.results:
            depth[result] = at
    return [found[k] for k in sorted(found)]


def with_shifts(proto: onnx.ModelProto, channels: Mapping[str, tuple[int, int]]) -> None:
    """Adds an input to each value of `channels`, given with its number of channels and of dims after them, and makes
    the values outputs."""
    there = {output.name for output in proto.graph.output}
    for index in reversed(range(len(proto.graph.node))):
        node = proto.graph.node[index]
        name = next((n for n in node.output if n in channels), None)
        if name is None:
            continue
        count, behind = channels[name]
        node.output[list(node.output).index(name)] = f"{name}.raw"
        added = helper.make_node("Add", [f"{name}.raw", name + SHIFT], [name])
        proto.graph.node.insert(index + 1, added)
        dims = [count, *(1 for _ in range(behind))]
        proto.graph.input.append(helper.make_tensor_value_info(name + SHIFT, TensorProto.FLOAT, dims))
        if name not in there:
            proto.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))


def find_shifts(
    reference: Any,
    quantized: Any,
    graph: GraphOp,
    nodes: Sequence[Candidate],
    samples: Samples,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Array]:
    """Returns by node the mean excess of each channel of its result, with all nodes before it corrected. `reference`
    has the nodes' results as outputs, and `quantized` is a session of the model from `with_shifts`."""
    names = {node: value_name(node.op.results[0], graph) for node in nodes}
    axes = {node: 1 if node.op.op_type in ("Conv", "ConvTranspose") else -1 for node in nodes}
    feeds: dict[str, Array] = {
        i.name: np.zeros(i.shape, np.float32) for i in quantized.get_inputs() if i.name.endswith(SHIFT)
    }
    places: dict[Candidate, int] = {}
    exact = _means(reference, nodes, names, axes, samples, {}, places)
    found: dict[str, Array] = {}
    steps = levels(graph, nodes)
    for number, level in enumerate(steps):
        progress(f"correcting biases, {number + 1} of {len(steps)}")
        means = _means(quantized, level, names, axes, samples, feeds, {})
        for node in level:
            shift = shrunk(means[node] - exact[node], places[node])
            found[node.name] = shift.astype(np.float32)
            feed = names[node] + SHIFT
            feeds[feed] = -found[node.name].reshape(feeds[feed].shape)
    return found


def shrunk(errors: Array, places: int) -> Array:
    """Returns the mean over samples, `[samples, channels]`, less the likely effect of chance."""
    mean = errors.mean(axis=0)
    if errors.shape[0] == 1:
        return mean if places >= FEW_PLACES else np.zeros_like(mean)
    chance = errors.var(axis=0, ddof=1) / errors.shape[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(mean != 0, 1.0 - chance / np.square(mean), 0.0)
    return mean * np.clip(share, 0.0, 1.0)


def _means(
    session: Any,
    nodes: Sequence[Candidate],
    names: Mapping[Candidate, str],
    axes: Mapping[Candidate, int],
    samples: Samples,
    feeds: Mapping[str, Array],
    places: dict[Candidate, int],
) -> dict[Candidate, Array]:
    """Returns the means of the channels, `[samples, channels]`, and the number of elements of a channel in the largest
    sample."""
    import onnxruntime

    ort: Any = onnxruntime
    options = ort.RunOptions()
    options.only_execute_path_to_fetches = True
    by_name = {names[node]: node for node in nodes}
    rows: dict[Candidate, list[Array]] = {node: [] for node in nodes}
    sizes: dict[str, int] = {}
    for feed in islice(samples(), MOST_SAMPLES):
        for group in groups_of(list(by_name), sizes):
            for name, value in zip(group, session.run(list(group), {**feed, **feeds}, options), strict=True):
                node, axis = by_name[name], axes[by_name[name]] % value.ndim
                over = tuple(k for k in range(value.ndim) if k != axis)
                rows[node].append(value.mean(axis=over, dtype=np.float64))
                places[node] = max(places.get(node, 0), value.size // max(value.shape[axis], 1))
                sizes[name] = max(sizes.get(name, 0), value.nbytes)
    return {node: np.stack(each) for node, each in rows.items()}


__all__ = ["channels_of", "find_shifts", "levels", "shift_dims", "shrunk", "with_shifts"]
