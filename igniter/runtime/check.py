"""`--check-each`: run the IR before and after every pass, and name the first pass that changed a result.

Every level runs: the ONNX graph in ONNX Runtime (fusion regions taken apart), kernels in the interpreters of their
levels (a big scheduled one compiled for this machine). What a pass turns one into the other (a region into a kernel, a
kernel into a scheduled one) is compared across the two, since they have the same name and inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.fusion import GroupOp, UnpackOp
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.onnx.structure import GraphOp, ReturnOp
from igniter.errors import IgniterError
from igniter.runtime.check_inputs import TypedInput, default_sizes, index_bound, inputs_of, random_arrays
from igniter.runtime.session import make_session
from igniter.runtime.verify import compare_output

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]


class ResultChanged(IgniterError):
    """A pass after which the IR computes something else."""


@dataclass
class ResultChecker:
    """A `PassObserver` that runs the module around every pass."""

    ctx: Context
    seed: int = 0
    log: IO[str] = field(default_factory=lambda: sys.stderr)
    _before: dict[str, list[Array]] | None = None

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        if self._before is None:
            self._before = run_module(module, self.seed)

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        now = run_module(module, self.seed)
        expected = self._before or {}
        compared = [name for name in now if name in expected]
        worst = 0.0
        for name in compared:
            worst = max(worst, self._compare(this.name, name, expected[name], now[name]))
        print(f"check: {this.name}: {len(compared)} results agree, largest relative error {worst:.1e}", file=self.log)
        # What a pass does not show any more (an inlined function) stays unknown; what is new is the next reference.
        self._before = now

    def _compare(self, pass_name: str, name: str, expected: Sequence[Array], actual: Sequence[Array]) -> float:
        if len(expected) != len(actual):
            raise ResultChanged(f"pass '{pass_name}' changed {name}: {len(actual)} results instead of {len(expected)}")
        worst = 0.0
        for index, (reference, got) in enumerate(zip(expected, actual, strict=True)):
            found = compare_output(f"result {index}", reference, got)
            if not found.ok:
                raise ResultChanged(f"pass '{pass_name}' changed {name}, {found.name}: {found.reason}")
            worst = max(worst, found.max_error)
        return worst


def run_module(module: ModuleOp, seed: int = 0) -> dict[str, list[Array]]:
    """The results of everything in the module that runs, by name, on random inputs that only `seed` decides."""
    results: dict[str, list[Array]] = {}
    regions = {r.label: r for r in module.walk() if isinstance(r, GroupOp)}
    kernels = {k.sym_name.data: k for k in module.ops if isinstance(k, (KernelOp, FuncOp))}
    for op in module.ops:
        if isinstance(op, GraphOp):
            results[f"graph @{op.sym_name}"] = run_graph(module, op, seed)
    for label, region in regions.items():
        # A kernel stands for its region: where both are there, the kernel is what the next pass may change.
        if label not in kernels:
            results[_key(label, regions)] = run_region(module, region, seed)
    for label, kernel in kernels.items():
        args = _inputs_of(kernel)
        bounds = [index_bound(a) for a in regions[label].block.args] if label in regions else [2] * len(args)
        specs = [TypedInput(f"i{n}", a.type, b) for n, (a, b) in enumerate(zip(args, bounds, strict=True))]
        results[_key(label, regions)] = run_kernel_op(kernel, specs, seed)
    return results


def _key(label: str, regions: Mapping[str, GroupOp]) -> str:
    """What results are compared under: a region whose weights are packed gets other inputs than it got before."""
    packed = label in regions and any(isinstance(op, UnpackOp) for op in regions[label].walk())
    return f"@{label} on packed weights" if packed else f"@{label}"


def _inputs_of(kernel: KernelOp | FuncOp) -> Sequence[SSAValue]:
    args = kernel.block.args
    return args if isinstance(kernel, KernelOp) else args[: len(args) - kernel.output_count]


def run_kernel_op(kernel: KernelOp | FuncOp, specs: Sequence[TypedInput], seed: int) -> list[Array]:
    """A kernel on random inputs: by the interpreter of its level."""
    import numpy as np

    sizes = default_sizes(s.type for s in specs)
    inputs = [np.ascontiguousarray(a) for a in random_arrays(specs, sizes, seed)]
    if isinstance(kernel, FuncOp):
        return run_scheduled(kernel, inputs, sizes)
    from igniter.runtime.interp.structured import run_kernel

    return run_kernel(kernel, inputs, sizes)


def run_onnx(module: ModuleOp, specs: Sequence[TypedInput], seed: int) -> list[Array]:
    """A module without regions, in ONNX Runtime, unoptimised."""
    from igniter.frontend import export_model

    inputs = random_arrays(specs, default_sizes(s.type for s in specs), seed)
    session: Any = make_session(
        export_model(module).SerializeToString(), graph_optimization_level=_unoptimised(), log_severity_level=3
    )
    given = {spec.name: array for spec, array in zip(specs, inputs, strict=True)}
    return list(session.run(None, given))


def _unoptimised() -> Any:
    import onnxruntime

    ort: Any = onnxruntime
    return ort.GraphOptimizationLevel.ORT_DISABLE_ALL


def run_graph(module: ModuleOp, graph: GraphOp, seed: int) -> list[Array]:
    """The main graph on random inputs, its regions taken apart."""
    from igniter.transforms.inline_regions import onnx_level

    specs = inputs_of(graph.input_names, graph.body.args)
    return run_onnx(onnx_level(module), specs, seed)


def run_region(module: ModuleOp, region: GroupOp, seed: int) -> list[Array]:
    """One region or program as a model of its own."""
    from igniter.dialects.onnx.attributes import texts_attr
    from igniter.transforms.inline_regions import inline_all

    names = [f"i{index}" for index in range(len(region.block.args))]
    block = Block(arg_types=[a.type for a in region.block.args])
    copy = region.clone()
    copy.operands = list(block.args)
    block.add_op(copy)
    block.add_op(ReturnOp.make(copy.results))
    attributes = {
        "input_names": texts_attr(names),
        "output_names": texts_attr([f"o{index}" for index in range(len(region.yielded))]),
    }
    graph = GraphOp.make("region", Region(block), attributes)
    alone = ModuleOp([graph], dict(module.attributes))
    inline_all(alone)
    return run_onnx(alone, inputs_of(names, region.block.args), seed)


INTERPRETED_ELEMENTS = 1 << 16
"""Up to this many elements in its buffers a scheduled kernel is interpreted, which checks bounds and races as well."""


def run_scheduled(func: FuncOp, inputs: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
    """A scheduled kernel: a small one interpreted, a big one compiled for this machine."""
    import numpy as np

    from igniter.dialects.onnx.types import BY_ATTR
    from igniter.dialects.sym import dims_of, element_of

    outputs: list[Array] = []
    for arg in func.block.args[len(inputs) :]:
        shape = [d.evaluate(dict(sizes)) for d in dims_of(arg.type)]
        outputs.append(np.zeros(shape, BY_ATTR[element_of(arg.type)].dtype))
    if sum(a.size for a in (*inputs, *outputs)) <= INTERPRETED_ELEMENTS:
        from igniter.runtime.interp.scheduled import run_func

        run_func(func, [*inputs, *outputs], sizes)
    else:
        from igniter.backends.cpu.jit import compile_func

        compile_func(func)(*inputs, *outputs, **sizes)
    return outputs
