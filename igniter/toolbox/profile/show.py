"""`igniter profile`: a model's computation, memory and traffic, as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from igniter.analysis.devices import device_of
from igniter.api import load
from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.output import console, parse_sizes, print_json, progress
from igniter.toolbox.profile.amounts import MORE, Amounts
from igniter.toolbox.profile.decoder import CONTEXTS, find_decoder, generation
from igniter.toolbox.profile.device_measurement import measure_device
from igniter.toolbox.profile.roofline import estimate
from igniter.toolbox.tables import add_rows, csv_text

if TYPE_CHECKING:
    from rich.console import Console

    from igniter.analysis.devices import Device
    from igniter.dialects.sym.expr import Expr
    from igniter.toolbox.profile.decoder import Decoder, Generation
    from igniter.toolbox.profile.profile import Profile, Row, Tensor
    from igniter.toolbox.profile.request import ProfileRequest
    from igniter.toolbox.profile.roofline import Estimate, NodeTime


@dataclass(frozen=True)
class _Timed:
    """The time on a device: of a decoder by context; of other models, or with all sizes given, of one run."""

    device: Device
    estimate: Estimate | None
    decoder: Decoder | str
    generations: Sequence[Generation]


MOST = 15
"""The number of nodes on a terminal, the largest; `--all` shows all."""

TYPICAL = 128
"""The size of a symbol for the order of rows."""


def run(asked: ProfileRequest) -> None:
    """Counts and prints."""
    if asked.depth and asked.by != "module":
        raise IgniterError("--depth is of modules: give --by module too")
    if asked.context and not asked.device:
        raise IgniterError("--context asks for times: give --device too")
    sizes = parse_sizes(asked.sizes)
    with progress("profiling", asked.json) as step:
        step("reading")
        module = load(model_file(asked.model))
        step("counting")
        profile = module.profile(sizes, sparsity=asked.sparsity)
    timed = _timed(asked, profile, sizes) if asked.device else None
    rows = _rows(profile, asked)
    times = _times(profile, asked, timed)
    if asked.csv:
        write_whole(asked.csv, _csv(rows, profile.total, times, timed))
    if asked.json:
        print_json(_described(asked, sizes, profile, rows, times, timed))
        return
    _print(asked, profile, rows, times, timed)


def model_file(path: str) -> str:
    """Returns the model, or the source of a compiled model's folder. Raises `IgniterError` if the source is missing."""
    if not Path(path).is_dir():
        return path
    source = Artifact.load(path).source
    if source is None:
        raise IgniterError(f"the original model of {path} is not known or has changed: give its file")
    return str(source)


# -- what is counted --------------------------------------------------------------------------------------------------


def _rows(profile: Profile, asked: ProfileRequest) -> list[Row]:
    if asked.by == "node":
        return profile.by_node()
    if asked.by == "type":
        return profile.by_type()
    return profile.by_module(asked.depth) if asked.by == "module" else []


def _timed(asked: ProfileRequest, profile: Profile, sizes: Mapping[str, int]) -> _Timed:
    contexts = _contexts(asked.context) or CONTEXTS
    decoder = find_decoder(profile)
    if isinstance(decoder, str) and asked.context:
        raise IgniterError(f"--context is of decoders, and {decoder}")
    if asked.device == "native":
        with progress("measuring this machine", asked.json) as step:
            device = measure_device(step)
    else:
        device = device_of(asked.device)
    whole = all(e.constant is not None for n in profile.nodes for e in (n.cost.flops, n.cost.moved, n.times))
    if isinstance(decoder, str) or whole:
        return _Timed(device, estimate(profile, device), decoder, ())
    return _Timed(device, None, decoder, generation(profile, decoder, device, sizes, contexts))


def _contexts(text: str) -> tuple[int, ...]:
    parts = [p.strip() for p in text.split(",")] if text else []
    if any(not p.isdigit() or int(p) < 1 for p in parts):
        raise IgniterError(f"'{text}' is no list of context lengths: write numbers, as in 128,1024")
    return tuple(int(p) for p in parts)


def _times(profile: Profile, asked: ProfileRequest, timed: _Timed | None) -> dict[str, list[NodeTime]]:
    """Returns the times of the nodes in each row, by the row's name and op; empty without an estimate of one run."""
    if timed is None or timed.estimate is None:
        return {}
    found: dict[str, list[NodeTime]] = {}
    for k, (node, time) in enumerate(zip(profile.nodes, timed.estimate.nodes, strict=True)):
        if asked.by == "node":
            keys: Sequence[str] = (str(k),)
        elif asked.by == "type":
            keys = (node.op,)
        else:
            keys = node.modules[: asked.depth or None] or ("",)
        for key in keys:
            found.setdefault(key, []).append(time)
    return found


def _seconds(rows: Sequence[Row], asked_by: str, times: Mapping[str, list[NodeTime]]) -> list[tuple[float, str]]:
    """Returns the seconds of each row, and the bound of the largest part."""
    found: list[tuple[float, str]] = []
    for k, row in enumerate(rows):
        own = times.get(str(k) if asked_by == "node" else row.name, [])
        seconds = sum(t.seconds for t in own)
        bounds: dict[str, float] = {}
        for t in own:
            bounds[t.bound] = bounds.get(t.bound, 0.0) + t.seconds
        found.append((seconds, max(bounds, key=lambda b: bounds[b]) if bounds and seconds else ""))
    return found


# -- what is printed --------------------------------------------------------------------------------------------------


def _described(
    asked: ProfileRequest,
    sizes: Mapping[str, int],
    profile: Profile,
    rows: Sequence[Row],
    times: Mapping[str, list[NodeTime]],
    timed: _Timed | None,
) -> dict[str, Any]:
    listed = [r.to_dict() for r in rows]
    if timed is not None and timed.estimate is not None:
        for row, (seconds, bound) in zip(listed, _seconds(rows, asked.by, times), strict=True):
            row["seconds"], row["bound"] = seconds, bound
    found: dict[str, Any] = {
        "model": asked.model,
        "sizes": dict(sizes),
        "by": asked.by,
        "rows": listed,
        "total": profile.total.to_dict(),
        "constant_nodes": profile.constant_nodes,
        "symbols": dict(profile.symbols),
        "notes": list(profile.notes),
    }
    if timed is not None:
        device = timed.device
        found["device"] = {"name": device.name, "peaks": dict(device.peaks), "bandwidth": device.bandwidth}
        found["device"] |= {"memory": device.memory, "source": device.source}
        found["estimate"] = None if timed.estimate is None else timed.estimate.to_dict()
        found["decoder"] = timed.decoder if isinstance(timed.decoder, str) else [p.name for p in timed.decoder.cache]
        found["generation"] = [g.to_dict() for g in timed.generations]
    return found


WIDEST = 400
"""The limit of a table's width in a file, in columns."""

CSV = (
    *("name", "op", "nodes", "macs", "flops", "parameters", "weight_bytes", "activation_bytes", "memory_bytes"),
    *("moved_bytes", "intensity", "times", "inputs", "outputs", "uncounted"),
)
SPARSE = ("zeros", "elements", "subnormal", "ratio", "pattern", "blocks")


def _csv(rows: Sequence[Row], total: Row, times: Mapping[str, list[NodeTime]], timed: _Timed | None) -> str:
    """Returns the table with a row for the total, as text of a CSV file."""
    sparse = total.sparsity is not None
    estimated = timed is not None and timed.estimate is not None
    columns = [*CSV, *(f"sparse_{c}" for c in SPARSE if sparse), *(("seconds", "bound") if estimated else ())]
    by = "node" if rows and (rows[0].inputs or rows[0].outputs) else ""
    whole = timed.estimate.seconds if timed is not None and timed.estimate is not None else 0.0
    took = [*_seconds(rows, by, times), (whole, "")]
    cells = zip([*rows, total], took, strict=True)
    return csv_text(columns, ({**_flat(row), "seconds": f"{s:.6g}", "bound": bound} for row, (s, bound) in cells))


def _flat(row: Row) -> dict[str, Any]:
    found = row.to_dict()
    found["inputs"], found["outputs"] = _shapes(row.inputs), _shapes(row.outputs)
    sparsity: dict[str, Any] = found.pop("sparsity", None) or {}
    return {**found, **{f"sparse_{k}": v for k, v in sparsity.items()}}


def _print(
    asked: ProfileRequest,
    profile: Profile,
    rows: Sequence[Row],
    times: Mapping[str, list[NodeTime]],
    timed: _Timed | None,
) -> None:
    amounts, out = Amounts(profile.symbols), console()
    shown = largest(rows) if asked.by == "node" and not asked.every else set(range(len(rows)))
    table = _table(asked, profile, rows, shown, times, timed, amounts, out)
    if not out.is_terminal:
        # A file has room for lines too long for a terminal.
        wide = out.options.update(width=WIDEST)
        out.width = min(WIDEST, max(out.width, out.measure(table, options=wide).maximum))
    out.print(table)
    total = profile.total
    if len(shown) < len(rows):
        out.print(f"the {len(shown)} largest of {len(rows)}; --all lists all, as --json and --csv do", markup=False)
    out.print(_summary(total), markup=False)
    if profile.constant_nodes:
        out.print(
            f"besides, {profile.constant_nodes} that depend on no input, and are computed once, on loading",
            markup=False,
        )
    for name, meaning in profile.symbols.items():
        out.print(f"{name}: {meaning}", markup=False)
    for letter, meaning in amounts.legend.items():
        out.print(f"{letter}: {meaning}", markup=False)
    if amounts.cut:
        sizes = ",".join(f"{name}=..." for name in profile.symbols)
        out.print(f"{MORE}: --json and --csv have it whole; --sizes {sizes} makes it a number", markup=False)
    for note in profile.notes:
        out.print(note, markup=False)
    if total.sparsity is not None and total.sparsity.subnormal:
        out.print(f"[yellow]{total.sparsity.subnormal:,} weights are subnormal, and slow many CPUs down")
    if total.uncounted:
        out.print(f"[yellow]not counted:[/] {escape(total.uncounted)}")
    if timed is not None:
        _print_times(timed)
    if asked.csv:
        out.print(f"[bold]{escape(asked.csv)}")


def largest(rows: Sequence[Row]) -> set[int]:
    """Returns the places of the rows with the most operations, then the most memory."""
    sizes: Mapping[str, int] = defaultdict(lambda: TYPICAL)
    amounts = [(row.cost.flops.evaluate(sizes), row.memory.evaluate(sizes)) for row in rows]
    return set(sorted(range(len(rows)), key=lambda k: amounts[k], reverse=True)[:MOST])


def _table(
    asked: ProfileRequest,
    profile: Profile,
    rows: Sequence[Row],
    shown: set[int],
    times: Mapping[str, list[NodeTime]],
    timed: _Timed | None,
    amounts: Amounts,
    out: Console,
) -> Any:
    whole, estimate = profile.total, None if timed is None else timed.estimate
    shapes = asked.by == "node"
    table = Table()
    table.add_column({"node": "Name", "type": "Type", "module": "Module", "total": ""}[asked.by], overflow="fold")
    if shapes:
        table.add_column("Type", overflow="fold")
    else:
        table.add_column("Nodes", justify="right")
    numbers = ("MACs", "%", "FLOPs", "Memory", "%", "Params", "%", "FLOPs/B")
    for name in (*numbers, *(("Zeros", "Pattern", "Blocks") if asked.sparsity else ())):
        table.add_column(name, justify="right", overflow="fold")
    for name in (*(("Time", "%", "Bound") if estimate else ()), *(("In", "Out") if shapes else ())):
        table.add_column(name, justify="right" if name in ("Time", "%") else "left", overflow="fold")

    def cells(row: Row, seconds: float, bound: str) -> list[str]:
        found = [row.name or "(in no module)", row.op if shapes else str(row.nodes), *_numbers(row, whole, amounts)]
        if asked.sparsity:
            found += _zeros(row)
        if estimate is not None:
            found += [_time(seconds), _percent(seconds, estimate.seconds), bound]
        if shapes:
            found += [", ".join(amounts.shape(t.dims) for t in group) for group in (row.inputs, row.outputs)]
        return found

    took = _seconds(rows, asked.by, times)
    listed = [cells(row, *took[k]) for k, row in enumerate(rows) if k in shown]
    total = cells(whole, 0.0 if estimate is None else estimate.seconds, "")
    add_rows(table, listed, total, out.width if out.is_terminal else WIDEST, out)
    return table


def _numbers(row: Row, whole: Row, amounts: Amounts) -> list[str]:
    intensity = row.cost.intensity
    return [
        amounts.text(row.cost.macs),
        _share(row.cost.macs, whole.cost.macs),
        amounts.text(row.cost.flops) + ("?" if row.uncounted else ""),
        amounts.text(row.memory),
        _share(row.memory, whole.memory),
        f"{row.parameters:,}",
        _percent(row.parameters, whole.parameters),
        f"{intensity:.3g}" if isinstance(intensity, float) else "",
    ]


def _zeros(row: Row) -> list[str]:
    if row.sparsity is None:
        return ["", "", ""]
    blocks = f"{100 * row.sparsity.blocks:.1f}%" if row.sparsity.pattern else ""
    return [f"{100 * row.sparsity.ratio:.1f}%", row.sparsity.pattern, blocks]


def _share(part: Expr, whole: Expr) -> str:
    return "" if part.constant is None or whole.constant is None else _percent(part.constant, whole.constant)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else ""


def _shapes(tensors: Sequence[Tensor]) -> str:
    return ", ".join(map(str, tensors))


def _time(seconds: float) -> str:
    """Returns a time with three digits, in a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return "< 1 ns" if seconds else ""


def scaled(amount: float) -> str:
    """Returns a large number in readable form: 4.09 G."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if amount >= size:
            return f"{amount / size:.3g} {unit}"
    return f"{amount:.3g} "


def _summary(total: Row) -> str:
    """Returns the profile in a line."""
    macs, flops, moved = total.cost.macs.constant, total.cost.flops.constant, total.cost.moved.constant
    parts = [f"{total.nodes} nodes", f"{scaled(total.parameters).strip()} parameters in {scaled(total.weight_bytes)}B"]
    if macs is not None and flops is not None:
        parts[1:1] = [f"{scaled(macs)}MACs", f"{scaled(flops)}FLOPs"]
    if moved is not None:
        parts.append(f"{scaled(moved)}B moved")
    return ", ".join(parts)


def _print_times(timed: _Timed) -> None:
    out, device = console(), timed.device
    peaks = ", ".join(f"{k} {v / 1e12:.3g}" for k, v in device.peaks.items())
    out.print(f"{device.name}: {peaks} TFLOP/s, {device.bandwidth / 1e9:.4g} GB/s ({device.source})", markup=False)
    if timed.estimate is not None:
        found = timed.estimate
        shares = (
            f"{100 * found.share('arithmetic'):.0f}% bound by arithmetic, {100 * found.share('memory'):.0f}% by memory"
        )
        out.print(f"one run: {_time(found.seconds) or '0 s'} at least, {shares}", markup=False)
    if isinstance(timed.decoder, str):
        out.print(timed.decoder, markup=False)
        return
    if not timed.generations:
        return
    table = Table("context", "weights", "weights, B", "cache, B", "prefill", "tokens/s", "decode", "tokens/s", "")
    for g in timed.generations:
        reading = ("", "") if not g.prefill else (_time(g.prefill), f"{g.context / g.prefill:,.0f}")
        making = ("", "") if not g.decode else (_time(g.decode), f"{1 / g.decode:,.1f}")
        fits = "" if g.fits else "does not fit"
        row = (f"{g.context}", g.precision, scaled(g.weight_bytes), scaled(g.cache_bytes), *reading, *making, fits)
        table.add_row(*row)
    out.print(table)
    if timed.generations[0].prefill is None:
        out.print("no prefill: the model takes a fixed number of new tokens in a run", markup=False)
