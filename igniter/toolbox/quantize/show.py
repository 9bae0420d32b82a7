"""`igniter quantize`: static quantisation by calibration, with the error of each node and of the whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

import igniter
from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.compress.show import beside, bytes_text, file_bytes, write
from igniter.toolbox.output import console, print_json, progress
from igniter.toolbox.tables import csv_text

if TYPE_CHECKING:
    from igniter.toolbox.quantize.calibration.quantizer import Quantization
    from igniter.toolbox.quantize.request import QuantizeRequest

SHOWN = 20
"""The number of rows of the printed table: the nodes with the largest errors."""
NAMED = 5
"""The number of unquantised nodes named for each reason."""
COLUMNS = ("node", "op", "sqnr_db", "relative_error", "quantised")


def run(request: QuantizeRequest) -> None:
    """Quantises, writes and prints."""
    if Path(request.output).exists() and Path(request.output).samefile(request.model):
        raise IgniterError(f"{request.output} is the model itself: write to another file")
    with progress("quantising", request.json) as step:
        module = igniter.load(request.model)
        before = file_bytes(request.model, module.external)
        found = module.quantize(request.data, progress=step, **_arguments(request))
        step("writing")
        write(module, request.output)
    size = {"before": before, "after": file_bytes(request.output, beside(request.output))}
    if request.csv:
        write_whole(request.csv, csv_text(COLUMNS, rows(found)))
    if request.parameters:
        write_whole(request.parameters, json.dumps(found.parameters.as_dict()) + "\n")
    if request.json:
        print_json({"model": request.model, "output": request.output, "bytes": size, **as_dict(found)})
    else:
        _print(request, found, size)


def as_dict(found: Quantization) -> dict[str, Any]:
    """Returns the outcome, in JSON's types."""
    return {
        "samples": found.samples,
        "method": found.method,
        "cut": found.cut,
        "corrected": found.corrected,
        "scaled": sorted(found.parameters.scales),
        "errors": found.errors,
        "held_errors": found.held,
        "tried": [{"in_float": count, "error": error} for count, error in found.tried],
        "not_finite": found.strange,
        "nodes": rows(found),
        "outside": [{"node": name, "reason": reason} for name, reason in found.outside],
        "ranges": {name: list(pair) for name, pair in found.ranges.items()},
    }


def rows(found: Quantization) -> list[dict[str, Any]]:
    """Returns the nodes, those with the largest errors first."""
    layers = sorted(found.layers, key=lambda each: -each.relative)
    return [
        dict(zip(COLUMNS, (e.name, e.op, e.sqnr, e.relative, e.name not in found.floats), strict=True)) for e in layers
    ]


def _print(request: QuantizeRequest, found: Quantization, size: dict[str, int]) -> None:
    out = console()
    table = Table("node", "op", "SQNR dB", "relative error", "")
    shown = rows(found)
    for row in shown[:SHOWN]:
        state = "quantised" if row["quantised"] else "[yellow]in float"
        table.add_row(row["node"], row["op"], f"{row['sqnr_db']:.1f}", f"{row['relative_error']:.1e}", state)
    if len(shown) > SHOWN:
        table.add_row(f"and {len(shown) - SHOWN} more, better", "", "", "", "")
    out.print(table)
    out.print(
        f"{len(found.layers) - len(found.floats)} of {len(found.layers)} nodes quantised, {found.samples} samples"
    )
    out.print(_choices(found))
    for reason in dict.fromkeys(reason for _, reason in found.outside):
        names = [name for name, why in found.outside if why == reason]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        out.print(f"[yellow]in float[/]: {', '.join(names[:NAMED])}{more}: {reason}")
    if found.strange:
        out.print(f"[yellow]{found.strange:,} values were not finite[/], and count for no range")
    out.print(f"error of the outputs over the samples: {_errors(found.errors)}")
    if found.held is not None:
        out.print(f"over the samples that were held out: {_errors(found.held)}")
    share = 100 * size["after"] / size["before"]
    out.print(f"{request.output}: {bytes_text(size['after'])}, {share:.3g}% of {bytes_text(size['before'])}")


def _choices(found: Quantization) -> str:
    """Returns the choices, in a line."""
    cut = "" if found.method == "min-max" else f", {found.cut} of {len(found.ranges)} cut"
    scales, shifts = len(found.parameters.scales), len(found.parameters.shifts)
    return f"ranges by {found.method}{cut}; channels scaled of {scales} values; " + (
        f"biases of {shifts} nodes corrected" if shifts else "no biases corrected"
    )


def _errors(errors: dict[str, float]) -> str:
    return ", ".join(f"{name} {error:.1e}" for name, error in errors.items()) or "none has floats"


def _arguments(request: QuantizeRequest) -> dict[str, Any]:
    """Returns the arguments of `Module.quantize`."""
    same = ("calibrate", "percentile", "activations", "symmetric", "granularity", "asymmetric_weights")
    same += ("only", "leave", "max_error", "correct", "equalize")
    return {**{name: getattr(request, name) for name in same}, "ops": request.op, "held": request.held or None}
