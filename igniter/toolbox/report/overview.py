"""The cards at the top of a report: time beside ONNX Runtime, nodes, memory, and the result of verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from igniter.toolbox.plan.chart import bytes_text
from igniter.toolbox.report.markup import sizes_text, threads_text, tile

if TYPE_CHECKING:
    from igniter.toolbox.report.gather import ReportData, Speed


def overview(data: ReportData) -> str:
    """Returns the cards."""
    report, tiles = data.report, list[str]()
    if data.speed is not None:
        tiles.append(_speed(data.speed, f"{threads_text(data.threads)}, {sizes_text(data.sizes)}"))
    regions, kernels = report.get("regions", 0), report.get("kernels", 0)
    nodes = f"{report['nodes_before']} → {report['nodes_after']}"
    tiles.append(tile(nodes, "nodes before and after", f"{regions} of them custom ops, {kernels} kernels"))
    plan, arena = data.plan, data.compiled.graph
    less = f"{bytes_text(plan.value(plan.total))} node by node, {bytes_text(plan.value(plan.native))} without sharing"
    tiles.append(tile(bytes_text(arena.value(arena.total)), "memory of activations", less))
    subnormal: dict[str, Any] = report.get("subnormal_weights") or {}
    if subnormal.get("flushed") or subnormal.get("kept"):
        count = int(subnormal["flushed"]) + int(subnormal["kept"])
        tiles.append(tile(f"{count:,}", "subnormal weights", str(subnormal["text"])))
    tiled: dict[str, Any] = report.get("tile_weights") or {}
    if tiled:
        place = {"load": "made at load", "file": "in the file"}[str(tiled["at"])]
        tiles.append(tile(place, "weights of convolutions in tiles", str(tiled["text"])))
    left = report.get("left_to_onnxruntime", [])
    kept = sum(not node.get("choice") for node in left)
    tiles.append(tile(str(len(left)), "nodes left to ONNX Runtime", f"{kept} of them for want of a kernel"))
    status, told, mood = verdict(data)
    tiles.append(tile(status, "verification", told, mood))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _speed(speed: Speed, conditions: str) -> str:
    """Returns the card with the times of the two systems. A difference within the noise has no colour."""
    mood = "good" if speed.speedup > 1 + speed.noise else "bad" if speed.speedup < 1 - speed.noise else ""
    small = f"{conditions}; medians of runs in turns, noise {speed.noise:.1%}"
    if not mood:
        small += ", so the difference means nothing"
    times = f"ONNX Runtime {speed.onnxruntime_ms:.3g} ms, compiled {speed.igniter_ms:.3g} ms"
    return tile(f"{speed.speedup:.2f}x the speed", times, small, mood)


def verdict(data: ReportData) -> tuple[str, str, str]:
    """Returns the result of verification: its status, a sentence, and the class of its colour."""
    found = data.verification
    if found is None:
        return "not run", "", ""
    if found["status"] == "passed":
        worst = max((float(e) for e in found["max_errors"].values()), default=0.0)
        return "passed", f"largest relative error {worst:.1e}", "good"
    reasons: list[Any] = found.get("failures") or found.get("reasons") or []
    return str(found["status"]), "; ".join(map(str, reasons))[:160], "bad" if found["status"] == "differs" else ""
