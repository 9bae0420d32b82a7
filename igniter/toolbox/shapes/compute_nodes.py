"""The nodes of a model by kind: nodes on data, nodes on shapes, and constant nodes."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from igniter.dialects.onnx.base import NoValueOp, OnnxOp
from igniter.dialects.onnx.structure import main_graph


@dataclass(frozen=True)
class NodeCount:
    """The counts of nodes: `nodes` are all but weights and Constant; `shape` depend on the shapes of inputs but not on
    their data; `constant` depend on neither."""

    nodes: int
    shape: int
    constant: int

    @property
    def data(self) -> int:
        """The nodes that use the data of inputs."""
        return self.nodes - self.shape - self.constant

    def to_dict(self) -> dict[str, int]:
        """Converts the counts to JSON values."""
        return {**asdict(self), "data": self.data}


def count_nodes(module: ModuleOp) -> NodeCount:
    """Returns the nodes of the main graph and of the graphs nested in it, each once."""
    counter = _Counter()
    counter.block(main_graph(module).body)
    return NodeCount(counter.nodes, counter.shape, counter.constant)


_CONSTANT, _SHAPE, _DATA = range(3)


class _Counter:
    def __init__(self) -> None:
        self.nodes = self.shape = self.constant = 0
        self.depends: dict[SSAValue, int] = {}

    def block(self, block: Block) -> int:
        """Counts a block's nodes; returns the strongest dependence of its values."""
        most = _CONSTANT
        for arg in block.args:
            self.depends[arg] = _DATA
        for op in block.ops:
            if not isinstance(op, OnnxOp):
                if isinstance(op, NoValueOp):
                    self.depends.update(dict.fromkeys(op.results, _CONSTANT))
                continue
            found = max((self.depends.get(v, _CONSTANT) for v in op.operands), default=_CONSTANT)
            if op.qualified_name in ("Shape", "Size"):
                found = min(found, _SHAPE)
            schema = op.schema
            if schema is None or not schema.deterministic:
                found = _DATA
            for region in op.regions:
                found = max(found, *(self.block(b) for b in region.blocks))
            self.depends.update(dict.fromkeys(op.results, found))
            most = max(most, found)
            if op.name != "onnx.Constant":
                self.nodes += 1
                self.shape += found == _SHAPE
                self.constant += found == _CONSTANT
        return most
