"""Substitutes for ONNX Runtime if it does not load the original: ONNX's reference evaluator, Igniter's interpreter.

ONNX Runtime has no kernel for some ops and types that ONNX allows, and does not know a user's own ops. Such a model is
compared with another implementation:

    ONNX's reference evaluator    every op implemented by the onnx package, on NumPy
    Igniter's interpreter         every node with a lowering, also of plug-ins: each node is a separate kernel, run on
                                  NumPy by the interpreter of the structured level. A user's op with `fold` in its spec
                                  is computed by `fold`. This does not test the lowering of these nodes, but it tests
                                  everything below.

Both take arrays of all types. Both are slow, so they check the time limit between nodes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import onnx
from onnx.external_data_helper import load_external_data_for_model, uses_external_data
from xdsl.dialects.builtin import ModuleOp, NoneType
from xdsl.ir import SSAValue

from igniter.analysis.fusion.graph import region_nodes
from igniter.context import IgniterContext
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import KernelOp
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_value, imported_opset
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.schemas import op_names
from igniter.dialects.onnx.structure import ReturnOp, main_graph
from igniter.dialects.onnx.types import BY_CODE, element_of_dtype
from igniter.dialects.onnx.weights import Weight
from igniter.errors import IgniterError
from igniter.frontend import import_model, why_invalid
from igniter.frontend.evaluate import CannotEvaluate, evaluate_nodes
from igniter.frontend.ort_values import ArraySession
from igniter.passes import run_pipeline
from igniter.runtime.session import SessionError, said_by_onnxruntime
from igniter.verification.guard import TooMuch
from igniter.verification.interp.structured import run_kernel
from igniter.verification.original import Original
from igniter.verification.report import Verification

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

MOST_BYTES = 1 << 30
"""The maximum size of a model's weights; a larger model is not loaded a second time."""
ALONE = "inline-functions,infer-shapes,form-fusion-regions{contractions=all singletons=all views=all max-nodes=1}"
LOWERED = f"{ALONE},lower-onnx-to-loop"

NO_OTHER = "without a `fold` it is its own reference"

_log = logging.getLogger(__name__)

StandIn = Callable[["onnx.ModelProto", str], ArraySession]
"""A function from a model's message and the folder of its external data to a session, or `IgniterError`."""


@dataclass(frozen=True)
class Value:
    """An input or output in the form of ONNX Runtime's sessions."""

    name: str
    type: str
    shape: list[int | str | None]


class _Session(ArraySession):
    """The common base of both sessions: the inputs and outputs of a model, and a time limit."""

    def __init__(self, proto: onnx.ModelProto):
        defaults = {t.name for t in proto.graph.initializer}
        self._inputs = [_value(v) for v in proto.graph.input if v.name not in defaults]
        self._outputs = [_value(v) for v in proto.graph.output]

    def get_inputs(self) -> list[Any]:
        return list(self._inputs)

    def get_outputs(self) -> list[Any]:
        return list(self._outputs)

    def run(self, names: Sequence[str] | None, feed: Mapping[str, Any], deadline: float = float("inf")) -> list[Any]:
        missing = [v.name for v in self._inputs if v.name not in feed and not v.type.startswith("optional(")]
        if missing:
            raise IgniterError(f"input '{missing[0]}' has no value")
        found = self.compute(feed, _clock(deadline))
        return [found[n] for n in names or [v.name for v in self._outputs]]

    def compute(self, feed: Mapping[str, Any], tick: Callable[[], None]) -> Mapping[str, Any]:
        """Returns the values by name. Calls `tick` between nodes; it raises `TooMuch` after the deadline."""
        raise NotImplementedError


def _clock(deadline: float) -> Callable[[], None]:
    start = time.monotonic()

    def tick() -> None:
        if time.monotonic() > deadline:
            raise TooMuch(f"it takes more than {deadline - start:.3g} s")

    return tick


def _value(value: onnx.ValueInfoProto) -> Value:
    dims: list[int | str | None] = []
    if value.type.HasField("tensor_type"):
        shape = value.type.tensor_type.shape.dim
        dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in shape]
    return Value(value.name, _type_text(value.type), dims)


def _type_text(type_: onnx.TypeProto) -> str:
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        row = BY_CODE.get(type_.tensor_type.elem_type)
        return f"tensor({row.onnx_name if row is not None else 'undefined'})"
    if kind == "sequence_type":
        return f"seq({_type_text(type_.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_type_text(type_.optional_type.elem_type)})"
    return "tensor(undefined)" if kind is None else kind.removesuffix("_type")


# -- ONNX's reference evaluator ---------------------------------------------------------------------------------------


class ReferenceSession(_Session):
    """A session of a model in ONNX's reference evaluator."""

    def __init__(self, proto: onnx.ModelProto, folder: str):
        from onnx.reference import ReferenceEvaluator

        super().__init__(proto)
        self._tick: Callable[[], None] = lambda: None
        session = self
        exact_erf = _exact_erf()

        class Ticking(ReferenceEvaluator):
            """The evaluator with a call of `tick` at every node, from its log messages."""

            def __init__(self, model: Any, *args: Any, new_ops: Sequence[Any] | None = None, **more: Any):
                # The evaluator makes one of its own class for each function, without the new ops.
                super().__init__(model, *args, new_ops=[*(new_ops or [exact_erf])], **more)

            def _log(self, level: int, pattern: str, *args: Any) -> None:
                session._tick()

        try:
            self._types = _output_types(proto)
            self._evaluator: Any = Ticking(_whole(proto, folder))
        except Exception as error:  # the evaluator's errors have no common base class
            raise IgniterError(_said(error)) from error

    def compute(self, feed: Mapping[str, Any], tick: Callable[[], None]) -> Mapping[str, Any]:
        names = [v.name for v in self._outputs]
        self._tick = tick
        try:
            found: list[Any] = self._evaluator.run(names, dict(feed))
        except IgniterError:
            raise
        except Exception as error:  # the evaluator's errors have no common base class
            raise IgniterError(_said(error)) from error
        values = dict(zip(names, map(_array, found), strict=True))
        for name, type_ in self._types.items():
            given = getattr(values[name], "dtype", None)
            if given is not None and given.kind != "O" and element_of_dtype(given).onnx_name != type_:
                raise IgniterError(f"it returns output '{name}' as {given}, but the type is {type_}")
        return values


def _exact_erf() -> Any:
    """Returns Erf as an op of the evaluator. The evaluator's own Erf rounds to f32 for all types."""
    from onnx.reference.op_run import OpRun

    erf = np.vectorize(math.erf, otypes=[np.float64])

    class Erf(OpRun):
        op_domain = ""

        def _run(self, x: Array) -> tuple[Array]:
            return (erf(x.astype(np.float64)).astype(x.dtype),)

    return Erf


def _output_types(proto: onnx.ModelProto) -> dict[str, str]:
    """Returns the declared or inferred element types of the tensor outputs, without unknown types and strings."""
    types = {v.name: _type_text(v.type) for v in proto.graph.output}
    if any("undefined" in text for text in types.values()):
        inferred = onnx.shape_inference.infer_shapes(proto)
        types = {v.name: _type_text(v.type) for v in inferred.graph.output}
    tensors = {name: text.removeprefix("tensor(")[:-1] for name, text in types.items() if text.startswith("tensor(")}
    return {name: type_ for name, type_ in tensors.items() if type_ not in ("undefined", "string")}


def _array(value: Any) -> Any:
    """Returns a NumPy scalar of the evaluator as an array, and other values unchanged."""
    scalar = isinstance(value, np.generic)
    return np.asarray(cast("Any", value)) if scalar else value


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}".removesuffix(": ")


def _whole(proto: onnx.ModelProto, folder: str) -> onnx.ModelProto:
    """Returns the model with its external weights loaded. Raises `IgniterError` over `MOST_BYTES`."""
    outside = [t for t in proto.graph.initializer if uses_external_data(t)]
    size = sum(int(entry.value) for t in outside for entry in t.external_data if entry.key == "length")
    if size > MOST_BYTES:
        raise IgniterError(f"its weights are over {MOST_BYTES >> 30} GB")
    if not outside:
        return proto
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    load_external_data_for_model(made, folder)
    return made


# -- Igniter's interpreter --------------------------------------------------------------------------------------------


class InterpretedSession(_Session):
    """A session with a kernel for every node that has a lowering, run by the interpreter of the structured level."""

    def __init__(self, proto: onnx.ModelProto, folder: str):
        super().__init__(proto)
        self._module: ModuleOp = import_model(proto, base_dir=folder)
        run_pipeline(IgniterContext(), self._module, LOWERED)
        self._kernels = {op.sym_name.data: op for op in self._module.ops if isinstance(op, KernelOp)}
        self.untested = self._without_fold()
        """The user's ops whose lowering is their own reference, because their specs have no `fold`."""
        for name in self.untested:
            what = "give its OpSpec a `fold`, which computes the op on arrays"
            _log.warning(f"the lowering of {name} is not verified: {NO_OTHER}; {what}")

    def _without_fold(self) -> tuple[str, ...]:
        alone = [
            nodes[0] for op in self._module.walk() if isinstance(op, RegionOp) and len(nodes := region_nodes(op)) == 1
        ]
        return tuple(dict.fromkeys(n.qualified_name for n in alone if _is_users(n) and not _has_fold(n)))

    def compute(self, feed: Mapping[str, Any], tick: Callable[[], None]) -> Mapping[str, Any]:
        graph = main_graph(self._module)
        values: dict[SSAValue, Any] = {
            arg: feed.get(name) for name, arg in zip(graph.input_names, graph.body.args, strict=True)
        }
        for op in graph.body.ops:
            tick()
            if isinstance(op, RegionOp):
                found = self._region(op, values)
            elif isinstance(op, OnnxOp):
                found = _node(op, values)
            elif isinstance(op, NoValueOp):
                found = [None]
            elif isinstance(op, ReturnOp):
                return dict(zip((v.name for v in self._outputs), (values[v] for v in op.operands), strict=True))
            else:
                raise IgniterError(f"the interpreter does not support '{op.name}'")
            values.update(zip(op.results, found, strict=True))
        raise AssertionError("a graph must end with onnx.return")

    def _region(self, region: RegionOp, values: Mapping[SSAValue, Any]) -> Sequence[Any]:
        inputs = [values[v] for v in region.inputs]
        found = _folded(region, inputs)
        if found is not None:
            return found
        kernel: KernelOp = self._kernels[region.kernel_name or region.label]

        return run_kernel(kernel, [np.asarray(a, order="C") for a in inputs])


def _node(op: OnnxOp, values: Mapping[SSAValue, Any]) -> Sequence[Any]:
    """Returns the results of a node outside all regions: a constant, or computed by ONNX Runtime or ONNX's
    evaluator."""
    if op.op_type == "Constant":
        array = constant_value(op.results[0])
        if array is not None:
            return [array]
    given = {v: Weight.of(values[v]) for v in op.operands if values.get(v) is not None}
    opsets = {d: v for d in {"", op.domain} if (v := imported_opset(op, d)) is not None}
    wanted = [r for r in op.results if r in op.outputs]
    try:
        found = iter(evaluate_nodes([op], given, wanted, opsets))
    except CannotEvaluate as error:
        own = "; nothing computes it: give its OpSpec a `fold`" if _is_users(op) and not _has_fold(op) else ""
        raise IgniterError(f"node '{op.node_name or op.qualified_name}' ({op.qualified_name}): {error}{own}") from error
    return [next(found) if r in wanted else None for r in op.results]


def _is_users(op: OnnxOp) -> bool:
    """True for an op of a domain that neither ONNX nor ONNX Runtime knows."""
    return op.domain not in {domain for domain, _ in op_names()} | {"com.microsoft"}


def _has_fold(op: OnnxOp) -> bool:
    spec = spec_of(op)
    return spec is not None and spec.fold is not None


def _folded(region: RegionOp, inputs: Sequence[Any]) -> Sequence[Any] | None:
    """Returns the results of the `fold` of a user's op if the region is just this op; otherwise `None`."""
    nodes = region_nodes(region)
    spec = spec_of(nodes[0]) if len(nodes) == 1 else None
    if spec is None or spec.fold is None or not _is_users(nodes[0]):
        return None
    known: dict[SSAValue, Array] = dict(zip(region.block.args, inputs, strict=True))
    arrays: list[Array | None] = []
    for value in nodes[0].operands:
        array = known[value] if value in known else constant_value(value)
        if array is None and not isinstance(value.type, NoneType):
            return None
        arrays.append(array)
    results = spec.fold(nodes[0], arrays)
    if results is None:
        return None
    found: dict[SSAValue, Any] = dict(zip(nodes[0].results, results, strict=True))
    return [found[v] for v in region.yielded]


STAND_INS: Mapping[str, StandIn] = {
    "ONNX's reference evaluator": ReferenceSession,
    "Igniter's interpreter": InterpretedSession,
}
"""The substitutes for ONNX Runtime, in the order of trial."""


def substitute_for(data: bytes, error: SessionError) -> StandIn:
    """Returns the first substitute that loads a model of which ONNX Runtime's refusal is `error`; raises an error with
    all reasons if none does."""
    proto = onnx.ModelProto.FromString(data)
    reasons = [f"ONNX Runtime does not load it: {said_by_onnxruntime(error)}"]
    for name, make in STAND_INS.items():
        try:
            make(proto, "")
        except IgniterError as refused:
            reasons.append(f"{name} does not run it: {refused.message}")
        else:
            return make
    raise IgniterError(f"the graph does not run: {'; '.join(reasons)}") from error


def with_stand_ins(original: Original, compare: Callable[[Original], Verification]) -> Verification:
    """Returns `compare(original)`. If ONNX Runtime does not load a valid original, returns the first conclusive
    comparison with a substitute, or `not verified` with all reasons. Raises `SessionError` for an invalid model."""
    try:
        _ = original.session
    except SessionError as error:
        if original.model is None or why_invalid(original.model) is not None:
            raise
        because = f"ONNX Runtime does not load the original: {said_by_onnxruntime(error)}"
    else:
        return compare(original)
    reasons = [because]
    for name, make in STAND_INS.items():
        other = Original(original.model, options=original.options, stand_in=make)
        try:
            untested: tuple[str, ...] = getattr(other.session, "untested", ())
            told = f"; not verified is the lowering of {', '.join(untested)}: {NO_OTHER}" if untested else ""
            found = replace(compare(other), against=name, because=f"{because}{told}")
        except IgniterError as error:
            reasons.append(f"{name} does not run it: {error.message}")
            continue
        if found.status != "not verified":
            return found
        reasons.append(f"{name}: {'; '.join(found.reasons[:2])}")
    return Verification((), cannot="; ".join(reasons))
