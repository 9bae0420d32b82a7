"""A candidate: IR and, for checks of passes, a pipeline; its text and its size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from igniter.dialects.fusion import GroupOp
from igniter.dialects.loop import ComputeOp, ForOp, FuncOp, KernelOp
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_weight
from igniter.dialects.onnx.structure import FunctionOp, GraphOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr
from igniter.frontend import export_model
from igniter.reproducers import Reproducer

UNKNOWN = 1 << 20
"""The size counted for a symbolic dim: more than any size that replaces it."""

FRAMES = (ModuleOp, GraphOp, FunctionOp, KernelOp, FuncOp)


@dataclass(frozen=True)
class Size:
    """The size of a case; the first fields count most."""

    ops: int
    """The number of nodes, regions, nests, loops and their ops, without constants."""
    weights: int
    """The number of elements of non-uniform constants."""
    dims: int
    """The sum of all dims."""
    passes: int
    bytes: int
    """The bytes of the file."""

    @property
    def key(self) -> tuple[int, ...]:
        return self.ops, self.passes, self.weights, self.dims, self.bytes


@dataclass(frozen=True)
class Case:
    """IR to check, as a file of `suffix`, under `passes` (`None`: the whole compile)."""

    module: ModuleOp
    suffix: str
    passes: tuple[str, ...] | None = None
    reproducer: Reproducer | None = None
    """The facts of the file, if it is a reproducer; the reduced file is one, too."""

    @cached_property
    def data(self) -> bytes:
        """The file: a model, or the text of the IR."""
        if self.suffix == ".mlir":
            return f"{text_of(self.module)}{self._section()}".encode()
        return export_model(self.module).SerializeToString()

    def _section(self) -> str:
        if self.reproducer is None:
            return ""
        facts = {**self.reproducer.facts, "pipeline": ",".join(self.passes or ())}
        return Reproducer(facts).section()

    @cached_property
    def size(self) -> Size:
        """The size of the case."""
        ops = [op for op in self.module.walk() if counts(op)]
        weights = sum(weight_elements(op) for op in self.module.walk())
        dims = [d.constant for v in values_of(self.module) for d in _dims(v.type)]
        total = sum(UNKNOWN if d is None else d for d in dims)
        return Size(len(ops), weights, total, len(self.passes or ()), len(self.data))

    def describe(self) -> str:
        """Returns the size in words, with the parts of its level."""
        ops = list(self.module.walk())
        counted = {
            "nodes": sum(isinstance(op, OnnxOp) and op.op_type != "Constant" for op in ops),
            "regions": sum(isinstance(op, GroupOp) for op in ops),
            "kernels": sum(isinstance(op, (KernelOp, FuncOp)) for op in ops),
            "nests": sum(isinstance(op, ComputeOp) for op in ops),
            "loops": sum(isinstance(op, ForOp) for op in ops),
        }
        parts = [f"{n} {name if n != 1 else name[:-1]}" for name, n in counted.items() if n]
        if self.passes is not None:
            parts.append(f"{len(self.passes)} {'passes' if len(self.passes) != 1 else 'pass'}")
        return ", ".join([*parts, f"{len(self.data):,} bytes"])


def text_of(module: ModuleOp) -> str:
    """Returns the text of a module, with a final newline."""
    out = StringIO()
    Printer(stream=out).print_op(module)
    return f"{out.getvalue()}\n"


def counts(op: Operation) -> bool:
    """True for an op that counts in the size of a case."""
    constant = (isinstance(op, OnnxOp) and op.op_type == "Constant") or op.name == "arith.constant"
    return not (isinstance(op, (*FRAMES, NoValueOp)) or constant or op.has_trait(IsTerminator))


def weight_elements(op: Operation) -> int:
    """Returns the number of elements of a non-uniform constant, 0 for others."""
    if not isinstance(op, OnnxOp) or op.op_type != "Constant":
        return 0
    weight = constant_weight(op.results[0])
    if weight is None or weight.elided or weight.strings is not None or weight.size <= 1:
        return 0
    array = weight.array()
    return 0 if array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size else weight.size


def values_of(module: ModuleOp) -> Iterator[SSAValue]:
    """Yields every value of a module."""
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _dims(type_: Attribute) -> tuple[Expr, ...]:
    try:
        return tuple(dims_of(type_))
    except ValueError:
        return ()
