"""The nodes with a kernel in ONNX Runtime: a compiled model with such a fallback still loads.

The knowledge is `ort_kernels.txt`, made from ONNX Runtime's registered kernels for CPUs
(`tests/conformance/ort_kernels.py`): those in both the oldest and the newest supported version, so a fallback has a
kernel in every version between. It is a file, not a query of the installed ONNX Runtime: the same model gives the same
regions everywhere, and no pass imports onnxruntime. If an installation still has fewer kernels (a reduced build), the
compiled model is formed again with the node inside (`igniter.compiler.loading`).

    com.microsoft:BiasGelu 1: in0 in1 out0=float
    :Cast 6,9,13: in0=bfloat16,...; out0=bfloat16,...         domain:op, versions of its schema, types by place
    :Max 12,13: in0+ out0=double,float,...                    in0+: this input and all that follow

A node of f16 without a kernel in ONNX Runtime runs in f32, with casts around it. There is no list for GPUs: the CUDA
provider has most of its kernels for f16 and bf16 as well as f32, so these count as f32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from xdsl.ir import Attribute

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.verify import type_name

FILE = Path(__file__).with_suffix(".txt")

AS_FLOAT_ON_CPUS = frozenset(("tensor(float16)",))
AS_FLOAT_ON_GPUS = AS_FLOAT_ON_CPUS | {"tensor(bfloat16)"}

Kernel = Mapping[str, frozenset[str]]
"""The types of a kernel, by place: `in0`, `out0`, and `in0+` for a variadic input from there on."""


def has_kernel(op: OnnxOp, provider: str = "") -> bool:
    """True if ONNX Runtime has a kernel for the node's op, opset and types; `provider` is the other nodes' provider, ""
    for CPUs."""
    kernels = _kernels().get((op.domain, op.op_type, _since(op)), ())
    types = dict(_types(op))
    if any(_takes(kernel, types) for kernel in kernels):
        return True
    narrow = AS_FLOAT_ON_GPUS if provider else AS_FLOAT_ON_CPUS
    widened = {place: "tensor(float)" if type_ in narrow else type_ for place, type_ in types.items()}
    return widened != types and any(_takes(kernel, widened) for kernel in kernels)


def _since(op: OnnxOp) -> int:
    """Returns the version of the op's schema. ONNX Runtime's own ops have no schema here; all are of version 1."""
    schema = op.schema
    return 1 if schema is None else schema.since_version


def _types(op: OnnxOp) -> Iterator[tuple[str, str]]:
    """Yields the types of the existing inputs and outputs of known type, by place."""
    sides: tuple[tuple[str, list[Attribute]], ...] = (
        ("in", [value.type for value in op.operands]),
        ("out", [value.type for value in op.results]),
    )
    for side, types in sides:
        for index, type_ in enumerate(types):
            name = type_name(type_)
            if name is not None:
                yield f"{side}{index}", name


def _takes(kernel: Kernel, types: Mapping[str, str]) -> bool:
    for place, type_ in types.items():
        allowed = kernel.get(place) or _variadic(kernel, place)
        if allowed is not None and type_ not in allowed:
            return False
    return True


def _variadic(kernel: Kernel, place: str) -> frozenset[str] | None:
    """Returns the types of the variadic input or output at a place."""
    side = place.rstrip("0123456789")
    index = int(place.removeprefix(side))
    starts = [
        int(k) for name in kernel if (k := name.removeprefix(side).removesuffix("+")).isdigit() and name[-1] == "+"
    ]
    first = max((k for k in starts if k <= index), default=None)
    return None if first is None else kernel[f"{side}{first}+"]


@cache
def _kernels() -> dict[tuple[str, str, int], list[Kernel]]:
    found: dict[tuple[str, str, int], list[Kernel]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, versions, said = line.split(" ", 2)
        domain, _, op_type = name.rpartition(":")
        kernels = [_kernel(text) for text in said.split(" | ")]
        for version in versions.removesuffix(":").split(","):
            found[domain, op_type, int(version)] = kernels
    return found


def _kernel(text: str) -> Kernel:
    found: dict[str, frozenset[str]] = {}
    for part in text.split("; "):
        places, _, types = part.partition("=")
        taken = frozenset(t if "(" in t else f"tensor({t})" for t in types.split(","))
        found.update(dict.fromkeys(places.split(), taken))
    return found
