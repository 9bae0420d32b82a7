"""Convolutions that only mix channels, through the whole compiler: contractions whose columns are places, packed at run
time, or channels, where the convolution stands between transpositions. Sizes lie around those of panels and of groups
of panels; a depth of 1024 makes a group of four.
"""

from __future__ import annotations

import numpy as np
import pytest

import igniter
from tests.guarded import SIDES, Guarded
from tests.transforms.structured.test_contractions import EVERYTHING, Case, check, model_of, reference

PLACES = [{"b": b, "t": t} for b, t in ((1, 1), (2, 15), (1, 16), (3, 17), (1, 50))]
DEEP = [{"b": 1, "t": t} for t in (3, 48, 64, 65, 200)]
FOLD = "m = Transpose<perm = [0, 2, 3, 1]>(x)\n r = Reshape(m, joined)"

CASES = {
    "bias and activation": Case(
        "c = Conv(x, w, k)\n y = Relu(c)", "y", {"x": "b 9 t"}, {"w": "7 9 1", "k": "7"}, PLACES
    ),
    "groups of panels": Case(
        "c = Conv(x, w, k)\n y = Add(c, r)",
        "y",
        {"x": "b 1024 t", "r": "b 7 t"},
        {"w": "7 1024 1", "k": "7"},
        DEEP,
    ),
    "groups of channels": Case(
        "c = Conv<group = 3>(x, w, k)\n y = Tanh(c)", "y", {"x": "b 12 t"}, {"w": "15 4 1", "k": "15"}, PLACES
    ),
    "an image": Case(
        "c = Conv(x, w)\n y = Sigmoid(c)",
        "y",
        {"x": "b 20 3 t"},
        {"w": "17 20 1 1"},
        PLACES,
    ),
    "in half": Case(
        "c = Conv(x, w, k)\n y = Neg(c)", "y", {"x": "f2:b 24 t"}, {"w": "f2:18 24 1", "k": "f2:18"}, PLACES
    ),
    "special values": Case(
        "c = Conv(x, w, k)\n y = Neg(c)", "y", {"x": "2 9 33"}, {"w": "7 9 1", "k": "7"}, special=True
    ),
    "between transpositions": Case(
        "u = Transpose<perm = [0, 2, 1]>(x)\n c = Conv(u, w, k)\n v = Transpose<perm = [0, 2, 1]>(c)\n"
        "z = Transpose<perm = [2, 0, 1]>(c)\n y = Relu(v)",
        "y, z",
        {"x": "b t 65"},
        {"w": "33 65 1", "k": "33"},
        PLACES,
    ),
    "between transpositions, in half": Case(
        "u = Transpose<perm = [0, 2, 1]>(x)\n c = Conv(u, w, k)\n y = Transpose<perm = [0, 2, 1]>(c)",
        "y",
        {"x": "f2:b t 65"},
        {"w": "f2:33 65 1", "k": "f2:33"},
        PLACES,
    ),
    "behind joined dims": Case(
        f"{FOLD}\n u = Transpose<perm = [0, 2, 1]>(r)\n c = Conv(u, w, k)\n y = Transpose<perm = [2, 0, 1]>(c)",
        "y",
        {"x": "b 32 t 4"},
        {"w": "20 128 1", "k": "20", "joined": np.array([0, 0, 128])},
        PLACES,
    ),
    "a product behind joined dims": Case(
        f"{FOLD}\n p = MatMul(r, w)\n y = Relu(p)",
        "y",
        {"x": "b 32 t 4"},
        {"w": "128 20", "joined": np.array([0, 0, 128])},
        PLACES,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_pointwise_convolution(name: str) -> None:
    check(CASES[name], threads=2)


@pytest.mark.full
@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64"])
@pytest.mark.parametrize("name", CASES)
def test_pointwise_convolution_on_every_cpu(name: str, target: str) -> None:
    check(CASES[name], target)


def test_groups_of_panels_stay_inside_of_their_buffers() -> None:
    rng = np.random.default_rng(0)
    model = model_of(CASES["groups of panels"], rng)
    options = igniter.CompileOptions(fusion_passes=EVERYTHING)
    session = igniter.compile(model, options=options, verify=False, strict=True).session(intra_op_num_threads=1)
    for t in (1, 65, 130):
        feed = {n: rng.standard_normal((1, c, t)).astype(np.float32) for n, c in (("x", 1024), ("r", 7))}
        ((want,),) = reference(model, [feed])
        for side in SIDES:
            inputs = {n: Guarded(a, side) for n, a in feed.items()}
            output = Guarded(np.zeros_like(want), side)
            binding = session.io_binding()
            for n, value in inputs.items():
                binding.bind_cpu_input(n, value.array)
            binding.bind_output("y", "cpu", 0, want.dtype, want.shape, output.array.ctypes.data)
            session.run_with_iobinding(binding)
            for place in (*inputs.values(), output):
                place.check(f"{t} places")
            np.testing.assert_allclose(output.array, want, 2e-5, 2e-4)
