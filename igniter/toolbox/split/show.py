"""`igniter split`: a model as the stages of a pipeline, or as ranks with shared products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.edit.show import print_check
from igniter.toolbox.output import console, parse_sizes, print_json

if TYPE_CHECKING:
    from igniter.toolbox.split.request import SplitRequest
    from igniter.toolbox.split.stages.manifest import Manifest


def run(asked: SplitRequest) -> int:
    """Splits, checks, writes and prints; returns the exit status, 1 if the parts differ from the model."""
    if not asked.output:
        raise IgniterError("name the folder to write with -o")
    if bool(asked.stages) == bool(asked.tensor):
        raise IgniterError("say how many --stages a pipeline is to have, or how many ranks share products (--tensor)")
    if asked.tensor and (asked.balance != "flops" or asked.slack):
        raise IgniterError("--balance and --slack are for --stages: ranks share every product evenly")
    if asked.stages and not asked.alone:
        raise IgniterError("--no-alone is for --tensor")
    module = igniter.load(asked.model)
    sizes = parse_sizes(asked.sizes)
    if asked.tensor:
        manifest, check = module.split_products(
            asked.output, asked.tensor, asked.alone, verify=asked.verify, seed=asked.seed
        )
    else:
        manifest, check = module.split(
            asked.output,
            asked.stages,
            asked.balance,
            sizes=sizes,
            slack=asked.slack,
            verify=asked.verify,
            seed=asked.seed,
        )
    ok = check is None or check.status != "differs"
    told = describe(manifest) | {
        "folder": asked.output if ok else None,
        "check": None if check is None else check.to_dict(),
    }
    if asked.json:
        print_json(told)
    else:
        _print(told, manifest)
    return 0 if ok else 1


def describe(manifest: Manifest) -> dict[str, Any]:
    """Returns a manifest in JSON's types."""
    return {
        "kind": manifest.kind,
        "stages": [
            {"name": s.name, "nodes": s.nodes, "inputs": list(s.inputs), "outputs": list(s.outputs), **s.costs}
            for s in manifest.stages
        ],
        "flows": manifest.flows() if manifest.kind == "pipeline" else [],
        "segments": len(manifest.segments),
        "reduces": sum(len(s.reduces) for s in manifest.segments),
        "sizes": manifest.sizes,
    }


def _print(told: dict[str, Any], manifest: Manifest) -> None:
    out = console()
    if manifest.kind == "tensor":
        count = len(manifest.stages)
        out.print(f"{count} ranks of {manifest.stages[0].nodes} nodes, which add up {told['reduces']} values")
    else:
        kinds = list(manifest.stages[0].costs)
        table = Table("stage", "nodes", *kinds, "in", "out")
        for stage in manifest.stages:
            costs = [f"{stage.costs[k] * 1e3:.2f} ms" if k == "time" else f"{stage.costs[k]:,.0f}" for k in kinds]
            table.add_row(stage.name, str(stage.nodes), *costs, _names(stage.inputs), _names(stage.outputs))
        out.print(table)
    if told["check"] is not None:
        print_check(told["check"])
    out.print(f"written to {told['folder']}" if told["folder"] else "nothing is written", markup=False)


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return escape(shown)
