"""What the fuzzer found in networks of images: small models that compile wholly and compute what ONNX Runtime does."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.fuzz.graph import Case
from tests.fuzz.images import FUSIONS
from tests.fuzz.run import run_case

ALONE = FUSIONS[-1]
TOGETHER = FUSIONS[-2]


def check(text: str, *shapes: tuple[int, ...], fusion: str = ALONE, opset: int = 17) -> None:
    """Runs a graph of an input `x`, whose initializers `w..` are made up, at several shapes."""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')
    rng = np.random.default_rng(0)
    for k, node in enumerate(model.graph.node):
        node.name = f"node{k}"
    for weight in model.graph.initializer:
        if weight.name.startswith("w"):
            weight.ClearField("float_data")
            weight.raw_data = rng.standard_normal(list(weight.dims)).astype(np.float32).tobytes()
    feeds = tuple({"x": rng.standard_normal(shape).astype(np.float32)} for shape in shapes)
    found = run_case(Case(0, model, feeds, tuple({} for _ in shapes), fusion))
    assert (found.status, found.message, found.dropped) == ("ok", "", ())


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_of_sizes_that_a_run_knows(pad: str, stride: int) -> None:
    """Neither side of what is added is negative, which the lowering of the Pad has to know."""
    check(
        f"""g (float[n, 4, h, w] x) => (float[] y) <float[4, 4, 3, 3] w0 = {{0}}> {{
            a = Relu (x)
            y = Conv <auto_pad = "{pad}", strides = [{stride}, {stride}]> (a, w0)
        }}""",
        (1, 4, 5, 8),
        (2, 4, 1, 6),
        fusion=TOGETHER,
    )


def test_same_padding_beside_a_wider_rim() -> None:
    """What `SAME` padding adds hangs on the dims of the image, not on those of the tensor that is stored."""
    check(
        """g (float[1, 4, 5, 8] x) => (float[] y, float[] z) <float[4, 4, 3, 3] w0 = {0}, float[4, 4, 7, 7] w1 = {0}> {
            y = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, w0)
            z = Conv <pads = [3, 3, 3, 3]> (x, w1)
        }""",
        (1, 4, 5, 8),
    )
