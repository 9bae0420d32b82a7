"""Forms of GroupQueryAttention beside ONNX Runtime: caches of a window and of few bits, sinks, given positions.

Each has past and present in one buffer and in two, NaN behind the rows with keys, and lengths that differ.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.runtime.session import make_session
from igniter.verification.cache_facts import CacheFacts

Array = np.ndarray[Any, Any]
Case = tuple[tuple[int, ...], int, int]
"""The keys of each batch element after the run, the new ones, and the rows of the cache."""
HEADS, SHARED, SIZE = 4, 2, 16
TYPES = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}
TOLERANCES = {TensorProto.FLOAT: 2e-6, TensorProto.FLOAT16: 4e-3}


def decoder(kind: int, sink: bool, positions: bool, attributes: dict[str, Any]) -> onnx.ModelProto:
    """One attention, with lengths from a mask as onnxruntime-genai's builder computes them."""
    angles = np.arange(256)[:, None] / 100 ** (np.arange(SIZE // 2) / SIZE)
    weights = {"cos": np.cos(angles).astype(TYPES[kind]), "sin": np.sin(angles).astype(TYPES[kind])}
    weights |= {"one": np.array([1]), "axis": np.array(1)}
    if sink:
        weights["sink"] = (2 * np.random.default_rng(5).standard_normal(HEADS)).astype(TYPES[kind])
    node = helper.make_node
    operands = ["qkv", "", "", "past_key", "past_value", "lengths", "total", "cos", "sin"]
    operands += ["positions" if positions else "", "", "sink" if sink else ""]
    heads = {"num_heads": HEADS, "kv_num_heads": SHARED, "do_rotary": 1}
    nodes = [
        node("ReduceSum", ["mask", "one"], ["sum"], keepdims=0),
        node("Sub", ["sum", "one"], ["last"]),
        node("Cast", ["last"], ["lengths"], to=TensorProto.INT32),
        node("Shape", ["mask"], ["dims"]),
        node("Gather", ["dims", "axis"], ["count"]),
        node("Cast", ["count"], ["total"], to=TensorProto.INT32),
        node(
            "GroupQueryAttention",
            operands,
            ["y", "present_key", "present_value"],
            domain="com.microsoft",
            **heads,
            **attributes,
        ),
    ]
    info = helper.make_tensor_value_info
    inputs = [info("qkv", kind, ["batch", "new", (HEADS + 2 * SHARED) * SIZE])]
    inputs.append(info("mask", TensorProto.INT64, ["batch", "total_length"]))
    inputs += [info(f"past_{part}", kind, ["batch", SHARED, "past", "cache_dim"]) for part in ("key", "value")]
    if positions:
        inputs.append(info("positions", TensorProto.INT64, ["batch", "new"]))
    outputs = [info("y", kind, ["batch", "new", HEADS * SIZE])]
    outputs += [info(f"present_{part}", kind, ["batch", SHARED, "rows", "cache_dim"]) for part in ("key", "value")]
    graph = helper.make_graph(
        nodes, "decoder", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in weights.items()]
    )
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@cache
def sessions(kind: int, sink: bool, positions: bool, attributes: tuple[tuple[str, Any], ...]) -> tuple[Any, Any, Any]:
    """ONNX Runtime's session, and Igniter's with one thread and with two."""
    model = decoder(kind, sink, positions, dict(attributes))
    artifact = igniter.load(model).compile(verify=False)
    assert artifact.report["nodes_after"] == 1, artifact.report["left_to_onnxruntime"]
    ours = (artifact.session(intra_op_num_threads=n) for n in (1, 2))
    return make_session(model.SerializeToString()), *ours


def resident(keys: int, rows: int, window: int | None) -> int:
    """The rows with keys after `keys` keys: L(T) of the op's definition."""
    if window is None or keys <= rows:
        return keys
    step = rows - window + 1
    return keys - step * -(-(keys - rows) // step)


def feeds(case: Case, kind: int, window: int | None, positions: bool) -> dict[str, Array]:
    lengths, new, rows = case
    rng = np.random.default_rng(sum(lengths) + new)
    found: dict[str, Array] = {
        "qkv": rng.standard_normal((len(lengths), new, (HEADS + 2 * SHARED) * SIZE)).astype(TYPES[kind]),
        "mask": (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64),
    }
    for name in ("past_key", "past_value"):
        found[name] = rng.standard_normal((len(lengths), SHARED, rows, SIZE)).astype(TYPES[kind])
        for b, length in enumerate(lengths):
            found[name][b, :, resident(max(0, length - new), rows, window) :] = np.nan
    if positions:
        found["positions"] = rng.integers(0, 200, (len(lengths), new))
    return found


def run(session: Any, given: dict[str, Array], shared: bool) -> list[Array]:
    import onnxruntime as ort

    values: dict[str, Any] = {name: ort.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in given.items()}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        if shared and output.name.startswith("present"):
            binding.bind_ortvalue_output(output.name, values[output.name.replace("present", "past")])
        else:
            binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    return [array.copy() for array in binding.copy_outputs_to_cpu()]


def compare(cases: list[Case], kind: int, sink: bool, positions: bool, attributes: dict[str, Any]) -> None:
    theirs, *ours = sessions(kind, sink, positions, tuple(attributes.items()))
    window = attributes["local_window_size"] if attributes.get("sliding_window_cache") else None
    for case in cases:
        lengths, new, rows = case
        given = feeds(case, kind, window, positions)
        plain = {name: np.nan_to_num(a) if a.dtype.kind == "f" else a for name, a in given.items()}
        wanted = run(theirs, plain, shared=window is not None)
        for session in ours:
            for shared in (False, True):
                found = run(session, given, shared)
                for b, length in enumerate(lengths):
                    end = max(resident(length, rows, window), 0 if window else new)
                    for k, (mine, other) in enumerate(zip(found, wanted, strict=True)):
                        a, c = (each[b].astype(np.float64) if k == 0 else each[b, :, :end] for each in (mine, other))
                        np.testing.assert_allclose(a, c, atol=TOLERANCES[kind], rtol=0, err_msg=f"{case} {shared} {k}")


WINDOWS: list[Case] = [
    *(((n,), 1, 16) for n in (1, 7, 16, 17, 18, 33, 100)),
    *(((n,), 1, 19) for n in (21, 30)),
    *(
        ((9,), 9, 16),
        ((40,), 40, 16),
        ((40,), 40, 19),
        ((20,), 4, 19),
        ((50,), 30, 19),
        ((50,), 30, 16),
        ((200,), 60, 16),
    ),
    *(((7, 40, 20), 1, 16), ((7, 40, 20), 1, 23), ((1, 1), 1, 16), ((40, 40), 40, 17)),
]
"""Steps and prompts before, at and behind the end of the cache, with rows that move by one and by several."""
WHOLE: list[Case] = [((7,), 1, 64), ((40, 17, 1), 1, 64), ((9,), 3, 64), ((33,), 33, 64), ((5, 3, 1), 5, 64)]
FULL = pytest.mark.full
FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


@pytest.mark.parametrize(
    ("kind", "sink", "attributes"),
    [
        (FLOAT, True, {"local_window_size": 16}),
        pytest.param(FLOAT, False, {"local_window_size": 16, "softcap": 5.0}, marks=FULL),
        pytest.param(FLOAT, False, {"local_window_size": 5}, marks=FULL),
        pytest.param(HALF, False, {"local_window_size": 16}, marks=FULL),
    ],
)
def test_caches_of_a_window(kind: int, sink: bool, attributes: dict[str, Any]) -> None:
    compare(WINDOWS, kind, sink, False, {**attributes, "sliding_window_cache": 1})


@pytest.mark.parametrize(
    ("kind", "sink", "attributes"),
    [
        (FLOAT, True, {"local_window_size": 5}),
        pytest.param(FLOAT, True, {}, marks=FULL),
        pytest.param(FLOAT, False, {"smooth_softmax": 1}, marks=FULL),
        pytest.param(HALF, True, {}, marks=FULL),
    ],
)
def test_sinks(kind: int, sink: bool, attributes: dict[str, Any]) -> None:
    compare(WHOLE, kind, sink, False, attributes)


@pytest.mark.slow
def test_given_positions() -> None:
    """A first prompt counts from the first position of the batch; other runs have a position for each token."""
    compare([*WHOLE, ((64,), 2, 64), ((9, 9), 9, 64)], FLOAT, False, True, {})


def quantized(kind: int, bits: int, scales: str) -> onnx.ModelProto:
    """An attention whose cache has numbers of some bits."""
    rng, element = np.random.default_rng(1), {8: TensorProto.INT8, 4: TensorProto.UINT8}[bits]
    dims = (1,) if scales == "PER_TENSOR" else (1, SHARED, 1, SIZE)
    weights = {f"{side}_scale": rng.uniform(0.01, 0.03, dims) * (1 if bits == 8 else 16) for side in "kv"}
    node, info = helper.make_node, helper.make_tensor_value_info
    operands = ["q", "k", "v", "past_key", "past_value", "lengths", "total", *[""] * 5, "k_scale", "v_scale"]
    forms = {"k_quant_type": scales, "v_quant_type": scales, "kv_cache_bit_width": bits}
    results, heads = ["y", "present_key", "present_value"], {"num_heads": HEADS, "kv_num_heads": SHARED}
    nodes = [
        node("Shape", ["mask"], ["dims"], start=1),
        node("Squeeze", ["dims"], ["count"]),
        node("Cast", ["count"], ["total"], to=TensorProto.INT32),
        node("GroupQueryAttention", operands, results, domain="com.microsoft", **heads, **forms),
    ]
    inputs = [info("q", kind, ["batch", "new", HEADS * SIZE])]
    inputs += [info(name, kind, ["batch", "new", SHARED * SIZE]) for name in "kv"]
    rows: list[Any] = ["batch", SHARED, "past", "cache_dim"]
    inputs += [info(f"past_{part}", element, rows) for part in ("key", "value")]
    inputs += [
        info("lengths", TensorProto.INT32, ["batch"]),
        info("mask", TensorProto.INT64, ["batch", "total_length"]),
    ]
    outputs = [info("y", kind, ["batch", "new", HEADS * SIZE])]
    outputs += [info(name, element, ["batch", SHARED, "rows", "cache_dim"]) for name in results[1:]]
    stored = [numpy_helper.from_array(a.astype(np.float32), name) for name, a in weights.items()]
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "quantized", inputs, outputs, stored)
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize(
    ("kind", "bits", "scales"),
    [
        (FLOAT, 8, "PER_CHANNEL"),
        pytest.param(FLOAT, 4, "PER_CHANNEL", marks=FULL),
        pytest.param(FLOAT, 8, "PER_TENSOR", marks=FULL),
        pytest.param(FLOAT, 4, "PER_TENSOR", marks=FULL),
        pytest.param(HALF, 8, "PER_CHANNEL", marks=FULL),
    ],
)
def test_quantised_caches(kind: int, bits: int, scales: str) -> None:
    """The codes of new keys and values are ONNX Runtime's, those beyond the largest too."""
    model = quantized(kind, bits, scales)
    artifact = igniter.load(model).compile(verify=False)
    assert artifact.report["nodes_after"] == 1, artifact.report["left_to_onnxruntime"]
    theirs, ours = make_session(model.SerializeToString()), artifact.session(intra_op_num_threads=2)
    for lengths, new, rows in [*WHOLE, ((10,), 1, 9), ((64,), 2, 64), ((5, 5), 5, 0)]:
        rng, batch = np.random.default_rng(new + rows), len(lengths)
        given: dict[str, Array] = {
            name: (1.5 * rng.standard_normal((batch, new, heads * SIZE))).astype(TYPES[kind])
            for name, heads in (("q", HEADS), ("k", SHARED), ("v", SHARED))
        }
        given["k"][0, 0, :5] = [100, -100, 0.05, np.nan, np.inf]
        for name in ("past_key", "past_value"):
            bytes_ = rng.integers(0, 256, (batch, SHARED, rows, SIZE * bits // 8)).astype(np.uint8)
            given[name] = bytes_.view(np.int8) if bits == 8 else bytes_
        given["lengths"] = np.array(lengths, np.int32) - 1
        given["mask"] = np.ones((batch, max(lengths)), np.int64)
        for shared in (False, True) if rows >= max(lengths) else (False,):
            wanted = run(theirs, given, shared)
            mine = run(ours, given, shared)
            tolerance = {"rtol": 0, "atol": TOLERANCES[kind]}
            np.testing.assert_allclose(mine[0].astype(np.float64), wanted[0].astype(np.float64), **tolerance)
            for found, other in zip(mine[1:], wanted[1:], strict=True):
                assert found.shape == other.shape
                for b, length in enumerate(lengths):
                    np.testing.assert_array_equal(found[b, :, : max(length, new)], other[b, :, : max(length, new)])


@pytest.mark.parametrize("bits", [8, 4])
def test_a_step_converts_codes_in_its_products(bits: int) -> None:
    """New rows alone are written in place, and no tensor of floats has the rows of a cache."""
    text = str(igniter.load(quantized(FLOAT, bits, "PER_CHANNEL")).run_passes("cpu"))
    step, prompt = text[text.index("loop.if [") :].split("\n    loop.if [")[:2]
    for part in (step, prompt):
        assert part.count("loop.if_shared") == 2
    assert "attention.keys" in prompt
    assert "attention.scores" in step
    assert "attention.keys" not in step
    assert "attention.values" not in step


def test_a_step_moves_the_rows_of_a_window_once() -> None:
    """The variant for one token has no rows but those of the present."""
    model = decoder(FLOAT, False, False, {"local_window_size": 16, "sliding_window_cache": 1})
    prompt, step = str(igniter.load(model).run_passes("cpu-onnx,cpu-fusion,cpu-loop")).split("} variants {")
    assert "loop.kernel @one_token" in step
    assert "present_key.rows" in prompt
    assert "present_key.rows" not in step
    assert step.count("loop.procedure") == 2


@pytest.mark.slow
def test_a_cache_with_fewer_rows_than_its_window() -> None:
    _, ours, _ = sessions(FLOAT, True, False, (("local_window_size", 16), ("sliding_window_cache", 1)))
    with pytest.raises(Exception, match="its cache has fewer rows than its window"):
        run(ours, feeds(((9,), 1, 15), FLOAT, 16, False), shared=False)


@pytest.mark.slow
def test_the_compiled_function_allows_one_buffer() -> None:
    """Its pointers may not be `noalias`: a caller may pass the past as present."""
    model = decoder(FLOAT, False, False, {"local_window_size": 16, "sliding_window_cache": 1})
    assert "igniter.in_place" in str(igniter.load(model).run_passes("cpu"))


def test_experts_between_regions() -> None:
    """MoE is ONNX Runtime's; the nodes around it have the shapes of its result, and are two ops."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((16, 16)), "first": rng.standard_normal((3, 32, 16)), "b": np.zeros((3, 32))}
    weights |= {"second": rng.standard_normal((3, 16, 32)), "router": rng.standard_normal((16, 3)), "n": np.ones(16)}
    node, info = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("MatMul", ["h", "router"], ["scores"]),
        node("Reshape", ["scores", "rows"], ["probabilities"]),
        node("MoE", ["h", "probabilities", "first", "b", "second"], ["m"], domain="com.microsoft", k=2),
        node("SkipSimplifiedLayerNormalization", ["h", "m", "n"], ["s"], domain="com.microsoft"),
        node("MatMul", ["s", "w"], ["y"]),
    ]
    stored = [numpy_helper.from_array(a.astype(np.float32), name) for name, a in weights.items()]
    stored.append(numpy_helper.from_array(np.array([-1, 3]), "rows"))
    dims = ["batch", "seq", 16]
    graph = helper.make_graph(nodes, "experts", [info("x", FLOAT, dims)], [info("y", FLOAT, dims)], stored)
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    artifact = igniter.load(model).compile(verify=False)
    assert [each["op"] for each in artifact.report["left_to_onnxruntime"]] == ["com.microsoft.MoE"]
    assert artifact.report["nodes_after"] == 3
    x = rng.standard_normal((2, 5, 16)).astype(np.float32)
    (mine,), (wanted,) = (s.run(None, {"x": x}) for s in (artifact.session(), make_session(model.SerializeToString())))
    np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-4)


def test_a_past_of_heads_without_stated_features() -> None:
    """MultiHeadAttention as the builder writes it for f16: `kv_cache_dim` is the size of a head, and the bias has a
    column for each key."""
    node, info = helper.make_node, helper.make_tensor_value_info
    operands, results = ["q", "k", "v", "", "", "bias", "past_key", "past_value"], ["y", "present_key", "present_value"]
    nodes = [node("MultiHeadAttention", operands, results, domain="com.microsoft", num_heads=HEADS)]
    inputs = [info(name, FLOAT, ["batch", "new", HEADS * SIZE]) for name in "qkv"]
    inputs.append(info("bias", FLOAT, ["batch", 1, "new", "total"]))
    inputs += [info(name, FLOAT, ["batch", HEADS, "past", "kv_cache_dim"]) for name in operands[-2:]]
    outputs = [info("y", FLOAT, ["batch", "new", HEADS * SIZE])]
    outputs += [info(name, FLOAT, ["batch", HEADS, "present", "kv_cache_dim"]) for name in results[1:]]
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(nodes, "heads", inputs, outputs), opset_imports=imports, ir_version=10)
    artifact = igniter.load(model).compile(verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    theirs, ours = make_session(model.SerializeToString()), artifact.session()
    for batch, new, past in ((1, 5, 0), (2, 1, 9), (1, 3, 4)):
        rng = np.random.default_rng(new)
        given = {name: rng.standard_normal((batch, new, HEADS * SIZE)).astype(np.float32) for name in "qkv"}
        given["bias"] = rng.standard_normal((batch, 1, new, new + past)).astype(np.float32)
        for name in operands[-2:]:
            given[name] = rng.standard_normal((batch, HEADS, past, SIZE)).astype(np.float32)
        for mine, wanted in zip(ours.run(None, given), theirs.run(None, given), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("window", [5, 16, 4096])
def test_sizes_for_verification_fill_a_window(window: int) -> None:
    """Rows behind the keys of such a cache are unspecified: two runs of ONNX Runtime differ there."""
    for _, sizes in CacheFacts("batch", "new", "past", "total", windows=(("rows", window),)).sizes():
        batch, new, past, total = (sizes[name] for name in ("batch", "new", "past", "total"))
        assert sizes["rows"] == window <= total and (past >= total or past == total - new)
        assert batch == 1 or new in (1, total)
