"""The ledger of ONNX's node cases, by op and mode, with reasons: `docs/reference/coverage.md`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from tests.conformance.node_cases import CaseResult

HEAD = """# What is native: ONNX's own node cases

Every case of ONNX's backend tests, compiled with everything fused that has a kernel
(`form-fusion-regions{contractions=all singletons=all}`), run in stock ONNX Runtime, and compared with what the case
expects. This page is written by

    python -m tests.conformance --modes static,dynamic,constant,attributes --ledger docs/reference/coverage.md

| mode | is |
| --- | --- |
| static | the case as the onnx package has it |
| dynamic | every dim but 1 a symbol, equal sizes the same one |
| parameters | axes, shapes and sizes initializers, as most models have them |
| constant | every input an initializer |
| attributes | the attributes varied, up to 12 variants a case, compared with ONNX Runtime |

`native`: no node is left to ONNX Runtime. `folded`: nothing is left to run. `partly`: some nodes are left. `left`: ONNX
Runtime runs it all. What ONNX Runtime itself does not run, and has no kernel here, is counted apart.

"""
COUNTED = ("native", "folded", "partly", "fallback", "no-ort", "skipped")
BODY = "(function body)"


def ledger(results: Sequence[CaseResult]) -> str:
    """The page."""
    modes = list(dict.fromkeys(r.mode for r in results))
    return HEAD + _totals(results, modes) + "".join(_by_op([r for r in results if r.mode == m], m) for m in modes)


def _totals(results: Sequence[CaseResult], modes: Sequence[str]) -> str:
    lines = [
        "## In total\n",
        "| mode | cases | that run | native or folded | partly | left | ONNX Runtime does not run | wrong |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for mode in modes:
        n = Counter(r.status for r in results if r.mode == mode)
        run = n["native"] + n["folded"] + n["partly"] + n["fallback"]
        wrong = n.total() - run - n["no-ort"] - n["skipped"]
        cells = [mode, n.total(), run, n["native"] + n["folded"], n["partly"], n["fallback"], n["no-ort"], wrong]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def _by_op(results: Sequence[CaseResult], mode: str) -> str:
    by_op: dict[str, list[CaseResult]] = defaultdict(list)
    for r in results:
        if r.status != "skipped":
            by_op[r.op].append(r)
    lines = [
        f"\n## {mode}\n",
        "| op | cases | native | folded | partly | left | not run by ONNX Runtime | why not native |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for op, found in sorted(by_op.items()):
        n = Counter(r.status for r in found)
        cells = [op, len(found), *(n[s] or "" for s in COUNTED[:-1]), _reasons(found)]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def _reasons(results: Sequence[CaseResult]) -> str:
    """The three most frequent reasons why cases are not native, without what differs from case to case."""
    found = Counter(
        re.sub(r"^[\w.]+=\S+: ", "", part)
        for r in results
        if r.status in ("partly", "fallback", "no-ort")
        for part in set(r.reason.split("; ")) - {""}
    )
    return "; ".join(f"{text} ({count})" for text, count in found.most_common(3)).replace("|", "\\|").replace("\n", " ")
