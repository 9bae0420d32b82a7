"""The named pipelines: the passes from ONNX to what the emitter takes, in order, one a line.

A name stands for its passes wherever a pipeline is written (`igniter-opt -p cpu-fusion`, `Module.run_passes`).
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
        # In front of what makes floats of codes.
        "form-block-products",
        "fold-constants",
        "eliminate-common-nodes",
        # Once more on what is left: new constants and merged nodes tell more dims.
        "infer-shapes",
        "canonicalize-onnx",
        "recompose",
        # Weights that recomposition transposed.
        "fold-constants",
        # Integer products as micro-kernels have them.
        "hoist-zero-points",
        "copy-dequantized",
        "form-subpixel-convolutions",
        "eliminate-dead-nodes",
        # Loops that stack as much as only a run knows.
        "bind-values{ops=loops}",
    ),
    # onnx -> onnx: convolutions with fewer multiplications.
    "cpu-tiles": ("winograd",),
    # onnx -> fusion: which nodes become one kernel.
    "cpu-fusion": (
        # Behind all that looks at weights: those of 16 bits are behind a Cast from here on.
        "form-half-products",
        "form-fusion-regions",
        "choose-layouts",
        "lift-constants",
        "pack-weights",
    ),
    # fusion -> loop, structured: what is computed.
    "cpu-loop": (
        "lower-onnx-to-loop{few-rows=true}",
        "inline-failed-regions",
        "abstract-dims",
        # What no kernel checks of what the graph assumes, once it is known which kernels there are.
        "guard-assumptions",
        "lower-onnx-to-loop{few-rows=true}",
        "deduplicate-kernels",
        # While the nests are there: what programs can do image by image.
        "mark-batches",
    ),
    # loop -> loop: how it is computed, down to what the emitter takes.
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
        "pack-operands",
        # Every read proven inside of its tensor or guarded, every write proven, or the kernel refused.
        "check-bounds{guard=true}",
        # What `igniter tune` found, where a database is given.
        "apply-tuned-schedules",
        "choose-schedule",
        # Behind all that copies bodies, whose sums have to round alike.
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
        "transpose-accesses",
        "plan-buffers",
        "form-ort-library",
    ),
    # loop -> loop: the same, kernel by kernel; one that fails costs its own regions.
    "cpu-kernels": (
        "schedule-kernels",
        "inline-failed-regions",
    ),
    # fusion -> fusion: which regions are entered together, once their kernels are known to compile.
    "cpu-programs": ("form-programs",),
    # fusion -> loop: the calls of a program, in one arena.
    "cpu-calls": (
        "lower-programs",
        "plan-buffers",
        "inline-failed-regions",
    ),
    # fusion -> onnx: the weights as kernels read them.
    "cpu-weights": ("fold-packs",),
    # The same for GPUs, as far as it goes.
    "cuda-onnx": (
        "inline-functions",
        "expand-quantized",
        "infer-shapes",
        "canonicalize-onnx",
        "fold-constants",
        "eliminate-common-nodes",
        "infer-shapes",
        "canonicalize-onnx",
        "recompose",
        "fold-constants",
        "eliminate-dead-nodes",
        "bind-values{ops=loops}",
    ),
    "cuda-fusion": (
        "form-fusion-regions",
        "lift-constants",
    ),
    "cuda-loop": (
        "lower-onnx-to-loop",
        "inline-failed-regions",
        "abstract-dims",
        "guard-assumptions",
        "lower-onnx-to-loop",
        "deduplicate-kernels",
    ),
    "cuda-schedule": (
        "drop-checks",
        "canonicalize-loop",
        "split-axes{sums=true}",
        "inline-nests",
        "collapse-axes{attention=true}",
        "flatten-rows",
        "collapse-axes{attention=true}",
        "canonicalize-loop",
        "read-past-views",
        "choose-splits",
        "check-bounds{guard=true}",
        "choose-schedule",
        # From here on blocks of programs, no nests.
        "lower-to-triton",
        "plan-buffers",
    ),
    # A host only launches: what goes round in a program, or copies, needs a CPU that sees the data.
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
        "cpu-tiles",
        "cpu-fusion",
        "cpu-loop",
        "cpu-schedule",
    ),
}


def find_pipeline(name: str) -> tuple[str, ...] | None:
    """The elements of the pipeline called `name`, Igniter's or an installed package's; `None` if there is none."""
    if name in PIPELINES:
        return PIPELINES[name]
    from igniter.registry import external, load, where_pass

    if where_pass(name) is not None or name not in external("pipelines"):
        return None
    found: tuple[str, ...] = tuple(load(external("pipelines")[name]))
    return found
