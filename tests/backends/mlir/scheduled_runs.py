"""Kernels at the end of a pipeline, run by stock MLIR and compared with ONNX Runtime:
`python -m tests.backends.mlir.scheduled_runs [NAME...]`.

A subject is an example, a node case of ONNX or a model. Its regions run in ONNX Runtime after `cpu-fusion`, and their
kernels in MLIR at the end of `cpu`, on the same inputs, as `igniter-opt --check-each` compares two passes. The table
has the number of kernels that ran, of those that are equal, and of those that `--emit=scf` refuses. A kernel whose own
interpreter gives the same other values than ONNX Runtime (undefined results, sizes of a loop) is equal as well, and is
listed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from benchmark.models.networks import NETWORKS
from igniter.backends.mlir.text import MlirRefusal
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp
from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.passes import parse_passes, run_passes
from igniter.verification import check
from igniter.verification.interp.arithmetic import InterpreterError
from igniter.verification.judgement import Allowance, compare_within
from tests import quantized_models
from tests.backends.mlir.mlir_kit import call_scheduled
from tests.conformance.node_cases import BOUND, EVERYTHING, node_cases

Array = np.ndarray[Any, Any]

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "squeezenet1_1": lambda: NETWORKS["squeezenet1_1"](size=64),
    "shufflenet_v2": lambda: NETWORKS["shufflenet_v2"](size=64),
    "encoder": quantized_models.encoder,
}


@dataclass
class Outcome:
    """The kernels of one subject, by name; a reason for each that is not equal or was refused."""

    ran: list[str] = field(default_factory=list[str])
    equal: list[str] = field(default_factory=list[str])
    different: dict[str, str] = field(default_factory=dict[str, str])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Kernels that MLIR does not lower or run."""
    unfit: dict[str, str] = field(default_factory=dict[str, str])
    """Kernels that do not take the random inputs: an index that is no element, for instance."""
    as_interpreted: dict[str, str] = field(default_factory=dict[str, str])
    """Of the equal kernels those that differ from ONNX Runtime as the interpreter does."""

    @property
    def row(self) -> str:
        counts = (len(self.ran), len(self.equal), len(self.different), len(self.refused), len(self.failed))
        return " | ".join(map(str, counts))

    @property
    def problems(self) -> dict[str, str]:
        return {**self.different, **self.refused, **self.failed}


def run_module(module: ModuleOp, fusion: str, loops: str = "cpu-loop,cpu-schedule") -> Outcome:
    """Runs the regions in ONNX Runtime and their kernels in MLIR. `fusion` are the passes up to regions."""
    context, outcome = IgniterContext(), Outcome()
    context.isolation.enabled = True
    run_passes(context, module, parse_passes(fusion))
    runner = check.ModuleRunner(seed=3)
    expected = runner.run(module)
    run_passes(context, module, parse_passes(loops))

    def scheduled(func: FuncOp, inputs: Sequence[Array], sizes: Mapping[str, int]) -> list[Array] | None:
        name = func.sym_name.data
        try:
            found = call_scheduled(func, inputs, sizes)
        except MlirRefusal as error:
            outcome.refused[name] = error.message
            return None
        except InterpreterError as error:
            outcome.unfit[name] = error.message
            return None
        except IgniterError as error:
            outcome.failed[name] = error.message
            return None
        outcome.ran.append(name)
        calls[name] = (func, [np.array(a) for a in inputs], dict(sizes), found)
        return found

    calls: dict[str, tuple[FuncOp, list[Array], dict[str, int], list[Array]]] = {}
    original, check.run_scheduled = check.run_scheduled, scheduled
    try:
        found = runner.run(module)
    finally:
        check.run_scheduled = original
    for name in outcome.ran:
        keys = [k for k in (f"@{name}", f"@{name} on packed weights") if k in found]
        problem = next(filter(None, (_differs(runner, k, expected.get(k), found[k]) for k in keys)), "")
        if problem:
            func, inputs, sizes, given = calls[name]
            own = original(func, inputs, sizes)
            same = own is not None and all(
                compare_within(name, e, a, Allowance()).ok for e, a in zip(own, given, strict=True)
            )
            (outcome.as_interpreted if same else outcome.different)[name] = problem
            if same:
                outcome.equal.append(name)
        elif any(k in expected for k in keys):
            outcome.equal.append(name)
    return outcome


def _differs(
    runner: check.ModuleRunner, key: str, before: Sequence[Array | None] | None, after: Sequence[Array | None]
) -> str:
    for index, (e, a) in enumerate(zip(before or (), after, strict=False)):
        if e is None or a is None:
            continue
        result = compare_within(key, e, a, Allowance(), runner.noise_of(key, index))
        if not result.ok:
            return f"result {index}: {result.reason or result}"
    return ""


def example(name: str) -> Outcome:
    """The kernels of an example: of a graph through the whole pipeline, of loops through the rest of it."""
    path = EXAMPLES / f"{name}.mlir"
    module = Parser(IgniterContext(), path.read_text(), str(path)).parse_module()
    return run_module(module, "cpu-onnx,cpu-tiles,cpu-fusion")


def node_case(name: str) -> Outcome:
    """The kernels of a node case with every op in a region."""
    return run_module(import_model(node_cases()[name].model), f"{BOUND},{EVERYTHING}")


def model(name: str) -> Outcome:
    return run_module(import_model(MODELS[name]()), "cpu-onnx,cpu-tiles,cpu-fusion")


def table(names: Sequence[str]) -> Iterator[str]:
    """The rows of the table; a summary at the end."""
    yield f"{'subject':60} ran | equal | different | refused | failed"
    whole = Outcome()
    for name in names:
        try:
            found = model(name) if name in MODELS else node_case(name) if name.startswith("test_") else example(name)
        except Exception as error:  # A subject that does not reach the loops is no kernel.
            yield f"{name:60} no kernels: {type(error).__name__}: {str(error).splitlines()[0][:150]}"
            continue
        for attribute in ("ran", "equal"):
            getattr(whole, attribute).extend(getattr(found, attribute))
        for attribute in ("different", "refused", "failed"):
            getattr(whole, attribute).update({f"{name} {k}": v for k, v in getattr(found, attribute).items()})
        yield f"{name:60} {found.row}"
        for kernel, reason in found.problems.items():
            yield f"    {kernel}: {reason[:600]}"
        for kernel, reason in found.unfit.items():
            yield f"    {kernel}, not for these inputs: {reason[:600]}"
        for kernel, reason in found.as_interpreted.items():
            yield f"    {kernel}, as the interpreter: {reason[:600]}"
    yield f"{'all':60} {whole.row}"


def main(names: Sequence[str]) -> None:
    if not names:
        names = [*(p.stem for p in sorted(EXAMPLES.glob("*.mlir"))), *sorted(node_cases()), *MODELS]
    for line in table(names):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
