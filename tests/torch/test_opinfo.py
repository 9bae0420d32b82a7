"""PyTorch's database of ops beside eager: a sample of it here, all of it by `python -m tests.torch.opinfo`."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")
pytest.importorskip("expecttest", reason="PyTorch's database of ops needs expecttest: pip install expecttest")

from tests.torch.opinfo.__main__ import read, silent, summary  # noqa: E402
from tests.torch.opinfo.judge import differences, sharing  # noqa: E402
from tests.torch.opinfo.values import LAYOUTS, copied, laid_out  # noqa: E402

SEED = 33
TASKS = 8


@pytest.mark.usefixtures("uncompiled")
def test_a_sample_of_the_database():
    from tests.torch.opinfo.tasks import Task, dtypes_of, names, run_task

    every = [(op, dtype) for op in sorted(names()) for dtype in dtypes_of(op)]
    rows = [run_task(Task(*pair, SEED, 1, 1, translation=True)) for pair in random.Random(SEED).sample(every, TASKS)]
    assert not [(row["op"], row["dtype"], each) for row in rows for each in silent(row)]
    assert sum(row["compiled"] for row in rows)


@pytest.mark.full
def test_as_much_of_the_database_as_runs_in_half_an_hour(tmp_path):
    ledger = tmp_path / "opinfo.jsonl"
    command = [sys.executable, "-m", "tests.torch.opinfo", "--minutes", "30", "--ledger", str(ledger)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False)
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-2000:]


def test_differences_are_found():
    x = torch.tensor([1.0, -0.0, float("nan"), float("inf")])
    assert not differences(x.clone(), x)
    assert differences(torch.tensor([1.0, 0.0, float("nan"), float("inf")]), x)[0][0] == "zero"
    assert differences(torch.tensor([1.0, -0.0, 2.0, float("inf")]), x)[0][0] == "value"
    assert differences(x.double(), x)[0][0] == "type" and differences([x], (x,))[0][0] == "type"
    assert differences(torch.tensor([2**60 + 1]), torch.tensor([2**60]))[0][0] == "value"
    assert differences(torch.ones(2, 3), torch.ones(3, 2).t())[0][0] == "layout"
    assert sharing([x, x[1:], x.clone()]) == [0, 0, 2]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_lie_in_memory_as_the_originals(layout):
    x = laid_out(torch.arange(12.0).view(3, 4), layout)
    y, z = copied([x, x.t()])
    assert torch.equal(x, y) and y.stride() == x.stride() and y.storage_offset() == x.storage_offset()
    assert z.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_a_ledger_that_was_cut_off_is_read(tmp_path):
    row = {"op": "add", "dtype": "int8", "calls": 2, "compiled": 2, "different": [], "eager": {}, "skipped": {}}
    wrong = {**row, "op": "mul", "different": [{"call": "first", "kind": "value", "what": "1 instead of 2"}]}
    lost = {
        "op": "div",
        "dtype": "int8",
        "lost": "crash",
        "at": "torch.compile, plain, first",
        "message": "ended with -8",
    }
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text("\n".join(map(json.dumps, (row, wrong, lost))) + '\n{"op": "ne')
    rows = read(ledger)
    assert rows == [row, wrong, lost] and [len(silent(each)) for each in rows] == [0, 1, 1]
    assert not silent({**lost, "at": "plain, first, eager"}) and not silent({**lost, "lost": "timeout"})
    text = summary(rows, verbose=True)
    assert "silently different: 2 tasks" in text and "mul int8: first: value: 1 instead of 2" in text
