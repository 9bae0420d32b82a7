"""The page of the ledger of types: `docs/reference/types.md`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import onnx
import onnxruntime

from tests.conformance.type_cases import all_cases
from tests.conformance.types import LOADS, NO_KERNEL, TypeResult, summary

HEAD = """# What loads: every op, opset and type

ONNX Runtime has no kernel on CPUs for some ops, opsets and types that ONNX allows: a model with one such node does not
load. Igniter compiles these nodes wherever it has a lowering, so the compiled model loads ([passes](passes.md),
[verification](../explanation/verification.md#loading)). This page tries one node of every op, of every version of its
schema since opset 7, with every type of every type variable: in ONNX Runtime as it is, and compiled with default
options. What is compiled is compared with ONNX Runtime, or, where that has no kernel, with ONNX's reference evaluator.
The page is written by

    python -m tests.conformance.types --ledger types.jsonl
    python -m tests.conformance.types --ledger types.jsonl --page docs/reference/types.md

The command can be stopped and goes on where it was. A case *without a node to try* has no recipe, or a type of which
no values are made (optionals). *Not compared* are random values, and types that neither ONNX Runtime nor the evaluator
computes.

## Element types that kernels do not have

| type | what becomes of a node | a refusal says |
| --- | --- | --- |
| complex64 | refused by ORT | `MLDataType for: tensor(complex64) is not currently registered or supported` |
| complex128 | refused by ORT | `MLDataType for: tensor(complex128) is not currently registered or supported` |
| string | left to ORT, where that has a kernel | `Trilu: kernels do not support !onnx.string` |
| of 2, 4, 6 bits | left to ORT, or weights of products | `kernels do not support i4, because several ...` |
| sparse weights | as dense ones | |

"""
MOST_REASONS = 25


def page(results: Sequence[TypeResult]) -> str:
    """The page of these results."""
    versions = (
        f"## In total\n\n{len(results)} of {len(all_cases())} cases have been tried, newest versions first, with onnx "
        f"{onnx.__version__} and ONNX Runtime {onnxruntime.__version__}:\n\n"
    )
    totals = ["| cases | |", "| --- | --- |", *(f"| {name} | {count} |" for name, count in summary(results).items())]
    return HEAD + versions + "\n".join(totals) + "\n" + _by_op(results) + _left(results)


def _by_op(results: Sequence[TypeResult]) -> str:
    by_op: dict[str, list[TypeResult]] = defaultdict(list)
    for result in results:
        if result.original:
            by_op[result.op].append(result)
    lines = [
        "\n## By op\n",
        "| op | versions | cases | load as they are | load compiled | right | not compared | only compiled |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for op, found in sorted(by_op.items()):
        only = sorted({_short(r.type) for r in found if r.original != LOADS and r.compiled == LOADS})
        cells = [
            op,
            len({r.since for r in found}),
            len(found),
            sum(r.original == LOADS for r in found),
            sum(r.compiled == LOADS for r in found),
            sum(r.right == "right" for r in found),
            sum(r.right.startswith("unknown") for r in found) or "",
            " ".join(only),
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def _left(results: Sequence[TypeResult]) -> str:
    """What loads neither way, by reason, and what has no node."""
    neither = [r for r in results if r.original and LOADS not in (r.original, r.compiled)]
    reasons: dict[str, list[TypeResult]] = defaultdict(list)
    for result in neither:
        reasons[_reason(result)].append(result)
    lines = ["\n## What loads neither way\n", "| reason | cases | ops |", "| --- | --- | --- |"]
    for reason, found in sorted(reasons.items(), key=lambda item: -len(item[1]))[:MOST_REASONS]:
        ops = Counter(r.op for r in found)
        lines.append(f"| {reason} | {len(found)} | {', '.join(op for op, _ in ops.most_common(8))} |")
    differ = [r for r in results if r.right.startswith("wrong")]
    if differ:
        lines += ["\n## Differences\n", "| case | difference |", "| --- | --- |"]
        lines += [f"| {r.key} | {r.right[7:][:160]} |" for r in differ]
    missing = Counter(r.op for r in results if not r.original)
    tried = {r.op for r in results if r.original}
    never = ", ".join(sorted(op for op in missing if op not in tried))
    return "\n".join(lines) + f"\n\n## Ops without a node to try\n\n{never or 'none'}\n"


def _reason(result: TypeResult) -> str:
    """Why a case does not load, without the names in it."""
    said = re.sub(r"^(refused|not loaded): ", "", result.compiled)
    _, _, why = said.partition("'node' (")
    text = why.partition("): ")[2] if why else said
    text = re.sub(r" \(--no-load.*", "", text).replace(result.op, "the op")
    if result.original == NO_KERNEL and "no lowering" in text:
        text = "neither has a kernel"
    return text[:120].replace("|", "\\|")


def _short(type_: str) -> str:
    plain = type_.removeprefix("tensor(").removesuffix(")")
    return plain if type_ == f"tensor({plain})" else type_
