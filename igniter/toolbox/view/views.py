"""Pictures of a model during compilation: regions over the graph, loop trees, and buffers over time, as DOT and HTML.

`Views.of(path, target)` compiles a model to its scheduled kernels, or uses the kernels of IR unchanged. `dot()` is the
graph for Graphviz; `html(sizes)` is a self-contained page.
"""

from __future__ import annotations

import html as markup
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from igniter.analysis.typical_sizes import WORK, typical_of
from igniter.api import load
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import make_fusion, make_loop, make_onnx, make_scheduled
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import FuncOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.toolbox.kernel.workbench import loop_tree
from igniter.toolbox.plan.chart import Box, Chart
from igniter.toolbox.view.graph_drawing import Drawing, Node
from igniter.transforms.scheduled.plan_buffers import live_buffers

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Block, Operation, SSAValue


@dataclass(frozen=True)
class BufferSpan:
    """A buffer of an arena at given sizes: bytes from `offset` on, live in the statements `first` to `last`."""

    label: str
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Views:
    """A model with its regions, and its scheduled kernels; either may be missing for IR."""

    name: str
    fused: ModuleOp | None
    scheduled: Sequence[FuncOp]

    @staticmethod
    def of(path: str | PathLike[str], target: str = "native") -> Views:
        """Creates the views of a model or IR; raises `IgniterError` if there is nothing to show."""
        module = load(path)
        found = [op for op in module.ir.walk() if isinstance(op, FuncOp)]
        if found:
            return Views(str(path), None, found)
        if not any(op.name == "onnx.graph" for op in module.ir.ops):
            raise IgniterError(f"{path} has no graph and no scheduled kernel: run `igniter-opt -p cpu-schedule` first")
        c = Compilation(module.ir, CompileOptions(target=target), module.ctx)
        make_onnx(c)
        fused = make_fusion(c).clone()
        make_loop(c)
        return Views(str(path), fused, [op for op in make_scheduled(c).walk() if isinstance(op, FuncOp)])

    def dot(self) -> str:
        """Returns the graph in Graphviz's language, each region a cluster."""
        if self.fused is None:
            raise IgniterError(f"{self.name} has scheduled kernels and no graph: --kernel and .html show those")
        return _drawing(self.fused).dot()

    def html(self, sizes: Mapping[str, int], kernel: str = "") -> str:
        """Returns a page with the regions, and the loops and buffers of each kernel (or of the one called `kernel`)."""
        funcs = [f for f in self.scheduled if not kernel or f.sym_name.data == kernel]
        if not funcs:
            names = ", ".join(f.sym_name.data for f in self.scheduled)
            raise IgniterError(f"{self.name} has no kernel '{kernel}'; it has: {names or 'none'}")
        parts = [f"<h1>{markup.escape(self.name)}</h1>"]
        if self.fused is not None and not kernel:
            parts += ["<h2>Regions</h2>", _drawing(self.fused).svg()]
        for func in funcs:
            own = {**dict.fromkeys(func.symbol_names, WORK), **dict(typical_of(func).given)}
            own |= {s: size for s, size in sizes.items() if s in own}
            shown = ", ".join(f"{n} = {v}" for n, v in own.items())
            parts += [f"<h2>@{markup.escape(func.sym_name.data)}</h2>", f"<p>{markup.escape(shown)}</p>"]
            parts += [_loops(func, own), _buffers(buffer_spans(func, own))]
        unknown = sorted(set(sizes) - {s for f in funcs for s in f.symbol_names})
        if unknown:
            raise IgniterError(f"no kernel of {self.name} has a symbol '{unknown[0]}'")
        return PAGE.format(title=markup.escape(self.name), body="\n".join(parts))


def buffer_spans(func: FuncOp, sizes: Mapping[str, int]) -> list[BufferSpan]:
    """Returns the buffers of a planned kernel's arena; of buffers with a slot for every task, the first slot."""
    found: list[BufferSpan] = []
    for buffer in live_buffers(func):
        offset = buffer.alloc.offset
        if offset is not None:
            place, size = _at(offset, sizes), _at(buffer.size, sizes)
            found.append(BufferSpan(buffer.alloc.label.data, place, size, buffer.first, buffer.last))
    return found


def _at(expr: Expr, sizes: Mapping[str, int]) -> int:
    """Evaluates an expression at the given sizes, and at the start of every loop."""
    return max(0, expr.evaluate({**dict.fromkeys(expr.symbols, 0), **sizes}))


# -- the graph --------------------------------------------------------------------------------------------------------


def _drawing(module: ModuleOp) -> Drawing:
    """Returns the graphs of a module after fusion."""
    drawing = Drawing()
    for graph in module.ops:
        if graph.name == "onnx.graph":
            _draw(graph.regions[0].block, drawing)
    return drawing


def _is_drawn(op: Operation) -> bool:
    return op.name.startswith("onnx.") and op.name not in ("onnx.Constant", "onnx.NoValue", "onnx.return")


def _draw(block: Block, drawing: Drawing) -> None:
    """Adds the nodes of a block, with their regions, and the edges to each."""
    sources: dict[SSAValue, str] = {}

    def add(op: Operation, name: str, region: int, outer: Mapping[SSAValue, SSAValue]) -> None:
        drawing.nodes.append(Node(name, op_name(op), region))
        for operand in op.operands:
            source = sources.get(outer.get(operand, operand))
            if source is not None:
                drawing.edges[source, name] = None
        for result in op.results:
            sources[result] = name

    for number, op in enumerate(block.ops):
        if isinstance(op, RegionOp):
            drawing.regions[number] = "@" + op.label
            outer: dict[SSAValue, SSAValue] = dict(zip(op.block.args, op.inputs, strict=True))
            for k, inner in enumerate(x for x in op.block.ops if _is_drawn(x)):
                add(inner, f"n{number}_{k}", number, outer)
            last = op.block.last_op
            assert last is not None
            for result, value in zip(op.results, last.operands, strict=True):
                value = outer.get(value, value)
                if value in sources:
                    sources[result] = sources[value]
        elif _is_drawn(op):
            add(op, f"n{number}", -1, {})


# -- kernels ----------------------------------------------------------------------------------------------------------


def _loops(func: FuncOp, sizes: Mapping[str, int]) -> str:
    rows = [
        f'<div class="loop" style="margin-left:{2 * loop.depth}em">'
        f'<span class="bar" style="width:{120 * loop.share:.0f}px"></span>{loop.share:.0%} '
        f"{markup.escape(loop.text)}</div>"
        for loop in loop_tree(func, sizes)
    ]
    return "<h3>Loops, and their part of the time by the cost model</h3>\n" + "\n".join(rows or ["<p>none</p>"])


def _buffers(spans: Sequence[BufferSpan]) -> str:
    head = "<h3>Buffers: bytes of the arena upwards, statements to the right</h3>\n"
    if not spans:
        return head + "<p>The kernel needs no arena.</p>"
    total = max(s.offset + s.size for s in spans)
    steps = range(1 + max(s.last for s in spans))
    live = tuple(sum(s.size for s in spans if s.first <= k <= s.last) for k in steps)
    boxes = tuple(Box(s.label, "result", s.offset, s.size, s.first, s.last) for s in spans)
    chart = Chart(f"{total:,} bytes", boxes, tuple("" for _ in steps), live, total, "statement")
    return head + chart.svg()


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font-family: sans-serif; margin: 2em; }}
.loop {{ font-family: monospace; white-space: pre; }}
.bar {{ display: inline-block; height: 0.8em; margin-right: 0.5em; background: #6fa8dc; }}
</style></head><body>
{body}
</body></html>
"""
