"""`Module.split`: from a module to a folder of stages or ranks, checked against the whole model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from igniter.analysis.onnx.input_places import by_symbol
from igniter.toolbox.edit.verified import EditCheck, too_big
from igniter.toolbox.extract.parts import Partition
from igniter.toolbox.split.cuts import split_stages
from igniter.toolbox.split.stages.manifest import Manifest
from igniter.toolbox.split.stages.measuring import node_seconds
from igniter.toolbox.split.stages.ranks import write_ranks
from igniter.toolbox.split.stages.writing import check_stages, write_stages

if TYPE_CHECKING:
    from igniter.model_tools import ModelTools


def split_model(
    module: ModelTools,
    folder: str | PathLike[str],
    stages: int,
    balance: str,
    sizes: Mapping[str, int],
    slack: float,
    *,
    verify: bool,
    seed: int,
) -> tuple[Manifest, EditCheck | None]:
    """Splits a model; `Module.split` describes the arguments."""
    verify, unverified = _verifies(module, verify)
    source = module.current_source() if verify or balance == "time" else None

    def seconds(partition: Partition) -> Mapping[Operation, float]:
        assert source is not None
        return node_seconds(partition, source, sizes, seed)

    found = split_stages(module.ir, stages, balance, by_symbol(module.ir, sizes), slack, seconds)
    manifest, check = write_stages(
        found.parts,
        fspath(folder),
        found.inputs,
        found.outputs,
        costs=found.costs,
        sizes=sizes,
        check=_check(source, sizes, seed) if verify else None,
    )
    return manifest, (unverified if check is None else check)


def split_products(
    module: ModelTools, folder: str | PathLike[str], ranks: int, alone: bool, *, verify: bool, seed: int
) -> tuple[Manifest, EditCheck | None]:
    """Splits products; `Module.split_products` describes the arguments."""
    verify, unverified = _verifies(module, verify)
    source = module.current_source() if verify else None
    look = _check(source, {}, seed) if verify else None
    manifest, check = write_ranks(module.ir, module.ctx, ranks, fspath(folder), alone=alone, check=look)
    return manifest, (unverified if check is None else check)


def _verifies(module: ModelTools, verify: bool) -> tuple[bool, EditCheck | None]:
    """Returns true if parts are compared with the whole model, and the outcome for a requested but impossible
    comparison."""
    why = too_big(module.ir) if verify else ""
    return (verify and not why), (EditCheck("not run", reason=why) if why else None)


def _check(source: str | Path | bytes | None, sizes: Mapping[str, int], seed: int) -> Callable[[Manifest], EditCheck]:
    def look(manifest: Manifest) -> EditCheck:
        assert source is not None
        return check_stages(source, manifest, sizes, seed)

    return look
