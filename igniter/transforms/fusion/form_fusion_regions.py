"""`form-fusion-regions`: groups the nodes of a graph into `fusion.region`s; each becomes one kernel.

    %0 = onnx.Add(%x, %b) : ...                    %r = fusion.region @r0 (%a = %x : ..., %c = %b : ...) -> (...) {
    %1 = onnx.Gelu(%0) : ...                         %0 = onnx.Add(%a, %c) : ...
    %2 = onnx.MatMul(%1, %w) : ...           ->      %1 = onnx.Gelu(%0) : ...
                                                     fusion.yield %1 : ...
                                                   }
                                                   %2 = onnx.MatMul(%r, %w) : ...

Regions grow along edges, and between nodes with a shared input, as long as the graph of regions stays acyclic
(`igniter.analysis.fusion.region_growing`). Legality and the backend limit the nodes of regions. A *fusion author*
(`igniter.analysis.fusion.author`), by default the backend's own, decides profitability and the order of merge trials. A
node without an ONNX Runtime kernel (`igniter.analysis.fusion.ort_kernels`) always gets a region. The backend is that of
the context's machine (`igniter.targets`). A region gets small constants as clones, and shape operands with elements
known to `infer-shapes` as `fusion.dims`; the nodes of these shapes can then be dropped. Every node gets a remark: its
region, or the reason why it has none. One more remark, with the module's name, holds the `FusionSummary`.

Requires `infer-shapes`; canonical graphs fuse better. The pass runs after all passes on the ONNX level, because these
do not look into regions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.fusion.author import DEFAULT, FusionAuthor, asking, checked, make_author
from igniter.analysis.fusion.cost import Contractions, Singletons, Views
from igniter.analysis.fusion.graph import FusionGraph, FusionNode, Judges, build_graph, is_node, node_label
from igniter.analysis.fusion.legality import Reason, type_symbols
from igniter.analysis.fusion.ort_kernels import has_kernel
from igniter.analysis.fusion.program_loops import compilable, loop_reason
from igniter.analysis.fusion.region_policy import Limits
from igniter.analysis.fusion.selection import Selection, select_regions
from igniter.analysis.fusion.summary import FusionSummary, count_kinds, missed_fusions, summarize_regions
from igniter.analysis.fusion.symbols import SymbolSources, region_operands
from igniter.analysis.machine import machine_of
from igniter.analysis.typical_sizes import MEMORY, sizes_of
from igniter.dialects.fusion import GroupOp, RegionOp
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import base_name
from igniter.dialects.onnx.names import is_loop
from igniter.dialects.onnx.rule_guards import say_failed_rules
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.remarks import Remarks, remark, remarks_of
from igniter.rewrite_budget import budget
from igniter.targets import Backend, backend_of
from igniter.transforms.fusion.extract_regions import attach_tables, form_region, localize_operands, region_results
from igniter.transforms.onnx.onnx_rewriting import is_unused

AUTHOR_OPTIONS = ("contractions", "singletons", "views", "small_flops")
"""The options of the pass for authors with fields of these names."""


@dataclass(frozen=True)
class FormFusionRegions(ModulePass):
    """Groups nodes into regions of one kernel each."""

    name = "form-fusion-regions"
    one_rewrite = "a region formed"

    author: str = ""
    """The fusion author, by name, with its options (`NAME{option=value}`). Empty: the backend's. The pass hands its
    options `contractions` to `points` to the author."""
    contractions: Contractions = "all"
    """The contractions to fuse: none, those of up to `small-flops` operations, or all."""
    singletons: Singletons = "winning"
    """The nodes to form a region alone: none, those with kernels faster than ONNX Runtime's, or all."""
    views: Views = "fused"
    """The views in regions: those needed by other nodes of the region, or all."""
    siblings: bool = True
    """Fuses nodes with a shared input and no other connection."""
    max_nodes: int = 512
    max_inputs: int = 256
    max_outputs: int = 128
    small_flops: int = 65_536
    typical_dim: int = MEMORY
    """The cost model's size of a symbolic dim without a given size."""
    required: tuple[str, ...] = ()
    """Ops, such as `Neg` or `com.microsoft.Gelu`, whose nodes always get a region, like nodes without an ONNX Runtime
    kernel."""
    byte_products: bool = True
    """True if a target multiplies bytes; otherwise products of dequantised factors are left to ONNX Runtime."""
    points: str = ""
    """The instruction set whose measured points decide about regions, or `off`."""
    left: tuple[str, ...] = ()
    """The nodes to leave to ONNX Runtime, each as `NAME` or `NAME=REASON`, where it has a kernel for them. Names are
    those of remarks."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken = {region.label for region in op.walk() if isinstance(region, RegionOp)}
        names = (name for number in range(1 << 30) if (name := f"r{number}") not in taken)
        judges = self._judges(ctx, op)
        author = judges.author
        with asking(author, "within_loop"):
            within = replace(judges, author=checked(author, "within_loop", author.within_loop(), FusionAuthor))
        for name, block, inputs, whole in _graphs(op, judges):
            self._form(ctx, name, block, inputs, names, within if whole else judges)
        say_failed_rules(ctx, op, self.name)

    def _judges(self, ctx: Context, module: ModuleOp) -> Judges:
        """Returns the author, cost model and limits for the machine of the context."""
        backend, machine = backend_of(ctx), machine_of(ctx)
        cost = backend.cost_model(machine, self.typical_dim, sizes_of(ctx, module))
        return Judges(
            self._make_author(backend),
            cost,
            partial(backend.fusion_reason, machine=machine),
            self._can_leave(backend),
            left_nodes(self.left, module),
        )

    def _can_leave(self, backend: Backend) -> Callable[[OnnxOp], bool]:
        """Returns a predicate: True if ONNX Runtime has a kernel for a node."""
        provider, required = backend.provider, frozenset(self.required)
        return lambda op: base_name(op) not in required and has_kernel(op, provider)

    def _make_author(self, backend: Backend) -> FusionAuthor:
        """Returns the author with its options from the pass."""
        shared = {f.name: getattr(self, f.name) for f in fields(self) if f.name in AUTHOR_OPTIONS}
        defaults = {f.name: f.default for f in fields(self)}
        asked = {name: value for name, value in shared.items() if value != defaults[name]}
        figures = {"byte_products": self.byte_products, "points": self.points, "algorithms": backend.algorithms}
        return make_author(self.author or backend.fusion_author, asked, figures)

    def _form(
        self,
        ctx: Context,
        name: str,
        block: Block,
        inputs: Sequence[SSAValue],
        names: Iterator[str],
        judges: Judges,
    ) -> None:
        graph, author = build_graph(block, judges, self.siblings, inputs), judges.author
        limits = Limits(self.max_nodes, self.max_inputs, self.max_outputs)
        selection = select_regions(graph, author, limits, SymbolSources(inputs, block))
        rewrites = budget(ctx, self.name)
        labels: list[str] = []
        for group in selection.groups:
            if rewrites.is_spent:
                break
            labels.append(next(names))
            rewrites.count(f"@{labels[-1]}", f"a region of {len(group)} nodes is formed")
        selection = selection.first(len(labels))
        explain = remarks_of(ctx) is not None
        regions = summarize_regions(graph, selection, labels) if explain else ()
        missed = missed_fusions(graph, selection) if explain else ()
        if labels:
            _extract(block, graph, selection, labels)
        if explain:
            _remark_nodes(ctx, graph, selection, labels)
            if self.author and author.name != DEFAULT:
                _remark_merges(ctx, graph, selection)
            after = sum(is_node(op) for op in block.ops)
            kinds = count_kinds(selection.left.values())
            summary = FusionSummary(name, len(graph.nodes), after, regions, missed, kinds)
            given: Mapping[str, int] = getattr(ctx, "sizes", {})
            sizes = {symbol: judges.cost.estimate(Expr.of(symbol)) for symbol in sorted(summary.symbols)}
            summary = replace(summary, sizes=sizes, assumed=tuple(s for s in sizes if s not in given))
            remark(ctx, self.name, "", "note", str(summary).partition("\n")[0], summary=summary.to_dict())


def left_nodes(asked: Sequence[str], module: ModuleOp) -> dict[str, Reason]:
    """Returns the reasons of the nodes to leave to ONNX Runtime, by name, from `NAME` and `NAME=REASON`. Raises
    `IgniterError` for a name without a node."""
    if not asked:
        return {}
    labels = {node_label(op) for op in module.walk() if isinstance(op, OnnxOp) and is_node(op)}
    found: dict[str, Reason] = {}
    for text in asked:
        name, _, why = (text, "", "") if text in labels else text.rpartition("=")
        name = name or text
        if name not in labels:
            like = get_close_matches(name, labels)
            raise IgniterError(
                f"no node is called '{name}', so it cannot be left to ONNX Runtime"
                + (f"; similar: {', '.join(like)}" if like else "")
            )
        found[name] = Reason("request", why or "it is left to ONNX Runtime on request")
    return found


def summaries(remarks: Remarks) -> list[FusionSummary]:
    """Returns the summaries of runs of the pass among remarks, one per graph."""
    notes = remarks.of(FormFusionRegions.name, "note")
    return [FusionSummary.from_dict(r.details["summary"]) for r in notes if "summary" in r.details]


def _graphs(module: ModuleOp, judges: Judges) -> Iterator[tuple[str, Block, tuple[SSAValue, ...], bool]]:
    """Yields the subgraphs of nodes, innermost first, and the main graph. Each comes with the inputs visible to its
    nodes (including those of the graphs around it), and True if it is the body of a loop in a future program. Functions
    have no types until inlined."""
    for graph in module.ops:
        if isinstance(graph, GraphOp):
            for name, block, inputs, whole in _bodies(graph.body, graph.sym_name, (), judges, True):
                yield name, block, inputs, whole and block is not graph.body


def _bodies(
    block: Block, name: str, outer: tuple[SSAValue, ...], judges: Judges, whole: bool
) -> Iterator[tuple[str, Block, tuple[SSAValue, ...], bool]]:
    """`whole`: the block belongs to a program, unless one of its loops does not fit."""
    inputs = (*outer, *block.args)
    for op in list(block.ops):
        if not isinstance(op, GroupOp) and op.regions:
            symbols = frozenset(s for value in inputs for s in type_symbols(value.type))
            loop = whole and is_loop(op) and isinstance(op, OnnxOp) and _fits(op, symbols, judges)
            for inner in (b for region in op.regions for b in region.blocks):
                yield from _bodies(inner, f"{name}/{node_label(op)}", inputs, judges, loop)
    yield name, block, inputs, whole


def _fits(loop: OnnxOp, symbols: frozenset[str], judges: Judges) -> bool:
    """True if a program can contain a loop: all of its body can be compiled, and no node is faster in ONNX Runtime."""

    def reason(op: Operation, known: frozenset[str]) -> Reason | None:
        refused = compilable(op, known)
        return judges.reason(FusionNode(op, judges.cost)) if refused is None and isinstance(op, OnnxOp) else refused

    return loop_reason(loop, symbols, reason) is None


def _extract(block: Block, graph: FusionGraph, selection: Selection, labels: list[str]) -> None:
    """Moves the groups into regions, and all nodes into topological order."""
    end = block.last_op
    assert end is not None
    groups = [[graph.nodes[n] for n in group] for group in selection.groups]
    clones = [localize_operands(group) for group in groups]
    wanted = {value for values in selection.bindings for value in values}
    moved: dict[SSAValue, SSAValue] = {}
    for unit in selection.order:
        if unit >= 0:
            node = graph.nodes[unit]
            node.detach()
            block.insert_op_before(node, end)
            continue
        group = -1 - unit
        members = groups[group]
        bindings = [moved.get(v, v) for v in selection.bindings[group]]
        operands = list(dict.fromkeys([*region_operands(members), *bindings]))
        results = region_results(members, wanted)
        region = form_region(labels[group], members, clones[group], operands, results, end)
        for number, node in enumerate(members):
            attach_tables(region, node, f"{labels[group]}.{number}")
        moved.update(zip(results, region.results, strict=True))
    _drop_unused(block)


def _drop_unused(block: Block) -> None:
    """Drops values no longer needed by regions: shape arithmetic, and constants cloned into them."""
    op = block.last_op
    while op is not None:
        before = op.prev_op
        if is_unused(op):
            block.erase_op(op)
        op = before


def _remark_nodes(ctx: Context, graph: FusionGraph, selection: Selection, labels: list[str]) -> None:
    where: dict[int, str] = {}
    for group, label in zip(selection.groups, labels, strict=True):
        where.update((n, label) for n in group)
    name = FormFusionRegions.name
    for number, node in enumerate(graph.labels):
        if number in where:
            remark(ctx, name, node, "applied", f"in region @{where[number]}", region=where[number])
        else:
            reason = selection.left[number]
            remark(ctx, name, node, "missed", str(reason), reason=reason.kind)


def _remark_merges(ctx: Context, graph: FusionGraph, selection: Selection) -> None:
    """Emits remarks with the reasons of a user's author against merges; Igniter's own are in the summary only."""
    for source, target, reason in selection.refused_merges(graph):
        message = f"not in one region with '{graph.labels[source]}': {reason}"
        remark(ctx, FormFusionRegions.name, graph.labels[target], "note", message, reason=reason.kind)
