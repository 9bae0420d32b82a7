"""One task: an op and an element type, as many of its samples as asked for, both ways in."""

from __future__ import annotations

import contextlib
import logging
import random
import resource
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

import igniter.torch
import igniter.torch.sessions
from tests.torch.opinfo.judge import Eager, differences, sharing
from tests.torch.opinfo.programs import KINDS, Module, Sample, program, sample_of
from tests.torch.opinfo.values import LAYOUTS, copied, laid_out, other_values
from tests.torch.uncompiled import uncompiled

WAYS = ("torch.compile", "igniter.torch.compile")
MEMORY = 24 << 30
"""Bytes of address space; extremes as sizes ask for more."""

_SUMS = """sum sum_to_size nansum mean trace cumsum dot vdot inner mv mm bmm matmul __rmatmul__ addmm addmm.decomposed
    addmv addbmm baddbmm einsum tensordot linalg.multi_dot linalg.matrix_power nn.functional.linear
    nn.functional.bilinear nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d kron cov corrcoef"""
SUMS = frozenset(_SUMS.split())
"""Ops that add up products or elements, in an order that is theirs."""
_CHOICES = """maximum minimum fmax fmin amax amin aminmax clamp clamp_max clamp_min max.binary min.binary
    max.reduction_no_dim min.reduction_no_dim max.reduction_with_dim min.reduction_with_dim"""
CHOICES = frozenset(_CHOICES.split())
"""Ops that choose among equal elements: of two zeros eager takes the one or the other, by where they are."""

log = logging.getLogger("igniter.torch")


@dataclass(frozen=True)
class Task:
    op: str
    dtype: str
    seed: int = 0
    structures: int = 2
    """At most so many different calls: what is not a tensor, and ranks; 0 for all."""
    samples: int = 3
    """Further samples of each structure, for other sizes; 0 for all."""
    translation: bool = False
    """Run PyTorch's translation in ONNX Runtime as it is, through `torch.compile` alone: several times as fast, for
    faults of the exporter."""
    phase: str = ""
    """A file that says what is being done, for when the process ends."""


@dataclass
class Row:
    """What a task found: a line of the ledger."""

    op: str
    dtype: str
    calls: int = 0
    compiled: int = 0
    """Calls after which some part had run compiled."""
    samples: int = 0
    eager: dict[str, int] = field(default_factory=dict[str, int])
    """Reasons for what stays eager, with the number of functions."""
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """Calls that eager refuses, or does not repeat."""
    different: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    seconds: float = 0.0


@cache
def names() -> dict[str, Any]:
    """The ops of the database, by name and variant."""
    return {f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name: op for op in op_db}


def dtypes_of(name: str) -> list[str]:
    return sorted(str(dtype).removeprefix("torch.") for dtype in names()[name].supported_dtypes("cpu"))


def run_task(task: Task) -> dict[str, Any]:
    """The row of a task, as a dictionary."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    log.setLevel(logging.ERROR)
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    start = time.perf_counter()
    row = Row(task.op, task.dtype)
    if task.translation:
        igniter.torch.sessions.compiled = uncompiled
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            _Run(task, row).all()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    row.seconds = round(time.perf_counter() - start, 2)
    return dict(vars(row))


class _Run:
    def __init__(self, task: Task, row: Row):
        self.task = task
        self.row = row
        self.chance = random.Random(f"{task.op} {task.dtype} {task.seed}")
        torch.manual_seed(task.seed)

    def all(self) -> None:
        groups = self._groups()
        for samples in groups:
            for way in WAYS[:1] if self.task.translation else WAYS:
                self._function(samples, "plain", way)
        changeable = [samples for samples in groups if _has_parts(samples[0].tensors)]
        if changeable and not self.task.translation:
            self._function(changeable[0], self.chance.choice(KINDS[1:]), self.chance.choice(WAYS))

    def _groups(self) -> list[list[Sample]]:
        """Samples that one compiled function is for, the task's share of them."""
        op = names()[self.task.op]
        dtype = getattr(torch, self.task.dtype)
        groups: dict[Any, list[Sample]] = {}
        self._phase("samples")
        for each in op.sample_inputs("cpu", dtype, requires_grad=False):
            sample = sample_of(op, each)
            if any(tensor.numel() > 1 << 16 for tensor in sample.tensors):
                continue
            groups.setdefault(sample.structure, []).append(sample)
        chosen = list(groups.values())
        self.chance.shuffle(chosen)
        chosen = chosen[: self.task.structures or None]
        for samples in chosen:
            self.chance.shuffle(samples)
            del samples[1 + self.task.samples if self.task.samples else len(samples) :]
            self.row.samples += len(samples)
        return chosen

    def _function(self, samples: Sequence[Sample], kind: str, way: str) -> None:
        torch._dynamo.reset()
        igniter.torch.reset()
        eager = program(samples[0], kind)
        if way == "torch.compile":
            fast = torch.compile(eager, backend="igniter", dynamic=True, options={"keep_faster": False})
        else:
            fast = igniter.torch.compile(Module(eager).eval(), keep_faster=False)
        for name, tensors in self._calls(samples, kind):
            self._call(eager, fast, tensors, f"{way}, {kind}, {name}")
        for reason in igniter.torch.explain().reasons:
            self.row.eager[reason] = self.row.eager.get(reason, 0) + 1

    def _calls(self, samples: Sequence[Sample], kind: str) -> Iterator[tuple[str, list[torch.Tensor]]]:
        first = samples[0].tensors
        yield "first", first
        yield "other values", other_values(first, self.chance, 0.1)
        yield "extremes", other_values(first, self.chance, 1.0)
        for other in samples[1:]:
            yield "other sizes", other.tensors
            if kind == "plain":
                yield "extremes of other sizes", other_values(other.tensors, self.chance, 0.5)
        layout = self.chance.choice(LAYOUTS if kind == "plain" else [each for each in LAYOUTS if each != "expanded"])
        yield layout, [laid_out(tensor, layout) for tensor in first]

    def _call(
        self, eager: Callable[..., Any], fast: Callable[..., Any], tensors: list[torch.Tensor], name: str
    ) -> None:
        self._phase(name + ", eager")
        given, ours = copied(tensors), copied(tensors)
        try:
            want = _seeded(eager, given)
            again = copied(tensors)
            repeated = not differences(_seeded(eager, again), want) and not differences(again, given)
        except Exception as error:
            # Extremes are no indices, and some samples are there for their error.
            self._skip(f"eager refuses: {type(error).__name__}")
            return
        if not repeated:
            self._skip("eager does not repeat itself")
            return
        self._phase(name)
        before = sum(p.calls for g in igniter.torch.explain().graphs for p in g.pieces)
        try:
            got = _seeded(fast, ours)
        except Exception as error:
            text = str(error).strip().splitlines() or [""]
            self._differs(name, "error", f"{type(error).__name__}: {text[0][:300]}")
            return
        self.row.calls += 1
        self.row.compiled += sum(p.calls for g in igniter.torch.explain().graphs for p in g.pieces) > before
        more = Eager(
            lambda: _in_double(eager, tensors),
            lambda: [_in_layout(eager, tensors, layout) for layout in LAYOUTS if layout != "expanded"],
            lambda: _in_double(eager, [_absolute(t) for t in tensors]) if self.task.op in SUMS else None,
        )
        for kind, what in differences(got, want, more):
            if kind != "zero" or self.task.op not in CHOICES:
                self._differs(name, kind, what)
        for kind, what in differences(ours, given, None):
            self._differs(name, kind, f"changed inputs, {what}")
        flat = torch.utils._pytree.tree_leaves
        if sharing([*ours, *flat(got)]) != sharing([*given, *flat(want)]):
            one, two = sharing([*ours, *flat(got)]), sharing([*given, *flat(want)])
            self._differs(name, "memory", f"inputs and results are in memories {one} instead of {two}")

    def _differs(self, call: str, kind: str, what: str) -> None:
        self.row.different.append({"call": call, "kind": kind, "what": what})

    def _skip(self, why: str) -> None:
        self.row.skipped[why] = self.row.skipped.get(why, 0) + 1

    def _phase(self, name: str) -> None:
        if self.task.phase:
            with contextlib.suppress(OSError):
                Path(self.task.phase).write_text(name)


def _has_parts(tensors: Sequence[torch.Tensor]) -> bool:
    return bool(tensors) and tensors[0].dim() > 0 and tensors[0].layout is torch.strided


def _seeded(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    torch.manual_seed(0)
    return function(*tensors)


def _absolute(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.abs() if tensor.dtype.is_floating_point else tensor


def _in_layout(function: Callable[..., Any], tensors: Sequence[torch.Tensor], layout: str) -> Any:
    """The function's results for the same values in memory that is laid out otherwise; nothing where it refuses."""
    try:
        return _seeded(function, [laid_out(tensor, layout) for tensor in copied(tensors)])
    except Exception:
        # A view of memory may need another layout, and some ops take dense tensors alone.
        return None


def _in_double(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    """The function's results in double precision; nothing where it has none."""
    wide = [t.double() if t.dtype.is_floating_point else t for t in copied(tensors)]
    try:
        return _seeded(function, wide)
    except Exception:
        # Types have to be equal that are not any more, or the op has no doubles.
        return None
