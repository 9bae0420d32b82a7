"""The regions of a model in two forms: as they are formed, with the nodes that ONNX Runtime would run, and as they are
compiled, with the layouts of their tensors chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from igniter.analysis.fusion.graph import node_label, region_nodes
from igniter.analysis.fusion.layouts import images_of
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import make_fusion, make_llvm, make_loop, make_onnx
from igniter.dialects.fusion import RegionOp
from igniter.dialects.onnx import building
from igniter.dialects.onnx.draws import draws
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.passes import flat_passes
from igniter.remarks import Remarks
from igniter.transforms.fusion.form_fusion_regions import FormFusionRegions


@dataclass(frozen=True)
class FormedRegions:
    """The regions of a model's main graph."""

    formed: ModuleOp
    """The graph after `form-fusion-regions`: no layouts are chosen yet."""
    compilation: Compilation
    """The compilation of the same graph until each region has its kernel."""

    @cached_property
    def before(self) -> dict[str, RegionOp]:
        """The regions as they were formed, by label."""
        return {r.label: r for r in _regions(self.formed)}

    @cached_property
    def after(self) -> dict[str, RegionOp]:
        """The regions with kernels by label; some change the layout of a tensor and are in `before` under no label."""
        return {r.label: r for r in _regions(self.compilation.module)}

    @cached_property
    def nodes_of(self) -> dict[str, tuple[str, ...]]:
        """The names of each region's nodes, as in remarks."""
        return {
            label: tuple(map(node_label, region_nodes(self.before[label]))) if label in self.before else ()
            for label in self.after
        }

    def components(self) -> list[list[str]]:
        """Returns the labels of connected regions: by an image with channels last, or by a region that changes the
        layout."""
        joined: dict[str, str] = {label: label for label in self.after}
        for labels in (*self._around_images(), *self._around_changes()):
            known = [label for label in labels if label in joined]
            for label in known[1:]:
                joined[_root(joined, label)] = _root(joined, known[0])
        found: dict[str, list[str]] = {}
        for label in self.after:
            found.setdefault(_root(joined, label), []).append(label)
        return list(found.values())

    def _around_images(self) -> Iterator[list[str]]:
        for value in images_of(main_graph(self.formed).body):
            yield _beside(value)

    def _around_changes(self) -> Iterator[list[str]]:
        for label, region in self.after.items():
            if label not in self.before:
                yield [label, *(other for v in (*region.inputs, *region.results) for other in _beside(v))]


def _root(joined: Mapping[str, str], label: str) -> str:
    while joined[label] != label:
        label = joined[label]
    return label


def _beside(value: SSAValue) -> list[str]:
    """Returns the labels of the regions that compute or read a value."""
    ops = (value.owner, *(use.operation for use in value.uses))
    return [op.label for op in ops if isinstance(op, RegionOp)]


def _regions(module: ModuleOp) -> list[RegionOp]:
    """Returns the regions of the main graph. Regions inside loops and branches are not measured."""
    return [
        op
        for op in main_graph(module).body.ops
        if isinstance(op, RegionOp) and not any(draws(inner) for inner in op.block.ops)
    ]


def fresh(c: Compilation, module: ModuleOp, options: CompileOptions) -> Compilation:
    """Returns a compilation of a copy of `module` with other options, without the results and remarks of `c`."""
    ctx = c.ctx.clone()
    ctx.remarks = Remarks(enabled=True)
    return Compilation(building.clone(module), options, ctx, c.cache, verify_each=c.verify_each)


def form_regions(c: Compilation) -> FormedRegions:
    """Compiles a model until each region has its kernel. `c.options` have no programs."""
    make_onnx(c)
    until_formed = dataclasses.replace(c.options, fusion_passes=_until_formed(c.pipelines.fusion))
    formed = fresh(c, c.module, until_formed)
    make_fusion(formed)
    make_fusion(c)
    make_loop(c)
    make_llvm(c)
    return FormedRegions(formed.module, c)


def _until_formed(pipeline: str) -> str:
    """Returns the passes of a pipeline up to `form-fusion-regions`; raises `IgniterError` if it has none."""
    passes: Sequence[str] = flat_passes(pipeline)
    names = [each.partition("{")[0] for each in passes]
    if FormFusionRegions.name not in names:
        raise IgniterError(
            f"'{pipeline}' has no {FormFusionRegions.name}, so no node can be left to ONNX Runtime: measuring needs it"
        )
    return ",".join(passes[: names.index(FormFusionRegions.name) + 1])
