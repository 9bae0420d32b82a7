"""What a trace takes for granted of a module besides its tensors: attributes, hooks, ties, aliases, types, autocast."""

from __future__ import annotations

import copy
import time
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
from igniter.torch.state import ModuleState  # noqa: E402

from .test_backend import randn, same  # noqa: E402


class Scaled(torch.nn.Module):
    """A module of each kind of attribute that code may read."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.dropout = torch.nn.Dropout(0.5)
        self.scale = 2.0
        self.config = SimpleNamespace(flip=False, more={"shift": [1.0]})
        self.plain = randn(4)
        self.tensors = [randn(4)]
        self.register_parameter("bias", None)

    def forward(self, x):
        y = self.dropout(self.inner(x)) * self.scale + self.config.more["shift"][0] + self.plain - self.tensors[0]
        y = y if self.bias is None else y + self.bias
        return -y if self.config.flip else y


CHANGES = {
    "attribute": lambda net: setattr(net, "scale", 5.0),
    "of an object": lambda net: setattr(net.config, "flip", True),
    "deep in containers": lambda net: net.config.more["shift"].__setitem__(0, 7.0),
    "submodule": lambda net: setattr(net, "inner", torch.nn.Linear(4, 4)),
    "class of submodule": lambda net: setattr(net, "inner", torch.nn.ReLU()),
    "plain tensor": lambda net: setattr(net, "plain", randn(4)),
    "tensor in a list": lambda net: net.tensors.__setitem__(0, randn(4)),
    "parameter that was none": lambda net: setattr(net, "bias", torch.nn.Parameter(randn(4))),
    "new attribute": lambda net: setattr(net, "other", 1),
    "training": lambda net: net.dropout.train(),
    "hook": lambda net: net.inner.register_forward_hook(lambda module, given, result: result + 1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen_and_taken_back(change):
    net = Scaled().eval()
    state = ModuleState(net)
    assert state.unchanged()
    before = {name: vars(module).copy() for name, module in net.named_modules()}
    change(net)
    assert not state.unchanged()
    state.restore()
    assert all(vars(module).keys() == before[name].keys() for name, module in net.named_modules())


def test_a_tie_that_is_cut_is_seen():
    net = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 4), "b": torch.nn.Linear(4, 4)})
    net["b"].weight = net["a"].weight
    state = ModuleState(net)
    assert state.unchanged()
    net["b"].weight = torch.nn.Parameter(net["a"].weight.detach().clone())
    assert not state.unchanged()


def test_looking_takes_little_time():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 12)
    state = ModuleState(net)
    best = min(_seconds(state.unchanged) for _ in range(20))
    # 86 modules; 1 ms on a busy machine would be a fault, 0.05 ms is what it takes.
    assert best < 1e-3


def _seconds(work):
    start = time.perf_counter()
    assert work()
    return time.perf_counter() - start


def test_a_compiled_module_follows_attributes_with_a_session_for_each():
    net = Scaled().eval()
    fast = igniter.torch.compile(net)
    x = randn(3, 4)
    with torch.no_grad():
        same(fast(x), net(x))
        for scale in (5.0, 2.0, 5.0):
            net.scale = scale
            same(fast(x), net(x))
        assert (fast.statistics.misses, fast.statistics.hits, fast.statistics.partly) == (2, 2, 0)
        net.plain.mul_(3)
        net.tensors[0].add_(1)
        same(fast(x), net(x))


def test_code_that_changes_attributes_does_so_at_each_call():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls, self.last, self.seen = 0, None, []

        def forward(self, x):
            self.calls += 1
            self.last = x * 2
            self.seen.append(self.calls)
            return x + self.calls

    net = Counting().eval()
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        for number in (1, 2, 3):
            x = randn(3)
            same(fast(x), x + number)
            same(net.last, x * 2)
    assert net.calls == 3 and net.seen == [1, 2, 3] and fast.statistics.partly == 3
    assert any("changes attributes" in reason for reason in igniter.torch.explain().reasons)


def test_code_that_changes_a_dict_that_it_is_given_does_so_at_each_call():
    class Storing(torch.nn.Module):
        def forward(self, store):
            store["twice"] = store["x"] * 2
            return store["x"] + 1

    fast = igniter.torch.compile(Storing().eval())
    with torch.no_grad():
        for n in (2, 3):
            store = {"x": randn(n)}
            same(fast(store), store["x"] + 1)
            same(store["twice"], store["x"] * 2)
    assert any("container that it receives" in reason for reason in igniter.torch.explain().reasons)


def test_hooks_run_at_each_call():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    seen = []
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        x = randn(3, 4)
        same(fast(x), net(x))
        hook = net[0].register_forward_hook(lambda module, given, result: seen.append(result))
        for n in (3, 4):
            x = randn(n, 4)
            same(fast(x), torch.relu(seen[-1]))
            assert type(seen[-1]) is torch.Tensor and seen[-1].shape == (n, 4)
        hook.remove()
        before = len(seen)
        same(fast(x), net(x))
    assert before == len(seen) == 2 and fast.statistics.hits == 1


def test_the_same_tensor_twice_is_not_two_tensors():
    class Two(torch.nn.Module):
        def forward(self, x, y):
            return x * 2 if x is y else x + y

    net = Two().eval()
    fast = igniter.torch.compile(net)
    x, y = randn(3), randn(3)
    with torch.no_grad():
        for args in ((x, x), (x, y), (y, y), (y, x)):
            same(fast(*args), net(*args))
    assert fast.statistics.misses == 2


def test_a_change_in_place_reaches_arguments_in_the_same_memory():
    class Shifting(torch.nn.Module):
        def forward(self, x, y):
            x.add_(1)
            return y * 2

    net = Shifting().eval()
    fast = igniter.torch.compile(net)

    def given(kind):
        memory = torch.arange(12.0).view(6, 2)
        return {"apart": (memory[:3], memory.clone()[3:]), "over": (memory[:4], memory[1:])}[kind]

    with torch.no_grad():
        for kind in ("apart", "over", "apart"):
            mine, other = given(kind), given(kind)
            same(fast(*mine), net(*other))
            same(mine, other)


def test_tied_weights_that_are_cut_apart():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.out = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9, bias=False)
            self.out.weight = self.words.weight

        def forward(self, x):
            return self.out(self.words(x))

    net = Tied().eval()
    fast = igniter.torch.compile(net)
    x = torch.tensor([1, 5])
    with torch.no_grad():
        same(fast(x), net(x))
        net.words.weight.mul_(2)
        same(fast(x), net(x))
        net.out.weight = torch.nn.Parameter(randn(9, 4))
        same(fast(x), net(x))


def test_another_type_of_weights_with_the_same_arguments():
    net = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 4)).eval()
    fast = igniter.torch.compile(net)
    x = torch.tensor([1, 5])
    with torch.no_grad():
        for kind in (torch.float32, torch.float64, torch.float32):
            got = fast.to(kind)(x)
            assert got.dtype is kind
            same(got, net(x))


def test_autocast_and_the_default_type_are_part_of_a_call():
    net = torch.nn.Linear(4, 4).eval()
    fast = igniter.torch.compile(net)
    x = randn(3, 4)
    with torch.no_grad():
        same(fast(x), net(x))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            got = fast(x)
            assert got.dtype is torch.bfloat16
            same(got, net(x), rtol=0.05)
        same(fast(x), net(x))
    assert fast.statistics.misses == 2 and igniter.torch.explain().compiled == 2


def test_numbers_that_differ_from_call_to_call_become_symbols():
    class Times(torch.nn.Module):
        def forward(self, x, by):
            return x * by

    fast = igniter.torch.compile(Times().eval(), smallest=100)
    x = randn(3)
    with torch.no_grad():
        for number in range(9):
            same(fast(x, number), x * number)
        for _ in range(2):
            fast(x, float("nan"))
    assert fast.statistics.sessions <= 8 and fast.statistics.partly >= 3 and fast.statistics.hits >= 1
    assert any("differ from call to call" in reason for reason in igniter.torch.explain().reasons)


def test_a_module_whose_tensors_are_nowhere_yet():
    net = torch.nn.Linear(4, 4, device="meta").eval()
    fast = igniter.torch.compile(net)
    with torch.no_grad():
        assert fast(torch.empty(3, 4, device="meta")).is_meta
        net.to_empty(device="cpu")
        net.reset_parameters()
        x = randn(3, 4)
        same(fast(x), net(x))
    assert any("meta" in reason for reason in fast.why_eager)


def test_copies_follow_their_own_module():
    net = Scaled().eval()
    fast = igniter.torch.compile(net)
    x = randn(3, 4)
    with torch.no_grad():
        fast(x)
        other = copy.deepcopy(fast)
        net.scale = 9.0
        same(other(x), other.wrapped(x))
        same(fast(x), net(x))


def test_what_torch_export_changes_itself_is_no_change_of_the_modules():
    # It keeps a list of its parameters, which torch.export puts others in, and makes it anew.
    net = torch.nn.LSTM(4, 4, 1, batch_first=True).eval()
    fast = igniter.torch.compile(net)
    x = randn(2, 2, 4)
    with torch.no_grad():
        for _ in range(2):
            same(fast(x), net(x))
    assert fast.statistics.partly == 0 and fast.statistics.hits == 1 and igniter.torch.explain().compiled == 1


def test_what_is_no_module_and_what_has_no_code():
    with pytest.raises(igniter.IgniterError, match=r"needs a torch\.nn\.Module, not a function"):
        igniter.torch.compile(lambda x: x)
    net = torch.nn.Linear(4, 4).eval()
    fast = igniter.torch.compile(torch.jit.trace(net, randn(2, 4)))
    x = randn(3, 4)
    with torch.no_grad():
        same(fast(x), net(x))
    assert any("scripted" in reason for reason in fast.why_eager)
