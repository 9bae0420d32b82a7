"""`igniter.torch.compile(module)`: a module in the place of another."""

from __future__ import annotations

import collections
import copy

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
from igniter import IgniterError  # noqa: E402

from .test_backend import Net, randn, same  # noqa: E402

Pair = collections.namedtuple("Pair", "left right")


class Nested(torch.nn.Module):
    """Nested arguments and results, a keyword that is a number, one that is left out."""

    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x, others=None, *, scale=1.0, flip=False):
        y = self.net(x) * scale
        if others is not None:
            y = y + others["a"][0] - others["b"]
        if flip:
            y = -y
        return {"y": y, "pair": Pair(y.sum(-1), [y > 0, None, y.shape[1]])}


def test_one_session_for_all_sizes_and_one_is_among_them():
    net = Net().eval()
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        for n in (1, 4, 1, 9):
            x = randn(n, 8)
            same(fast(x), net(x))
    assert (fast.statistics.misses, fast.statistics.hits, fast.statistics.sessions) == (1, 3, 1)
    assert igniter.torch.explain().sessions == 1


def test_nested_and_keyword_arguments_and_results():
    net = Nested().eval()
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        for n in (3, 5):
            x = randn(n, 8)
            others = {"a": [randn(n, 8)], "b": randn(8)}
            same(fast(x), net(x))
            got, expected = fast(x, others, scale=2.0), net(x, others, scale=2.0)
            same(got, expected)
            assert isinstance(got["pair"], Pair) and got["pair"].right[1] is None
            same(fast(x, others=others, flip=True), net(x, others=others, flip=True))
    # Given or not, nested how, with which numbers: three structures.
    assert fast.statistics.misses == 3 and fast.statistics.hits == 3


def test_the_least_recently_used_session_goes():
    fast = igniter.torch.compile(Nested().eval(), sessions=2)
    x = randn(3, 8)
    with torch.no_grad():
        fast(x, scale=1.0)
        fast(x, scale=2.0)
        fast(x, scale=1.0)
        # 2.0 has not been used for longest.
        fast(x, scale=3.0)
        assert (fast.statistics.evicted, fast.statistics.sessions, fast.statistics.misses) == (1, 2, 3)
        fast(x, scale=1.0)
        assert fast.statistics.misses == 3
        fast(x, scale=2.0)
        assert fast.statistics.misses == 4
    assert "2 of 2 sessions" in str(fast.statistics)


def test_state_dict_parameters_and_attributes_are_the_modules():
    net = Net()
    net.note = "of the module"
    fast = igniter.torch.Igniter(net)
    assert list(fast.state_dict()) == list(net.state_dict())
    assert [n for n, _ in fast.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert [n for n, _ in fast.named_modules()] == [n for n, _ in net.named_modules()]
    assert fast.note == "of the module" and fast.up is net.up
    fast.note = "changed"
    assert net.note == "changed"
    with pytest.raises(AttributeError):
        _ = fast.nothing


def test_a_loaded_state_dict_is_used():
    net, other = Net().eval(), Net().eval()
    fast = igniter.torch.compile(net)
    x = randn(4, 8)
    with torch.no_grad():
        same(fast(x), net(x))
        fast.load_state_dict(other.state_dict())
        same(fast(x), other(x))
        fast.up = torch.nn.Linear(8, 32)
        assert net.up is fast.up


def test_copies_are_of_the_module_and_its_options():
    fast = igniter.torch.compile(Net().eval(), sessions=3)
    x = randn(4, 8)
    with torch.no_grad():
        expected = fast(x)
        other = copy.deepcopy(fast)
        assert other.wrapped is not fast.wrapped and other.options == fast.options
        same(other(x), expected)
        fast.up.weight.mul_(2)
        same(other(x), expected)


def test_a_replaced_parameter_is_used():
    net = Net().eval()
    fast = igniter.torch.compile(net)
    x = randn(4, 8)
    with torch.no_grad():
        fast(x)
        net.up.weight = torch.nn.Parameter(randn(32, 8))
        same(fast(x), net(x))


def test_moved_to_another_type_it_computes_in_that():
    net = Net().eval()
    fast = igniter.torch.compile(net)
    x = randn(4, 8)
    with torch.no_grad():
        fast(x)
        fast.to(torch.float64)
        got = fast(x.double())
        assert got.dtype is torch.float64
        same(got, net(x.double()))


def test_in_training_the_module_itself_runs():
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8))
    fast = igniter.torch.compile(net)
    assert fast.train() is fast and net.training
    x = randn(6, 8)
    fast(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    assert "the module is in training mode" in fast.why_eager
    fast.eval()
    assert not net.training
    fast(x)
    assert any("gradients" in reason for reason in fast.why_eager)
    with torch.no_grad():
        same(fast(x), net(x))
    assert fast.statistics.sessions == 1 and fast.statistics.eager == 2


def test_a_fixed_dim_gets_a_session_of_its_own():
    class Branching(torch.nn.Module):
        def forward(self, x):
            return torch.tanh(x) * 2 if x.shape[0] > 5 else torch.relu(x) + 1

    net = Branching().eval()
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        for n in (3, 9, 4, 12, 5, 6):
            x = randn(n, 4)
            same(fast(x), net(x))
    assert fast.statistics.sessions == 2 and fast.statistics.misses == 2


def test_a_buffer_that_the_module_changes():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(4))

        def forward(self, x):
            self.count.add_(x.sum(0))
            return x * self.count

    net = Counter().eval()
    plain = copy.deepcopy(net)
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        for n in (3, 4, 5):
            x = randn(n, 4)
            same(fast(x), plain(x))
            same(net.count, plain.count)
    assert igniter.torch.explain().sessions == 1


def test_an_input_that_the_module_changes():
    class Shift(torch.nn.Module):
        def forward(self, x):
            x.add_(1)
            return x.exp()

    fast = igniter.torch.compile(Shift().eval())
    with torch.no_grad():
        for n in (3, 4):
            x = randn(n, 4)
            y = x.clone()
            same(fast(x), Shift()(y))
            same(x, y)
    assert fast.statistics.sessions == 1


def test_what_cannot_be_traced_is_compiled_in_parts():
    class Data(torch.nn.Module):
        def forward(self, x):
            y = torch.relu(x) * 2
            if float(y.sum()) > 1:
                return torch.tanh(y) + 1
            return y - 1

    net = Data().eval()
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        for x in (torch.ones(3, 4), -torch.ones(3, 4), torch.ones(5, 4)):
            same(fast(x), net(x))
    assert fast.statistics.partly == 3
    assert any("torch.export failed" in reason for reason in igniter.torch.explain().reasons)
    assert igniter.torch.explain().compiled >= 2


def test_options_that_there_are_not():
    with pytest.raises(IgniterError, match="no option 'session'; did you mean sessions"):
        igniter.torch.compile(Net(), session=3)
    with pytest.raises(IgniterError, match="must be one of frozen, checked, inputs"):
        igniter.torch.compile(Net(), weights="thawed")
    with pytest.raises(IgniterError, match="at least 1"):
        igniter.torch.compile(Net(), sessions=0)


def test_options_reach_the_compiler_and_the_session():
    net = Net().eval()
    fast = igniter.torch.compile(
        net, compile_options={"target": "x86-64-v3"}, session_options={"enable_profiling": False}
    )
    x = randn(3, 8)
    with torch.no_grad():
        same(fast(x), net(x))
    wrong = igniter.torch.compile(net, compile_options={"target": "x86-64-v9"})
    with torch.no_grad():
        same(wrong(x), net(x))
    assert any("x86-64-v9" in reason for reason in igniter.torch.explain().reasons)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (torch.nn.Conv2d(3, 8, 3, padding=1), lambda n: randn(n, 3, 9, 9 + n)),
        lambda: (torch.nn.LSTM(8, 16, 1, batch_first=True), lambda n: randn(2, n, 8)),
        lambda: (torch.nn.MultiheadAttention(8, 2, batch_first=True), None),
        lambda: (torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda n: randn(2, n, 8)),
        lambda: (torch.nn.BatchNorm1d(6), lambda n: randn(n, 6)),
        lambda: (torch.nn.Embedding(10, 4), lambda n: torch.randint(0, 10, (n, 2))),
        lambda: (torch.nn.Bilinear(4, 5, 3), None),
    ],
    ids=["conv", "lstm", "attention", "encoder", "norm", "embedding", "bilinear"],
)
def test_modules_of_torch(make):
    net, given = make()
    net.eval()
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        for n in (3, 5):
            if isinstance(net, torch.nn.MultiheadAttention):
                args = (randn(2, n, 8),) * 3
            elif isinstance(net, torch.nn.Bilinear):
                args = (randn(n, 4), randn(n, 5))
            else:
                args = (given(n),)
            same(fast(*args), net(*args))


def test_a_dataclass_of_transformers_comes_back():
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    config = transformers.BertConfig(
        hidden_size=16, intermediate_size=32, num_attention_heads=2, num_hidden_layers=1, vocab_size=50
    )
    net = transformers.BertModel(config).eval()
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        for n, length in ((2, 5), (3, 9)):
            words = torch.randint(0, 50, (n, length))
            got = fast(input_ids=words, attention_mask=torch.ones(n, length, dtype=torch.long))
            expected = net(input_ids=words, attention_mask=torch.ones(n, length, dtype=torch.long))
            assert type(got) is type(expected)
            same(got.last_hidden_state, expected.last_hidden_state)
            same(got.pooler_output, expected.pooler_output)
    assert fast.config is net.config and fast.statistics.sessions == 1


def test_a_dim_of_1_broadcasts_in_one_trace():
    """The trace keeps symbols for dims of 1 and notes as conditions that they are; other sizes get another trace."""

    class Step(torch.nn.Module):
        def forward(self, x, values):
            return torch.heaviside(x, values)

    fast = igniter.torch.compile(Step().eval())
    for one, other in [((4, 1, 5), (1, 3, 5)), ((2, 1, 6), (1, 3, 6)), ((4, 3, 5), (4, 3, 5)), ((1, 3, 5), (4, 1, 5))]:
        x, values = torch.zeros(one), torch.full(other, -0.0)
        got = fast(x, values)
        # ONNX Runtime's Where, which a broadcast that is not known is left to, makes them zeros of the other sign.
        assert got.shape == torch.broadcast_shapes(one, other) and bool(torch.signbit(got).all())
    assert igniter.torch.explain().compiled and not igniter.torch.explain().reasons
