"""What a `Module` can say of its model, and do to it, besides compiling: the toolbox in Python.

Each method is one verb of the command line (`docs/toolbox.md`). Those that look return frozen data and leave the module
as it is; those that change it run a pass of the same name in place and return the module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from pathlib import Path

    from xdsl.dialects.builtin import ModuleOp

    from igniter.context import IgniterContext
    from igniter.runtime.calibration.histogram import Method
    from igniter.runtime.calibration.quantizer import Quantization


class ModelTools:
    """The verbs of the toolbox, for `Module`."""

    ir: ModuleOp
    ctx: IgniterContext
    source: str | Path | bytes | None

    def compress(
        self,
        weights: str,
        granularity: str = "channel",
        *,
        symmetric: bool = False,
        only: Sequence[str] = (),
        leave: Sequence[str] = (),
        min_elements: int = 4096,
        standard: bool = False,
        accuracy_level: int = 0,
        measure: bool = True,
    ) -> Self:
        """Store weights as `f16`, `bf16`, `int8` or `int4`, in place (`docs/compression.md`); returns the module.

        `granularity` is what has a scale of its own: `tensor`, `channel`, or `block:32` for blocks of 32. `only` and
        `leave` are patterns (`*` and `?`) of names of weights, and of names and op types of the nodes that read them.
        Weights of fewer than `min_elements` elements stay. With `standard` there are no ops of com.microsoft;
        `accuracy_level` is that of MatMulNBits. What became of each weight, with its error unless `measure` is false,
        is a remark of the pass `compress-weights`. `IgniterError` where nothing could be compressed, and for a pattern
        that names nothing.
        """
        from igniter.passes import run_passes
        from igniter.transforms.edit.compress_weights import CompressWeights
        from igniter.transforms.onnx.infer_shapes import InferShapes

        chosen = CompressWeights(
            weights, granularity, symmetric, tuple(only), tuple(leave), min_elements, standard, accuracy_level, measure
        )
        run_passes(self.ctx, self.ir, (InferShapes(), chosen))
        # The file is no longer what this module is to be compared with.
        self.source = None
        return self

    def quantize(
        self,
        data: Any,
        *,
        calibrate: Method | Literal["best"] = "min-max",
        percentile: float = 99.999,
        activations: str = "u8",
        symmetric: bool = False,
        granularity: str = "channel",
        asymmetric_weights: bool = False,
        ops: Sequence[str] = (),
        only: Sequence[str] = (),
        leave: Sequence[str] = (),
        max_error: float | None = None,
        correct: bool = True,
        progress: Callable[[str], None] | None = None,
    ) -> Quantization:
        """Have products and convolutions compute on quantised tensors, in place (`docs/quantization.md`).

        `data` are samples: a `.npz` file, a folder of them, `module:function`, a list of mappings of inputs by name, or
        a function that yields them, which is called several times. `calibrate` is `min-max`, `entropy`, `percentile`
        or `distribution`, or `best`, of all of them what has the least error; `percentile` is for the third. `ops` are
        op types, and `only` and `leave` patterns of names and op types of nodes. With `max_error`, nodes stay in float
        until the error of every output over the samples (the root of the mean square, relative to that of the output)
        is no larger. With `correct`, biases make up for the mean error of each channel. Returns ranges, errors and
        choices.
        """
        from igniter.passes import run_passes
        from igniter.runtime.calibration.quantizer import Asked, quantize_module
        from igniter.transforms.edit.quantize_model import Style, require_opset
        from igniter.transforms.onnx.infer_shapes import InferShapes

        style = Style(activations, symmetric, granularity, asymmetric_weights)
        asked = Asked(calibrate, percentile, style, tuple(ops), tuple(only), tuple(leave), max_error, correct)
        require_opset(self.ir, style.checked())
        run_passes(self.ctx, self.ir, (InferShapes(),))
        found = quantize_module(self.ir, data, asked, progress or (lambda _: None))
        self.source = None
        return found
