"""Sanitized kernels: accesses planted outside of their buffers are found, named and left out; all others happen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from igniter.backends.cpu.jit import compile_func
from igniter.errors import IgniterError

from .cpu_kit import parse_func

BODIES = {
    "scalar load": "%a = loop.load %x[i + {0}] : f32\n loop.store %a, %y[i]",
    "scalar store": "%a = loop.load %x[i] : f32\n loop.store %a, %y[i + {0}]",
    "accumulation": "%a = loop.load %x[i] : f32\n loop.accumulate add %a, %y[i + {0}]",
    "gather": "%j = loop.index {0} + i : i64\n %a = loop.load %x[_0] with %j : f32\n loop.store %a, %y[i]",
    "scatter": "%a = loop.load %x[i] : f32\n %j = loop.index {0} + i : i64\n loop.store %a, %y[_0] with %j",
}
VECTORS = {
    "load": "%a = loop.load %x[i + v + {0}] lane v : vector<8xf32>\n loop.store %a, %y[i + v] lane v",
    "masked load": "%a = loop.load %x[i + v + {0}] lane v if [23 - i - v] : vector<8xf32>\n "
    "loop.store %a, %y[i + v] lane v",
    "store": "%a = loop.load %x[i + v] lane v : vector<8xf32>\n loop.store %a, %y[i + v + {0}] lane v",
    "masked store": "%a = loop.load %x[i + v] lane v : vector<8xf32>\n "
    "loop.store %a, %y[i + v + {0}] lane v if [23 - i - v]",
    "reversed load": "%a = loop.load %x[23 - i - v - {0}] lane v : vector<8xf32>\n loop.store %a, %y[i + v] lane v",
    "equal lanes": "%a = loop.load %x[i + 8 + {0} * 2] lane v : vector<8xf32>\n loop.store %a, %y[i + v] lane v",
    "accumulation": "%a = loop.load %x[i + v] lane v : vector<8xf32>\n loop.accumulate add %a, %y[i + v + {0}] lane v",
    "reduced": "%a = loop.load %x[i + v] lane v : vector<8xf32>\n loop.accumulate add %a, %y[i + {0} * 9] lane v",
}
FUNC = """
loop.func @planted symbols [] (%x: memref<24xf32>, %y: memref<24xf32>) outputs 1 {{
  loop.for i = 0 to {end} step {step} {threads} {{
    {body}
  }}
}}"""
CASES = [*((k, v, 1, 24) for k, v in BODIES.items()), *((f"vector: {k}", v, 8, 24) for k, v in VECTORS.items())]


def run(text: str, *buffers: np.ndarray, target: str = "native", threads: int = 1) -> None:
    compile_func(parse_func(text), target, sanitize=True)(*buffers, threads=threads)


@pytest.mark.parametrize("name, body, step, end", CASES, ids=[c[0] for c in CASES])
def test_what_is_outside_is_named_and_left_out(name: str, body: str, step: int, end: int):
    for shift, target, parallel in itertools.product((1, -1), ("native", "x86-64"), (False, True)):
        if (name, shift) in (("vector: equal lanes", -1), ("vector: reduced", -1)):
            shift = -5
        text = FUNC.format(body=body.format(f"({shift})"), step=step, end=end, threads="threads(1)" if parallel else "")
        room = np.zeros(24 + 64, "f4")
        x, y = np.arange(24).astype("f4") + 1, room[32:56]
        with pytest.raises(
            IgniterError, match=r"kernel 'planted': 'loop\.\w+' of memref<24xf32> at \[.*outside of its"
        ):
            run(text, x, y, target=target, threads=2 if parallel else 1)
        assert (room[:32] == 0).all() and (room[56:] == 0).all()
        run(FUNC.format(body=body.format("0"), step=step, end=end - 8, threads=""), x, y, target=target)


def test_buffers_on_the_stack_and_in_scratch_memory():
    for space in ("local", "scratch"):
        offset = " offset 64" if space == "scratch" else ""
        for index, size in (("i", 256), ("i + 9", 256), ("i", 64)):
            text = f"""
loop.func @inner symbols [] (%x: memref<24xf32>, %y: memref<24xf32>) outputs 1 scratch({size}) {{
  %b = loop.alloc "row"{offset} : memref<24xf32, "{space}">
  loop.for i = 0 to 24 {{
    %a = loop.load %x[i] : f32
    loop.store %a, %b[{index}]
  }}
  loop.for k = 0 to 24 {{
    %a = loop.load %b[k] : f32
    loop.store %a, %y[k]
  }}
}}"""
            x, y = np.ones(24, "f4"), np.zeros(24, "f4")
            if index == "i" and (size == 256 or space == "local"):
                run(text, x, y)
                assert y.all()
            else:
                with pytest.raises(IgniterError, match=f"of memref<24xf32, .{space}.>"):
                    run(text, x, y)


PRODUCT = """
loop.func @product symbols [] (%a: memref<{rows}x5xf32>, %b: memref<{panels}x5x16xf32>,
    %c: memref<4x{columns}xf32>) outputs 1 {{
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 4, p = 2, l = 16, k = 5 tile [8, 3]
}}"""


@pytest.mark.parametrize("rows, panels, columns", [(4, 2, 32), (3, 2, 32), (4, 1, 32), (4, 2, 16)])
def test_micro_kernels(rows: int, panels: int, columns: int):
    a, b, c = (np.ones(shape, "f4") for shape in ((rows, 5), (panels, 5, 16), (4, columns)))
    text = PRODUCT.format(rows=rows, panels=panels, columns=columns)
    if (rows, panels, columns) == (4, 2, 32):
        run(text, a, b, c)
        assert (c == 5).all()
        return
    with pytest.raises(IgniterError, match=r"'loop\.tile_product' of a memref"):
        run(text, a, b, c)
    assert (c == 1).all()


def test_panels_of_half_the_width() -> None:
    """A micro-kernel that widens its panels touches half of the bytes that a panel of floats has."""
    text = PRODUCT.format(rows=4, panels=2, columns=32).replace("<2x5x16xf32>", "<2x5x16xf16>")
    a, b, c = np.ones((4, 5), "f4"), np.ones((2, 5, 16), "f2"), np.zeros((4, 32), "f4")
    run(text, a, b, c)
    assert (c == 5).all()
