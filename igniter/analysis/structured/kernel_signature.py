"""The signature of a kernel that was a function: the names of its arguments, its weights, and its results.

    attributes {igniter.arguments = [{name = "x"}, {name = "n", index}, {name = "weight0", value = #onnx.tensor<..>}],
                igniter.results = ["result0"]}

A kernel of a fusion region needs none: the region has its operands. A kernel of a `func.func` (`lower-linalg-to-loop`)
has no region until a model is made of it. The tensors among the arguments are those of the kernel, in order; an index
is a symbol of its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute

from igniter.dialects.loop import KernelOp
from igniter.dialects.onnx.attributes import TensorAttr
from igniter.dialects.onnx.weights import Weight

ARGUMENTS, RESULTS = "igniter.arguments", "igniter.results"


@dataclass(frozen=True)
class Argument:
    """One argument: a tensor, an index, or a weight."""

    name: str
    index: bool = False
    weight: Weight | None = None

    def attribute(self) -> DictionaryAttr:
        found: dict[str, Attribute] = {"name": StringAttr(self.name)}
        if self.index:
            found["index"] = UnitAttr()
        if self.weight is not None:
            found["value"] = TensorAttr(self.weight)
        return DictionaryAttr(found)


@dataclass(frozen=True)
class KernelSignature:
    """The arguments, in the function's order with the weights last, and the names of the results."""

    arguments: tuple[Argument, ...]
    results: tuple[str, ...]

    @property
    def tensors(self) -> list[Argument]:
        """The arguments of the kernel."""
        return [a for a in self.arguments if not a.index]

    def write(self, kernel: KernelOp) -> None:
        """Writes the signature on the kernel."""
        kernel.attributes[ARGUMENTS] = ArrayAttr([a.attribute() for a in self.arguments])
        kernel.attributes[RESULTS] = ArrayAttr([StringAttr(n) for n in self.results])


def signature_of(kernel: KernelOp) -> KernelSignature | None:
    """Returns the signature of a kernel; None if it has none."""
    arguments, results = kernel.attributes.get(ARGUMENTS), kernel.attributes.get(RESULTS)
    if not isinstance(arguments, ArrayAttr) or not isinstance(results, ArrayAttr):
        return None
    given, names = cast("ArrayAttr[Attribute]", arguments), cast("ArrayAttr[Attribute]", results)
    found = [_argument(a.data) for a in given if isinstance(a, DictionaryAttr)]
    return KernelSignature(tuple(found), tuple(r.data for r in names if isinstance(r, StringAttr)))


def _argument(given: Mapping[str, Attribute]) -> Argument:
    name, value = given.get("name"), given.get("value")
    weight = value.handle if isinstance(value, TensorAttr) else None
    return Argument(name.data if isinstance(name, StringAttr) else "", "index" in given, weight)
