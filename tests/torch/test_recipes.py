"""Graphs found on disk: AOTAutograd does not run, and results, guards and reasons are as if it had."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
import igniter.torch.backend as backend  # noqa: E402

pytestmark = pytest.mark.usefixtures("uncompiled")

F = torch.nn.functional


@pytest.fixture(autouse=True)
def traces(tmp_path, monkeypatch):
    """An empty cache; the list has an entry for each graph that AOTAutograd has traced."""
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))
    found, make = [], backend.make_program
    monkeypatch.setattr(backend, "make_program", lambda *args: found.append(args) or make(*args))
    return found


class Net(torch.nn.Module):
    def __init__(self, factor=2):
        super().__init__()
        self.up, self.norm, self.factor = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), factor

    def forward(self, x):
        y = self.norm(F.gelu(self.up(x))) * self.factor
        return {"y": y, "largest": y.amax(-1), "size": x.shape[0] * 2, "x": x}


def run(f, *args):
    """Returns the results of a new trace by Dynamo, as in another process."""
    torch._dynamo.reset()
    with torch.no_grad():
        return torch.compile(f, backend="igniter", dynamic=True)(*args)


def same(got, expected):
    for one, other in zip(*map(torch.utils._pytree.tree_leaves, (got, expected)), strict=True):
        if torch.is_tensor(other):
            assert one.stride() == other.stride() and one.dtype == other.dtype
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
        else:
            assert type(one) is type(other) and one == other


def test_a_graph_is_traced_once(traces):
    model, x = Net().eval(), torch.randn(4, 8)
    same(run(model, x), model(x))
    assert len(traces) == 1
    x = torch.randn(7, 8)
    got = run(model, x)
    same(got, model(x))
    assert got["x"] is x
    assert len(traces) == 1
    told = igniter.torch.explain()
    assert told.sessions == 2 and not told.reasons and told.graphs[1].pieces[0].exported_from_cache, str(told)


def test_other_weights_and_their_changes_are_seen(traces):
    x = torch.randn(4, 8)
    for _ in range(2):
        model = Net().eval()
        torch.nn.init.normal_(model.up.weight)
        same(run(model, x), model(x))
    fast = torch.compile(model, backend="igniter", dynamic=True)
    with torch.no_grad():
        for _ in range(3):
            same(fast(x), model(x))
            model.up.weight.add_(1)
    assert len(traces) == 1 and not igniter.torch.explain().reasons


@pytest.mark.parametrize(
    "other",
    [
        lambda x: x.relu() * 3,
        lambda x: x.relu() * 2.0,
        lambda x: x.relu_() * 2,
        lambda x: x.relu().mul(True),
        lambda x: (x.relu() * 2)[1:],
        lambda x: (x.relu() * 2, x.relu()),
    ],
)
def test_other_graphs_are_others(other, traces):
    x = torch.randn(4, 8)
    run(lambda x: x.relu() * 2, x)
    same(run(other, x.clone()), other(x.clone()))
    assert len(traces) == 2


@pytest.mark.parametrize("x", [torch.randn(8, 4).t(), torch.randn(4, 8).double(), torch.randn(4, 8, 1)[..., 0]])
def test_other_inputs_are_others(x, traces):
    def f(x):
        return x.softmax(-1)

    run(f, torch.randn(4, 8))
    same(run(f, x), f(x))
    assert len(traces) == 2


def test_autocast_and_the_default_type_are_in_the_key(traces):
    def f(x):
        return F.linear(x, x) + torch.arange(4.0)

    x = torch.randn(4, 8)
    run(f, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert run(f, x).dtype == f(x).dtype
    torch.set_default_dtype(torch.float64)
    try:
        same(run(f, x), f(x))
    finally:
        torch.set_default_dtype(torch.float32)
    assert len(traces) == 3


def test_guards_of_the_trace_are_made_again(monkeypatch):
    """The trace here assumes more than three rows, as a decomposition may."""
    rows, make = [], backend.make_program

    def guarded(graph, *args):
        value = next(n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder" and n.meta["val"] is not None)
        size = value.shape[0] if torch.is_tensor(value) else value
        rows.append(bool(size > 3))
        return make(graph, *args)

    monkeypatch.setattr(backend, "make_program", guarded)

    def f(x):
        return x.exp() + 1

    x = torch.randn(3, 8)
    run(f, torch.randn(4, 8))
    run(f, torch.randn(5, 8))
    assert rows == [True]
    # For fewer rows Dynamo traces again, and nothing is found for them.
    with torch.no_grad():
        same(torch.compile(f, backend="igniter", dynamic=True)(x), f(x))
    assert rows == [True, False]
    same(run(f, x), f(x))
    assert rows == [True, False] and len(igniter.torch.explain().graphs) == 4


def changes(x):
    x.add_(1)
    return x * 2


def views(x):
    return x * 2, x[1:]


def draws(x):
    return torch.rand_like(x) + x


@pytest.mark.parametrize("f", [changes, views, draws])
def test_graphs_that_need_aot_autograd_are_traced_again(f, traces):
    for _ in range(2):
        x = torch.randn(4, 8)
        torch.manual_seed(0)
        expected, changed = f(x), x.clone()
        x = x - 1 if f is changes else x
        torch.manual_seed(0)
        same((run(f, x), x), (expected, changed))
    assert len(traces) == 2


def test_ops_of_others_are_not_kept(traces):
    @torch.library.custom_op("igniter_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    for _ in range(2):
        x = torch.randn(4, 8)
        same(run(lambda x: twice(x).exp() + 1, x), (x * 2).exp() + 1)
    assert len(traces) == 2


def test_without_a_cache_nothing_is_kept(traces):
    model, x = Net().eval(), torch.randn(4, 8)
    for _ in range(2):
        torch._dynamo.reset()
        with torch.no_grad():
            same(torch.compile(model, backend="igniter", options={"cache": False})(x), model(x))
    assert len(traces) == 2
