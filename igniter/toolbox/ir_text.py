"""IR as text."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.printer import Printer

from igniter.dialects.generic_text import GenericPrinter
from igniter.dialects.locations import name_of, set_name


class LocationPrinter(Printer):
    """A printer of IR with the locations of ops: `loc("softmax")` after each op that has one."""

    def print_op(self, op: Operation) -> None:
        super().print_op(op)
        if name_of(op):
            self.print_string(" ")
            self.print_attribute(op.location)


def module_text(module: ModuleOp, *, generic: bool = False, locations: bool = False) -> str:
    """Returns the module as text, with a final newline. With `locations`, each op has that of its ONNX node."""
    out = StringIO()
    if locations:
        for op in module.walk():
            # Without the class of nodes: text needs nothing of ONNX.
            node = op.properties.get("node_name")
            if isinstance(node, StringAttr) and node.data and not name_of(op):
                set_name(op, node.data)
    if generic:
        printer = GenericPrinter(stream=out, print_generic_format=True, print_debuginfo=locations)
    else:
        printer = (LocationPrinter if locations else Printer)(stream=out)
    printer.print_op(module)
    return out.getvalue() + "\n"
