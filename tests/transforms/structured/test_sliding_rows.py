"""Windows of several rows that slide along what a convolution computes: inverted residuals, and pools.

Everything is compared with ONNX Runtime, on one thread and on two, and it is checked that rows did slide, or did not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.runtime.session import make_session

Array = np.ndarray[Any, Any]
Dims = tuple[int | str, int | str, int | str]


@dataclass(frozen=True)
class Network:
    """A convolution to 16 channels, one that expands them, a window along each of those channels, and a projection."""

    dims: Dims = (1, 111, 101)
    expanded: int = 96
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    dilations: tuple[int, int] = (1, 1)
    activation: str = "Relu"
    first: bool = True
    """The first of all; without it, the image has 16 channels itself."""
    expands: bool = True
    projects: bool = True
    residual: bool = False
    shared: str = ""
    """A value between the three that leaves the network as well."""
    pool: dict[str, Any] = field(default_factory=dict[str, Any])
    """A pool in the place of the window and the projection."""

    def model(self) -> bytes:
        rng = np.random.default_rng(0)
        width, height = self.expanded, self.kernel[0] * self.kernel[1]
        weights = {
            "w0": rng.standard_normal((16, 3, 1, 1)),
            "we": rng.standard_normal((width, 16, 1, 1)) / 4,
            "be": rng.standard_normal(width),
            "wd": rng.standard_normal((width if self.expands else 16, 1, *self.kernel)) / height,
            "bd": rng.standard_normal(width if self.expands else 16),
            "wp": rng.standard_normal((16, width if self.expands else 16, 1, 1)) / 8,
            "bp": rng.standard_normal(16),
        }
        window = {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "pads": self.pads,
            "dilations": self.dilations,
            "group": width if self.expands else 16,
        }
        nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], "first")] if self.first else []
        value = "a" if self.first else "x"
        if self.expands:
            nodes += [helper.make_node("Conv", ["a", "we", "be"], ["e"], "expand"), *self._active("e", "f")]
            value = "f"
        if self.pool:
            attributes = {k: v for k, v in self.pool.items() if k != "op"}
            nodes.append(helper.make_node(self.pool["op"], [value], ["y"], "pool", **attributes))
        else:
            nodes += [helper.make_node("Conv", [value, "wd", "bd"], ["d"], "window", **window)]
            nodes += self._active("d", "g" if self.projects else "y")
            if self.projects:
                last = "p" if self.residual else "y"
                nodes.append(helper.make_node("Conv", ["g", "wp", "bp"], [last], "project"))
            if self.residual:
                nodes.append(helper.make_node("Add", ["p", "a"], ["y"], "add"))
        batch, rows, places = self.dims
        used = {name for node in nodes for name in node.input}
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3 if self.first else 16, rows, places])],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
                for name in ("y", *([self.shared] if self.shared else []))
            ],
            [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items() if k in used],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return made.SerializeToString()

    def _active(self, value: str, result: str) -> list[onnx.NodeProto]:
        if self.activation == "Swish":
            return [
                helper.make_node("Sigmoid", [value], [f"{value}s"]),
                helper.make_node("Mul", [value, f"{value}s"], [result]),
            ]
        return [helper.make_node(self.activation, [value], [result])]


PLAIN = Network()

MACHINE = {
    "l1d_bytes": 32 << 10, "l2_bytes": 512 << 10, "l3_bytes": 32 << 20, "l3_cores": 2, "cores": 2,
    "l2_budget": 1 << 20,
}  # fmt: skip
"""Caches and cores that decide which images slide, whichever machine runs the tests."""

MAX = {"op": "MaxPool", "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}

SLIDING: dict[str, Network] = {
    "an inverted residual": replace(PLAIN, residual=True),
    "in steps of two": replace(PLAIN, strides=(2, 2), pads=(0, 0, 1, 1)),
    "windows of five rows": replace(PLAIN, kernel=(5, 3), pads=(2, 1, 2, 1), activation="Swish"),
    "windows of two rows in steps of three": replace(PLAIN, kernel=(2, 2), strides=(3, 3), pads=(0, 0, 0, 0)),
    "no rim": replace(PLAIN, pads=(0, 0, 0, 0)),
    "a rim on one side": replace(PLAIN, pads=(2, 0, 0, 1)),
    "a wide rim": replace(PLAIN, pads=(4, 3, 5, 2)),
    "windows with gaps": replace(PLAIN, dilations=(2, 3), pads=(2, 3, 2, 3)),
    "no projection": replace(PLAIN, projects=False),
    "no channels of whole vectors": replace(PLAIN, expanded=100),
    "a batch": replace(PLAIN, dims=(3, 111, 101)),
    "a batch of any size": replace(PLAIN, dims=("n", 111, 101), residual=True),
    "an image of any size": replace(PLAIN, dims=("n", "h", "w"), residual=True),
    "any size in steps of two": replace(PLAIN, dims=(1, "h", "w"), strides=(2, 2)),
    "a pool": Network(pool=MAX),
    "a pool of whole windows": Network(pool={**MAX, "pads": [0, 0, 0, 0], "kernel_shape": [2, 2]}),
    "a pool that rounds up": Network(pool={**MAX, "ceil_mode": 1, "pads": [0, 0, 0, 0]}),
    "an average": Network(pool={**MAX, "op": "AveragePool", "count_include_pad": 1}),
    "an average of what there is": Network(pool={**MAX, "op": "AveragePool", "strides": [1, 1]}),
    "rows that no window reads": Network(
        pool={"op": "MaxPool", "kernel_shape": [1, 3], "strides": [3, 2], "pads": [0, 1, 0, 1]}
    ),
}

STAYING: dict[str, Network] = {
    "what the cache holds": replace(PLAIN, dims=(1, 24, 24)),
    "a value that leaves": replace(PLAIN, shared="f"),
    "few long rows": replace(PLAIN, dims=(1, 5, 3000)),
}


def _sizes(dims: Dims) -> list[tuple[int, int, int]]:
    """The sizes of a run: the fixed ones, or some that are odd, small or empty."""
    found: list[tuple[int, int, int]] = []
    for n, h, w in ((1, 111, 101), (2, 9, 133), (2, 1, 1), (1, 30, 2), (0, 16, 16)):
        found.append(tuple(d if isinstance(d, int) else s for d, s in zip(dims, (n, h, w), strict=True)))  # pyright: ignore[reportArgumentType]
    return list(dict.fromkeys(found))


def _said(artifact: igniter.Artifact, name: str) -> list[str]:
    return [r["message"] for r in artifact.report["remarks"] if r["pass"] == name and r["kind"] == "applied"]


def _compare(source: bytes, artifact: igniter.Artifact, sizes: Sequence[tuple[int, int, int]]) -> None:
    original = make_session(source)
    sessions = [artifact.session(intra_op_num_threads=threads) for threads in (1, 2)]
    for batch, rows, places in sizes:
        x = np.random.default_rng(1).standard_normal((batch, 3, rows, places)).astype(np.float32)
        expected = original.run(None, {"x": x})
        for session in sessions:
            for y, right in zip(session.run(None, {"x": x}), expected, strict=True):
                assert y.shape == right.shape
                np.testing.assert_allclose(y, right, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", SLIDING)
def test_sliding(name: str, tmp_path: Path) -> None:
    network = SLIDING[name]
    source = network.model()
    artifact = igniter.compile(source, tmp_path / "out", machine=MACHINE, verify=False, strict=True)
    assert any("computes rows as needed" in m for m in _said(artifact, "slide-loops")), artifact.report["remarks"]
    _compare(source, artifact, [s for s in _sizes(network.dims) if network.dims[0] == "n" or s[0]])


@pytest.mark.parametrize("name", STAYING)
def test_staying(name: str, tmp_path: Path) -> None:
    network = STAYING[name]
    source = network.model()
    artifact = igniter.compile(source, tmp_path / "out", machine=MACHINE, verify=False, strict=True)
    assert not _said(artifact, "slide-loops")
    _compare(source, artifact, [s for s in _sizes(network.dims) if s[0]])


def test_separable(tmp_path: Path) -> None:
    """A window along each channel and a convolution of single places behind it: rows are handed on, none is kept."""
    source = replace(PLAIN, dims=(1, 300, 301), first=False, expands=False).model()
    artifact = igniter.compile(source, tmp_path / "out", machine=MACHINE, verify=False, strict=True)
    assert any("as it is finished" in m for m in _said(artifact, "choose-schedule"))
    x = np.random.default_rng(1).standard_normal((1, 16, 300, 301)).astype(np.float32)
    (expected,) = make_session(source).run(None, {"x": x})
    for threads in (1, 2):
        (y,) = artifact.session(intra_op_num_threads=threads).run(None, {"x": x})
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_sixteen_bits(tmp_path: Path) -> None:
    """Convolutions of f16 are kernels of their own, as small ones are."""
    model = onnx.load_from_string(replace(PLAIN, residual=True).model())
    for weight in model.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(np.float16), weight.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    artifact = igniter.compile(model.SerializeToString(), tmp_path / "out", machine=MACHINE)
    assert artifact.report["verification"]["ok"]
    assert not [r for r in artifact.report["remarks"] if r["pass"] == "slide-loops"]


def test_not_a_number(tmp_path: Path) -> None:
    """A NaN and an infinity reach the results whose windows see them, and no others, above and below the edges of
    bands."""
    source = replace(PLAIN, projects=False).model()
    artifact = igniter.compile(source, tmp_path / "out", machine=MACHINE, verify=False, strict=True)
    x = np.random.default_rng(2).standard_normal((1, 3, 111, 101)).astype(np.float32)
    for row in (0, 27, 28, 55, 56, 110):
        x[0, 0, row, row % 7] = np.nan
        x[0, 1, row, 50] = np.inf
    (expected,) = make_session(source).run(None, {"x": x})
    (y,) = artifact.session(intra_op_num_threads=1).run(None, {"x": x})
    np.testing.assert_array_equal(np.isnan(y), np.isnan(expected))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_memory(tmp_path: Path) -> None:
    """The arena holds rows of the expanded image, and not the image."""
    model = tmp_path / "model.onnx"
    onnx.save(onnx.load_from_string(replace(PLAIN, dims=(1, 400, 101)).model()), model)
    module = igniter.load(model)
    module.run_passes("cpu-onnx,cpu-fusion,cpu-loop,cpu-kernels")
    scratch = [int(op) for op in re.findall(r"outputs 1 scratch\((\d+)\)", str(module))]
    assert scratch
    assert max(scratch) < 4 * 402 * 103 * 96 // 4


def _random(seed: int) -> tuple[Network, dict[str, Any]]:
    """A network of a small image, and a machine whose caches hold rows of it, and not all of it."""
    rng = np.random.default_rng(seed)

    def one(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    kernel = (one(1, 2, 3, 3, 5), one(1, 3, 3, 4, 7))
    dilations = (one(1, 1, 2), one(1, 1, 3))
    pads = tuple(int(rng.integers(0, 4)) for _ in range(4))
    expanded = one(8, 16, 17, 24, 33, 48)
    pool: dict[str, Any] = {}
    if rng.random() < 0.3:
        ends = tuple(min(p, k - 1) for p, k in zip(pads, kernel * 2, strict=True))
        pool = {"op": one("MaxPool", "AveragePool"), "kernel_shape": kernel, "pads": ends, "ceil_mode": one(0, 0, 1)}
        pool["strides"] = (one(1, 2, 3), one(1, 2, 3))
    rows, places = int(rng.integers(12, 40)), int(rng.integers(1, 40))
    network = Network(
        dims=one((1, rows, places), (2, rows, places), ("n", rows, places), ("n", "h", "w")),
        expanded=expanded,
        kernel=kernel,
        strides=(one(1, 1, 2, 3), one(1, 2)),
        pads=pads,
        dilations=dilations,
        activation=one("Relu", "Tanh", "Swish"),
        expands=bool(pool) or rng.random() < 0.9,
        projects=rng.random() < 0.7,
        pool=pool,
    )
    height = (kernel[0] - 1) * dilations[0] + 1
    width = 128 if network.dims[2] == "w" else places + pads[1] + pads[3]
    window = 4 * height * width * max(expanded, 16)
    return network, {"l2_bytes": int(1.4 * window) + 64, "l3_bytes": 0, "cores": one(1, 2, 8)}


def _has_windows(network: Network) -> bool:
    """True if an image is as large as a window."""
    taken = [p + q for p, q in zip(network.pads[:2], network.pads[2:], strict=True)]
    reach = [(k - 1) * d + 1 for k, d in zip(network.kernel, network.dilations, strict=True)]
    if network.pool:
        taken, reach = [0, 0], list(network.kernel)
    sides = [d if isinstance(d, int) else 12 for d in network.dims[1:]]
    return all(side + more >= size for side, more, size in zip(sides, taken, reach, strict=True))


def _check_random(seeds: Sequence[int], folder: Path) -> int:
    """How many networks slide, of those that are right."""
    slid = 0
    for seed in seeds:
        network, machine = _random(seed)
        source = network.model()
        options = igniter.CompileOptions(machine=machine)
        if not _has_windows(network):
            continue
        artifact = igniter.compile(source, folder / str(seed), options=options, verify=False)
        slid += bool(_said(artifact, "slide-loops"))
        sizes = [
            tuple(d if isinstance(d, int) else s for d, s in zip(network.dims, given, strict=True))
            for given in ((1, 33, 21), (3, 12, 40))
        ]
        try:
            _compare(source, artifact, list(dict.fromkeys(sizes)))  # pyright: ignore[reportArgumentType]
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {network}, {machine}") from error
    return slid


@pytest.mark.slow
def test_random_networks(tmp_path: Path) -> None:
    assert _check_random(range(4), tmp_path) >= 1


@pytest.mark.full
def test_many_random_networks(tmp_path: Path) -> None:
    assert _check_random([*range(12), *range(1000, 1500)], tmp_path) >= 150
