"""Removing an op from a graph, a region or a kernel: its results become inputs, its operands outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, NoneType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from igniter.dialects.fusion import GroupOp
from igniter.dialects.fusion import YieldOp as GroupYieldOp
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop import ReturnOp as KernelReturnOp
from igniter.dialects.onnx.attributes import texts_attr, texts_of
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import GraphOp
from igniter.toolbox.reduce.edits import CannotEdit


class Frame(ABC):
    """An op with inputs and outputs: the graph, a region, or a kernel."""

    def __init__(self, block: Block):
        self.block = block

    @property
    def outputs(self) -> list[SSAValue]:
        """The values returned as outputs."""
        end = self.block.last_op
        return [] if end is None else list(end.operands)

    @abstractmethod
    def add_input(self, like: SSAValue) -> SSAValue:
        """Adds an input of the type and, if possible, the name of a value."""

    @abstractmethod
    def set_outputs(self, values: Sequence[SSAValue]) -> None:
        """Makes these values the only outputs. Raises `CannotEdit` for an empty list."""

    @abstractmethod
    def drop_input(self, index: int) -> None:
        """Removes an unused input."""

    @staticmethod
    def of(block: Block) -> Frame | None:
        """Returns the frame of a block; `None` for the body of a nest or an If."""
        owner = block.parent_op()
        if isinstance(owner, GraphOp):
            return GraphFrame(owner)
        if isinstance(owner, GroupOp):
            return GroupFrame(owner)
        if isinstance(owner, KernelOp):
            return KernelFrame(owner)
        return None


class GraphFrame(Frame):
    """The frame of the main graph."""

    def __init__(self, graph: GraphOp):
        super().__init__(graph.body)
        self.graph = graph

    def add_input(self, like: SSAValue) -> SSAValue:
        names = self._names("input_names", "input", len(self.block.args))
        new = self.block.insert_arg(like.type, len(self.block.args))
        new.name_hint = like.name_hint
        self.graph.attributes["input_names"] = texts_attr([*names, _fresh(name_of(like, len(names)), names)])
        # The model's information on single inputs and outputs no longer fits.
        self.graph.attributes.pop("input_info", None)
        return new

    def set_outputs(self, values: Sequence[SSAValue]) -> None:
        _require(values)
        before, end = self.outputs, self.graph.terminator
        known = dict(zip(before, self._names("output_names", "output", len(before)), strict=True))
        names: list[str] = []
        for place, value in enumerate(values):
            names.append(known.get(value) or _fresh(name_of(value, place), names))
        end.operands = list(values)
        self.graph.attributes["output_names"] = texts_attr(names)
        self.graph.attributes.pop("output_info", None)

    def drop_input(self, index: int) -> None:
        names = self._names("input_names", "input", len(self.block.args))
        del names[index]
        self.block.erase_arg(self.block.args[index])
        self.graph.attributes["input_names"] = texts_attr(names)
        self.graph.attributes.pop("input_info", None)

    def _names(self, key: str, stem: str, count: int) -> list[str]:
        return texts_of(self.graph.attributes.get(key)) or [f"{stem}{k}" for k in range(count)]


class GroupFrame(Frame):
    """A region or a program: its inputs and outputs are those of the block around it."""

    def __init__(self, group: GroupOp):
        super().__init__(group.block)
        self.group = group
        around = group.parent
        self.outer = Frame.of(around) if around is not None else None

    def add_input(self, like: SSAValue) -> SSAValue:
        self.group.operands = [*self.group.operands, self._outer.add_input(like)]
        new = self.block.insert_arg(like.type, len(self.block.args))
        new.name_hint = like.name_hint
        return new

    def set_outputs(self, values: Sequence[SSAValue]) -> None:
        _require(values)
        old, before = self.group, self.outputs
        operands, region = list(old.operands), old.detach_region(old.body)
        end = region.block.last_op
        assert end is not None
        region.block.insert_op_before(GroupYieldOp(values), end)
        end.detach()
        end.erase()
        fresh = type(old).create(
            operands=operands,
            result_types=[v.type for v in values],
            properties=dict(old.properties),
            attributes=dict(old.attributes),
            regions=[region],
        )
        block = old.parent
        assert block is not None
        block.insert_op_before(fresh, old)
        for result, value in zip(old.results, before, strict=True):
            if value in values:
                result.replace_all_uses_with(fresh.results[list(values).index(value)])
        self.group = fresh
        added = [fresh.results[k] for k, value in enumerate(values) if value not in before]
        _replace_by_inputs(old, self._outer)
        self._outer.set_outputs([*(v for v in self._outer.outputs if v.owner is not old), *added])
        old.detach()
        old.erase()

    def drop_input(self, index: int) -> None:
        self.group.operands = [v for k, v in enumerate(self.group.operands) if k != index]
        self.block.erase_arg(self.block.args[index])

    @property
    def _outer(self) -> Frame:
        if self.outer is None:
            raise CannotEdit("a region inside of a subgraph keeps its inputs and outputs")
        return self.outer


class KernelFrame(Frame):
    """The frame of a structured kernel."""

    def __init__(self, kernel: KernelOp):
        super().__init__(kernel.block)
        self.kernel = kernel

    def add_input(self, like: SSAValue) -> SSAValue:
        new = self.block.insert_arg(like.type, len(self.block.args))
        new.name_hint = like.name_hint
        return new

    def set_outputs(self, values: Sequence[SSAValue]) -> None:
        _require(values)
        end = self.block.last_op
        assert end is not None
        # Checks are the last results, and these may have changed.
        self.kernel.checks_attr = None
        self.block.insert_op_before(KernelReturnOp(values), end)
        end.detach()
        end.erase()
        self.kernel.declared_types = ArrayAttr([v.type for v in values])

    def drop_input(self, index: int) -> None:
        self.block.erase_arg(self.block.args[index])


def take_out(op: Operation) -> None:
    """Removes an op from its graph, region or kernel: its results become inputs, and operands without other readers
    outputs."""
    block = op.parent
    frame = Frame.of(block) if block is not None else None
    if frame is None:
        raise CannotEdit(f"'{op.name}' stands in no graph, region or kernel")
    # A nest reads values in its body, and so does a node with a subgraph.
    inside = set(op.walk())
    used = dict.fromkeys(v for inner in op.walk() for v in inner.operands)
    read = [v for v in used if _is_computed(v, op) and all(u.operation in inside for u in v.uses)]
    kept = [v for v in frame.outputs if v.owner is not op]
    _replace_by_inputs(op, frame)
    frame.set_outputs([*kept, *read])
    op.detach()
    op.erase()


def _replace_by_inputs(op: Operation, frame: Frame) -> None:
    end = frame.block.last_op
    for result in op.results:
        if any(use.operation is not end for use in result.uses):
            new = frame.add_input(result)
            result.replace_uses_with_if(new, lambda use: use.operation is not end)


def _is_computed(value: SSAValue, reader: Operation) -> bool:
    """True if an op in the reader's block computes a value; constants do not count."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.parent is not reader.parent or isinstance(value.type, NoneType):
        return False
    return not (isinstance(owner, OnnxOp) and owner.op_type == "Constant")


def _require(values: Sequence[SSAValue]) -> None:
    if not values:
        raise CannotEdit("nothing would go out")


def name_of(value: SSAValue, place: int) -> str:
    """Returns the name of a value in the model, or a generated one."""
    owner = value.owner
    names = texts_of(owner.properties.get("output_names")) if isinstance(owner, Operation) else []
    index = value.index if isinstance(value, OpResult) else 0
    return (names[index] if index < len(names) else "") or value.name_hint or f"value{place}"


def _fresh(name: str, taken: Sequence[str]) -> str:
    found, number = name, 1
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
