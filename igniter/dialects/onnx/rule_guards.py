"""Guards around the rules of plug-ins: a rule that raises costs its own node, not the region or the model.

`register` (`igniter.dialects.onnx.ops`) guards every rule of a plug-in's `OpSpec`, and `recompose` every pattern of a
plug-in. A guard records the failure on the node, in `FAILED_ATTRIBUTE`, and answers as if there were no rule:

    infer                 the result has no known shape
    fold                  the node is not folded
    legal, lower          the node is not lowered and stays with ONNX Runtime
    a rule of costs       the default cost
    a pattern             no match

A lowering rule is tried alone on its node before a region is formed (`tried`), because a region that fails is lost as a
whole. `say_failed_rules` reports the failures of a module; in a strict context they are errors.

Errors that a rule raises on purpose (`IgniterError`) pass through.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DictionaryAttr, NoneType, StringAttr
from xdsl.ir import Operation, SSAValue

from igniter.crashes import crash_text
from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.lowering import KernelBuilder, Lowering
from igniter.dialects.onnx.lowering.builder import symbols_of_types
from igniter.dialects.onnx.lowering.constants import constant_tensor, is_inline
from igniter.dialects.onnx.registry import OpSpec
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.errors import IgniterError
from igniter.remarks import remark

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

FAILED_ATTRIBUTE = "igniter.failed_rules"
"""The failures of the rules of a node, by rule, not yet reported; `SAID_ATTRIBUTE` has the reported ones."""
SAID_ATTRIBUTE = "igniter.said_rules"


def _none(op: OnnxOp) -> None:
    del op


def _nothing(op: OnnxOp) -> dict[Any, Any]:
    del op
    return {}


def _no_macs(op: OnnxOp) -> Expr:
    del op
    return Expr.of(0)


def _one_an_element(op: OnnxOp) -> Expr:
    """Returns the number of elements of the first result: what the cost model assumes without a rule."""
    dims = known_dims_of(op.results[0].type) if op.results else None
    return Expr.of(0) if dims is None else product(dims)


DEFAULTS: dict[str, Callable[[OnnxOp], Any]] = {
    "requires": lambda _: (),
    "macs": _no_macs,
    "flops": _one_an_element,
    "unprofitable": _none,
    "packs": _nothing,
    "panels": _nothing,
    "words": _nothing,
    "orders": _nothing,
    "tables": _nothing,
}
"""The answers in place of a failed rule, by the field of `OpSpec`."""

_log = logging.getLogger(__name__)


class RuleError(IgniterError):
    """Raised for a failed rule of a plug-in, if the context is strict or nothing can take its place."""

    code = "IGN0402"
    exit_status = 4


class NoAnswer(ValueError):
    """Raised by a guard in place of an answer; the failure is on the node."""


def guarded(spec: OpSpec) -> OpSpec:
    """Returns a plug-in's spec with guards around its rules."""
    changed: dict[str, Any] = {name: _with_default(spec, name) for name in DEFAULTS if getattr(spec, name) is not None}
    for name in ("infer", "fold"):
        if getattr(spec, name) is not None:
            changed[name] = _without_answer(spec, name)
    if spec.lower is not None:
        changed["legal"] = _legal(spec)
    return dataclasses.replace(spec, **changed)


def guarded_pattern(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a plug-in's pattern with a guard: a failure is no match."""
    name = f"pattern '{getattr(rule, '__name__', '?')}'"

    def match(op: OnnxOp, *args: Any) -> Any:
        return _call(op, name, rule, (op, *args), _none)

    match.__name__ = getattr(rule, "__name__", "match")
    match.__doc__ = rule.__doc__
    return match


def _call(
    op: OnnxOp, name: str, rule: Callable[..., Any], args: tuple[Any, ...], default: Callable[[OnnxOp], Any]
) -> Any:
    try:
        return rule(*args)
    except IgniterError:
        raise
    except Exception as error:  # a plug-in's rule raises anything; the failure is kept with the node
        _note(op, name, error)
        return default(op)


def _with_default(spec: OpSpec, name: str) -> Callable[..., Any]:
    rule: Callable[..., Any] = getattr(spec, name)

    def answer(op: OnnxOp, *args: Any) -> Any:
        return _call(op, name, rule, (op, *args), DEFAULTS[name])

    return answer


def _without_answer(spec: OpSpec, name: str) -> Callable[..., Any]:
    rule: Callable[..., Any] = getattr(spec, name)

    def fail(op: OnnxOp) -> Any:
        raise NoAnswer(f"its rule '{name}' raised {failures_of(op)[name]}")

    def answer(first: Any, *args: Any) -> Any:
        # A shape rule gets a context, a fold its node.
        return _call(getattr(first, "op", first), name, rule, (first, *args), fail)

    return answer


def _legal(spec: OpSpec) -> Callable[[OnnxOp], str | None]:
    def legal(op: OnnxOp) -> str | None:
        failed = failures_of(op)
        reason: str | None = None
        if spec.legal is not None and "legal" not in failed:
            reason = _call(op, "legal", spec.legal, (op,), _none)
        if reason is None and "lower" not in failed:
            tried(op, spec)
        failed = failures_of(op)
        for name in ("legal", "lower"):
            if name in failed:
                return f"its rule '{name}' raised {failed[name]}"
        return reason

    return legal


def tried(op: OnnxOp, spec: OpSpec) -> None:
    """Lowers a node alone, and records a crash of its rule on it. A refusal is left to the lowering of the region."""
    if spec.lower is None or spec.tables is not None or any(region.blocks for region in op.regions):
        return
    given = list(dict.fromkeys(v for v in op.operands if not isinstance(v.type, NoneType)))
    values: dict[SSAValue, SSAValue] = {}
    try:
        inline = {v: a for v in given if (a := constant_value(v)) is not None and is_inline(a)}
        tensors = [v for v in given if v not in inline]
        types = [v.type for v in (*given, *op.results)]
        kernel = KernelBuilder([v.type for v in tensors], symbols_of_types(types))
        values.update(zip(tensors, kernel.args, strict=True))
        values.update({v: constant_tensor(kernel, a, v.type) for v, a in inline.items()})
        context = Lowering(op, kernel, values)
    except Exception as error:  # The node cannot be lowered alone; its region tells whether it can be.
        _log.debug("%s is not tried alone: %s", op.qualified_name, error)
        return
    try:
        list(spec.lower(context))
    except IgniterError as error:
        _log.debug("%s is refused alone: %s", op.qualified_name, error)
    except Exception as error:  # as above
        _note(op, "lower", error)


def _note(op: Operation, rule: str, error: Exception) -> None:
    """Records a failure on a node, unless it is known."""
    if rule not in failures_of(op):
        noted = _entries(op, FAILED_ATTRIBUTE)
        op.attributes[FAILED_ATTRIBUTE] = DictionaryAttr({**noted, rule: StringAttr(crash_text(error))})


def _entries(op: Operation, name: str) -> dict[str, Any]:
    found = op.attributes.get(name)
    return dict(found.data) if isinstance(found, DictionaryAttr) else {}


def failures_of(op: Operation) -> dict[str, str]:
    """Returns the failures of a node's rules, by rule."""
    found = {**_entries(op, SAID_ATTRIBUTE), **_entries(op, FAILED_ATTRIBUTE)}
    return {rule: text.data for rule, text in found.items() if isinstance(text, StringAttr)}


def say_failed_rules(ctx: Context, module: ModuleOp, pass_name: str) -> None:
    """Reports the failures since the last report: a remark for each node, and a warning for equal ones. Raises
    `RuleError` instead in a strict context."""
    groups: Counter[tuple[str, str, str]] = Counter()
    for op in module.walk():
        new = _entries(op, FAILED_ATTRIBUTE)
        if not new:
            continue
        op.attributes[SAID_ATTRIBUTE] = DictionaryAttr({**_entries(op, SAID_ATTRIBUTE), **new})
        del op.attributes[FAILED_ATTRIBUTE]
        name = op.qualified_name if isinstance(op, OnnxOp) else op.name
        label = (op.node_name if isinstance(op, OnnxOp) else "") or name
        for rule, text in new.items():
            remark(ctx, pass_name, label, "missed", f"its rule '{rule}' raised {text.data}", rule=rule)
            groups[name, rule, text.data] += 1
    strict = bool(getattr(ctx, "strict", False))
    for (name, rule, text), count in groups.items():
        kind = rule if rule.startswith("pattern") else f"rule '{rule}'"
        where = f"{name}: its {kind} raised {text}" if kind != rule else f"the {rule} raised {text} at {name}"
        if strict:
            raise RuleError(where)
        nodes = "1 node" if count == 1 else f"{count} nodes"
        _log.warning("%s; %s compiled without it (--strict makes this an error)", where, nodes)
