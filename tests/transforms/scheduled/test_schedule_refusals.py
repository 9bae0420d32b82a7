"""What the schedule passes refuse, and that they say why."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from igniter.context import IgniterContext
from igniter.errors import IgniterError
from igniter.registry import load_pass
from tests.transforms.scheduled.scheduling import parse

REDUCTION = """
builtin.module {
  loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<f32>) outputs 1 {
    loop.for j = 0 to n HEAD {
      %a = loop.load %x[j] : f32
      loop.accumulate add %a, %y[]
    }
  }
}"""

STORE = """
builtin.module {
  loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<f32>) outputs 1 {
    loop.for j = 0 to n HEAD {
      %a = loop.load %x[j] : f32
      loop.store %a, %y[]
    }
  }
}"""

TRIANGLE = """
builtin.module {
  loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    loop.for i = 0 to n schedule [vector 8] {
      loop.for j = 0 to i {
        %a = loop.load %x[j] : f32
        loop.store %a, %y[i]
      }
    }
  }
}"""

NEIGHBOURS = """
builtin.module {
  loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    %t = loop.alloc "t" : memref<?xf32, #sym.dims<n>, "scratch">
    loop.for i = 0 to n schedule [fuse "g"] {
      %a = loop.load %x[i] : f32
      loop.store %a, %t[i]
    }
    loop.for i1 = 0 to n schedule [fuse "g"] {
      %b = loop.load %t[-i1 + n - 1] : f32
      loop.store %b, %y[i1]
    }
  }
}"""

ORDER = """
builtin.module {
  loop.kernel @k symbols [] (%x: tensor<4x8xf32>) -> (tensor<4xf32>) {
    %s = loop.nest "s" [i: parallel 4, k: reduction 8] schedule ORDER -> tensor<4xf32> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<4xf32>
  }
}"""

CASES = {
    "threads over a reduction": (
        "parallelize-loops", {}, REDUCTION.replace("HEAD", "reduction schedule [threads]"), "it cannot have 'threads'",
    ),
    "a reduction sunk": (
        "sink-loops", {}, REDUCTION.replace("HEAD", "reduction schedule [sink reductions]"), "it cannot have 'sink'",
    ),
    "unrolling without a constant": (
        "unroll-loops", {}, STORE.replace("HEAD", "schedule [unroll]"), "has n iterations, which is not a constant",
    ),
    "lanes that store to one element": (
        "vectorize-loops", {}, STORE.replace("HEAD", "schedule [vector 8]"), "its iterations store to the same element",
    ),
    "an inner range that depends on the lanes": (
        "vectorize-loops", {}, TRIANGLE, "the range of loop 'j' inside it depends on it",
    ),
    "a tile of a stepped loop": (
        "tile-loops", {"axis": "j", "size": 4}, STORE.replace("HEAD", "step 2"), "already has step 2",
    ),
    "an unknown tail": (
        "tile-loops", {"axis": "j", "size": 4, "tail": "none"}, STORE.replace("HEAD", ""), "with tail 'none'",
    ),
    "fusion across iterations": (
        "fuse-loops", {"strict": True}, NEIGHBOURS, "the same element of %t: [i] and [-i1 + n - 1]",
    ),
    "an axis without a loop": (
        "lower-to-loops", {}, ORDER.replace("ORDER", "[i]"), "axis 'k' has no loop",
    ),
    "an axis with two loops": (
        "lower-to-loops", {}, ORDER.replace("ORDER", "[i, k, i]"), "blocks of 1 are not a multiple of the blocks of 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str) -> None:
    pass_name, options, text, message = CASES[name]
    with pytest.raises((IgniterError, VerifyException)) as caught:
        module = parse(text)
        module.verify()
        load_pass(pass_name)(**options).apply(IgniterContext(), module)
    assert message in str(caught.value)
