"""A candidate: IR and, where one is checked, a pipeline; how it is written, and how big it is."""

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

UNKNOWN = 1 << 20
"""What a symbolic dim counts as: more than any size that it is replaced by."""

FRAMES = (ModuleOp, GraphOp, FunctionOp, KernelOp, FuncOp)


@dataclass(frozen=True)
class Size:
    """How big a case is; what comes first counts most."""

    ops: int
    """Nodes, regions, nests, loops and what they hold, constants not counted."""
    weights: int
    """Elements of constants that are not all equal."""
    dims: int
    """The sum of all dims."""
    passes: int
    bytes: int
    """Of the file."""

    @property
    def key(self) -> tuple[int, ...]:
        return self.ops, self.passes, self.weights, self.dims, self.bytes


@dataclass(frozen=True)
class Case:
    """IR to check, as a file of `suffix`, under `passes` (`None`: the whole compile)."""

    module: ModuleOp
    suffix: str
    passes: tuple[str, ...] | None = None

    @cached_property
    def data(self) -> bytes:
        """The file: a model, or the text of the IR."""
        if self.suffix == ".mlir":
            return text_of(self.module).encode()
        from igniter.frontend import export_model

        return export_model(self.module).SerializeToString()

    @cached_property
    def size(self) -> Size:
        """How big it is."""
        ops = [op for op in self.module.walk() if counts(op)]
        weights = sum(weight_elements(op) for op in self.module.walk())
        dims = [d.constant for v in values_of(self.module) for d in _dims(v.type)]
        total = sum(UNKNOWN if d is None else d for d in dims)
        return Size(len(ops), weights, total, len(self.passes or ()), len(self.data))

    def describe(self) -> str:
        """The size in words, those that this level has."""
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
    """The text of a module, with a final newline."""
    out = StringIO()
    Printer(stream=out).print_op(module)
    return f"{out.getvalue()}\n"


def counts(op: Operation) -> bool:
    """Whether an op is one of those that there should be fewer of."""
    constant = (isinstance(op, OnnxOp) and op.op_type == "Constant") or op.name == "arith.constant"
    return not (isinstance(op, (*FRAMES, NoValueOp)) or constant or op.has_trait(IsTerminator))


def weight_elements(op: Operation) -> int:
    """The elements of a constant that holds more than one value."""
    if not isinstance(op, OnnxOp) or op.op_type != "Constant":
        return 0
    weight = constant_weight(op.results[0])
    if weight is None or weight.elided or weight.strings is not None or weight.size <= 1:
        return 0
    array = weight.array()
    return 0 if array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size else weight.size


def values_of(module: ModuleOp) -> Iterator[SSAValue]:
    """Every value of a module."""
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
