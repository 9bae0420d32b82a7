"""Resize and Upsample against ONNX Runtime: modes, roundings, coordinates, crops, sizes, old opsets, refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import igniter
from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import refusal

F32 = np.float32
COORDINATES = ("half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
FACTORS = ((2.0, 3.0), (0.5, 0.25), (1.3, 0.7), (1.0, 2.5), (0.3, 1.0))


def floats(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(dtype)


def check(
    x: Any, attrs: dict[str, Any], scales: Any = None, sizes: Any = None, roi: Any = None, **options: Any
) -> None:
    given = [x, roi, None if scales is None else np.array(scales, F32), None if sizes is None else np.array(sizes)]
    constant = [k for k in (2, 3) if given[k] is not None]
    while given[-1] is None:
        given.pop()
    options = {"tolerance": 2e-5, "constant": constant, "opset": 19, **options}
    check_exactly("Resize", given, attrs, **options)


def dyadic(scales: Any) -> bool:
    return all((s * 64).is_integer() for s in scales)


@pytest.mark.parametrize("coordinates", [*COORDINATES, "tf_half_pixel_for_nn"])
def test_nearest(coordinates: str) -> None:
    x = floats(1, 2, 6, 7)
    for rounding, scales in product(ROUNDINGS, FACTORS):
        attrs = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        opset = 11 if coordinates.startswith("tf") else 19
        dynamic = (False, True) if dyadic(scales) and rounding == "floor" else (False,)
        # Before opset 13 the region of interest cannot be left out.
        roi = np.zeros(0, F32) if opset == 11 else None
        check(x, attrs, [1, 1, *scales], roi=roi, opset=opset, dynamic=dynamic, tolerance=0)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("old, new", [(13, 4), (7, 2), (26, 28), (21, 44), (49, 14), (46, 28), (27, 58), (7, 38)])
def test_halfway_places(rounding: str, old: int, new: int) -> None:
    """Quotients of f32 that miss the middle of two elements, in the rounding of 13 to 4 by one: ONNX Runtime takes what
    is within 1e-6 of it for the middle."""
    attrs = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
    check(floats(1, 1, old, 3), attrs, sizes=[1, 1, new, 3], tolerance=0)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_interpolation(mode: str, coordinates: str) -> None:
    x = floats(1, 2, 6, 7)
    for scales in FACTORS[:3]:
        attrs = {"coordinate_transformation_mode": coordinates, "mode": mode}
        dynamic = (False, True) if dyadic(scales) else (False,)
        check(x, attrs, [1, 1, *scales], dynamic=dynamic)
    check(x, attrs, sizes=[1, 2, 9, 3])
    check(x, attrs, sizes=[1, 2, 1, 1], dynamic=(False,))
    check(floats(1, 2, 1, 1), attrs, sizes=[1, 2, 3, 4])


@pytest.mark.slow
def test_cubic_options() -> None:
    x = floats(1, 2, 6, 7)
    for scales in FACTORS:
        check(x, {"mode": "cubic", "cubic_coeff_a": -0.5}, [1, 1, *scales], dynamic=(False,))
        check(x, {"mode": "cubic", "exclude_outside": 1}, [1, 1, *scales], dynamic=(False,))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias(mode: str) -> None:
    x = floats(1, 2, 12, 9)
    for scales, exclude in product(((0.5, 0.25), (0.6, 1.0), (1.0, 0.3), (2.0, 1.5)), (0, 1)):
        attrs = {"mode": mode, "antialias": 1, "exclude_outside": exclude}
        check(x, attrs, [1, 1, *scales], dynamic=(False,))
    check(x, {"mode": mode, "antialias": 1}, sizes=[1, 2, 5, 4], dynamic=(False,))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop_and_resize(mode: str) -> None:
    x = floats(1, 1, 6, 7)
    attrs = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}
    for roi in ([0, 0, 0.2, 0.1, 1, 1, 0.8, 0.9], [0, 0, -0.3, 0.4, 1, 1, 1.4, 1.2]):
        check(x, attrs, sizes=[1, 1, 3, 5], roi=np.array(roi, F32))
    if mode != "nearest":
        check(x, {**attrs, "axes": [3, 2]}, sizes=[4, 1], roi=np.array([0.1, 0.2, 0.9, 0.7], F32), dynamic=(False,))


def test_axes_and_aspect_ratio() -> None:
    x = floats(1, 2, 6, 9)
    for policy in ("stretch", "not_larger", "not_smaller"):
        attrs = {"keep_aspect_ratio_policy": policy, "axes": [2, 3]}
        check(x, attrs, sizes=[4, 3], dynamic=(False,))
        check(x, {**attrs, "mode": "linear"}, sizes=[11, 20], dynamic=(False,))
    check(x, {"axes": [3, 2]}, [2.0, 0.5])


def test_ranks_and_types() -> None:
    check(floats(5), {}, [2.0])
    check(floats(5, 4), {"mode": "linear"}, [2.0, 0.5])
    check(floats(3, 5, 4), {"mode": "linear"}, [1.0, 2.0, 0.5])
    check(floats(1, 2, 3, 4, 5), {"mode": "linear"}, [1, 1, 2, 0.5, 1.5], dynamic=(False,))
    check(floats(1, 2, 3, 4, 5), {}, [1, 1, 2, 0.5, 1.5], dynamic=(False,))
    for dtype in ("int8", "uint8", "int32"):
        check(np.random.default_rng(0).integers(0, 99, (1, 2, 3, 4)).astype(dtype), {}, [1, 1, 2, 2])
    check(floats(0, 2, 3, 4), {"mode": "linear"}, [1, 1, 2, 2], dynamic=(False,))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_old_opsets(mode: str) -> None:
    x = floats(1, 2, 5, 6)
    for scales in ((2.0, 3.0), (1.5, 2.25), (1.0, 1.2)):
        given = [1.0, 1.0, *scales]
        dynamic = (False, True) if dyadic(scales) else (False,)
        options: dict[str, Any] = {"tolerance": 2e-5, "dynamic": dynamic}
        check_exactly("Upsample", [x], {"mode": mode, "scales": given}, opset=7, **options)
        check_exactly("Upsample", [x, np.array(given, F32)], {"mode": mode}, opset=9, constant=[1], **options)
        check_exactly("Resize", [x, np.array(given, F32)], {"mode": mode}, opset=10, constant=[1], **options)
    check_exactly(
        "Resize",
        [x, np.array([1, 1, 0.5, 0.6], F32)],
        {"mode": mode},
        opset=10,
        constant=[1],
        tolerance=2e-5,
        dynamic=(False,),
    )


def test_refusals() -> None:
    x, scales = floats(1, 1, 4, 6), np.array([1, 1, 0.7, 2], F32)
    assert refusal("Resize", [x, None, scales]) == "its scales and sizes are known only at run time"
    reason = refusal("Resize", [x, None, scales], constant=[2], dynamic=True)
    assert reason == "n4 times 0.699999988079071, rounded, has no symbolic form"
    bytes_ = x.astype(np.uint8)
    assert refusal("Resize", [bytes_, None, scales], {"mode": "linear"}, constant=[2]) == (
        "ONNX Runtime interpolates ui8 with a rounding of its own"
    )


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_scales_whose_number_only_the_node_tells(mode: str) -> None:
    # They are [n] to the model, beside dims of the same name; that n is 2 is known from the node that reads them,
    # which is another node once its parameters are bound. (Of sizes like that ONNX Runtime loads no model.)
    shapes = {"x": [1, 1, "n", "n"], "scales": ["n"]}
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "scales"], ["y"], axes=[2, 3], mode=mode)],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    options = igniter.CompileOptions(
        onnx_passes="cpu-onnx,bind-values",
        fusion_passes="form-fusion-regions{contractions=all singletons=all views=all}",
    )
    artifact = igniter.compile(model, options=options, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    feed = {"x": floats(1, 1, 2, 2), "scales": np.array([1.5, 3], F32)}
    (want,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)
    (got,) = artifact.session(intra_op_num_threads=1).run(None, feed)
    np.testing.assert_allclose(got, want, 2e-5, 2e-5)
