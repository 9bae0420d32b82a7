"""`torch.compile(model, backend="igniter")`: the same results as eager, or eager with a reason."""

from __future__ import annotations

import logging

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
from igniter import IgniterError  # noqa: E402

F = torch.nn.functional


def compiled(f, dynamic=True, **options):
    return torch.compile(f, backend="igniter", dynamic=dynamic, options=options or None)


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


def same(got, expected, rtol=1e-5, atol=1e-5):
    for one, other in zip(leaves(got), leaves(expected), strict=True):
        if torch.is_tensor(other):
            assert one.shape == other.shape and one.dtype == other.dtype
            torch.testing.assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)
        else:
            assert type(one) is type(other) and one == other


def agree(f, *calls, sessions=1, **options):
    """`f` compiled gives what it gives in eager, with so many sessions for all the calls."""
    fast = compiled(f, **options)
    with torch.no_grad():
        for args in calls:
            same(fast(*args), f(*args))
    told = igniter.torch.explain()
    assert told.sessions == sessions, str(told)
    return told


def randn(*shape, **kwargs):
    return torch.randn(*shape, **kwargs)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 32), torch.nn.Linear(32, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.register_buffer("shift", torch.ones(8))

    def forward(self, x):
        return self.norm(x + self.down(F.gelu(self.up(x)))) + self.shift


class Mixed(torch.nn.Module):
    """A contraction of weights, one of inputs, a reduction, a normalisation and transcendental functions."""

    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        weights = (x @ x.transpose(1, 2)).div(x.shape[-1]).softmax(-1)
        return self.net(weights @ x), weights.sum(-1), x > 0


def test_the_backend_is_known_by_name():
    assert "igniter" in torch._dynamo.list_backends()


def test_one_session_for_all_sizes():
    told = agree(Net().eval(), *[(randn(n, 8),) for n in (4, 7, 33, 2)])
    (graph,) = told.graphs
    assert told.compiled == 1 and graph.pieces[0].calls == 4 and graph.pieces[0].eager_calls == 0


def test_a_static_graph_becomes_a_dynamic_one_and_no_more():
    agree(Net().eval(), *[(randn(n, 8),) for n in (4, 7, 33, 2)], dynamic=None, sessions=2)


def test_nothing_is_copied():
    def f(x, y):
        return x @ y, (x @ y).transpose(0, 1), x[1:] + 1

    told = agree(f, (randn(4, 8), randn(8, 6)), (randn(3, 8), randn(8, 5)))
    piece = told.graphs[0].pieces[0]
    assert piece.calls == 2 and piece.copied_inputs == 0 and piece.copied_outputs == 0


def test_outputs_have_the_strides_of_eager():
    def f(x):
        return (x * 2).transpose(0, 2), F.relu(x).permute(2, 0, 1)

    fast, x = compiled(f), randn(3, 4, 5)
    with torch.no_grad():
        for one, other in zip(fast(x), f(x), strict=True):
            assert one.stride() == other.stride()


@pytest.mark.parametrize(
    "view",
    [
        lambda x, s: x[None].expand(s.shape[0], -1, -1),
        lambda x, s: x[:, None].expand(-1, s.shape[0], -1),
        lambda x, s: x.t()[None].expand(s.shape[0], -1, -1),
        lambda x, s: x[:, : s.shape[0]],
        lambda x, s: x[s.shape[0] - 1 :, ::2],
        lambda x, s: x.view(-1)[:12].view(s.shape[0], -1).t(),
        lambda x, s: x.split([s.shape[0], x.shape[0] - s.shape[0]])[1],
    ],
)
@pytest.mark.parametrize("source", [lambda x: x, lambda x: torch.relu(x) + 1], ids=["input", "computed"])
def test_outputs_that_are_views_have_the_right_elements(source, view):
    """AOTAutograd makes views of inputs anew by the strides of what is returned."""

    def f(x, s):
        y = source(x)
        return view(y, s), s * 2

    fast = compiled(f)
    with torch.no_grad():
        for rows, columns, n in ((4, 5, 3), (6, 7, 2)):
            x, s = randn(rows, columns), randn(n, 2)
            got, expected = fast(x, s), f(x, s)
            same(got, expected)
            if expected[0].data_ptr() == x.data_ptr():
                assert got[0].data_ptr() == x.data_ptr() and got[0].stride() == expected[0].stride()


def test_a_graph_of_views_stays_eager():
    with torch.no_grad():
        x = randn(4, 6)
        got = compiled(lambda x: (x[1:], x.t()))(x)
    assert got[0].data_ptr() == x[1:].data_ptr() and "has no ops" in str(igniter.torch.explain())


def test_an_input_that_is_not_dense_is_copied():
    def f(x):
        return torch.tanh(x) + 1

    told = agree(f, (randn(8, 6).t(),), (randn(8, 12)[:, ::2],), sessions=2)
    assert sum(piece.copied_inputs for graph in told.graphs for piece in graph.pieces) >= 1


def test_outputs_outlive_the_session():
    def f(x):
        return x * 3

    fast, x = compiled(f), randn(1000)
    with torch.no_grad():
        y = fast(x)
    del fast
    torch._dynamo.reset()
    import gc

    gc.collect()
    same(y, x * 3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.add_(1),
        lambda x: (x.mul_(2), x + 1),
        lambda x: x[1:].copy_(x[:-1] * 2),
        lambda x: x.view(-1),
        lambda x: (x, x + 1),
        lambda x: (x[0], x.t(), x.exp()),
        lambda x: (x + 1).view(-1)[2:],
        lambda x: (x.sum(), x.shape[0], x.max() > 0, None, "text", 2.5),
        lambda x: {"a": [x.argmax(-1), x.topk(2)], "b": (x > 0).any()},
        lambda x: x.mean().item() if False else x.mean(),
        lambda x: x.to(torch.float64) @ x.to(torch.float64).t(),
        lambda x: torch.where(x > 0, x, torch.tensor(float("-inf"))),
        lambda x: torch.cat([x, torch.tensor([[1.0, 2.0, 3.0, 4.0]])]),
        lambda x: x.softmax(-1).cumsum(0).masked_fill(x > 1, 0),
        lambda x: x.unbind(1),
        lambda x: torch.arange(x.shape[0]).view(-1, 1) * x,
        lambda x: x.new_zeros(x.shape[0] * 2, 3) + x.shape[1],
    ],
)
def test_hard_cases_are_as_eager_has_them(f):
    fast = compiled(f)
    with torch.no_grad():
        for n in (3, 5, 9):
            x = randn(n, 4)
            one, other = x.clone(), x.clone()
            same(fast(one), f(other))
            same(one, other)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_and_booleans(dtype):
    def f(x, y):
        return x == y, torch.where(x > y, x, y), x.to(torch.float32) + 0.5

    x, y = (torch.randint(0, 2, (5, 3)).to(dtype) for _ in range(2))
    fast = compiled(f)
    with torch.no_grad():
        same(fast(x, y), f(x, y))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("make", [compiled, lambda net: igniter.torch.compile(net)], ids=["backend", "module"])
def test_other_floats_are_compiled(dtype, make):
    net = Mixed().eval().to(dtype)
    fast = make(net)
    with torch.no_grad():
        for n in (3, 6):
            x = randn(2, n, 8, dtype=dtype)
            same(fast(x), net(x), rtol=0.02 if dtype is torch.bfloat16 else 2e-3, atol=torch.finfo(dtype).eps * 8)
    told = igniter.torch.explain()
    (piece,) = (piece for graph in told.graphs for piece in graph.pieces)
    # All of it, and in that type: neither an op nor a call was left to eager.
    assert piece.compiled and (piece.calls, piece.eager_calls, piece.copied_outputs) == (2, 0, 0), str(told)
    assert not told.reasons


def test_a_graph_of_another_element_type_is_another_graph():
    def f(x):
        return torch.relu(x @ x.t()) * 2

    for dtype in (torch.float32, torch.float64):
        fast, x = compiled(f), randn(3, 5, dtype=dtype)
        with torch.no_grad():
            same(fast(x), f(x))
    pieces = [piece for graph in igniter.torch.explain().graphs for piece in graph.pieces]
    assert [piece.calls for piece in pieces] == [1, 1] and not igniter.torch.explain().reasons


def test_empty_and_scalar_inputs():
    def f(x, s):
        return x * s, (x * s).sum()

    agree(f, (randn(4, 3), torch.tensor(2.0)), (randn(6, 3), torch.tensor(3.0)))
    fast = compiled(f)
    with torch.no_grad():
        same(fast(randn(0, 3), torch.tensor(2.0)), f(randn(0, 3), torch.tensor(2.0)))


def test_numbers_among_the_inputs():
    def f(x, k, scale):
        return x * k + scale, k + 1

    fast = compiled(f)
    with torch.no_grad():
        for n, k, scale in ((3, 5, 0.5), (4, 7, 0.5), (5, 2, 1.5)):
            x = randn(n, 4)
            same(fast(x, k, scale), f(x, k, scale))


def test_random_ops_stay_eager():
    def f(x):
        return torch.relu(x @ x.t()) + torch.rand_like(x @ x.t())

    fast, x = compiled(f), randn(4, 4)
    with torch.no_grad():
        torch.manual_seed(3)
        got = fast(x)
        torch.manual_seed(3)
        same(got, f(x))
    told = igniter.torch.explain()
    assert told.compiled >= 1
    assert any("random" in reason for reason in told.reasons)


def test_what_cannot_be_exported_stays_eager_between_two_parts():
    def f(x):
        y = torch.relu(x @ x.t())
        return torch.softmax(torch.linalg.eigvalsh(y + y.t()).unsqueeze(0) * 2, -1)

    told = agree(f, (randn(4, 4),), (randn(6, 6),), sessions=2)
    assert told.compiled == 2
    assert any("eigh" in reason for reason in told.reasons)


def test_complex_numbers_stay_eager():
    def f(x):
        return torch.fft.fft(x + 1).abs() * 2

    fast, x = compiled(f), randn(8)
    with torch.no_grad():
        same(fast(x), f(x))
    assert any("complex64" in reason for reason in igniter.torch.explain().reasons)


def test_graph_breaks_are_respected():
    said = []

    def f(x):
        y = torch.relu(x) * 2
        said.append(float(y.sum()))
        return torch.tanh(y) + 1 if y.sum() > 0 else y - 1

    fast = compiled(f)
    with torch.no_grad():
        for x in (torch.ones(3, 4), -torch.ones(3, 4), torch.ones(5, 4)):
            same(fast(x), f(x))
    assert len(said) == 6


def test_training_is_eager_with_the_same_gradients(caplog):
    net = Net()
    fast = compiled(net)
    x = randn(4, 8)
    with caplog.at_level(logging.WARNING, logger="igniter.torch"):
        fast(x).square().sum().backward()
    got = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).square().sum().backward()
    same(got, [p.grad for p in net.parameters()])
    assert "gradients are recorded" in caplog.text
    # Afterwards, without gradients, the same module is compiled.
    net.eval()
    with torch.no_grad():
        same(fast(x), net(x))
    assert igniter.torch.explain().compiled == 1


def test_a_training_loop_with_evaluation_sees_every_step():
    net = Net()
    fast = compiled(net)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    x = randn(4, 8)
    for _ in range(4):
        with torch.no_grad():
            same(fast(x), net(x))
        net(x).square().sum().backward()
        sgd.step()
        sgd.zero_grad()
    # Frozen, frozen again once, and then inputs.
    assert igniter.torch.explain().sessions == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.mul_(2),
        lambda p: p.data.mul_(2),
        lambda p: p.detach().numpy().__imul__(2),
        lambda p: setattr(p, "data", p.data * 2),
    ],
)
def test_a_changed_weight_is_seen(change):
    net = Net().eval()
    fast, x = compiled(net), randn(4, 8)
    with torch.no_grad():
        before = fast(x).clone()
        change(net.up.weight)
        same(fast(x), net(x))
        assert not torch.allclose(fast(x), before)


def test_checked_weights_see_a_change_of_one_element():
    net = torch.nn.Linear(64, 64).eval()
    fast, x = compiled(net, weights="checked"), randn(4, 64)
    with torch.no_grad():
        fast(x)
        net.weight.data[17, 3] += 5
        same(fast(x), net(x))


def test_weights_as_inputs_are_never_frozen():
    net = Net().eval()
    fast, x = compiled(net, weights="inputs"), randn(4, 8)
    with torch.no_grad():
        for _ in range(3):
            net.up.weight.data[3, 3] += 1
            same(fast(x), net(x))
    assert igniter.torch.explain().sessions == 1


def test_a_buffer_that_the_graph_changes_is_an_input():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(4))

        def forward(self, x):
            self.count.add_(x.sum(0))
            return x + self.count

    net, plain = Counter(), Counter()
    fast = compiled(net)
    with torch.no_grad():
        for n in (3, 4, 5):
            x = randn(n, 4)
            same(fast(x), plain(x))
            same(net.count, plain.count)
    assert igniter.torch.explain().sessions == 1


def test_equal_layers_share_a_graph_with_a_session_each():
    layers = [Net().eval() for _ in range(3)]
    for layer in layers:
        layer.compile(backend="igniter", dynamic=True)
    plain = [Net().eval() for _ in range(3)]
    for one, other in zip(plain, layers, strict=True):
        one.load_state_dict(other.state_dict())
    with torch.no_grad():
        for n in (3, 6):
            x = randn(n, 8)
            for one, other in zip(plain, layers, strict=True):
                same(other(x), one(x))
    told = igniter.torch.explain()
    assert told.sessions == 3 and len(told.graphs) == 1, str(told)


def test_more_sets_of_weights_than_allowed_become_inputs():
    layers = [Net().eval() for _ in range(4)]
    x = randn(3, 8)
    expected = [layer(x).detach() for layer in layers]
    for layer in layers:
        layer.compile(backend="igniter", dynamic=True, options={"sets_of_weights": 2})
    with torch.no_grad():
        for _ in range(2):
            for layer, value in zip(layers, expected, strict=True):
                same(layer(x), value)
    told = igniter.torch.explain()
    assert told.sessions == 3 and told.graphs[0].pieces[0].weight_inputs == 7, str(told)


def test_sessions_go_with_their_modules():
    import gc

    x = randn(3, 8)
    with torch.no_grad():
        for _ in range(4):
            layer = Net().eval()
            layer.compile(backend="igniter", dynamic=True, options={"sets_of_weights": 1})
            expected = layer(x)
            same(expected, layer.forward(x))
            del layer
            gc.collect()
    # Each is gone before the next comes: no limit is reached, nothing became an input.
    told = igniter.torch.explain()
    assert not any(piece.weight_inputs for graph in told.graphs for piece in graph.pieces), str(told)


def test_another_process_finds_graph_and_model_in_the_cache():
    net, x = Net().eval(), randn(4, 8)
    with torch.no_grad():
        compiled(net)(x)
        torch._dynamo.reset()
        igniter.torch.reset()
        same(compiled(net)(x), net(x))
    (piece,) = igniter.torch.explain().graphs[0].pieces
    assert piece.exported_from_cache and piece.compiled_from_cache


def test_other_versions_and_options_take_nothing_from_the_cache(monkeypatch, tmp_path):
    from igniter.torch import sessions

    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path))
    net, x = torch.nn.Sigmoid().eval(), randn(4, 8)

    def from_cache(**options):
        igniter.torch.reset()
        with torch.no_grad():
            same(igniter.torch.compile(net, **options)(x), net(x))
        (piece,) = igniter.torch.explain().graphs[0].pieces
        return piece.exported_from_cache, piece.compiled_from_cache

    assert from_cache() == (False, False)
    assert from_cache() == (True, True)
    # The graph is the same; a model for other options is not.
    assert from_cache(compile_options={"target": "x86-64-v3"}) == (True, False)
    found = sessions.versions()
    monkeypatch.setattr(sessions, "versions", lambda: [*found, "another"])
    assert not from_cache()[0]


def test_a_graph_with_other_constants_is_another_graph():
    def make(value):
        return lambda x: x * torch.tensor([value, 2.0])

    for value in (1.0, 5.0):
        torch._dynamo.reset()
        f = make(value)
        x = randn(3, 2)
        with torch.no_grad():
            same(compiled(f)(x), f(x))


def test_options_that_there_are_not():
    with pytest.raises(
        (IgniterError, torch._dynamo.exc.BackendCompilerFailed), match="no option 'wieghts'; did you mean"
    ):
        compiled(Net().eval(), wieghts="inputs")(randn(2, 8))


def test_what_computes_something_else_stays_eager(monkeypatch):
    from igniter.torch import piece

    monkeypatch.setattr(piece, "differences", lambda *_: (1.0, "output 0: wrong"))
    net, x = Net().eval(), randn(4, 8)
    with torch.no_grad():
        same(compiled(net)(x), net(x))
    assert any("its results differ from eager" in reason for reason in igniter.torch.explain().reasons)


def test_in_inference_mode_and_under_autocast():
    net = Net().eval()
    fast = compiled(net)
    with torch.inference_mode():
        for n in (3, 4):
            x = randn(n, 8)
            same(fast(x), net(x))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        x = randn(4, 8)
        same(fast(x), net(x), rtol=0.05)


class Scaled(torch.nn.Module):
    """A float among the attributes that no tensor op can take as a tensor."""

    def __init__(self):
        super().__init__()
        self.net, self.drop, self.scale = torch.nn.Linear(8, 8), torch.nn.Dropout(0.1), 0.125

    def forward(self, x, shift=0.5):
        return self.drop(self.net(x)) * self.scale**-0.5 + shift


def test_a_float_among_the_attributes_does_not_trace_twice(monkeypatch):
    import igniter.torch.backend as backend

    calls, make = [], backend.module_tensors
    monkeypatch.setattr(backend, "module_tensors", lambda *args: calls.append(0) or make(*args))
    model, x = Scaled().eval(), randn(4, 8)
    fast = compiled(model)
    with torch.no_grad():
        same(fast(x), model(x))
        assert len(calls) == 1
        # Dynamo traces anew for another value; the third one is a symbol by then.
        for model.scale in (0.25, 0.5, 0.125):
            for shift in (0.5, 0.75):
                same(fast(x, shift), model(x, shift))
    assert igniter.torch.explain().sessions == 2
