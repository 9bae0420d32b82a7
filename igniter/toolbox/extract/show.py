"""`igniter extract`: a part of a model as a model, or all three parts as a folder of stages."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import igniter
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.frontend import save_model
from igniter.toolbox.edit.show import print_check
from igniter.toolbox.edit.verified import EditCheck, too_big
from igniter.toolbox.extract.extract_part import extract_parts
from igniter.toolbox.output import console, parse_shapes, print_json
from igniter.toolbox.split.stages.writing import check_part

if TYPE_CHECKING:
    from igniter.api import Module
    from igniter.toolbox.extract.parts import Part
    from igniter.toolbox.extract.request import ExtractRequest
    from igniter.toolbox.split.stages.manifest import Manifest


def run(asked: ExtractRequest) -> int:
    """Cuts, checks, writes and prints; returns the exit status, 1 if the parts differ from the model."""
    if not asked.output:
        raise IgniterError("name the model to write, or the folder for --part all, with -o")
    module = igniter.load(asked.model)
    first, last = split_names(asked.start), split_names(asked.end)
    shapes = (parse_shapes(asked.shape) or [{}])[0]
    parts = extract_parts(module.ir, first, last, exact=asked.part == "inside")
    if asked.part == "all":
        from igniter.toolbox.split.stages.writing import check_stages, write_stages

        graph = main_graph(module.ir)

        def look(made: Manifest) -> EditCheck:
            return check_stages(module.current_source(), made, shapes, asked.seed)

        why = too_big(module.ir) if asked.verify else ""
        chosen = look if asked.verify and not why else None
        _, check = write_stages(parts, asked.output, graph.input_names, graph.output_names, check=chosen)
        check = EditCheck("not run", reason=why) if why else check
    else:
        parts = [p for p in parts if p.name == asked.part]
        if not parts:
            raise IgniterError(f"there is nothing {asked.part} these values")
        check = _write_one(module, parts[0], asked.output, asked.keep_weights, asked.verify, shapes, asked.seed)
    ok = check is None or check.status != "differs"
    told: dict[str, Any] = {
        "output": asked.output if ok else None,
        "parts": [
            {"name": p.name, "inputs": list(p.inputs), "outputs": list(p.outputs), "nodes": p.nodes} for p in parts
        ],
        "check": None if check is None else check.to_dict(),
    }
    if asked.json:
        print_json(told)
    else:
        _print(told)
    return 0 if ok else 1


def split_names(text: str) -> tuple[str, ...]:
    """Splits `a,b` into names; a name with a comma in it is written between double quotes."""
    rows = list(csv.reader([text], skipinitialspace=True)) if text else []
    return tuple(n.strip() for n in rows[0]) if rows else ()


def _write_one(
    module: Module, part: Part, output: str, keep: bool, verify: bool, shapes: dict[str, int], seed: int
) -> EditCheck | None:
    kept = module.external if keep else ()
    why = too_big(module.ir) if verify else ""
    if not verify or why:
        save_model(part.module, output, keep=kept)
        return EditCheck("not run", reason=why) if why else None
    with tempfile.TemporaryDirectory(prefix="igniter-extract-") as scratch:
        path = Path(scratch) / "part.onnx"
        save_model(part.module, path)
        check = check_part(module.current_source(), part, path, shapes, seed)
    if check.status != "differs":
        save_model(part.module, output, keep=kept)
    return check


def _print(told: dict[str, Any]) -> None:
    out = console()
    for part in told["parts"]:
        out.print(f"{part['name']}: {part['nodes']} nodes", markup=False)
        out.print(f"  in:  {', '.join(part['inputs'])}", markup=False)
        out.print(f"  out: {', '.join(part['outputs'])}", markup=False)
    if told["check"] is not None:
        print_check(told["check"])
    out.print(f"written to {told['output']}" if told["output"] else "nothing is written", markup=False)
