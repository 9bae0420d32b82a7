"""The tables of docs/how-to/profile.md that code knows: `python -m tests.docs.count_table` writes them anew.

The rules are the docstrings of `OpSpec.macs` and `OpSpec.flops` of every op that has a schema; the devices are those of
`igniter.analysis.devices`.
"""

from __future__ import annotations

import re
from collections import defaultdict

from igniter.analysis.devices import DEVICES
from igniter.dialects.onnx.ops import spec_named
from igniter.dialects.onnx.ops.counts import flops_rule
from tests.analysis.model.test_counts import schema_names

from .transcripts import ROOT

PAGE = ROOT / "docs" / "how-to" / "profile.md"


def rules() -> list[str]:
    """A row a rule, with the ops that have it; products first."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in schema_names():
        spec = spec_named(name)
        rule = flops_rule(spec)
        assert spec is not None and rule is not None
        macs = spec.macs.__doc__ if spec.macs is not None else None
        groups[_text(macs), _text(rule.__doc__)].append(name)
    rows = sorted(groups.items(), key=lambda item: (not item[0][0], item[0][1].startswith("0"), item[0]))
    listed = [f"| {', '.join(names)} | {macs} | {flops} |" for (macs, flops), names in rows]
    return ["| ops | MACs | FLOPs |", "| --- | --- | --- |", *listed]


def devices() -> list[str]:
    """A row a device: T operations a second by element type, GB/s, where that is from."""
    kinds = ("float", "float16", "bfloat16", "int8", "int4")
    rows = [
        f"| {d.name} | {' | '.join(f'{d.peaks[k] / 1e12:.4g}' if k in d.peaks else '' for k in kinds)} | "
        f"{d.bandwidth / 1e9:.4g} | {d.source} |"
        for d in DEVICES.values()
    ]
    return [f"| device | {' | '.join(kinds)} | GB/s | source |", "| --- " * (len(kinds) + 3) + "|", *rows]


def _text(doc: str | None) -> str:
    return " ".join((doc or "").split())


def page_with_tables(text: str) -> str:
    """The page with its tables as code has them now."""
    for name, rows in (("counts", rules()), ("devices", devices())):
        body = "\n".join(["", *rows, ""])
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        text, count = re.subn(pattern, lambda m, b=body: m[1] + b + "\n" + m[2], text, flags=re.DOTALL)
        assert count == 1, f"docs/how-to/profile.md has no place for the table of {name}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
