"""`python -m benchmark.gpu`: what models become for a GPU, and how long they are expected to take there.

For each model: its nodes, those that are left, kernels, launches of a run, the most registers of a kernel, the spills
of all and kernels with C7514 (products that wait for each other), by the assembler that comes with Triton, the seconds
of a compilation with an empty cache and of one with what that left, and the estimate for a device by its data sheet
(`igniter.backends.triton.estimates`), at the sizes that the model is compiled for (`igniter compile --sizes`). Nothing
is run on a GPU.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
from xdsl.ir import Operation

import igniter
from benchmark.models import diffusion, half, vision, vision_transformers
from igniter.backends.triton.compiler import Resources, compile_source, resources_of, signature_of
from igniter.backends.triton.devices import DEVICES, Device, device_of
from igniter.backends.triton.estimates import Estimate, estimate, launches_of
from igniter.backends.triton.python_source import print_kernel
from igniter.backends.triton.target import target_of
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import make_fusion, make_loop, make_onnx, make_scheduled
from igniter.dialects import triton as tt
from igniter.dialects.loop import FuncOp, LaunchOp
from igniter.runtime.cache import default_cache

Model = Callable[[], onnx.ModelProto]
MODELS: dict[str, tuple[Model, dict[str, int]]] = {
    "bert-base-f16": (lambda: half.to_half(half.bert()), {"batch": 1, "sequence": 128}),
    "bert-base-f32": (half.bert, {"batch": 1, "sequence": 128}),
    "resnet50": (vision.resnet50, {"batch": 1}),
    "mobilenet_v2": (vision.mobilenet_v2, {"batch": 1}),
    "vit_base": (vision_transformers.vit_base, {"batch": 1}),
    "yolov8n": (vision.yolov8n, {"batch": 1}),
    "unet-64": (lambda: diffusion.unet(64, 64), {"batch": 1}),
}
"""Models made by code, and the sizes that a run has."""


@dataclass
class Row:
    """What the table says of a model."""

    name: str
    nodes: int = 0
    after: int = 0
    kernels: int = 0
    launches: int = 0
    registers: int = 0
    spills: int = 0
    waiting: int = 0
    """Launches whose products of tensor cores wait for each other: ptxas's message C7514."""
    cold: float = 0.0
    cached: float = 0.0
    seconds: float = 0.0
    limits: Counter[str] = field(default_factory=Counter[str])
    slowest: list[tuple[str, Estimate]] = field(default_factory=list[tuple[str, Estimate]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help=f"names, or paths of ONNX files; by default {', '.join(MODELS)}")
    parser.add_argument("--device", choices=sorted(DEVICES), default="a100")
    parser.add_argument("--target", default="cuda", help="cuda, or cuda+tf32 and the like")
    parser.add_argument("--sizes", default="", help="of symbolic dims, batch=8,sequence=512")
    parser.add_argument("--f16", action="store_true", help="models in f16, by a conversion of their weights")
    parser.add_argument("--kernels", type=int, default=0, metavar="N", help="list the N launches that take longest")
    args = parser.parse_args()
    device = device_of(args.device)
    given = {k: int(v) for k, v in (pair.split("=") for pair in args.sizes.split(",") if pair)}
    print(f"device: {device.name}, by its data sheet; kernels of {args.target}; no GPU was used")
    counted = ("nodes", "left", "kernels", "launches", "registers", "spills", "C7514")
    columns = (*counted, "cold s", "cached s", "estimate ms")
    print("| model |", " | ".join(columns), "| limits |")
    print("| --- |", " | ".join("---:" for _ in columns), "| --- |")
    for name in args.models or MODELS:
        make, sizes = MODELS.get(name, (lambda path=name: onnx.load(path), {}))
        model = half.to_half(make()) if args.f16 else make()
        row = measured(name, model, {**sizes, **given}, device, args.target)
        limits = ", ".join(f"{n} {what}" for what, n in row.limits.most_common())
        counts = (row.nodes, row.after, row.kernels, row.launches, row.registers, row.spills, row.waiting)
        times = (f"{row.cold:.1f}", f"{row.cached:.1f}", f"{row.seconds * 1e3:.3f}")
        print("|", " | ".join((row.name, *map(str, counts), *times, limits)), "|", flush=True)
        for label, found in row.slowest[: args.kernels]:
            print(
                f"    {label}: {found.seconds * 1e6:.1f} us by {found.limit}, {found.memory_bytes / 1e6:.2f} MB, "
                f"{found.operations / 1e9:.2f} Gop, occupancy {found.occupancy:.0%}"
            )


def measured(name: str, model: onnx.ModelProto, sizes: Mapping[str, int], device: Device, target: str) -> Row:
    """Compiles a model twice, and looks at its kernels."""
    row = Row(name)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["IGNITER_CACHE_DIR"] = cache
        options = CompileOptions(target=target, sizes=named_sizes(model, sizes))
        for place in ("cold", "cached"):
            start = time.perf_counter()
            artifact = igniter.load(model).compile(options=options, verify=False)
            setattr(row, place, time.perf_counter() - start)
        report: dict[str, Any] = artifact.report
        row.nodes, row.after, row.kernels = report["nodes_before"], report["nodes_after"], report["kernels"]
        _look(row, model, sizes, device, target)
    return row


def named_sizes(model: onnx.ModelProto, sizes: Mapping[str, int]) -> Any:
    """Those of the sizes that are of symbols of the model."""
    dims = (d.dim_param for value in model.graph.input for d in value.type.tensor_type.shape.dim)
    named = {name for name in dims if name}
    return {name: size for name, size in sizes.items() if name in named}


def launched(c: Compilation, sizes: Mapping[str, int]) -> Iterator[tuple[LaunchOp, tt.FuncOp, dict[str, int]]]:
    """The launches of a run at some sizes, with their kernels and the values of their symbols."""
    funcs: dict[str, Operation] = {f.sym_name.data: f for f in c.module.ops if isinstance(f, FuncOp)}
    kernels = {f.sym_name.data: f for f in c.module.ops if isinstance(f, tt.FuncOp)}
    called = {name for func in funcs.values() for name in _calls(func)}
    for name, func in funcs.items():
        assert isinstance(func, FuncOp)
        if name not in called:
            env = {s: sizes.get(s, 1) for s in func.symbol_names}
            for launch, here in launches_of(funcs, name, env):
                yield launch, kernels[launch.kernel], here


def scheduled(model: onnx.ModelProto, target: str, sizes: Mapping[str, int]) -> Compilation:
    """A model with the launches and kernels of its regions; without sizes schedules are chosen for all."""
    module = igniter.load(model)
    options = CompileOptions(target=target, sizes=named_sizes(model, sizes))
    c = Compilation(module.ir, options, module.ctx, default_cache())
    for step in (make_onnx, make_fusion, make_loop, make_scheduled):
        step(c)
    return c


def _look(row: Row, model: onnx.ModelProto, sizes: Mapping[str, int], device: Device, target: str) -> None:
    """The launches of a run, their registers and what they are expected to take."""
    known: dict[str, tuple[Resources, int]] = {}
    for launch, kernel, here in launched(scheduled(model, target, sizes), sizes):
        if launch.kernel not in known:
            source, types, arch = print_kernel(kernel), signature_of(kernel), target_of(target).arch
            made = compile_source(source, types, launch.warps, launch.stages, arch)
            known[launch.kernel] = resources_of(made, device.arch), made.shared
        resources, shared = known[launch.kernel]
        found = estimate(launch, kernel, here, resources, shared, device)
        row.launches += 1
        row.registers, row.spills = max(row.registers, resources.registers), row.spills + resources.spills
        row.waiting += resources.serialized
        row.seconds += found.seconds
        row.limits[found.limit] += 1
        row.slowest.append((launch.kernel, found))
    row.slowest.sort(key=lambda each: -each[1].seconds)


def _calls(func: Operation) -> set[str]:
    from igniter.dialects.loop import CallOp

    return {op.callee for op in func.walk() if isinstance(op, CallOp)}


if __name__ == "__main__":
    main()
