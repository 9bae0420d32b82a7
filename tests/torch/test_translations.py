"""Ops that PyTorch's exporter translates to something else: what is computed is what eager computes."""

from __future__ import annotations

import concurrent.futures
import importlib
import random
import time

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402
from igniter.torch.exporter import to_onnx  # noqa: E402
from tests.torch.opinfo.judge import differences  # noqa: E402
from tests.torch.opinfo.values import other_values  # noqa: E402

F = torch.nn.functional
CLOSE = [1e-9, -1e-9, 3e-5, -3e-5, 1e-3, 0.7, -0.7, 20.0, -20.0, 88.0, -90.0, 100.0]

FLOATS = {
    "sign": torch.sign,
    "sgn": torch.sgn,
    "trunc": torch.trunc,
    "frac": torch.frac,
    "remainder": torch.remainder,
    # Eager's own is NaN where the quotient is huge.
    "remainder by a number": lambda x, y: torch.where(x.abs() > 1e6, 1.0, x) % -0.75,
    "floor_divide": torch.floor_divide,
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div floor by a number": lambda x, y: x // 0.1,
    "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "logaddexp": torch.logaddexp,
    "heaviside": torch.heaviside,
    "celu": lambda x, y: torch.nn.functional.celu(x, 1.3),
    "elu": lambda x, y: torch.nn.functional.elu(x),
    "selu": lambda x, y: torch.selu(x),
    "logit": lambda x, y: (torch.logit(x), torch.logit(y, 1e-3)),
    "pieces": lambda x, y: (*x.chunk(3, 1), *y[:5].split([2, 3]), *x.unbind(), *y.split(3, 1)),
    "isinf": torch.isinf,
    "isposinf": torch.isposinf,
    "isneginf": torch.isneginf,
    "isfinite": torch.isfinite,
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "signbit": torch.signbit,
    "erfc": torch.special.erfc,
    "argmax": lambda x, y: (x.argmax(0), x.argmin(1, keepdim=True), x.argmax()),
    "max": lambda x, y: (*x.max(0), *x.min(1, keepdim=True), x.amax(1), x.max()),
    "sort": lambda x, y: (*x.sort(0), *x.topk(2, 1)),
    "any": lambda x, y: (x.any(), x.all(1), x[:0].any(0), x[:0].all()),
    "logcumsumexp": lambda x, y: torch.logcumsumexp(x, 0),
    "diagonal": lambda x, y: (x.diagonal() * 2, x[:5, :5].trace(), x.cumprod(0)),
    "trace": lambda x, y: torch.where(torch.eye(*x.shape) == 1, 1.0, x).trace(),
    "scatter_reduce": lambda x, y: x.scatter_reduce(
        0, (y > 0).long() + (y < 0).long() * 2, y, "amax", include_self=False
    ),
    "nan_to_num": lambda x, y: torch.nan_to_num(x),
    "clamp": lambda x, y: (x.clamp(-1, 2), x.clamp(min=y), torch.maximum(x, y), torch.fmin(x, y)),
}

INTEGERS = {
    "sign": torch.sign,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "floor_divide": torch.floor_divide,
    "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "div by a number": lambda x, y: (torch.div(x, 7, rounding_mode="trunc"), x // -3, x / 3),
    "powers": lambda x, y: (x**2, x**3, x**7, x**0),
    "any": lambda x, y: (x.any(), x.all(1), x[:0].any(0)),
    "max": lambda x, y: (*x.max(0), x.argmax(), x.amin(1)),
    "bitwise": lambda x, y: (x & y, x | y, x ^ y, ~x),
    "shifts": lambda x, y: (x << 2, x >> 3),
    "abs": lambda x, y: (x.abs(), -x, x.clamp(-3, 5)),
}


def pairs(dtype):
    """Tensors of ordinary values, of those that lose digits, and of extremes."""
    chance = random.Random(7)
    like = torch.zeros(5, 8, dtype=dtype)
    yield (
        [torch.randn(5, 8).to(dtype), torch.randn(5, 8).to(dtype)]
        if dtype.is_floating_point
        else [
            torch.randint(-40, 40, (5, 8)).to(dtype),
            torch.randint(1, 9, (5, 8)).to(dtype),
        ]
    )
    if dtype.is_floating_point:
        column = torch.tensor(CLOSE, dtype=dtype)[:, None]
        yield [column.expand(-1, 12).contiguous(), column.t().expand(12, -1).contiguous()]
    for share in (0.1, 1.0):
        x, y = other_values([like, like], chance, share)
        # Eager refuses to divide integers by 0.
        yield [x, y if dtype.is_floating_point else torch.where(y == 0, 3, y)]


def agree(function, dtype, ignored=("layout",)):
    fast = torch.compile(lambda *args: _call(function, *args), backend="igniter", dynamic=True)
    with torch.no_grad():
        for x, y in pairs(dtype):
            got, want = fast(x, y), _call(function, x, y)
            wide = None if not dtype.is_floating_point else (lambda x=x, y=y: _call(function, x.double(), y.double()))
            assert not [each for each in differences(got, want, wide) if each[0] not in ignored], (x, y)
            if dtype.is_floating_point and torch.is_tensor(want) and want.is_floating_point():
                # Small results as exact as large ones.
                torch.testing.assert_close(got, want, rtol=1e-2 if dtype.itemsize < 4 else 1e-5, atol=0, equal_nan=True)


def _call(function, x, y):
    unary = function in (torch.sign, torch.sgn, torch.trunc, torch.frac, torch.log1p, torch.expm1, torch.special.erfc)
    unary = unary or function in (torch.isinf, torch.isposinf, torch.isneginf, torch.isfinite, torch.signbit)
    return function(x) if unary else function(x, y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("name", sorted(FLOATS.keys() - {"max"}))
def test_floats(name, dtype, uncompiled):
    # ONNX Runtime's Where adds what it takes and zeros, which loses the sign of a zero; its ReduceMax loses NaNs.
    agree(FLOATS[name], dtype, ("layout", "zero"))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8], ids=str)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name, dtype, uncompiled):
    agree(INTEGERS[name], dtype)


@pytest.mark.parametrize("names", [list(FLOATS)[:14], list(FLOATS)[14:]], ids=["one half", "the other"])
def test_floats_compiled(names):
    """Many in one graph, as Igniter's own kernels compute them."""

    def all_of_them(x, y):
        return [_call(FLOATS[name], x, y) for name in names]

    agree(all_of_them, torch.float32)
    assert igniter.torch.explain().compiled


def test_integers_compiled():
    def all_of_them(x, y):
        return [_call(function, x, y) for function in INTEGERS.values()]

    agree(all_of_them, torch.int64)
    assert igniter.torch.explain().compiled


@pytest.mark.usefixtures("uncompiled")
def test_attention_with_fewer_heads_of_keys_and_beside_doubles():
    """PyTorch's exporter multiplied 4 heads by 2, and f32 constants of its attention became f64 beside any f64."""

    def attend(query, key, value, double):
        shared = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
        own = F.scaled_dot_product_attention(query, query, query, is_causal=True, scale=0.3)
        return shared, own, double * 0.1

    heads = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 8)
    double = torch.randn(3, dtype=torch.float64)
    with torch.no_grad():
        got = torch.compile(attend, backend="igniter", dynamic=True)(*heads, double)
        torch.testing.assert_close(got, attend(*heads, double), rtol=1e-5, atol=1e-6)
    told = igniter.torch.explain()
    assert told.sessions == 1 and not told.reasons, str(told)


MASKS = {
    "booleans": lambda seen: seen,
    "infinities": lambda seen: torch.zeros(seen.shape).masked_fill(~seen, -torch.inf),
    "least numbers": lambda seen: torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min),
}


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("masked", MASKS)
def test_queries_without_keys(masked, rank):
    """Their results are zeros, and with the least number in place of -inf the mean. The exporter's form makes NaNs."""

    def attend(query, key, value, mask):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    fast = torch.compile(attend, backend="igniter", dynamic=True)
    with torch.no_grad():
        for row in (None, 1):
            given = [torch.randn(2, 3, 5, 8)[-1 if rank == 3 else slice(None)] for _ in range(3)]
            seen = torch.ones(5, 5, dtype=torch.bool).tril()
            if row is not None:
                seen[row] = False
            mask = MASKS[masked](seen)
            torch.testing.assert_close(fast(*given, mask), attend(*given, mask), rtol=1e-5, atol=1e-6)
    told = igniter.torch.explain()
    assert told.sessions == 1 and not told.reasons, str(told)


@pytest.mark.usefixtures("uncompiled")
def test_numbers_computed_from_sizes():
    """The exporter takes such a number in some overloads only, and left the whole part to eager."""

    def f(x):
        n = x.shape[0]
        product = torch.ops.aten.mul.Scalar(x, n**0.5)
        return product, torch.ops.aten.sub.Scalar(x, n / 3), x.abs() ** (1 / n), (x * 9).long() % n

    fast = torch.compile(f, backend="igniter", dynamic=True)
    with torch.no_grad():
        for rows in (3, 4):
            x = torch.randn(rows, 6)
            torch.testing.assert_close(fast(x), f(x))
    told = igniter.torch.explain()
    assert told.sessions == 1 and not told.reasons, str(told)


NUMBERS = {
    "clamp": lambda x, y: x.clamp(-0.1, 0.3),
    "arithmetic": lambda x, y: (x * 0.1, x / 0.3, 0.1 - x, torch.add(x, y, alpha=0.1), y**0.1, 0.1**x),
    "choices": lambda x, y: (torch.where(x > 0, x, 0.1), x.masked_fill(x > 0, 0.1), torch.full_like(x, 0.1) + x),
    "leaky_relu": lambda x, y: F.leaky_relu(x, 0.1),
    "elu": lambda x, y: (F.elu(x, 0.1), F.celu(x, 0.3), F.selu(x), F.softplus(x, 0.3, 0.7)),
    "hard": lambda x, y: (F.hardtanh(x, -0.1, 0.3), F.hardsigmoid(x), F.hardswish(x), F.hardshrink(x, 0.3)),
    "gelu": lambda x, y: (F.gelu(x, approximate="tanh"), torch.sinc(x), torch.log10(y), torch.deg2rad(x)),
    "products": lambda x, y: (
        torch.addcmul(x, x, y, value=0.1),
        torch.addmm(x[:, :5], x, y.t(), alpha=0.1, beta=0.3),
        torch.addmm(x[:, :5] * torch.nan, x, y.t(), alpha=0.1, beta=0),
        torch.addmv(x[:, 0], x, y[0], alpha=0.1, beta=0.3),
        F.scaled_dot_product_attention(x[None], y[None], x[None], scale=0.1),
    ),
}


@pytest.mark.usefixtures("uncompiled")
def test_numbers_beside_doubles_are_doubles():
    """PyTorch's exporter writes them as f32: `x * 0.1` was off by 1.5e-8."""

    def all_of_them(x, y):
        return [function(x, y) for function in NUMBERS.values()]

    x, y = torch.randn(5, 8, dtype=torch.float64), torch.rand(5, 8, dtype=torch.float64) + 0.1
    with torch.no_grad():
        got, want = torch.compile(all_of_them, backend="igniter")(x, y), all_of_them(x, y)
    for name, one, other in zip(NUMBERS, got, want, strict=True):
        torch.testing.assert_close(
            one, other, rtol=1e-11, atol=1e-14, equal_nan=True, msg=lambda m, n=name: f"{n}: {m}"
        )
    assert igniter.torch.explain().compiled and not igniter.torch.explain().reasons


@pytest.mark.usefixtures("uncompiled")
def test_complex_tensors_keep_what_they_are():
    x = torch.randn(3, 4, dtype=torch.complex64)
    functions = [torch.log1p, torch.expm1, torch.sgn, torch.isinf, lambda x: torch.logaddexp(x, x * 2), lambda x: x**3]
    with torch.no_grad():
        for function in functions:
            assert torch.equal(torch.compile(function, backend="igniter")(x), function(x))


def test_exports_of_several_threads_are_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter's types of numbers are patched for graphs of f64. Two exports at a time could leave the patch
    behind, or take it from one another."""
    core = importlib.import_module("torch.onnx._internal.exporter._core")
    building = importlib.import_module("torch.onnx._internal.exporter._building")
    before, export, active = building._determine_input_dtype, core._exported_program_to_onnx_program, []
    most = 0

    def watched(*args, **kwargs):
        nonlocal most
        active.append(args)
        most = max(most, len(active))
        time.sleep(0.2)
        try:
            return export(*args, **kwargs)
        finally:
            active.pop()

    monkeypatch.setattr(core, "_exported_program_to_onnx_program", watched)
    graphs = [torch.export.export(Scaled(0.1), (torch.zeros(2, 3, dtype=t),)).graph_module for t in SEVERAL]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        models = list(pool.map(lambda graph: to_onnx(graph, {}), graphs))
    assert most == 1 and len(models) == 3
    assert building._determine_input_dtype is before


SEVERAL = [torch.float64, torch.float32, torch.float64]


class Scaled(torch.nn.Module):
    """`x` times a number."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor
