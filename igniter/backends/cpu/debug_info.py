"""Debug information in emitted LLVM IR: the ONNX nodes of each kernel, for `gdb`, `perf` and `llvm-dwarfdump`.

    define internal void @r0.body(...) #0 !dbg !7 {
      %v1 = fadd <16 x float> %a, %b, !dbg !8
    !7 = distinct !DISubprogram(name: "add_mask, softmax", linkageName: "r0.body", line: 2, ...)

A function of a kernel is a subprogram with the names of the nodes of its region. The file is the graph, and a line is
the number of a node in the order of the graph: that of the op's location (`igniter.dialects.locations`), or of the ops
before it if it has none, at first of the region's first node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from igniter._version import __version__
from igniter.backends.cpu.emit_llvm import MARK
from igniter.backends.cpu.llvm_tokens import tokens_of
from igniter.dialects.fusion import ProgramOp, RegionOp
from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import GraphOp, main_graph
from igniter.errors import IgniterError

MOST_NAMES = 8
"""The number of nodes in the name of a subprogram; a count stands for the others."""


@dataclass(frozen=True)
class Origin:
    """The nodes of a kernel: their names in order, and the number of the first one in the graph."""

    names: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        shown = ", ".join(self.names[:MOST_NAMES])
        more = len(self.names) - MOST_NAMES
        return f"{shown} and {more} more" if more > 0 else shown


def origins_of(module: ModuleOp, suffix: str = "") -> dict[str, Origin]:
    """Returns the nodes of each kernel and program of a module by its name, to which `suffix` is added; of a kernel of
    several regions, those of the first."""
    found: dict[str, Origin] = {}
    graph = main_graph(module)
    numbers = {node: number for number, node in enumerate(_nodes(graph), 1)}
    for op in graph.walk():
        name = op.kernel_name if isinstance(op, RegionOp) else op.label if isinstance(op, ProgramOp) else None
        nodes = _nodes(op) if name is not None else []
        if name is not None and nodes:
            names = tuple(n.node_name or n.op_type for n in nodes)
            found.setdefault(name + suffix, Origin(names, numbers[nodes[0]]))
    return found


def _nodes(op: Operation) -> list[OnnxOp]:
    return [o for o in op.walk() if isinstance(o, OnnxOp) and o.op_type != "Constant"]


def _graph_name(module: ModuleOp) -> str:
    return text_of(main_graph(module).attributes.get("graph_name")) or "model"


def lines_of(module: ModuleOp) -> dict[str, int]:
    """Returns the number of each node of the graph, by the name in the locations of its ops."""
    found: dict[str, int] = {}
    for number, node in enumerate(_nodes(main_graph(module)), 1):
        found.setdefault(node.node_name or node.op_type, number)
    return found


def with_debug_info(text: str, module: ModuleOp) -> str:
    """Returns the text of the kernels of a module, emitted with `locations`, with debug information."""
    if not any(isinstance(op, GraphOp) for op in module.ops):
        raise IgniterError("--debug-info: the module has no onnx.graph, whose nodes the kernels are of")
    return _Writer(text, origins_of(module), _graph_name(module), lines_of(module)).text()


def with_nodes(texts: Sequence[str], module: ModuleOp, suffix: str) -> list[str]:
    """Returns the texts of kernels and programs, each a module of its own, with debug information about functions:
    their nodes, and the number of the first one. Ops have no lines of their own: equal kernels are compiled once."""
    origins, graph = origins_of(module, suffix), _graph_name(module)
    return [_Writer(text, origins, graph, {}).text() for text in texts]


@dataclass
class _Writer:
    source: str
    origins: Mapping[str, Origin]
    graph: str
    lines: Mapping[str, int]
    places: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    nodes: list[str] = field(default_factory=list[str])
    first: int = 0

    def text(self) -> str:
        lines = self.source.split("\n")
        taken = [int(line[1 : line.index(" ")]) for line in lines if line.startswith("!") and line[1].isdecimal()]
        self.first = max(taken, default=-1) + 1
        graph = self._add(f"!DIFile(filename: {_string(self.graph)}, directory: {_string('.')})")
        producer = _string(f"igniter {__version__}")
        unit = self._add(
            f"distinct !DICompileUnit(language: DW_LANG_C, file: {graph}, producer: {producer}, isOptimized: true, "
            "runtimeVersion: 0, emissionKind: FullDebug)"
        )
        signature = self._add(f"!DISubroutineType(types: {self._add('!{null}')})")
        flag = self._add('!{i32 2, !"Debug Info Version", i32 3}')
        done = self._functions(lines, graph, unit, signature)
        tail = [f"!llvm.dbg.cu = !{{{unit}}}", f"!llvm.module.flags = !{{{flag}}}", *self.nodes]
        return "\n".join([*done, *tail, ""])

    def _add(self, node: str) -> str:
        name = f"!{self.first + len(self.nodes)}"
        self.nodes.append(f"{name} = {node}")
        return name

    def _functions(self, lines: Sequence[str], graph: str, unit: str, signature: str) -> list[str]:
        result: list[str] = []
        program, location = "", ""
        for line in lines:
            if line.startswith("define "):
                origin = self._origin(_defined(line))
                if origin is not None:
                    program = self._add(
                        f"distinct !DISubprogram(name: {_string(origin.text)}, linkageName: "
                        f"{_string(_defined(line))}, scope: {graph}, file: {graph}, line: {origin.line}, type: "
                        f"{signature}, scopeLine: {origin.line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, "
                        f"unit: {unit})"
                    )
                    location = self._at(program, origin.line)
                    line = f"{line.removesuffix('{')}!dbg {program} {{"
            elif line == "}":
                location = ""
            elif location and line.startswith(f"  {MARK}"):
                number = self.lines.get(line.removeprefix(f"  {MARK}"))
                location = location if number is None else self._at(program, number)
            elif location and _is_instruction(line):
                line = f"{line}, !dbg {location}"
            result.append(line)
        return result

    def _at(self, program: str, line: int) -> str:
        """Returns a line of the graph in a subprogram."""
        key = (program, line)
        if key not in self.places:
            self.places[key] = self._add(f"!DILocation(line: {line}, scope: {program})")
        return self.places[key]

    def _origin(self, function: str) -> Origin | None:
        """Returns the nodes of a function: of `r0`, `r0.body`, `r0.task1`, `r0.task1.body`."""
        while function not in self.origins and "." in function:
            function = function.rpartition(".")[0]
        return self.origins.get(function)


def _defined(line: str) -> str:
    """Returns the name of the function that a line begins to define."""
    name = next(t for t in tokens_of(line) if t.startswith("@"))
    return name[1:].strip('"')


def _is_instruction(line: str) -> bool:
    """True for a line with a whole instruction: no label, no part of a table of labels."""
    if not line.startswith("  ") or line.startswith("   ") or not line.strip():
        return False
    tokens = tokens_of(line)
    return all(tokens.count(a) == tokens.count(b) for a, b in ("[]", "()", "{}")) and not line.lstrip().startswith(";")


def _string(text: str) -> str:
    """Returns a string of LLVM IR."""
    plain = (c if c.isprintable() and ord(c) < 128 and c not in '"\\' else _escaped(c) for c in text)
    return f'"{"".join(plain)}"'


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())
