"""The memory of activations: what the table says of a plan, and that the plan is the compiled model's."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from xdsl.dialects.builtin import ModuleOp

import igniter
from benchmark import memory
from benchmark.memory import COLUMNS, LIGHT, Memory, Row, light_model, load, measure, memory_of
from benchmark.models.builder import Layers
from igniter.compiler.compilation import Compilation
from igniter.compiler.driver import make_onnx
from igniter.dialects.loop import FuncOp
from igniter.dialects.sym.expr import Expr

Main = Callable[..., tuple[str, str]]

CHAIN = """
builtin.module {
  loop.func @p0 symbols [n] (
      %x : memref<?x256xf32, #sym.dims<n, 256>>, %y : memref<?x256xf32, #sym.dims<n, 256>>) outputs 1 {
    %a = loop.alloc "a" : memref<?x256xf32, #sym.dims<n, 256>, "scratch">
    loop.call @k0 symbols [n] (%x) -> (%a)
    %b = loop.alloc "b" : memref<?x256xf32, #sym.dims<n, 256>, "scratch">
    %s = loop.alloc "k1.scratch" : memref<4096xi8, "scratch">
    loop.call @k1 symbols [n] (%a) -> (%b) scratch %s
    %c = loop.alloc "c" : memref<?x256xf32, #sym.dims<n, 256>, "scratch">
    loop.call @k0 symbols [n] (%b) -> (%c)
    loop.call @k0 symbols [n] (%c) -> (%y)
  }
}
"""
"""Three activations of 1024*n bytes, two of them live at once, and 4096 bytes that the second kernel works in."""


def network() -> onnx.ModelProto:
    """Three convolutions, the last of which is added to the first, and a pool."""
    b = Layers()
    x = b.conv(b.image(16), 32, 3, act="Relu")
    x = b.add(x, b.conv(b.conv(x, 64, 3, act="Relu"), 32, 3, act="Relu"))
    return b.model(b.pool("MaxPool", x, 2, 2).name)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Main:
    """The command line; gives what it prints, and what it says of errors."""

    def main(*arguments: str) -> tuple[str, str]:
        monkeypatch.setattr("sys.argv", ["memory", *arguments])
        memory.main()
        said = capsys.readouterr()
        return said.out, said.err

    return main


def test_a_plan_by_hand() -> None:
    module = igniter.parse(CHAIN).run_passes("plan-buffers")
    (func,) = (op for op in module.ir.ops if isinstance(op, FuncOp))
    assert memory_of(func, {"n": 2}) == Memory(
        ops=1,
        activations=3,
        native=3 * 2048,
        live=2 * 2048,
        in_kernels=1,
        unshared=3 * 2048 + 4096,
        plan=2 * 2048 + 4096,
        bound=2 * 2048 + 4096,
        arena=2 * 2048 + 4096,
    )


def test_two_ops_are_a_sum_and_the_larger_arena() -> None:
    first = Memory(1, 3, 30, 20, 0, 30, 25, 20, 25)
    second = Memory(1, 1, 10, 10, 2, 14, 12, 12, 12)
    assert first.beside(second) == Memory(2, 4, 40, 30, 2, 44, 37, 32, 25)


@pytest.mark.slow
def test_the_plan_is_that_of_the_compiled_model(tmp_path: Path) -> None:
    model = network()
    row = measure("network", igniter.load(model), {"batch": 3})
    found = row.memory
    assert (found.ops, row.left) == (1, 0)
    assert found.activations >= 3
    assert found.native >= found.live > 0
    assert found.unshared >= found.plan >= found.bound >= found.live
    artifact = igniter.compile(model, tmp_path / "network", verify=False)
    # What the library says that its op asks ONNX Runtime for, and what the pass said of the program.
    (info,) = artifact.library_infos()
    (op,) = info["ops"].values()
    assert Expr.parse(op["scratch"]).evaluate({"batch": 3}) == found.arena == found.plan
    said = [r["details"] for r in artifact.report["remarks"] if r["pass"] == "plan-buffers" and r["node"] == "p0"]
    figures = [Expr.parse(said[-1][name]).evaluate({"batch": 3}) for name in ("total", "unshared", "lower_bound")]
    assert figures == [found.plan, found.unshared, found.bound]


@pytest.mark.slow
def test_sizes_are_told_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, int]] = []

    def note(c: Compilation) -> ModuleOp:
        told.append(dict(c.options.sizes))
        return make_onnx(c)

    monkeypatch.setattr(memory, "make_onnx", note)
    plain = measure("network", igniter.load(network()), {"seq": 2}).memory
    sized = measure("network", igniter.load(network()), {"seq": 2}, tell=True).memory
    # A size of what the model does not have is no size that a pass could be told.
    assert told == [{}, {"batch": 1}]
    assert sized.native == plain.native
    assert sized.plan == sized.bound


def test_light_models_get_weights() -> None:
    assert len(LIGHT) == 9
    bare = onnx.load(LIGHT["light_squeezenet"])
    missing = {node.output[0] for node in bare.graph.node if node.op_type == "ConstantOfShape"}
    model = light_model("light_squeezenet")
    assert len(model.graph.node) == len(bare.graph.node) - len(missing)
    weights = [numpy_helper.to_array(w) for w in model.graph.initializer if w.name in missing]
    assert len(weights) == len(missing) > 20
    assert len({w.tobytes() for w in weights}) == len(weights)
    assert all(w.dtype == np.float32 and (w > 0).all() for w in weights)


@pytest.mark.slow
def test_light_models_have_a_batch_where_one_is_asked_for() -> None:
    small = measure("light_shufflenet", load("light_shufflenet", dynamic=True), {"batch": 1})
    large = measure("light_shufflenet", load("light_shufflenet", dynamic=True), {"batch": 8})
    assert (small.memory.ops, small.left, small.without_effect) == (1, 0, frozenset())
    assert large.memory.activations == small.memory.activations
    assert large.memory.native > small.memory.native
    assert large.memory.plan >= large.memory.bound


@pytest.mark.slow
def test_the_table(tmp_path: Path, run: Main) -> None:
    onnx.save_model(network(), tmp_path / "network.onnx")
    name = str(tmp_path / "network.onnx")
    out, err = run("--models", name, "--sizes", "batch=3,seq=8")
    heading, line = out.splitlines()
    assert heading.split() == " ".join(c.name for c in COLUMNS).split()
    assert line.split() == measure(name, load(name), {"batch": 3}).cells
    assert err == f"{name} has no symbol seq\n"


def test_cells_stand_under_their_headings() -> None:
    row = Row("some", 2, Memory(1, 3, 30_000_000, 20_000_000, 4, 50_000_000, 44_000_000, 40_000_000, 44_000_000))
    assert dict(zip((c.name for c in COLUMNS), row.cells, strict=True)) == {
        "model": "some",
        "ops": "1",
        "left": "2",
        "activations": "3",
        "native MB": "30.000",
        "live MB": "20.000",
        "in kernels": "4",
        "unshared MB": "50.000",
        "plan MB": "44.000",
        "bound MB": "40.000",
        "plan/bound": "1.100",
        "arena MB": "44.000",
    }


@pytest.mark.slow
def test_csv(tmp_path: Path, run: Main) -> None:
    onnx.save_model(network(), tmp_path / "network.onnx")
    out, _ = run("--models", str(tmp_path / "network.onnx"), "--csv")
    (line,) = csv.DictReader(out.splitlines())
    assert list(line) == ["model", "left", *Memory.__dataclass_fields__]
    assert int(line["unshared"]) >= int(line["plan"]) >= int(line["bound"]) > 0


@pytest.mark.slow
def test_what_is_said_of_wrong_names_and_sizes(tmp_path: Path, run: Main, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (("--models", "light_resnet"), "there is no file and no model called 'light_resnet'; there are light_bvlc_"),
        (("--sizes", "batch"), "'batch' is not a choice of sizes: write dim=number"),
    ):
        with pytest.raises(SystemExit):
            run(*arguments)
        assert message in capsys.readouterr().err
    model = network()
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "rows"
    onnx.save_model(model, tmp_path / "rows.onnx")
    with pytest.raises(SystemExit):
        run("--models", str(tmp_path / "rows.onnx"))
    assert "rows.onnx: no size is given for rows, as --sizes rows=1 would" in capsys.readouterr().err
