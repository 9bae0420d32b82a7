"""`igniter reduce`: planted faults of every kind, and one that Igniter had, become as small as they can be."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tools_kit import opt

from igniter import registry
from igniter.errors import IgniterError
from igniter.toolbox.reduce.bisect import first_rewrite
from igniter.toolbox.reduce.case import Case
from igniter.toolbox.reduce.checks import BuiltInCheck, Interest, Worker
from igniter.toolbox.reduce.outcome import CRASH, REFUSAL, REFUTED, TIMEOUT, WRONG, CheckRequest, Outcome, masked
from igniter.toolbox.reduce.reducer import Reduced, ReduceOptions, read_case, reduce
from igniter.toolbox.reduce.search import REDUCTIONS
from igniter.toolbox.reduce.show import again
from tests.docs.transcripts import PACKAGE, ROOT, install_metadata

PLANTED = Path(__file__).parent / "planted"
SOFTMAX = ROOT / "docs" / "examples" / "mask_softmax.mlir"
PRODUCTS = ROOT / "docs" / "examples" / "quantized_attention.mlir"


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Generator[Worker]:
    """One server for all tests, which knows the planted passes and those of the package in the documentation."""
    before = list(sys.path)
    sys.path[:0] = [str(PLANTED), str(PACKAGE), str(install_metadata(tmp_path_factory.mktemp("site")))]
    registry.forget_packages()
    with Worker() as server:
        yield server
    sys.path[:] = before
    registry.forget_packages()


class Blocks:
    """A model of three blocks, each with an op that a planted pass gets wrong."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def weight(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(self.rng.normal(size=shape).astype(np.float32), name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def block(self, x: str, special: str) -> str:
        product = self.node("MatMul", x, self.weight(8, 8))
        centred = self.node("Sub", product, self.node("ReduceMean", product, axes=[-1], keepdims=1))
        squares = self.node("ReduceMean", self.node("Mul", centred, centred), axes=[-1], keepdims=1)
        spread = self.node("Sqrt" if special == "Tanh" else "Abs", squares)
        normed = self.node("Div", centred, self.node("Add", spread, self.weight(1)))
        if special == "Softmax":
            changed = self.node("Mul", self.node("Softmax", normed, axis=-1), centred)
        else:
            changed = self.node(special, normed)
        return self.node("Add", changed, x)

    def model(self) -> onnx.ModelProto:
        x = "x"
        for special in ("Tanh", "Softmax", "Erf"):
            x = self.block(self.node("Abs", x), special)
        self.nodes.append(helper.make_node("Relu", [x], ["y"], name="last"))
        ends = [helper.make_tensor_value_info(n, 1, ["batch", 8]) for n in ("x", "y")]
        graph = helper.make_graph(self.nodes, "blocks", ends[:1], ends[1:], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    path = tmp_path / "blocks.onnx"
    model = Blocks().model()
    assert 30 <= len(model.graph.node) <= 40
    onnx.save(model, path)
    return path


def shrink(worker: Worker, path: Path, output: Path, **options: Any) -> Reduced:
    return reduce(path, output, ReduceOptions(**options), worker=worker)


def ops_of(path: Path) -> Counter[str]:
    model = onnx.load(path)
    onnx.checker.check_model(model)
    return Counter(n.op_type for n in model.graph.node)


def rerun(worker: Worker, found: Reduced, path: Path, **request: Any) -> Outcome:
    """The file that was written, checked anew."""
    return worker.ask(CheckRequest(str(path), found.case.passes, **request))


# -- planted faults ---------------------------------------------------------------------------------------------------


def test_a_wrong_pass(worker: Worker, blocks: Path, tmp_path: Path):
    small = tmp_path / "small.onnx"
    passes = "infer-shapes,rebuild-activations,eliminate-dead-nodes"
    found = shrink(worker, blocks, small, check="wrong", passes=passes)
    assert ops_of(small) == {"Tanh": 1}
    assert found.case.passes == ("rebuild-activations",)
    assert rerun(worker, found, small, check_results=True).failure == found.outcome.failure
    # Without the pass the model is fine: what was found is the pass's fault.
    assert worker.ask(CheckRequest(str(small), ("infer-shapes",), check_results=True)).kind == "passed"


def test_a_refusal_is_told_from_another(worker: Worker, blocks: Path, tmp_path: Path):
    small = tmp_path / "small.onnx"
    # The same pass refuses the root in the first block too, once the softmax is gone, with another message.
    found = shrink(worker, blocks, small, passes="infer-shapes,refuse-softmax")
    assert found.outcome.kind == REFUSAL and "probabilities" in found.outcome.message
    assert ops_of(small) == {"Softmax": 1, "Mul": 1}
    assert "probabilities" in rerun(worker, found, small).message


def test_a_crash(worker: Worker, blocks: Path, tmp_path: Path):
    small = tmp_path / "small.onnx"
    found = shrink(worker, blocks, small, check="crash", passes="abort-on-erf")
    assert found.outcome.kind == CRASH and found.outcome.where == "abort-on-erf" and "SIGSEGV" in found.outcome.message
    assert ops_of(small) == {"Erf": 1}
    assert rerun(worker, found, small).kind == CRASH


def test_a_reproducer_knows_its_pipeline_and_stays_one(worker: Worker, blocks: Path, tmp_path: Path):
    left, small = tmp_path / "left.mlir", tmp_path / "small.mlir"
    passes = "infer-shapes,refuse-softmax,cse"
    assert opt(str(blocks), "-p", passes, "--target=x86-64-v3", f"--crash-reproducer={left}").status == 1
    found = shrink(worker, left, small)
    assert found.outcome.kind == REFUSAL and "probabilities" in found.outcome.message
    assert found.case.passes == ("refuse-softmax",)
    text = small.read_text(encoding="utf-8")
    assert "onnx.Softmax" in text and "onnx.Erf" not in text and '\\"name\\": \\"x86-64-v3\\"' in text
    again = opt(str(small), "--run-reproducer", "--emit=none")
    assert again.status == 1 and "probabilities" in again.err


def test_a_hang(worker: Worker, tmp_path: Path):
    made, small = Blocks(), tmp_path / "small.mlir"
    chain = made.node("Neg", made.node("Erf", made.node("Abs", "x")))
    ends = [helper.make_tensor_value_info(n, 1, [2]) for n in ("x", chain)]
    graph = helper.make_graph(made.nodes, "chain", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    (tmp_path / "m.mlir").write_text(opt(str(tmp_path / "m.onnx")).out, encoding="utf-8")
    found = shrink(worker, tmp_path / "m.mlir", small, check="timeout", passes="abort-on-erf{hang=true}", timeout=1.5)
    assert found.outcome.kind == TIMEOUT and found.outcome.where == "abort-on-erf"
    text = small.read_text(encoding="utf-8")
    assert "onnx.Erf" in text and "onnx.Abs" not in text and "onnx.Neg" not in text


# -- a fault that was -------------------------------------------------------------------------------------------------


def test_a_fault_that_igniter_had(worker: Worker, tmp_path: Path):
    """Two integer products of one factor with different zero points: the second got the numbers of the first."""
    small = tmp_path / "small.mlir"
    found = shrink(worker, PRODUCTS, small, passes="infer-shapes,hoist-once", bisect=True)
    assert found.outcome.kind == WRONG and found.outcome.where == "hoist-once"
    text = small.read_text(encoding="utf-8")
    assert text.count("onnx.MatMulInteger(") == 2 and found.case.size.ops == 2
    assert found.rewrite is not None and found.rewrite.number == 2
    # The pass as it is now does this right.
    right = "hoist-zero-points{byte-products=false words=all}"
    assert worker.ask(CheckRequest(str(small), (right,), check_results=True)).kind == "passed"


def test_a_refuted_pass(worker: Worker, tmp_path: Path):
    pytest.importorskip("islpy", reason="proofs need islpy")
    kernel, small = tmp_path / "kernel.mlir", tmp_path / "small.mlir"
    first, last = KERNEL.index("  %b = "), KERNEL.index("  %c = ")
    kernel.write_text(KERNEL[:first] + KERNEL[last:].replace("%b[", "%a["))
    passes = "lower-to-loops,cut-loops"
    with pytest.raises(IgniterError, match="does not fail by 'wrong'"):
        shrink(worker, kernel, small, check="wrong", passes=passes)
    found = shrink(worker, kernel, small, check="refuted", passes=passes)
    text = small.read_text(encoding="utf-8")
    assert found.outcome.kind == REFUTED and found.case.passes == ("lower-to-loops", "cut-loops")
    assert text.count("loop.nest") == 1 and rerun(worker, found, small, prove=True).kind == REFUTED
    assert again("small.mlir", found, ReduceOptions()).endswith("--check-each=prove --emit=none")


# -- the other levels -------------------------------------------------------------------------------------------------


def test_down_to_a_nest(worker: Worker, tmp_path: Path):
    small = tmp_path / "small.mlir"
    passes = "infer-shapes,form-fusion-regions,lower-onnx-to-loop,swap-subtractions"
    found = shrink(worker, SOFTMAX, small, passes=passes, at_pass=True)
    assert found.case.passes == ("swap-subtractions",)
    text = small.read_text(encoding="utf-8")
    assert text.count("loop.nest") == 1 and "onnx.graph" not in text and "symbols []" in text
    assert text.count("arith.") - text.count("arith.constant") == 1 and "arith.subf" in text
    assert rerun(worker, found, small, check_results=True).kind == WRONG


KERNEL = """
loop.kernel @k symbols [n] (%x: tensor<?x4xf32, #sym.dims<n, 4>>, %y: tensor<4xf32>)
    -> (tensor<?x4xf32, #sym.dims<n, 4>>) {
  %a = loop.nest "scale" [i: parallel n, j: parallel 4] -> tensor<?x4xf32, #sym.dims<n, 4>> {
    %v = loop.read %x[i, j] : f32
    %w = arith.mulf %v, %v : f32
    loop.yield none %w at [i, j]
  }
  %b = loop.nest "less" [i: parallel n, j: parallel 4] -> tensor<?x4xf32, #sym.dims<n, 4>> {
    %v = loop.read %a[i, j] : f32
    %w = loop.read %y[j] : f32
    %d = arith.subf %v, %w : f32
    loop.yield none %d at [i, j]
  }
  %c = loop.nest "exp" [i: parallel n, j: parallel 4] -> tensor<?x4xf32, #sym.dims<n, 4>> {
    %v = loop.read %b[i, j] : f32
    %w = math.exp %v : f32
    loop.yield none %w at [i, j]
  }
  loop.return %c : tensor<?x4xf32, #sym.dims<n, 4>>
}
"""


def test_down_to_a_loop(worker: Worker, tmp_path: Path):
    scheduled, small = tmp_path / "scheduled.mlir", tmp_path / "small.mlir"
    scheduled.write_text(opt("-", "-p", "choose-schedule,lower-to-loops,fuse-loops", text=KERNEL).out)
    before = scheduled.read_text(encoding="utf-8")
    assert before.count("loop.for") == 2 and before.count("loop.store") == 3 and "schedule [" in before
    found = shrink(worker, scheduled, small, passes="swap-subtractions")
    text = small.read_text(encoding="utf-8")
    assert text.count("loop.for") <= 1 and text.count("loop.store") == 1 and "math.exp" not in text
    assert found.outcome.kind == WRONG


def test_a_command(worker: Worker, tmp_path: Path):
    small = tmp_path / "small.mlir"
    found = shrink(worker, PRODUCTS, small, command="grep -q onnx.Softmax {} && grep -q onnx.Transpose {}")
    text = small.read_text(encoding="utf-8")
    assert found.case.size.ops == 2 and "onnx.Softmax" in text and "onnx.Transpose" in text


def test_a_whole_compile(worker: Worker, tmp_path: Path):
    made, small = Blocks(), tmp_path / "small.onnx"
    y = made.node("Neg", made.node("Unique", made.node("Exp", "x"), sorted=1))
    ends = [helper.make_tensor_value_info(n, 1, [d]) for n, d in (("x", 6), (y, "k"))]
    graph = helper.make_graph(made.nodes, "unique", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    found = shrink(worker, tmp_path / "m.onnx", small, strict=True)
    assert found.outcome.kind == REFUSAL and "no lowering for Unique" in found.outcome.message
    assert ops_of(small) == {"Unique": 1} and found.case.passes is None


@pytest.mark.slow
def test_every_edit_leaves_valid_ir(tmp_path: Path):
    """Edits that are offered and never lead to valid IR would make a search slow and its result big."""
    from igniter.toolbox.reduce.edits import edited

    passes = "infer-shapes,form-fusion-regions,lower-onnx-to-loop,choose-schedule"
    (tmp_path / "m.mlir").write_text(opt(str(SOFTMAX), "-p", passes).out, encoding="utf-8")
    case = read_case(tmp_path / "m.mlir", ReduceOptions(passes="cse"))
    valid: Counter[str] = Counter()
    for reduction in REDUCTIONS:
        for edit in reduction.find(case.module):
            found = edited(case, [edit])
            if found is not None:
                found.module.verify()
                valid[reduction.name] += 1
    wanted = {"drop graphs and kernels", "take out", "drop schedules", "drop words of schedules", "simplify bodies"}
    assert wanted | {"take regions apart", "read constants", "fix symbols"} <= set(valid)


# -- rewrites ---------------------------------------------------------------------------------------------------------


def test_the_first_wrong_rewrite_of_many(worker: Worker, blocks: Path):
    case = read_case(blocks, ReduceOptions(passes="rebuild-activations"))
    check = BuiltInCheck(worker, CheckRequest("", check_results=True))
    interest = Interest(check, check.run(case))
    found = first_rewrite(interest, case)
    kinds = [n.op_type for n in onnx.load(blocks).graph.node if n.op_type in ("Abs", "Relu", "Tanh")]
    assert found.number == kinds.index("Tanh") + 1 > 1 and "Tanh" in found.what
    for count, fails in ((found.number - 1, False), (found.number, True)):
        assert (check.run(case, stop_after=count).kind == WRONG) == fails


def test_a_fault_that_no_rewrite_makes(worker: Worker, blocks: Path):
    case = read_case(blocks, ReduceOptions(passes="abort-on-erf"))
    check = BuiltInCheck(worker, CheckRequest(""))
    found = first_rewrite(Interest(check, check.run(case)), case)
    assert found.number == 0 and "without any rewrite" in str(found)


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passes": "infer-shapes"}, "the input does not fail: passed"),
        ({"check": "wrong", "passes": "abort-on-erf"}, "does not fail by 'wrong': crash"),
        ({"passes": "refuse-softmax", "message": "nothing of it"}, "another message than 'nothing of it'"),
        ({"command": "false"}, "does not exit with 0 on the input itself"),
        ({"command": "true", "passes": "cse"}, "--check-command is the whole check"),
        ({"at_pass": True}, "name it with --passes"),
        ({"passes": "abort-on-erf", "bisect": True}, "makes any that count"),
        ({"passes": "refuse-softmax", "strict": True}, "--strict is for whole compiles"),
        ({"passes": "refuse-softmax", "timeout": 0.0}, "it is more than 0"),
        ({"passes": "refuse-softmax", "at_pass": True}, "-o names a file *.mlir"),
        ({"passes": "no-such-pass"}, "no pass or pipeline called 'no-such-pass'"),
    ],
)
def test_refusals(worker: Worker, blocks: Path, tmp_path: Path, options: dict[str, Any], message: str):
    small = tmp_path / "small.onnx"
    with pytest.raises(IgniterError, match=re.escape(message)):
        shrink(worker, blocks, small, **options)
    assert not small.exists()


def test_messages_are_compared_without_their_names():
    assert masked("node 'a' of 3") == masked("node 'mul_12'  of 14") != masked("node 'a' in 3")
    one = Outcome(REFUSAL, "pass 'a': no 'x'", "a")
    assert one.failure == replace(one, message="pass 'a': no 'y'").failure != replace(one, where="b").failure


def test_the_size_of_a_case_counts_ops_first(tmp_path: Path):
    (tmp_path / "m.mlir").write_text(SOFTMAX.read_text(encoding="utf-8"), encoding="utf-8")
    case: Case = read_case(tmp_path / "m.mlir", ReduceOptions(passes="cse,dce"))
    assert case.size.ops == 3 and case.size.passes == 2 and case.describe().startswith("3 nodes, 2 passes")


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_line(tmp_path: Path):
    small = tmp_path / "small.mlir"
    command = ["reduce", str(SOFTMAX), "--check-command", "grep -q onnx.Softmax", "-o", str(small), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "igniter.tools.main", *command], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["size"]["ops"] == 1 and facts["failure"]["kind"] == "command" and facts["candidates"] > 2
    assert "onnx.Softmax" in small.read_text(encoding="utf-8")
