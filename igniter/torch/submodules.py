"""Verification of each submodule of a model, compiled separately and compared with eager on the model's own calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from igniter.torch.compare import differences
from igniter.torch.intercepting import Call, chosen_modules, copied, flat, intercept
from igniter.torch.module import Igniter
from igniter.torch.names import torch
from igniter.torch.statistics import GraphReport, explain

COLUMNS = ("module", "class", "calls", "status", "error", "reason")


@dataclass(frozen=True)
class ModuleResult:
    """The result of one submodule. `status` is `same`, `differs`, `eager` (nothing was compiled), `partly` (some of it
    was compiled) or `not called`. `error` is the largest difference over the largest value, of all calls."""

    name: str
    kind: str
    calls: int
    status: str
    error: float
    reason: str
    seconds: float


@dataclass(frozen=True)
class ModuleResults:
    """The results of a model's submodules, in the order of its `named_modules()`. True if none differs."""

    modules: tuple[ModuleResult, ...] = field(default=())

    def __bool__(self) -> bool:
        return all(each.status != "differs" for each in self.modules)

    def to_dict(self) -> list[dict[str, Any]]:
        return [asdict(each) for each in self.modules]

    def rows(self) -> list[tuple[str, ...]]:
        """Returns a row of `COLUMNS` for each submodule."""
        return [
            (
                each.name or "(model)",
                each.kind,
                str(each.calls),
                each.status,
                f"{each.error:.1e}" if each.status in ("same", "differs", "partly") else "",
                each.reason,
            )
            for each in self.modules
        ]

    def __str__(self) -> str:
        rows = [COLUMNS, *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS) - 1)]
        return "\n".join(
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
            for row in rows
        )


def verify_every_module(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    only: str = "*",
    depth: int = 0,
    rtol: float = 1e-4,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> ModuleResults:
    """Runs `model` in eager, then compiles each submodule separately and repeats its calls.

    Every call of a submodule by the model is compared. `only` and `depth` choose submodules as in `intercept`;
    `options` are fields of `TorchOptions`. `progress` is called with each result. The model is in evaluation mode
    meanwhile.
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad(), intercept(model, only=only, depth=depth, show=None) as calls:
            model(*args, **(kwargs or {}))
        results: list[ModuleResult] = []
        for name, module in chosen_modules(model, only, depth):
            mine = [call for call in calls if call.name == name]
            results.append(_verify(name, module, mine, rtol, {**options, "verify": False}))
            if progress is not None:
                progress(" ".join(ModuleResults((results[-1],)).rows()[0]).strip())
        return ModuleResults(tuple(results))
    finally:
        for module in training:
            # Not `train()`: it would also switch submodules that were in evaluation mode before.
            module.training = True


def _verify(name: str, module: Any, calls: Sequence[Call], rtol: float, options: Mapping[str, Any]) -> ModuleResult:
    kind = type(module).__name__
    if not calls:
        return ModuleResult(name, kind, 0, "not called", 0.0, "", 0.0)
    start = time.perf_counter()
    fast = Igniter(module, **options)
    before = len(explain().graphs)
    largest, wrong = 0.0, ""
    with torch.no_grad():
        for call in calls:
            got = fast(*copied(call.args), **copied(call.kwargs))
            error, why = differences(flat(got), flat(call.result), rtol)
            largest, wrong = max(largest, error), wrong or why
    seconds = time.perf_counter() - start
    graphs = explain().graphs[before:]
    status, reason = _status(graphs)
    if wrong:
        status, reason = "differs", wrong
    return ModuleResult(name, kind, len(calls), status, largest, reason, round(seconds, 3))


def _status(graphs: Sequence[GraphReport]) -> tuple[str, str]:
    compiled = any(piece.compiled for graph in graphs for piece in graph.pieces)
    reasons = [graph.reason for graph in graphs if graph.reason]
    reasons += [piece.reason for graph in graphs for piece in graph.pieces if piece.reason]
    reasons += [f"{op}: {why}" for graph in graphs for op, why in graph.left.items()]
    if not compiled:
        return "eager", reasons[0] if reasons else "it has no ops"
    return ("partly", reasons[0]) if reasons else ("same", "")
