"""The option `background`: eager serves until a session is made and verified in a thread."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
import igniter.torch.piece  # noqa: E402

LIMIT = 300


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(8, 8)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        return self.line(x).relu() + x


class Counting(Net):
    """Changes a buffer and its argument, and returns a view of the argument."""

    def forward(self, x):
        self.calls += 1
        x.mul_(2)
        return self.line(x).tanh() + self.calls, x[0]


WAYS = {
    "module": lambda model, **options: igniter.torch.compile(model, **options),
    "dynamo": lambda model, **options: torch.compile(model, backend="igniter", dynamic=True, options=options),
}


@pytest.fixture(autouse=True)
def idle(uncompiled):
    yield
    assert igniter.torch.wait(LIMIT)


@pytest.fixture
def gate(monkeypatch):
    """Holds the making of sessions until it is set."""
    gate, make = threading.Event(), igniter.torch.piece.make_session

    def held(*args):
        assert gate.wait(LIMIT)
        return make(*args)

    monkeypatch.setattr(igniter.torch.piece, "make_session", held)
    yield gate
    gate.set()


@pytest.mark.parametrize("way", WAYS)
def test_eager_serves_until_the_session_is_there(way, gate):
    model = Net().eval()
    fast = WAYS[way](model, background=True, keep_faster=False)
    with torch.no_grad():
        for rows in (3, 5, 3):
            x = torch.randn(rows, 8)
            assert torch.equal(fast(x), model(x))
        told = igniter.torch.explain()
        assert told.compiled == 0 and "compiling in the background" in str(told)
        gate.set()
        assert igniter.torch.wait(LIMIT)
        calls = sum(piece.calls for graph in told.graphs for piece in graph.pieces)
        x = torch.randn(7, 8)
        torch.testing.assert_close(fast(x), model(x))
    assert told.compiled == 1 and told.sessions == 1, str(told)
    assert sum(piece.calls for graph in told.graphs for piece in graph.pieces) == calls + 1


@pytest.mark.parametrize("way", WAYS)
def test_changed_arguments_buffers_and_views_are_those_of_eager(way, gate):
    model, other = Counting().eval(), Counting().eval()
    other.load_state_dict(model.state_dict())
    fast = WAYS[way](model, background=True, keep_faster=False)
    with torch.no_grad():
        for n in range(8):
            if n == 3:
                gate.set()
                assert igniter.torch.wait(LIMIT)
            x = torch.randn(4, 8)
            y = x.clone()
            (got, view), (expected, _) = fast(x), other(y)
            torch.testing.assert_close(got, expected)
            torch.testing.assert_close(x, y)
            assert view.data_ptr() == x.data_ptr()
            assert torch.equal(model.calls, other.calls)
        assert igniter.torch.wait(LIMIT)
    assert igniter.torch.explain().compiled >= 1, str(igniter.torch.explain())


def test_weights_that_change_meanwhile_are_seen(gate):
    model = Net().eval()
    fast = igniter.torch.compile(model, background=True, keep_faster=False)
    x = torch.randn(3, 8)
    with torch.no_grad():
        fast(x)
        model.line.weight.mul_(3)
        gate.set()
        assert igniter.torch.wait(LIMIT)
        torch.testing.assert_close(fast(x), model(x))
        assert igniter.torch.wait(LIMIT)
        torch.testing.assert_close(fast(x), model(x))
    assert igniter.torch.explain().compiled == 1


def test_a_caller_may_change_its_tensors_before_the_session_is_there(gate):
    model = Net().eval()
    fast = igniter.torch.compile(model, background=True, keep_faster=False)
    x = torch.randn(3, 8)
    with torch.no_grad():
        fast(x)
        x.fill_(float("nan"))
        gate.set()
        assert igniter.torch.wait(LIMIT)
        x = torch.randn(3, 8)
        torch.testing.assert_close(fast(x), model(x))
    assert igniter.torch.explain().reasons == []


def test_wrong_results_leave_the_part_in_eager(monkeypatch):
    run = igniter.torch.piece.Runner.__call__
    monkeypatch.setattr(igniter.torch.piece.Runner, "__call__", lambda self, values: [v + 1 for v in run(self, values)])
    model = Net().eval()
    fast = igniter.torch.compile(model, background=True)
    x = torch.randn(3, 8)
    with torch.no_grad():
        for _ in range(2):
            assert torch.equal(fast(x), model(x))
            assert igniter.torch.wait(LIMIT)
    assert "its results differ from eager" in igniter.torch.explain().reasons[0]


def test_an_error_of_the_compiler_leaves_the_part_in_eager(monkeypatch):
    def fails(*args):
        raise RuntimeError("no compiler today")

    monkeypatch.setattr(igniter.torch.piece, "make_session", fails)
    model = Net().eval()
    fast = igniter.torch.compile(model, background=True)
    x = torch.randn(3, 8)
    with torch.no_grad():
        for _ in range(2):
            assert torch.equal(fast(x), model(x))
            assert igniter.torch.wait(LIMIT)
    assert igniter.torch.explain().reasons == ["RuntimeError: no compiler today"]


def test_a_process_ends_while_work_is_waiting():
    code = """
import threading, time
from igniter.torch.background import later, wait
done = []
later(lambda: (time.sleep(0.5), print("in progress", flush=True)))
later(lambda: print("not begun", flush=True))
time.sleep(0.1)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert ended.stdout.split("\n") == ["in progress", ""]
