"""`--check-each`: run the IR before and after every pass, and name the first pass with a changed result.

Every level runs: the ONNX graph in ONNX Runtime (with fusion regions inlined; one with an op of a plug-in, by its
`fold` or its lowering), kernels in the interpreters of their
levels (a big scheduled one compiled for this machine). Results are compared across a lowering (a region to a kernel, a
kernel to a scheduled one), because both forms have the same name and inputs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from onnx import ModelProto
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.fusion import GroupOp, UnpackOp
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.onnx.attributes import texts_attr
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.draws import RANDOM_OPS
from igniter.dialects.onnx.structure import GraphOp, ReturnOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.requirements import Requirement
from igniter.errors import IgniterError
from igniter.frontend import export_model
from igniter.frontend.exact_integers import exact_bytes
from igniter.frontend.ort_values import run
from igniter.runtime.session import SessionError, make_session
from igniter.targets import backend_for
from igniter.transforms.fusion.inline_regions import inline_all, onnx_level
from igniter.verification.check_bound import has_bound_nodes, inputs_in_graph
from igniter.verification.check_inputs import (
    TypedInput,
    index_bound,
    inputs_of,
    random_arrays,
    shape_of,
    sizes_of,
    sizes_without_empties,
)
from igniter.verification.graph_facts import model_facts
from igniter.verification.interp.scheduled import run_func
from igniter.verification.interp.structured import run_kernel
from igniter.verification.judgement import NO_NOISE, Noise, compare_output
from igniter.verification.original import NUDGES, Original, nudged_feed, unoptimised
from igniter.verification.stand_in import StandIn, substitute_for
from igniter.verification.verify import typical_inputs

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]


_log = logging.getLogger(__name__)


class ResultChanged(IgniterError):
    """Raised if the IR computes another result after a pass."""

    code = "IGN0104"
    exit_status = 3


@dataclass
class ResultChecker:
    """A `PassObserver` with runs of the module around every pass. `sizes` are the requested sizes of symbols."""

    checks_results: ClassVar[bool] = True
    ctx: Context
    seed: int = 0
    log: IO[str] | None = None
    """The stream for the outcome of each pass; `None` logs it."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    _runner: ModuleRunner | None = None
    _before: dict[str, list[Array | None]] | None = None

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        if self._before is None or self._runner is None:
            self._runner = ModuleRunner(self.seed, self.sizes)
            self._before = self._runner.run(module)
            self._say()

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        assert self._runner is not None
        now = self._runner.run(module)
        expected = self._before or {}
        compared = [name for name in now if name in expected]
        worst = 0.0
        for name in compared:
            worst = max(worst, self._compare(this.name, name, expected[name], now[name]))
        self._tell(f"check: {this.name}: {len(compared)} results agree, largest relative error {worst:.1e}")
        # An item removed by a pass (an inlined function) stays unknown; a new one is the next reference. An item
        # temporarily too big to run stays too.
        self._before = {**{k: v for k, v in expected.items() if self._runner.is_waiting(k)}, **now}
        self._say()

    def _tell(self, line: str) -> None:
        if self.log is None:
            _log.info("%s", line)
        else:
            print(line, file=self.log)

    def _say(self) -> None:
        assert self._runner is not None
        for line in self._runner.said:
            self._tell(f"check: {line}")
        self._runner.said.clear()

    def _compare(
        self, pass_name: str, name: str, expected: Sequence[Array | None], actual: Sequence[Array | None]
    ) -> float:
        if len(expected) != len(actual):
            raise ResultChanged(f"pass '{pass_name}' changed {name}: {len(actual)} results instead of {len(expected)}")
        assert self._runner is not None
        worst = 0.0
        for index, (reference, got) in enumerate(zip(expected, actual, strict=True)):
            if reference is None or got is None:
                continue
            noise = self._runner.noise_of(name, index)
            found = compare_output(f"result {index}", reference, got, noise=noise)
            if found.says_nothing:
                # No comparison is possible: any order of additions gives another result.
                self._tell(f"check: {name}, {found.name} is not compared: {found.reason}")
                continue
            if not found.ok:
                raise ResultChanged(f"pass '{pass_name}' changed {name}, {found.name}: {found.reason}")
            worst = max(worst, found.max_error)
        return worst


@dataclass
class ModuleRunner:
    """A repeated run of everything in a module, always on the same inputs, determined by `seed` and `sizes` alone.

    The main graph runs at sizes found by a search (`igniter.verification.sizes`). Its regions and kernels run
    at the same sizes if they have its symbols, otherwise at small ones without empty tensors.
    """

    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    said: list[str] = field(default_factory=list[str])
    _feed: dict[str, Any] | None = None
    _others: dict[str, list[list[Any]]] = field(default_factory=dict[str, list[list[Any]]])
    _not_run: set[str] = field(default_factory=set[str])
    _shapes: dict[str, list[tuple[int, ...]]] = field(default_factory=dict[str, list[tuple[int, ...]]])

    def run(self, module: ModuleOp) -> dict[str, list[Array | None]]:
        """Returns the results of everything, by name; `None` for a result affected by random nodes."""
        results: dict[str, list[Array | None]] = {}
        regions = {r.label: r for r in module.walk() if isinstance(r, GroupOp)}
        kernels = {k.sym_name.data: k for k in module.ops if isinstance(k, (KernelOp, FuncOp))}
        for op in module.ops:
            if isinstance(op, GraphOp):
                results[f"graph @{op.sym_name}"] = self._graph(module, op)
        for label, region in regions.items():
            # If a region has a kernel, only the kernel runs: the next pass may change it.
            if label not in kernels:
                key = _key(label, regions)
                names = [f"i{index}" for index in range(len(region.block.args))]
                specs = inputs_of(names, region.block.args)
                given = self._given(module, region)
                sizes = {} if given is not None else self._sizes(key, specs, list(region.walk()), ())
                inputs = random_arrays(specs, sizes, self.seed) if given is None else given
                nudges = 0 if key in self._others or given is not None else NUDGES
                runs = run_region(module, region, specs, inputs, self.seed, nudges)
                results[key] = list(runs[0])
                self._others.setdefault(key, runs[1:])
        for label, kernel in kernels.items():
            key = _key(label, regions)
            args = _inputs_of(kernel)
            bounds = [index_bound(a) for a in regions[label].block.args] if label in regions else [2] * len(args)
            specs = [TypedInput(f"i{n}", a.type, b) for n, (a, b) in enumerate(zip(args, bounds, strict=True))]
            given = self._given(module, regions[label]) if label in regions else None
            if given is not None:
                sizes = sizes_of([a.type for a in args], [a.shape for a in given])
            else:
                sizes = self._sizes(key, specs, list(kernel.walk()), kernel.requires)
            inputs = random_arrays(specs, sizes, self.seed) if given is None else given
            found = run_kernel_op(kernel, inputs, sizes)
            if found is not None:
                results[key] = list(found)
            elif key not in self._not_run:
                self._not_run.add(key)
                self.said.append(
                    f"{key} is too large for the interpreter; it is run again after its buffers are planned"
                )
        return results

    def _given(self, module: ModuleOp, region: GroupOp) -> list[Array] | None:
        """Returns the inputs of a region with bound nodes, taken from a run of the graph; None for other regions."""
        if self._feed is None or not has_bound_nodes(region):
            return None
        return inputs_in_graph(module, region.label, self._feed)

    def is_waiting(self, key: str) -> bool:
        """True for a kernel too big for the last run, which may run later."""
        return key in self._not_run

    def noise_of(self, name: str, index: int) -> Noise:
        """Returns the noise of a result, from the repeated runs of the graph or of the region where it first
        occurred."""
        others = self._others.get(name)
        return Noise([run[index] for run in others if index < len(run)], seen=True) if others else NO_NOISE

    def _graph(self, module: ModuleOp, graph: GraphOp) -> list[Array | None]:
        """Runs the main graph, with its regions inlined."""
        data = exact_bytes(export_model(onnx_level(module)))
        if self._feed is None:
            self._feed = self._find_inputs(data, graph)
        found: list[Array | None] = list(run(_session(data)[0], self._feed))
        random = _random_results(graph)
        return [None if index in random else value for index, value in enumerate(found)]

    def _find_inputs(self, data: bytes, graph: GraphOp) -> dict[str, Any]:
        """Finds sizes at which the graph runs, and inputs; derives the sizes of its symbols."""
        stand_in = _session(data)[1]
        original = Original(data, options={"graph_optimization_level": unoptimised()}, stand_in=stand_in)
        names = {s for spec in original.specs for s in spec.symbols()}
        fixed = {name: size for name, size in self.sizes.items() if name in names}
        _, feed = typical_inputs(original, model_facts(data), fixed, self.seed, small=True)
        # The elements of a sequence determine no dim of the graph.
        arguments = [
            (a.type, feed[n].shape)
            for n, a in zip(graph.input_names, graph.body.args, strict=True)
            if n in feed and not isinstance(feed[n], list)
        ]
        self.sizes = {**sizes_of([t for t, _ in arguments], [s for _, s in arguments]), **self.sizes}
        if not _random_results(graph):
            key = f"graph @{graph.sym_name}"
            self._others[key] = original.others(feed, {}, self.seed, thorough=False, seconds=None)
        shown = ", ".join(f"{name}={size}" for name, size in self.sizes.items()) or "those in the model"
        self.said.append(f"sizes are {shown}")
        return feed

    def _sizes(
        self, key: str, specs: Sequence[TypedInput], ops: Sequence[Operation], requires: Sequence[Requirement]
    ) -> dict[str, int]:
        """Returns the sizes for a region or a kernel: those of the first time, if they suffice."""
        types = [s.type for s in specs]
        earlier = self._shapes.get(key, [])
        # By place, not by name: deduplication of equal kernels renames symbols.
        same = sizes_of(types, earlier) if len(earlier) == len(types) else {}
        chosen = sizes_without_empties(types, ops, requires, {**self.sizes, **same})
        self._shapes[key] = [shape_of(t, chosen) for t in types]
        return chosen


def _session(data: bytes) -> tuple[Any, StandIn | None]:
    """Returns a session of a graph; if ONNX Runtime does not know an op, a plug-in's say, one of its substitute."""
    try:
        return make_session(data, graph_optimization_level=unoptimised(), log_severity_level=4), None
    except SessionError as error:
        stand_in = substitute_for(data, error)
        return stand_in(ModelProto.FromString(data), ""), stand_in


def _random_results(graph: GraphOp) -> set[int]:
    """Returns the results of the graph that depend on a random node."""
    random: set[SSAValue] = set()
    for op in graph.body.ops:
        inside = any(isinstance(o, OnnxOp) and o.op_type in RANDOM_OPS for o in op.walk())
        read = {v for o in op.walk() for v in o.operands}
        if inside or read & random:
            random.update(op.results)
    end = graph.body.last_op
    return {i for i, v in enumerate(end.operands) if v in random} if end is not None else set()


def _key(label: str, regions: Mapping[str, GroupOp]) -> str:
    """Returns the key of results for the comparison: a region has other inputs after its weights are packed."""
    packed = label in regions and any(isinstance(op, UnpackOp) for op in regions[label].walk())
    return f"@{label} on packed weights" if packed else f"@{label}"


def _inputs_of(kernel: KernelOp | FuncOp) -> Sequence[SSAValue]:
    args = kernel.block.args
    return args if isinstance(kernel, KernelOp) else args[: len(args) - kernel.output_count]


def run_kernel_op(kernel: KernelOp | FuncOp, given: Sequence[Array], sizes: Mapping[str, int]) -> list[Array] | None:
    """Runs a kernel on its inputs, in the interpreter of its level; returns `None` for one too big for it and not yet
    ready for compilation."""
    inputs = [np.asarray(a, order="C") for a in given]
    if isinstance(kernel, FuncOp):
        return run_scheduled(kernel, inputs, sizes)

    return run_kernel(kernel, inputs, sizes)


def run_region(
    module: ModuleOp, region: GroupOp, specs: Sequence[TypedInput], inputs: Sequence[Array], seed: int, nudges: int
) -> list[list[Array]]:
    """Runs one region or program as a model of its own, in ONNX Runtime, unoptimised: on its inputs, and `nudges` times
    with every float input nudged."""
    block = Block(arg_types=[a.type for a in region.block.args])
    copy = region.clone()
    copy.operands = list(block.args)
    block.add_op(copy)
    block.add_op(ReturnOp.make(copy.results))
    attributes = {
        "input_names": texts_attr([spec.name for spec in specs]),
        "output_names": texts_attr([f"o{index}" for index in range(len(region.yielded))]),
    }
    alone = ModuleOp([GraphOp.make("region", Region(block), attributes)], dict(module.attributes))
    inline_all(alone)
    data = exact_bytes(export_model(alone))
    session, _ = _session(data)
    feed: dict[str, Any] = {spec.name: array for spec, array in zip(specs, inputs, strict=True)}
    feeds = [feed, *(nudged_feed(feed, seed + k) or feed for k in range(nudges))]
    return [run(session, each) for each in feeds]


INTERPRETED_ELEMENTS = 1 << 16
"""The limit of elements in the buffers of an interpreted scheduled kernel; interpretation also checks bounds and
races."""


def run_scheduled(func: FuncOp, inputs: Sequence[Array], sizes: Mapping[str, int]) -> list[Array] | None:
    """Runs a scheduled kernel: a small one in the interpreter, a big one compiled for this machine. Compilation
    requires planned buffers; returns `None` before."""
    outputs: list[Array] = []
    for arg in func.block.args[len(inputs) :]:
        shape = [d.evaluate(dict(sizes)) for d in dims_of(arg.type)]
        outputs.append(np.zeros(shape, BY_ATTR[element_of(arg.type)].dtype))
    if sum(a.size for a in (*inputs, *outputs)) <= INTERPRETED_ELEMENTS:
        run_func(func, [*inputs, *outputs], sizes)
    elif func.scratch_bytes is None:
        return None
    else:
        backend_for("native").compile_func(func)(*inputs, *outputs, **sizes)
    return outputs[: len(outputs) - len(func.checks)]
