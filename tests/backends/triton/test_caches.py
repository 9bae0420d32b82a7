"""Decoders with a cache: new keys and values are written in place if past and present are one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from igniter.backends.triton.compiler import compile_source, resources_of, signature_of
from igniter.backends.triton.estimates import work_of
from igniter.backends.triton.interpreter import run_func
from igniter.backends.triton.python_source import print_kernel
from igniter.dialects import triton as tt
from igniter.dialects.loop import LaunchOp
from tests.backends.triton.programs import Array, func_of, kernels_of, lowered, model, sizes_of, values
from tests.backends.triton.recording_driver import RecordingDriver, activate
from tests.backends.triton.test_library import compiled
from tests.ops.single_node import reference

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
TYPES = {FLOAT: np.float32, HALF: np.float16}
TOLERANCES = {FLOAT: 2e-5, HALF: 4e-3}


@dataclass(frozen=True)
class Decoder:
    """GroupQueryAttention behind a cache of `capacity` keys; `lengths` count the keys of each batch element, with the
    new ones."""

    lengths: tuple[int, ...]
    capacity: int
    new: int = 1
    heads: int = 4
    shared: int = 2
    head: int = 16
    kind: int = FLOAT
    packed: bool = False
    rotary: bool = False
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def batch(self) -> int:
        return len(self.lengths)

    def model(self) -> onnx.ModelProto:
        """The node, with results for present keys and values; `b` is symbolic."""
        heads, shared, head = self.heads, self.shared, self.head
        widths = [heads + 2 * shared] if self.packed else [heads, shared, shared]
        dims: dict[str, tuple[int, list[Any]]] = {
            name: (self.kind, ["b", self.new, n * head]) for name, n in zip("qkv", widths, strict=False)
        }
        dims |= {name: (self.kind, ["b", shared, self.capacity, head]) for name in ("pk", "pv")}
        dims["lengths"] = (TensorProto.INT32, ["b"])
        weights: dict[str, Any] = {"total": np.array(max(self.lengths), np.int32)}
        operands = ["q", *(["", ""] if self.packed else ["k", "v"]), "pk", "pv", "lengths", "total"]
        if self.rotary:
            dims |= {name: (self.kind, [self.capacity, head // 2]) for name in ("cos", "sin")}
            operands += ["cos", "sin"]
        attributes = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": int(self.rotary), **self.attributes}
        node = helper.make_node(
            "GroupQueryAttention", operands, ["y", "nk", "nv"], domain="com.microsoft", **attributes
        )
        made = model([node], dims, weights)
        made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        del made.graph.output[:]
        made.graph.output.extend(helper.make_tensor_value_info(name, self.kind, None) for name in ("y", "nk", "nv"))
        return made

    def feeds(self) -> dict[str, Array]:
        """Inputs; what the cache holds behind the old keys is 0, as ONNX Runtime leaves it."""
        dtype, (heads, shared, head) = TYPES[self.kind], (self.heads, self.shared, self.head)
        widths = [heads + 2 * shared] if self.packed else [heads, shared, shared]
        found = {
            name: values(dtype, self.batch, self.new, n * head, seed=k)
            for k, (name, n) in enumerate(zip("qkv", widths, strict=False))
        }
        for seed, name in enumerate(("pk", "pv"), 3):
            found[name] = values(dtype, self.batch, shared, self.capacity, head, seed=seed)
            for b, length in enumerate(self.lengths):
                found[name][b, :, max(0, length - self.new) :] = 0
        found["lengths"] = np.array(self.lengths, np.int32) - 1
        if self.rotary:
            found |= {n: values(dtype, self.capacity, head // 2, seed=k) for k, n in enumerate(("cos", "sin"), 6)}
        return found


def check(decoder: Decoder, module: Any = None) -> None:
    """Compares a step in buffers of its own, and a step in place, with ONNX Runtime's."""
    made, feeds = decoder.model(), decoder.feeds()
    wanted = [np.asarray(v) for v in reference(made, feeds)]
    module = lowered(made) if module is None else module
    func = func_of(module)
    sizes, place = sizes_of(func, list(feeds.values())), list(feeds).index("pk")
    compare(run_func(module, func, list(feeds.values()), sizes), wanted, decoder.kind)
    given = in_place(decoder, feeds)
    results = run_func(module, func, list(given.values()), sizes, {1: place, 2: place + 1})
    assert results[1] is given["pk"]
    for b, length in enumerate(decoder.lengths):
        for cache in results[1:]:
            assert np.isnan(cache[b, :, length:]).all(), "a row behind the new ones was written"
            cache[b, :, length:] = 0
    compare(results, wanted, decoder.kind)


def in_place(decoder: Decoder, feeds: dict[str, Array]) -> dict[str, Array]:
    """Returns inputs whose caches hold NaN behind the old keys: memory of a caller that was never written."""
    given = {name: array.copy() for name, array in feeds.items()}
    for name in ("pk", "pv"):
        for b, length in enumerate(decoder.lengths):
            given[name][b, :, max(0, length - decoder.new) :] = np.nan
    return given


def compare(found: Sequence[Array], wanted: Sequence[Array], kind: int) -> None:
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        scale = TOLERANCES[kind] * np.abs(theirs).max(initial=0)
        np.testing.assert_allclose(
            mine.astype(np.float64), theirs.astype(np.float64), rtol=TOLERANCES[kind], atol=scale
        )


@pytest.mark.parametrize(
    "decoder",
    [
        Decoder((7, 4, 2), 11),
        Decoder((70, 1), 150, kind=HALF, rotary=True),
        pytest.param(Decoder((9,), 11, new=3, packed=True, rotary=True), marks=pytest.mark.full),
        pytest.param(Decoder((70, 33), 90, attributes={"local_window_size": 20}), marks=pytest.mark.full),
        pytest.param(Decoder((7, 4), 11, attributes={"softcap": 1.5}, kind=HALF, heads=2), marks=pytest.mark.full),
        pytest.param(Decoder((600, 40), 1100, heads=6, kind=HALF, rotary=True), marks=pytest.mark.full),
    ],
)
def test_a_step_in_place_and_in_buffers_of_its_own(decoder: Decoder) -> None:
    check(decoder)


def test_no_step_and_an_empty_batch() -> None:
    decoder = Decoder((7, 4), 11, kind=HALF)
    module = lowered(decoder.model())
    func = func_of(module)
    feeds = {name: array[:0] for name, array in decoder.feeds().items()}
    results = run_func(module, func, list(feeds.values()), {**sizes_of(func, list(feeds.values()))})
    assert [v.shape for v in results] == [(0, 1, 64), (0, 2, 11, 16), (0, 2, 11, 16)]


@pytest.mark.slow
def test_keys_behind_the_length_are_not_visited() -> None:
    """The programs share the blocks of the keys up to the length, not those of the cache."""
    module = lowered(Decoder((4096,), 4096, heads=8, head=64, kind=HALF).model(), "cuda:sm_90")
    launches = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    kernels = {kernel.sym_name.data: kernel for kernel in kernels_of(module)}
    (launch,) = [op for op in launches if any(isinstance(inner, tt.DotOp) for inner in kernels[op.kernel].walk())]
    sizes = dict.fromkeys(func_of(module).symbol_names, 1)
    programs, symbols = launch.grid.evaluate(sizes), [s.evaluate(sizes) for s in launch.symbols]

    def products(length: int) -> list[float]:
        works = (work_of(kernels[launch.kernel], symbols, p, length - 1) for p in range(programs))
        return [work.products["f16"] for work in works]

    assert sum(products(4096)) == 8 * sum(products(512))
    assert max(products(512)) <= 2 * sum(products(512)) / programs


@pytest.mark.slow
def test_a_session_whose_caller_binds_one_buffer() -> None:
    """In stock ONNX Runtime: the rows are written where the caller's cache is, and nothing behind them."""
    import onnxruntime

    ort: Any = onnxruntime
    driver = RecordingDriver()
    activate(driver)
    decoder = Decoder((9, 5), 24)
    found, feeds = decoder.model(), decoder.feeds()
    wanted = [np.asarray(v) for v in reference(found, feeds)]
    session: Any = compiled(found, driver).session()
    compare(session.run(None, feeds), wanted, FLOAT)
    given = in_place(decoder, feeds)
    caches = {name: ort.OrtValue.ortvalue_from_numpy(given[name]) for name in ("pk", "pv")}
    binding = session.io_binding()
    for name, array in given.items():
        if name in caches:
            binding.bind_ortvalue_input(name, caches[name])
        else:
            binding.bind_cpu_input(name, array)
    binding.bind_output("y")
    for result, name in (("nk", "pk"), ("nv", "pv")):
        binding.bind_ortvalue_output(result, caches[name])
    session.run_with_iobinding(binding)
    (y,) = [v for v in binding.copy_outputs_to_cpu() if v.ndim == 3]
    compare([y], wanted[:1], FLOAT)
    for name, theirs in zip(("pk", "pv"), wanted[1:], strict=True):
        mine = caches[name].numpy()
        for b, length in enumerate(decoder.lengths):
            compare([mine[b, :, :length]], [theirs[b, :, :length]], FLOAT)
            assert np.isnan(mine[b, :, length:]).all()


@pytest.mark.parametrize("arch", [90, *(pytest.param(arch, marks=pytest.mark.full) for arch in (80, 100, 120))])
@pytest.mark.parametrize("new", [1, pytest.param(512, marks=pytest.mark.full)])
@pytest.mark.parametrize("head", [128, pytest.param(64, marks=pytest.mark.full)])
def test_no_kernel_of_a_step_spills_or_serialises_its_products(head: int, new: int, arch: int) -> None:
    decoder = Decoder((4096,), 4096, new=new, heads=32, shared=8, head=head, kind=HALF, rotary=True)
    module = lowered(decoder.model(), f"cuda:sm_{arch}")
    launches = {op.kernel: op for op in func_of(module).walk() if isinstance(op, LaunchOp)}
    for kernel in kernels_of(module):
        launch = launches[kernel.sym_name.data]
        made = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, arch)
        resources = resources_of(made, arch)
        assert (kernel.sym_name.data, resources.spills, resources.serialized) == (kernel.sym_name.data, 0, False)
