"""The kernels of ONNX Runtime that a node may be left to."""

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from packaging.version import Version

import igniter
from igniter.analysis.fusion.ort_kernels import FILE, has_kernel
from igniter.dialects.onnx.base import OnnxOp
from tests.conformance.ort_kernels import common, dump, table_of, text_of

HEAD = FILE.read_text(encoding="utf-8").splitlines()[0]


def node_of(op_type: str, type_: int, opset: int, inputs: int = 1, domain: str = "") -> OnnxOp:
    names = [f"x{k}" for k in range(inputs)]
    node = helper.make_node(op_type, names, ["y"], domain=domain)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, type_, [2, 3]) for n in names],
        [helper.make_tensor_value_info("y", type_, None)],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("mine", 1)]
    module = igniter.load(helper.make_model(graph, opset_imports=imports, ir_version=10)).ir
    (found,) = (op for op in module.walk() if isinstance(op, OnnxOp))
    return found


@pytest.mark.parametrize(
    ("op_type", "type_", "opset", "known"),
    [
        ("Neg", TensorProto.FLOAT, 13, True),
        ("Neg", TensorProto.INT16, 7, True),
        ("Neg", TensorProto.FLOAT16, 13, True),  # in f32
        ("Neg", TensorProto.BFLOAT16, 13, False),
        ("Abs", TensorProto.UINT8, 13, True),
        ("Cosh", TensorProto.DOUBLE, 13, False),
    ],
)
def test_a_kernel_is_known_by_op_opset_and_type(op_type: str, type_: int, opset: int, known: bool) -> None:
    assert has_kernel(node_of(op_type, type_, opset)) == known


def test_inputs_of_a_variadic_op_all_count() -> None:
    assert has_kernel(node_of("Max", TensorProto.INT32, 13, inputs=3))
    assert not has_kernel(node_of("Max", TensorProto.INT16, 13, inputs=3))


def test_ops_of_other_domains() -> None:
    assert has_kernel(node_of("BiasGelu", TensorProto.FLOAT, 17, inputs=2, domain="com.microsoft"))
    assert has_kernel(node_of("BiasGelu", TensorProto.FLOAT16, 17, inputs=2, domain="com.microsoft"))
    assert not has_kernel(node_of("Cube", TensorProto.FLOAT, 17, domain="mine"))


def test_bf16_counts_as_f32_beside_nodes_on_a_gpu() -> None:
    assert has_kernel(node_of("Neg", TensorProto.BFLOAT16, 13), "CUDAExecutionProvider")
    assert not has_kernel(node_of("Neg", TensorProto.UINT16, 13), "CUDAExecutionProvider")


def test_the_table_holds_in_the_installed_onnxruntime() -> None:
    """Every kernel of the table is there, in every ONNX Runtime between the two that it was made from."""
    dumped = dump()
    oldest, newest = (word for word in HEAD.split() if word[0].isdigit())
    installed = Version(onnxruntime.__version__)
    if not Version(oldest) <= installed <= Version(newest):
        pytest.skip(f"the table is of ONNX Runtime {oldest} to {newest}, and {installed} is installed")
    here = table_of(dumped)
    written = FILE.read_text(encoding="utf-8").splitlines()[2:]
    table = {}
    for line in written:
        name, versions, said = line.split(" ", 2)
        domain, _, op = name.rpartition(":")
        for version in versions.removesuffix(":").split(","):
            table[domain, op, int(version)] = [
                {
                    places: frozenset(t if "(" in t else f"tensor({t})" for t in types.split(","))
                    for places, _, types in (part.partition("=") for part in kernel.split("; "))
                }
                for kernel in said.split(" | ")
            ]
    known = {key: kernels for key, kernels in table.items() if key in here}
    assert len(known) > 400
    assert text_of(common([{key: here[key] for key in known}, known]), ["x"]) == text_of(known, ["x"])


def test_a_model_whose_only_node_has_no_kernel_loads() -> None:
    cases = (("Sigmoid", TensorProto.BFLOAT16, [3, 8]), ("ReduceSum", TensorProto.UINT64, [1, 1]))
    for op_type, type_, dims in cases:
        x, y = (helper.make_tensor_value_info(n, type_, d) for n, d in (("x", [3, 8]), ("y", dims)))
        graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.checker.check_model(model)
        igniter.load(model).compile(verify=False).session()
