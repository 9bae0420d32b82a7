"""Results that are views: the memory, strides and offset of eager, also of inputs that the graph changes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
import igniter.torch.backend  # noqa: E402
import igniter.torch.exported  # noqa: E402
from tests.torch.opinfo.judge import differences, sharing  # noqa: E402
from tests.torch.opinfo.programs import Module  # noqa: E402
from tests.torch.opinfo.values import copied  # noqa: E402

pytestmark = pytest.mark.usefixtures("uncompiled")


def row(x, i):
    x.add_(1)
    return x[i]


def from_row(x, i):
    x.add_(1)
    return x[i:], x


def columns(x, i):
    x.add_(1)
    return x[:, i:]


def a_view_that_is_changed(x, i):
    y = x[i]
    y.mul_(3)
    return y


def second_half(x, i):
    x.add_(i)
    return x[x.shape[0] // 2 :]


def chunk(x, i):
    x.add_(i)
    return x.chunk(2, 0)[1]


def cache(x, i):
    held = x.view(2, 3, 4)
    held[:, i - 1 : i] = 7.0
    return held[:, :i], held * 2


def expanded(x, i):
    x.add_(1)
    return x[:1].expand(i * 10, 4)


def strided(x, i):
    x.add_(i)
    return x.as_strided((2, 2), (4, 1), 9)


def transposed(x, i):
    x.mul_(2)
    return x.t()[i:], x.unsqueeze(0), x.unbind(0)[1], x.diagonal()


def changed_behind(x, i):
    y = x[i] * 2
    z = x[i:]
    x.add_(1)
    return y, z


def copied_over(x, i):
    """The same value as the new one of the input, and not in its memory."""
    y = x * 2
    x.copy_(y)
    return y[i], x[i]


def of_what_is_computed(x, i):
    y = x * 2
    return y, y[i], y.t(), y.view(-1)[i:]


def parts_of_what_is_not_returned(x, i):
    y = x * 2 + i
    a, b = y.split(3)
    return a, b, y.t()


def as_they_are(x, i):
    return x, x.t(), x.contiguous(), x.reshape(-1), x + i


FUNCTIONS = [
    row,
    from_row,
    columns,
    a_view_that_is_changed,
    second_half,
    chunk,
    cache,
    expanded,
    strided,
    transposed,
    changed_behind,
    copied_over,
    of_what_is_computed,
    parts_of_what_is_not_returned,
    as_they_are,
]


def tensor(layout="in order"):
    values = torch.arange(24.0).view(6, 4)
    if layout == "offset":
        return torch.cat([torch.zeros(2, 4), values])[2:]
    return values.t().contiguous().t() if layout == "transposed" else values


def agree(function, fast, x, i):
    ours, theirs = copied([x])[0], copied([x])[0]
    with torch.no_grad():
        try:
            want = function(theirs, i)
        except RuntimeError:
            # A view that there is not of memory in another order.
            return
        got = fast(ours, i)
    # The only view of a tensor that nobody has is dense.
    assert not [(kind, what) for kind, what in differences([ours, got], [theirs, want]) if kind != "layout"]
    mine, others = (torch.utils._pytree.tree_leaves(each) for each in ([ours, got], [theirs, want]))
    assert sharing(mine) == sharing(others)
    for one, other in zip(mine, others, strict=True):
        if other.untyped_storage().data_ptr() == theirs.untyped_storage().data_ptr():
            assert one.storage_offset() == other.storage_offset() and one.stride() == other.stride()


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", ["torch.compile", "igniter.torch.compile"])
def test_views_are_those_of_eager(function, way):
    compiled = way == "torch.compile"
    fast = (
        torch.compile(function, backend="igniter", dynamic=True)
        if compiled
        else igniter.torch.compile(Module(function).eval())
    )
    for layout in ("in order", "offset", "transposed"):
        for i in (2, 1):
            agree(function, fast, tensor(layout), i)
    assert not [each for each in igniter.torch.explain().reasons if "differ from eager" in each or "AOT" in each]


def test_inputs_that_share_memory():
    def f(x, y):
        x.add_(1)
        return y[0], x[1:], y * 2

    fast = torch.compile(f, backend="igniter", dynamic=True)
    with torch.no_grad():
        for _ in range(2):
            ours, theirs = tensor(), tensor()
            got, want = fast(ours, ours[1:]), f(theirs, theirs[1:])
            assert not differences([ours, *got], [theirs, *want])
            assert sharing([ours, *got]) == sharing([theirs, *want])


@pytest.mark.parametrize("way", ["torch.compile", "igniter.torch.compile"])
def test_a_buffer_that_is_returned_is_the_buffer(way):
    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("held", torch.arange(6.0))
            self.register_buffer("counted", torch.zeros(3))

        def forward(self, x):
            self.counted.add_(1)
            return self.held, self.held[2:], x * self.held, self.counted, self.counted[1:]

    eager, module = Holder().eval(), Holder().eval()
    fast = (
        torch.compile(module, backend="igniter", dynamic=True)
        if way == "torch.compile"
        else igniter.torch.compile(module)
    )
    with torch.no_grad():
        for _ in range(3):
            got, want = fast(torch.ones(6)), eager(torch.ones(6))
            assert got[0] is module.held and got[3].data_ptr() == module.counted.data_ptr()
            assert not differences([*got, module.counted], [*want, eager.counted])
            assert sharing([module.held, module.counted, *got]) == sharing([eager.held, eager.counted, *want])


def test_a_wrong_view_is_found_by_the_first_call(monkeypatch):
    """The first call compares behind AOTAutograd, which makes the view."""
    monkeypatch.setattr(
        igniter.torch.backend, "_with_views", lambda program, views, places: lambda *args: _moved(program, places, args)
    )

    def _moved(program, places, args):
        results = list(program(*args))
        for place in places:
            results[place] = torch.zeros(4)
        return results

    fast = torch.compile(row, backend="igniter", dynamic=True)
    with torch.no_grad():
        for _ in range(2):
            x, y = tensor(), tensor()
            assert torch.equal(fast(x, 2), row(y, 2)) and torch.equal(x, y)
    assert "its results differ from eager" in str(igniter.torch.explain())


def test_a_wrong_view_of_an_exported_module_is_found_by_the_first_call(monkeypatch):
    none = igniter.torch.exported.Aliases({}, {})
    monkeypatch.setattr(igniter.torch.exported, "_aliases", lambda *_: none)
    fast = igniter.torch.compile(Module(row).eval())
    with torch.no_grad():
        for _ in range(3):
            x, y = tensor(), tensor()
            assert torch.equal(fast(x, 2), row(y, 2)) and torch.equal(x, y)
    assert "share memory" in str(igniter.torch.explain())


def test_ops_that_read_strides_stay_eager():
    def f(x):
        return x.as_strided((3, 3), (2, 1)) * 2 + 1

    fast = igniter.torch.compile(Module(f).eval())
    with torch.no_grad():
        for x in (tensor(), tensor("transposed")):
            assert torch.equal(fast(x), f(x))


def test_contiguous_copies_where_eager_copies():
    def f(x):
        y = x.contiguous()
        y.add_(1)
        return y

    fast = igniter.torch.compile(Module(f).eval())
    with torch.no_grad():
        for layout in ("in order", "transposed", "in order"):
            ours, theirs = tensor(layout), tensor(layout)
            assert torch.equal(fast(ours), f(theirs)) and torch.equal(ours, theirs)


def test_sizes_are_a_size():
    class Sizes(torch.nn.Module):
        def forward(self, x, given=None):
            return x * 2, x.shape, {"given": given, "some": [x.size()[1:]]}

    module = Sizes().eval()
    fast = igniter.torch.compile(module)
    with torch.no_grad():
        for rows in (2, 5):
            x = torch.ones(rows, 3)
            for given in (None, torch.Size([1, 2])):
                got, want = fast(x, given), module(x, given)
                assert got[1:] == want[1:] and type(got[1]) is torch.Size and type(got[2]["some"][0]) is torch.Size
                assert type(got[2]["given"]) is type(given)


def test_a_view_that_the_trace_takes_for_a_copy():
    """Of symbolic sizes `torch.export` does not know that a transposed tensor can be reshaped in place."""

    class Rows(torch.nn.Module):
        def forward(self, x):
            return x.reshape(5, -1, 5)

    fast, x = igniter.torch.compile(Rows().eval()), torch.arange(125.0).view(25, 5)
    for given in (x, x.t().contiguous().t(), x.t().contiguous().t()):
        got = fast(given)
        assert torch.equal(got, Rows()(given)) and got.stride() == Rows()(given).stride()
        got[0, 0, 0] = -1.0
        assert given[0, 0] == -1.0
