"""The gallery of schedules: every file is complete, cited, has a row of figures, and computes what its method says."""

import re
from pathlib import Path

import numpy as np
import pytest

from benchmark.gallery import SIZES
from igniter.api import parse
from igniter.dialects.loop import KernelOp
from igniter.schedules.citation import cite_schedule
from igniter.targets import backend_for
from igniter.toolbox.kernel.workbench import outputs_of, schedule

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "gallery"
TARGET = backend_for("native").target_of("native")
RNG = np.random.default_rng(0)


def kernel_of(name: str) -> KernelOp:
    found = next(op for op in parse((FOLDER / f"{name}.mlir").read_text()).ir.ops if isinstance(op, KernelOp))
    found.detach()
    return found


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def panels(b: np.ndarray) -> np.ndarray:
    """Packs columns in panels of 16."""
    return np.ascontiguousarray(b.reshape(b.shape[0], -1, 16).transpose(1, 0, 2))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Computes a 3x3 convolution of a padded image, channels last, in f64."""
    rows, columns = x.shape[0] - 2, x.shape[1] - 2
    parts = [x[a : a + rows, b : b + columns].astype(np.float64) @ w[a, b] for a in range(3) for b in range(3)]
    return np.sum(parts, axis=0)


def gemm(m: int, n: int, k: int, packed: bool) -> tuple[list[np.ndarray], np.ndarray]:
    a, b = normal(m, k), normal(k, n)
    return [a, panels(b) if packed else b], a.astype(np.float64) @ b


def attention() -> tuple[list[np.ndarray], np.ndarray]:
    q, k, v = normal(67, 64), normal(1030, 64), normal(1030, 64)
    return [q, k, v], softmax(0.125 * (q.astype(np.float64) @ k.T)) @ v


def blur() -> tuple[list[np.ndarray], np.ndarray]:
    image = normal(37, 1031)
    columns = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) / 3
    return [image], (columns[:-2] + columns[1:-1] + columns[2:]) / 3


def rows() -> tuple[list[np.ndarray], np.ndarray]:
    x, r, g, b = normal(5, 768), normal(5, 768), normal(768), normal(768)
    row = (x + r).astype(np.float64)
    centred = row - row.mean(-1, keepdims=True)
    return [x, r, g, b], centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g + b


def direct() -> tuple[list[np.ndarray], np.ndarray]:
    x, w, bias = normal(56, 56, 64), normal(3, 3, 64, 64) * np.float32(0.1), normal(64)
    packed = np.ascontiguousarray(w.reshape(3, 3, 64, 4, 16).transpose(3, 0, 1, 2, 4))
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    return [x, packed, bias], np.maximum(convolution(padded, w) + bias, 0)


def winograd() -> tuple[list[np.ndarray], np.ndarray]:
    x, w = normal(16, 16, 64), normal(3, 3, 64, 64) * np.float32(0.1)
    g = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    u = np.einsum("ua,abco,vb->uvco", g, w, g).reshape(16, 64, 64)
    packed = np.stack([panels(each) for each in u]).astype(np.float32)
    return [x, packed], convolution(x, w).reshape(7, 2, 7, 2, 64)


def long_rows() -> tuple[list[np.ndarray], np.ndarray]:
    x = normal(3, 65536)
    return [x], softmax(x.astype(np.float64))


CASES = {
    "blis": lambda: gemm(101, 3072, 768, False),
    "direct_convolution": direct,
    "flash_attention": attention,
    "gotoblas_small_cache": lambda: gemm(101, 768, 512, True),
    "halide_blur": blur,
    "online_softmax": long_rows,
    "persistent_rows": rows,
    "split_k": lambda: gemm(8, 64, 16384, True),
    "systolic_tile": lambda: gemm(33, 64, 64, False),
    "winograd": winograd,
}


def test_every_file_is_tested_and_timed():
    files = {path.stem for path in FOLDER.glob("*.mlir")}
    assert files == set(CASES) == set(SIZES) and len(files) == 10


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_is_complete_and_cited_and_has_a_figure(name: str):
    kernel = kernel_of(name)
    assert all(op.schedule is not None for op in kernel.computations)
    citation = cite_schedule(kernel)
    assert citation.name == name.replace("_", "-") and citation.version and citation.source
    page = (FOLDER / "README.md").read_text()
    row = re.search(rf"^\| \[{citation.name}\]\({name}\.mlir\) \| `(\w+)` \|", page, re.MULTILINE)
    assert row is not None and row[1] == citation.hash, "python -m benchmark.gallery --write"


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_computes_its_method(name: str):
    inputs, expected = CASES[name]()
    version = schedule("by hand", kernel_of(name), TARGET)
    for threads in (1, 2):
        (found,) = outputs_of(version.kernel, version.func, TARGET, inputs, threads)
        assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()
