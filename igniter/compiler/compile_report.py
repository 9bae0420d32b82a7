"""The report of a compilation: the contents of `report.json`, besides the outcome of the verification."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from igniter.analysis.fusion.author import make_author as fusion_author
from igniter.analysis.fusion.legality import as_tensor, has_dims
from igniter.compiler.compilation import Compilation, CompiledKernel
from igniter.compiler.driver import count_nodes, nodes_left
from igniter.dialects.library_names import is_library_domain
from igniter.dialects.loop.schedule import PRODUCTS
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.sym import dims_of
from igniter.passes import parse_passes
from igniter.runtime.library import versions
from igniter.schedules.author import make_author as schedule_author
from igniter.schedules.citation import Citation, cite_author
from igniter.transforms.fusion.form_fusion_regions import FormFusionRegions, summaries
from igniter.transforms.fusion.make_at_load import MakeAtLoad
from igniter.transforms.onnx.flush_subnormals import FlushSubnormals
from igniter.transforms.structured.choose_schedule import ChooseSchedule


def report(c: Compilation) -> dict[str, Any]:
    """Returns the contents of `report.json` for a compilation."""
    return {
        "versions": versions(),
        "options": c.options.to_dict(),
        "target": c.options.target,
        "machines": [m.to_dict() for m in c.machines],
        "authors": [citation.to_dict() for citation in cited_authors(c)],
        "nodes_before": c.nodes_before,
        "nodes_after": count_nodes(c.module),
        "kernels": len(c.kernels),
        "cached_kernels": c.cached_kernels,
        "kernel_digest": kernel_digest(c.kernels),
        "regions": _region_count(c),
        "programs": [p.to_dict() for p in c.steps],
        "inputs": _input_dims(c),
        "subnormal_weights": subnormal_weights(c),
        "tile_weights": tile_weights(c),
        **({"f32_products": said} if (said := f32_products(c)) else {}),
        **({"measured": c.measured} if c.measured else {}),
        "left_to_onnxruntime": [node.to_dict() for node in nodes_left(c)],
        "seconds": c.report_seconds(),
        "peak_memory": c.peak_memory,
        "fusion": [{**s.to_dict(), "text": str(s)} for s in summaries(c.ctx.remarks)],
        "remarks": [r.to_dict() for r in c.ctx.remarks],
    }


def cited_authors(c: Compilation) -> list[Citation]:
    """Returns the citations of the authors of fusion and of schedules in the compilation's pipelines, by backend."""
    found: list[Citation] = []
    for part in c.parts:
        own = part.backend
        for this in parse_passes(f"{c.pipelines.fusion},{c.pipelines.schedule}"):
            if isinstance(this, FormFusionRegions):
                found.append(cite_author(fusion_author(this.author or c.options.fusion_author or own.fusion_author)))
            elif isinstance(this, ChooseSchedule):
                found.append(cite_author(schedule_author(this.author or own.schedule_author)))
    return list(dict.fromkeys(found))


def kernel_digest(kernels: Sequence[CompiledKernel]) -> str:
    """Returns a hash of the code of kernels, independent of the programs around them."""
    texts = sorted(text for kernel in kernels for text in kernel.variants)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def subnormal_weights(c: Compilation) -> dict[str, Any]:
    """Returns the numbers of subnormal weights written as 0 and kept, with a sentence if there are any; empty if no
    pass counted them."""
    found = c.ctx.remarks.of(FlushSubnormals.name, "note")
    return {**found[-1].details, "text": found[-1].message} if found else {}


def tile_weights(c: Compilation) -> dict[str, Any]:
    """Returns where the transformed weights of convolutions in tiles are made, `load` or `file`; the number and bytes
    that kernels compute when a session is created, the number that is stored, and a sentence. Empty if no convolution
    is computed in tiles."""
    marked = c.ctx.remarks.of("winograd", "note")
    if not marked or not marked[-1].details.get("count"):
        return {}
    found = c.ctx.remarks.of(MakeAtLoad.name, "note")
    if not found:
        return {"at": "file", "text": "the folder stores the weights of convolutions in tiles"}
    details = found[-1].details
    text = f"weights of convolutions in tiles: {found[-1].message}"
    return {"at": "load" if details["count"] else "file", **details, "text": text}


F32_PRODUCTS = {
    "ieee": "products of f32 follow IEEE on the GPU; --target=cuda+tf32 has the arithmetic of ONNX Runtime's use_tf32",
    "tf32": "products of f32 have factors of 10 mantissa bits on the GPU, as with ONNX Runtime's use_tf32 (on by "
    "default there): each is off by up to 2^-9; without +tf32 they follow IEEE",
    "tf32x3": "each product of f32 is three of factors of 10 mantissa bits on the GPU, about as exact as f32; without "
    "+tf32x3 they follow IEEE",
}
"""The arithmetic of f32 products on GPUs, in words."""


def f32_products(c: Compilation) -> dict[str, str]:
    """Returns the arithmetic of f32 products on GPUs, `ieee`, `tf32` or `tf32x3`, and a sentence; empty without a
    GPU."""
    for part in c.parts:
        if any(target.triple.startswith("nvptx64") for target in part.targets):
            features = part.machines()[0].features
            how = features if features in PRODUCTS else "ieee"
            return {"arithmetic": how, "text": F32_PRODUCTS[how]}
    return {}


def _input_dims(c: Compilation) -> dict[str, list[str]]:
    """Returns the dims of the inputs, in the symbols used by the figures of programs."""
    graph = main_graph(c.module)
    types = [(name, as_tensor(arg.type)) for name, arg in zip(graph.input_names, graph.body.args, strict=True)]
    return {name: [str(d) for d in dims_of(t)] for name, t in types if t is not None and has_dims(t)}


def _region_count(c: Compilation) -> int:
    return sum(isinstance(op, OnnxOp) and is_library_domain(op.domain) for op in c.module.walk())
