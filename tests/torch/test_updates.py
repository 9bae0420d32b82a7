"""Rows of an input updated in place: eager's values in all tensors, and no copy of the input."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
import igniter.torch.backend as backend  # noqa: E402
import igniter.torch.piece  # noqa: E402

pytestmark = pytest.mark.usefixtures("uncompiled")


@pytest.fixture
def made(monkeypatch):
    """The updates of each graph."""
    found, split = [], backend.split_updates
    monkeypatch.setattr(backend, "split_updates", lambda *args: found.append(split(*args)) or found[-1])
    return found


def cached(cache, at, row):
    cache.index_copy_(1, at, row)
    return (cache * 2).sum(1)


def two_caches(cache, at, row, other):
    cache.index_copy_(1, at, row)
    other.index_copy_(0, at, row[0] + 1)
    return cache.sum() + other.sum()


def returned(cache, at, row):
    cache.index_copy_(1, at, row)
    return cache, cache[0], cache * 2


def moves_a_row(cache, at, row, other):
    """What `other` receives is a view of the old content of `cache`."""
    old = cache[0, :1].clone()
    other.index_copy_(0, at[:1], old)
    cache.index_copy_(1, at, row)
    return other * 1


def moves_a_view(cache, at, row, other):
    other.index_copy_(0, at[:1], cache[0, :1])
    cache.index_copy_(1, at, row)
    return cache + other


def index_changes(cache, at, row):
    cache.index_copy_(1, at, row)
    at.add_(1)
    return cache.amax(1)


def index_is_updated(cache, at, row):
    cache.index_copy_(1, at, row)
    at.index_copy_(0, at[:1] * 0, at[1:] + 1)
    return cache.amax(1)


def masked(cache, at, row):
    cache[cache > 0] = 1.0
    return cache * 2


def twice(cache, at, row):
    cache.index_copy_(1, at, row)
    cache.index_copy_(1, at + 1, row * 2)
    return cache * 2


def adds(cache, at, row):
    cache.index_put_((torch.zeros_like(at), at), row[0], accumulate=True)
    return cache * 2


FUNCTIONS = [
    cached,
    returned,
    moves_a_row,
    moves_a_view,
    index_changes,
    index_is_updated,
    masked,
    twice,
    adds,
    two_caches,
]
IN_PLACE = {cached: 1, two_caches: 2, returned: 1, index_changes: 1}


def arguments(f, seed):
    torch.manual_seed(seed)
    given = [torch.randn(2, 9, 4), torch.tensor([3, 5 + seed]), torch.randn(2, 2, 4), torch.randn(9, 4)]
    return given[: f.__code__.co_argcount]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_values_are_those_of_eager(f, made):
    fast = torch.compile(f, backend="igniter", dynamic=True)
    with torch.no_grad():
        # The first call is compared with eager, and returns eager's results.
        for seed in (0, 1, 2):
            ours, theirs = arguments(f, seed), arguments(f, seed)
            got, expected = fast(*ours), f(*theirs)
            leaves = torch.utils._pytree.tree_leaves
            for one, other in zip([*ours, *leaves(got)], [*theirs, *leaves(expected)], strict=True):
                torch.testing.assert_close(one, other)
    told = igniter.torch.explain()
    assert not [why for why in told.reasons if "differ" in why], str(told)
    assert [len(updates) for _, updates in made] == [IN_PLACE.get(f, len(made[0][1]))]


def test_an_input_that_is_updated_is_not_copied(made):
    fast = torch.compile(cached, backend="igniter", dynamic=True)
    with torch.no_grad():
        ours = arguments(cached, 0)
        for _ in range(2):
            fast(*ours)
        version, address = ours[0]._version, ours[0].data_ptr()
        with torch.profiler.profile() as profile:
            fast(*ours)
    assert len(made[0][1]) == 1 and ours[0].data_ptr() == address and ours[0]._version > version
    copied = [e for e in profile.events() if e.name == "aten::copy_" and e.cpu_time_total > 0]
    assert all([2, 9, 4] not in list(event.input_shapes) for event in copied)


def test_views_of_one_tensor_stay_views():
    """AOTAutograd merges inputs that share memory, and an update of one changes the other."""

    def f(cache, part, at, row):
        cache.index_copy_(1, at, row)
        return part * 2

    fast = torch.compile(f, backend="igniter", dynamic=True)
    with torch.no_grad():
        for seed in (0, 1):
            (ours, at, row), (theirs, _, _) = arguments(cached, seed), arguments(cached, seed)
            torch.testing.assert_close(fast(ours, ours[0], at, row), f(theirs, theirs[0], at, row))
            torch.testing.assert_close(ours, theirs)


class OneRow(torch.nn.Module):
    """A step with a cache of keys: one row is new, and a product reads them all."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4))

    def forward(self, cache, at, row):
        cache.index_copy_(1, at, row @ self.weight)
        return (cache @ row.transpose(1, 2)).softmax(1)


@pytest.mark.parametrize("layout", ["dense", "strided"])
def test_one_row_is_written_in_place(layout, made, monkeypatch):
    """The session has the new cache as an output in the memory of the old one; one that is not dense is copied."""
    model, addresses, bound = OneRow().eval(), set(), igniter.torch.piece.Runner.__call__
    monkeypatch.setattr(
        igniter.torch.piece.Runner,
        "__call__",
        lambda runner, values: addresses.add(tuple(runner._in_place.items())) or bound(runner, values),
    )
    fast = torch.compile(model, backend="igniter", dynamic=True)
    with torch.no_grad():
        for places, at in ((9, 3), (9, 8), (12, 0)):
            ours = torch.randn(2, places, 4 if layout == "dense" else 8)[..., :4]
            theirs, row = ours.clone(), torch.randn(2, 1, 4)
            got = fast(ours, torch.tensor([at]), row)
            torch.testing.assert_close(got, model(theirs, torch.tensor([at]), row))
            torch.testing.assert_close(ours, theirs)
        with pytest.raises((IndexError, RuntimeError)):
            fast(torch.randn(2, 9, 4), torch.tensor([9]), row)
    ((_, updates),) = made[:1]
    assert [update.in_place for update in updates] == [True] and len(addresses) == 1 and all(addresses)
    assert not igniter.torch.explain().reasons
