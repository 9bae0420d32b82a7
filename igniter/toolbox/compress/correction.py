"""Corrections of a model's weights by samples: the Hessian of every product, and codes by GPTQ.

The model runs on the samples with the factors of its products as outputs, in groups of factors whose Hessians take at
most `GROUP_BYTES`; each group is a run over all samples.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import Float16Type, ModuleOp

from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.frontend.surgery import read_proto, with_outputs
from igniter.runtime.session import make_session
from igniter.toolbox.compress.gptq import Factor, corrected
from igniter.toolbox.compress.weight_plan import WeightPlan
from igniter.toolbox.quantize.calibration.samples import samples
from igniter.toolbox.quantize.calibration.workbench import CALM, save
from igniter.toolbox.quantize.quantization_plan import value_name

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

GROUP_BYTES = 1 << 30


def correct(
    module: ModuleOp, plans: Sequence[WeightPlan], data: Any, progress: Callable[[str], None] = lambda _: None
) -> list[WeightPlan]:
    """Returns the plans with codes that keep the products over the samples `data`. A plan that GPTQ does not apply to
    is returned as it is, with the reason in `uncorrected`."""
    reasons = [_uncorrected(module, plan) for plan in plans]
    chosen = [k for k, plan in enumerate(plans) if plan.reason is None and not reasons[k]]
    factors = {k: _factor(module, plans[k]) for k in chosen}
    found = [replace(plan, uncorrected=why) for plan, why in zip(plans, reasons, strict=True)]
    if not factors:
        return found
    with tempfile.TemporaryDirectory(prefix="igniter-samples-") as folder:
        session, feeds = _session(module, Path(folder), sorted(set(factors.values())), data)
        for group in _groups(plans, factors):
            names = sorted({factors[k] for k in group})
            hessians = _hessians(session, names, feeds, progress)
            last, factor = "", None
            for number, k in enumerate(group):
                progress(f"correcting weight {number + 1} of {len(group)}, of {len(factors)} in all")
                if factor is None or factors[k] != last:
                    # Weights of one factor follow each other.
                    last, factor = factors[k], Factor.of(hessians[factors[k]])
                found[k] = _corrected(found[k], factor)
    return found


def _uncorrected(module: ModuleOp, plan: WeightPlan) -> str:
    """Returns why a weight is rounded to nearest; "" if GPTQ applies."""
    if plan.reason is not None:
        return ""
    if plan.coding is None or plan.coding.axis is None:
        return "GPTQ is for integers with a scale for each channel or block"
    if plan.foreign or len(plan.uses) != 1 or plan.uses[0].kind != "product" or len(plan.weight.shape) != 2:
        return "GPTQ is for matrices that one product reads"
    use, coding = plan.uses[0], plan.coding
    if coding.axis != (use.depth if coding.block else use.channel):
        return "GPTQ is for blocks along the depth"
    if use.index != 1 or use.op.attr("transA", 0):
        return "GPTQ is for the right factor of a product"
    return "" if _factor(module, plan) else "the left factor has no name in the main graph"


def _factor(module: ModuleOp, plan: WeightPlan) -> str:
    if plan.reason is not None or not plan.uses:
        return ""
    return value_name(plan.uses[0].op.operands[0], main_graph(module))


def _session(
    module: ModuleOp, folder: Path, outputs: Sequence[str], data: Any
) -> tuple[Any, Callable[[], Iterator[Mapping[str, Any]]]]:
    """Returns a session of the model with more outputs, and its samples."""
    path = save(module.clone(), folder / "factors.onnx")
    proto, _ = read_proto(str(path))
    known: list[Any] = [*proto.graph.output, *proto.graph.input]
    present = {str(value.name) for value in known}
    path.write_bytes(with_outputs(proto, [n for n in outputs if n not in present]).SerializeToString())
    session = make_session(path, config=CALM)
    return session, samples(data, [str(value.name) for value in cast("list[Any]", session.get_inputs())])


def _groups(plans: Sequence[WeightPlan], factors: Mapping[int, str]) -> Iterator[list[int]]:
    """Yields plans in groups whose Hessians fit together; plans with one factor are in one group."""
    by_factor: dict[str, list[int]] = {}
    for k, name in factors.items():
        by_factor.setdefault(name, []).append(k)
    group: list[int] = []
    total = 0
    for members in by_factor.values():
        plan = plans[members[0]]
        size = 4 * plan.weight.shape[plan.uses[0].depth] ** 2
        if group and total + size > GROUP_BYTES:
            yield group
            group, total = [], 0
        group, total = group + members, total + size
    if group:
        yield group


def _hessians(
    session: Any,
    names: Sequence[str],
    feeds: Callable[[], Iterator[Mapping[str, Any]]],
    progress: Callable[[str], None],
) -> dict[str, Array]:
    """Returns `x.T @ x` of each factor over all samples."""
    given = {value.name for value in session.get_inputs()}
    found: dict[str, Array] = {}
    for number, feed in enumerate(feeds()):
        progress(f"sample {number + 1}")
        asked = [name for name in names if name not in given]
        values = dict(zip(asked, session.run(asked, dict(feed)), strict=True)) if asked else {}
        for name in names:
            value: Any = values[name] if name in values else feed[name]
            x = np.asarray(value, np.float32)
            x = x.reshape(-1, x.shape[-1])
            if not np.isfinite(x).all():
                raise IgniterError(
                    f"sample {number} gives '{name}' numbers that are not finite: GPTQ needs finite ones"
                )
            found[name] = found[name] + x.T @ x if name in found else x.T @ x
    return found


def _corrected(plan: WeightPlan, factor: Factor) -> WeightPlan:
    use, coding = plan.uses[0], plan.coding
    assert coding is not None
    weight = plan.weight.array()
    turned = use.depth == 1
    kind = np.float16 if isinstance(plan.weight.element_type, Float16Type) else np.float32
    fixed = corrected(weight.T if turned else weight, factor, coding, kind)
    return replace(plan, coding=replace(coding, fixed=fixed.turned(coding, turned)))


__all__ = ["correct"]
