"""Programs: models whose kernels are entered once, against stock ONNX Runtime."""

from __future__ import annotations

import importlib
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.compiler.artifact import Artifact
from igniter.dialects.loop import FuncOp

ORT: Any = ort
ONE_EACH = "form-fusion-regions{contractions=all singletons=all max-nodes=1}"
FEW_EACH = "form-fusion-regions{contractions=all singletons=all max-nodes=4}"
SHAPES = [{"batch": 1, "seq": 1}, {"batch": 3, "seq": 17}, {"batch": 2, "seq": 64}, {"batch": 0, "seq": 5}]


class Builder:
    """Writes a model node by node."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(0)

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"{op.lower()}_{name}", **attributes))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) * 0.2).astype(np.float32))

    def constant(self, value: Any) -> str:
        array = np.array(value, np.int64) if isinstance(value, list) else value
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def through_text(self, x: str) -> str:
        """Through a type that no kernel computes with."""
        return self.node("Cast", self.node("Cast", x, to=TensorProto.STRING), to=TensorProto.FLOAT)

    def model(self, inputs: dict[str, list[int | str]], outputs: list[str]) -> bytes:
        graph = helper.make_graph(
            self.nodes,
            "test",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            self.weights,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return onnx.shape_inference.infer_shapes(made).SerializeToString()


def transformer(layers: int = 2, width: int = 32, heads: int = 4, between: Callable[[Builder, str], str] | None = None):
    """Pre-norm attention and a feed-forward part a layer; three outputs, one of them a view of another."""
    b = Builder()
    split, merge = b.constant([0, 0, heads, width // heads]), b.constant([0, 0, width])

    def project(x: str, n: int, m: int) -> str:
        return b.node("Add", b.node("MatMul", x, b.weight(n, m)), b.weight(m))

    def head(x: str, perm: list[int]) -> str:
        return b.node("Transpose", b.node("Reshape", project(x, width, width), split), perm=perm)

    x = "x"
    for layer in range(layers):
        y = b.node("LayerNormalization", x, b.weight(width), b.weight(width))
        scores = b.node("MatMul", head(y, [0, 2, 1, 3]), head(y, [0, 2, 3, 1]))
        weights = b.node("Softmax", b.node("Add", scores, "mask"))
        mixed = b.node("MatMul", weights, head(y, [0, 2, 1, 3]))
        joined = b.node("Reshape", b.node("Transpose", mixed, perm=[0, 2, 1, 3]), merge)
        x = b.node("Add", x, project(joined, width, width))
        if between is not None and layer == 0:
            x = between(b, x)
        y = b.node("LayerNormalization", x, b.weight(width), b.weight(width))
        x = b.node("Add", x, project(b.node("Gelu", project(y, width, 4 * width)), 4 * width, width))
    flat = b.node("Reshape", x, b.constant([-1, width]))
    pooled = b.node("ReduceMax", x, b.constant([2]), keepdims=0)
    return b.model({"x": ["batch", "seq", width], "mask": ["batch", 1, 1, "seq"]}, [x, flat, pooled])


def compiled(model: bytes, fusion: str = FEW_EACH, **options: Any) -> Artifact:
    chosen = igniter.CompileOptions(fusion_passes=fusion, **options)
    artifact = igniter.compile(model, options=chosen, verify=False)
    # What has no kernel may stay; what gets one must compile.
    assert not [node for node in artifact.report["left_to_onnxruntime"] if node["kind"] == "failed"]
    return artifact


def programs(artifact: Artifact) -> list[int]:
    """The number of steps of each program of a compiled model."""
    return [len(p["steps"]) for p in artifact.report["programs"]]


def node_types(artifact: Artifact) -> list[str]:
    return [n.op_type for n in onnx.load(artifact.model_path).graph.node]


@pytest.mark.slow
@pytest.mark.parametrize("fusion", [FEW_EACH, ONE_EACH])
def test_a_whole_model_is_one_program(fusion: str) -> None:
    artifact = compiled(transformer(), fusion)
    assert len(programs(artifact)) == 1 and programs(artifact)[0] > 10
    # The view of an output is free where ORT makes it, and is all that is left.
    assert node_types(artifact) == ["igniter_p0", "Reshape"]
    assert artifact.verify(shapes=SHAPES)
    assert artifact.verify(shapes=SHAPES[:3], intra_op_num_threads=2)


@pytest.mark.slow
def test_without_programs_every_region_is_an_op() -> None:
    model = transformer(layers=1)
    with_programs, without = compiled(model), compiled(model, program_passes="")
    assert without.report["programs"] == [] and without.report["regions"] == programs(with_programs)[0]
    assert without.report["kernels"] == with_programs.report["kernels"]
    assert without.verify(shapes=SHAPES)


@pytest.mark.slow
def test_a_node_in_the_middle_makes_two() -> None:
    artifact = compiled(transformer(between=lambda b, x: b.through_text(x)))
    assert len(programs(artifact)) == 2 and node_types(artifact).count("Cast") == 2
    assert artifact.verify(shapes=SHAPES, rtol=1e-2)


@pytest.mark.slow
def test_variants_call_their_own_kernels() -> None:
    artifact = compiled(transformer(layers=1), target="x86-64-v2,x86-64-v3,x86-64-v4")
    assert len(programs(artifact)) == 1
    assert artifact.verify(shapes=SHAPES)


def test_a_size_that_depends_on_the_data() -> None:
    """Both programs need it: one gives a dim to NonZero, the other gets its count."""
    b = Builder()
    y = b.node("Relu", b.node("Exp", b.node("Neg", "x")))
    found = b.node("Transpose", b.node("NonZero", b.node("Round", "x")), perm=[1, 0])
    rows = b.node("GatherND", y, found)
    z = b.node("Sigmoid", b.node("Tanh", rows))
    scaled = b.node("Mul", b.node("Erf", z), b.node("ReduceMax", y, keepdims=0))
    artifact = compiled(b.model({"x": ["n", 8]}, [scaled, y]), ONE_EACH)
    assert len(programs(artifact)) == 2 and "NonZero" in node_types(artifact)
    assert artifact.verify(shapes=[{"n": 1}, {"n": 9}, {"n": 33}])


def test_views_on_the_boundary() -> None:
    """A view of an input, of a tensor inside that leaves too, of one that does not, and views of views."""
    b = Builder()
    flat = b.constant([-1])
    entering = b.node("Reshape", "x", flat)
    one = b.node("Exp", entering)
    both = b.node("Reshape", one, b.constant([-1, 8]))
    two = b.node("Sigmoid", both)
    only = b.node("Reshape", b.node("Tanh", two), flat)
    again = b.node("Reshape", both, b.constant([1, -1, 8]))
    three = b.node("Relu", b.node("Neg", again))
    outputs = [entering, one, both, two, only, again, three]
    artifact = compiled(b.model({"x": ["n", 8]}, outputs), ONE_EACH)
    assert len(programs(artifact)) == 1
    # `only` is written by the kernel of Tanh; the other views that leave are of tensors that are there anyway.
    assert node_types(artifact).count("Reshape") == 3
    assert artifact.verify(shapes=[{"n": 1}, {"n": 5}, {"n": 0}])


def test_a_view_whose_shape_a_later_node_computes() -> None:
    """The view needs no shape inside a program; outside it does, and must come after what computes it."""
    b = Builder()
    y = b.node("Exp", "x")
    late = b.node("Shape", b.node("Concat", b.node("Neg", y), b.through_text(b.node("Tanh", y)), axis=0))
    half = b.node("Div", late, b.constant([2, 1]))
    view = b.node("Reshape", y, b.node("Concat", b.constant([1]), half, axis=0))
    z = b.node("Sigmoid", b.node("Abs", view))
    artifact = compiled(b.model({"x": ["n", 8]}, [y, view, z]), ONE_EACH)
    assert artifact.verify(shapes=[{"n": 1}, {"n": 6}])


def test_eight_threads_call_one_session() -> None:
    model = transformer(layers=1)
    session: Any = compiled(model).session(intra_op_num_threads=2)
    reference: Any = ORT.InferenceSession(model, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    wrong: list[str] = []

    def call(seed: int) -> None:
        for turn in range(8):
            length = 1 + (7 * seed + 13 * turn) % 40
            feed = {
                "x": rng.standard_normal((1 + seed % 3, length, 32), dtype=np.float32),
                "mask": np.zeros((1 + seed % 3, 1, 1, length), np.float32),
            }
            for ours, theirs in zip(session.run(None, feed), reference.run(None, feed), strict=True):
                if not np.allclose(ours, theirs, atol=1e-4):
                    wrong.append(f"thread {seed}, length {length}")

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_inputs_that_do_not_fit_are_named() -> None:
    session: Any = compiled(transformer(layers=1)).session()
    feed = {"x": np.zeros((2, 5, 32), np.float32), "mask": np.zeros((2, 1, 1, 6), np.float32)}
    with pytest.raises(Exception, match=r"igniter_p0: input \d+ \('mask'\) has dim 3 = 6, expected seq = 5"):
        session.run(None, feed)


@pytest.mark.parametrize(
    "step",
    [
        "igniter.transforms.conversion.lower_programs.lower_program",
        "igniter.transforms.scheduled.plan_buffers.plan_func",
        "igniter.compiler.driver._compile_program",
    ],
)
def test_a_program_that_does_not_compile_leaves_its_regions(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, _, function = step.rpartition(".")
    module = importlib.import_module(where)
    original = getattr(module, function)

    def fail(*given: Any) -> Any:
        if isinstance(given[0], FuncOp) and not given[0].sym_name.data.startswith("p"):
            # A kernel, which is planned by the same function.
            return original(*given)
        raise igniter.IgniterError("not this one")

    monkeypatch.setattr(module, function, fail)
    model = transformer(layers=1)
    chosen = igniter.CompileOptions(fusion_passes=FEW_EACH)
    artifact = igniter.compile(model, options=chosen, verify=False)
    assert artifact.report["programs"] == [] and artifact.report["regions"] > 5
    assert any("not this one" in r["message"] for r in artifact.report["remarks"] if r["pass"] == "driver")
    assert artifact.verify(shapes=SHAPES[:2])
    with pytest.raises(igniter.IgniterError, match="not this one"):
        igniter.compile(model, options=chosen, strict=True, verify=False)


def test_a_kernel_that_does_not_compile_leaves_the_program_it_is_in() -> None:
    """A module may come with programs already; a region that goes back to ORT must not stay in one."""
    module = igniter.load(transformer(layers=1))
    module.run_passes(f"cpu-onnx,{FEW_EACH},cpu-loop,form-programs")
    options = igniter.CompileOptions(schedule_passes="canonicalize-loop")
    artifact = module.compile(options=options, verify=False)
    assert artifact.report["programs"] == [] and artifact.report["regions"] == 0
    assert artifact.verify(shapes=SHAPES[:2])


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed: int) -> None:
    """Elementwise nodes, views and nodes for ORT, wired at random, half of the values outputs."""
    rng = random.Random(seed)
    b = Builder()
    values = [("x", False)]
    for _ in range(30):
        source, flat = rng.choice(values[-8:])
        kind = rng.random()
        if kind < 0.45:
            values.append((b.node(rng.choice(["Tanh", "Sigmoid", "Neg", "Abs"]), source), flat))
        elif kind < 0.6:
            values.append((b.node("Add", source, rng.choice([v for v, f in values if f == flat])), flat))
        elif kind < 0.85:
            values.append((b.node("Reshape", source, b.constant([-1, 8] if flat else [-1])), not flat))
        else:
            values.append((b.through_text(source), flat))
    outputs = [v for v, _ in values[1:] if rng.random() < 0.4] or [values[-1][0]]
    artifact = compiled(b.model({"x": ["n", 8]}, outputs), ONE_EACH)
    assert artifact.verify(shapes=[{"n": 1}, {"n": 7}], rtol=1e-2)


def test_profile(tmp_path: Path) -> None:
    from igniter.toolbox.bench.time_profile import profile_artifact

    model = transformer(layers=1, between=lambda b, x: b.through_text(x))
    artifact = compiled(model, profile=True)
    assert artifact.verify(shapes=SHAPES[:2], rtol=1e-2)
    feed = {"x": np.zeros((2, 16, 32), np.float32), "mask": np.zeros((2, 1, 1, 16), np.float32)}
    profile = profile_artifact(artifact, feed, runs=5, seconds=0.05)
    assert len(profile.steps) == sum(programs(artifact))
    assert all(step.ms > 0 and step.bytes for step in profile.steps)
    total = sum(step.ms for step in profile.steps)
    assert total < 1.5 * profile.run_ms and profile.rest_ms >= 0
    by_ops = {step.what.split(" ")[0]: step for step in profile.steps}
    # Of a contraction 2*m*n*k: the flops are those of the actual sizes.
    (product,) = [s for name, s in by_ops.items() if name.startswith("LayerNormalization+MatMul+Add+Reshape")]
    assert product.flops is not None and product.flops >= 2 * 2 * 16 * 32 * 32
    starts = [s.start for s in profile.steps if s.program == "p0"]
    assert starts == sorted(starts)
    events = profile.to_trace()["traceEvents"]
    assert sum(e["ph"] == "X" for e in events) == len(profile.steps)


def test_only_a_model_that_notes_the_time_has_a_profile() -> None:
    from igniter.toolbox.bench.time_profile import profile_artifact

    with pytest.raises(igniter.IgniterError, match="not compiled for a profile"):
        profile_artifact(compiled(transformer(layers=1)), {})
