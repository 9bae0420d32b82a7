"""Remarks: collected by an IgniterContext that asks for them, and by nothing else."""

from __future__ import annotations

import json
from typing import cast

import pytest
from xdsl.context import Context

from igniter.context import IgniterContext
from igniter.remarks import Remark, RemarkKind, Remarks, remark, remarks_of


def test_collected_in_order_and_shared_by_clones() -> None:
    ctx = IgniterContext(remarks=Remarks())
    remark(ctx, "a", "n1", "applied", "did it", size=3)
    remark(ctx.clone(), "b", "n2", "missed", "could not")
    assert [str(r) for r in ctx.remarks] == [
        "remark: a: 'n1' applied: did it [size=3]",
        "remark: b: 'n2' missed: could not",
    ]
    assert [r.node for r in ctx.remarks.of(kind="missed")] == ["n2"]
    assert [r.node for r in ctx.remarks.of("a")] == ["n1"]
    assert json.loads(ctx.remarks.to_json())[0]["details"] == {"size": 3}
    ctx.remarks.clear()
    assert len(ctx.remarks) == 0


def test_nothing_without_a_collector() -> None:
    remark(Context(), "a", "n", "note", "unheard")
    quiet = IgniterContext()
    remark(quiet, "a", "n", "note", "unheard")
    assert len(quiet.remarks) == 0
    assert remarks_of(Context()) is None
    assert remarks_of(quiet) is None


def test_kinds_are_checked() -> None:
    with pytest.raises(ValueError, match="applied, missed, note"):
        Remark("a", "n", cast(RemarkKind, "bad"), "m")
