"""The named pipelines: the passes from ONNX to the emitter's input, in order, one a line.

A name expands to its passes wherever a pipeline is written (`igniter-opt -p cpu-fusion`, `Module.run_passes`).
"""

from __future__ import annotations

PIPELINES: dict[str, tuple[str, ...]] = {
    # onnx -> onnx: shapes known, constants folded, exported patterns recognised.
    "cpu-onnx": (
        "inline-functions",
        "expand-quantized",
        "infer-shapes",
        "canonicalize-onnx",
        "form-integer-products",
        "rewrite-small-integers",
        # Before dequantisation.
        "form-block-products",
        "fold-constants",
        "eliminate-common-nodes",
        # Again on the rest: new constants and merged nodes determine more dims.
        "infer-shapes",
        "canonicalize-onnx",
        "recompose",
        # Weights transposed by recomposition.
        "fold-constants",
        # Normalisations are single nodes now.
        "hoist-selections",
        # Integer products in the form of micro-kernels.
        "hoist-zero-points",
        "copy-dequantized",
        "form-subpixel-convolutions",
        "eliminate-dead-nodes",
        # Loops with a number of stacked results known only at run time.
        "bind-values{ops=loops}",
    ),
    # onnx -> onnx: subnormal weights as 0, once folding has made all weights.
    "cpu-subnormals": ("flush-subnormals",),
    # onnx -> onnx: convolutions with fewer multiplications.
    "cpu-tiles": ("winograd",),
    # onnx -> fusion: nodes become regions, one kernel each.
    "cpu-fusion": (
        # After all passes over weights: weights of 16 bits are behind a Cast from here on.
        "form-half-products",
        "form-fusion-regions",
        "narrow-convolutions",
        "choose-layouts",
        "lift-constants",
        "pack-weights",
    ),
    # onnx -> loop, structured: the computation.
    "cpu-loop": (
        "lower-onnx-to-loop{few-rows=true}",
        "inline-failed-regions",
        "abstract-dims",
        # Assumptions of the graph not checked by any kernel; needs all kernels.
        "guard-assumptions",
        "lower-onnx-to-loop{few-rows=true}",
        "deduplicate-kernels",
        # While the nests exist: marks the batches for programs to compute image by image.
        "mark-batches",
    ),
    # loop -> loop: the execution, down to the emitter's input.
    "cpu-schedule": (
        "canonicalize-loop",
        "split-axes",
        "inline-nests",
        "form-rims",
        "order-dims",
        "collapse-axes",
        "canonicalize-loop",
        "postpone-scales",
        # From here on passes choose by sizes.
        "form-variants",
        "fold-conversions",
        "pack-operands",
        # Every read proven inside of its tensor or guarded, every write proven, or the kernel refused.
        "check-bounds{guard=true}",
        # The schedules found by `igniter tune`, if a database is given.
        "apply-tuned-schedules",
        "choose-schedule",
        # After all passes over copies of bodies: copies of a sum must round alike.
        "form-fma",
        "lower-to-loops",
        "fuse-loops",
        "promote-buffers",
        "slide-loops",
        "tile-loops",
        "sink-loops",
        "prefetch-loops",
        "parallelize-loops",
        "vectorize-loops",
        "unroll-loops",
        "split-rims",
        "transpose-accesses",
        "plan-buffers",
        "form-ort-library",
    ),
    # loop -> loop: the same, kernel by kernel; a failure affects only the regions of its kernel.
    "cpu-kernels": (
        "schedule-kernels",
        "inline-failed-regions",
    ),
    # fusion -> fusion: regions joined to programs, once their kernels have compiled.
    "cpu-programs": ("form-programs",),
    # fusion -> loop: the calls of a program, in one arena.
    "cpu-calls": (
        "lower-programs",
        "plan-buffers",
        "inline-failed-regions",
    ),
    # fusion -> fusion: constants that kernels compute when a session is created.
    "cpu-made": ("make-at-load",),
    # fusion -> onnx: the weights in the layout of kernels.
    "cpu-weights": ("fold-packs",),
    # The same for GPUs, as far as implemented.
    "cuda-onnx": (
        "inline-functions",
        "expand-quantized",
        "infer-shapes",
        "canonicalize-onnx",
        # Before dequantisation.
        "form-block-products{plain=true}",
        "fold-constants",
        "eliminate-common-nodes",
        "infer-shapes",
        "canonicalize-onnx",
        "recompose",
        "fold-constants",
        "hoist-selections",
        "eliminate-dead-nodes",
        "bind-values{ops=loops}",
    ),
    "cuda-fusion": (
        "turn-weights",
        "form-fusion-regions",
        "choose-layouts{blocks=true}",
        "lift-constants",
        "order-weights",
    ),
    "cuda-loop": (
        "lower-onnx-to-loop{blocks=true}",
        "inline-failed-regions",
        "abstract-dims",
        "guard-assumptions",
        "lower-onnx-to-loop{blocks=true}",
        "deduplicate-kernels",
    ),
    "cuda-schedule": (
        "drop-checks",
        "canonicalize-loop",
        "split-axes{sums=true}",
        # Computing again is cheaper than a launch.
        "inline-nests{max-windows=4096 tables=true}",
        "inline-masks",
        "order-dims{blocks=true}",
        "collapse-axes{attention=true}",
        "flatten-rows",
        "flatten-depth",
        "collapse-axes{attention=true}",
        "split-heads",
        "canonicalize-loop",
        "read-past-views",
        # From here on passes choose by sizes.
        "form-variants",
        "split-codes",
        "choose-splits",
        "check-bounds{guard=true}",
        "apply-tuned-schedules",
        "choose-schedule",
        # From here on blocks of programs instead of nests.
        "lower-to-triton",
        "plan-buffers",
    ),
    # A host only launches: loops and copies in a program need a CPU with access to the data.
    "cuda-programs": ("form-programs{loops=false}",),
    "cuda-calls": (
        "lower-programs{batches=false}",
        "plan-buffers",
        "inline-failed-regions",
    ),
    "cuda": (
        "cuda-onnx",
        "cuda-fusion",
        "cuda-loop",
        "cuda-schedule",
    ),
    "cpu": (
        "cpu-onnx",
        "cpu-subnormals",
        "cpu-tiles",
        "cpu-fusion",
        "cpu-loop",
        "cpu-schedule",
    ),
}


def find_pipeline(name: str) -> tuple[str, ...] | None:
    """Returns the elements of the pipeline called `name`, Igniter's or an installed package's; `None` if unknown."""
    if name in PIPELINES:
        return PIPELINES[name]
    from igniter.registry import external, load, where_pass

    if where_pass(name) is not None or name not in external("pipelines"):
        return None
    found: tuple[str, ...] = tuple(load(external("pipelines")[name]))
    return found
