"""The context that Igniter's tools work in: xDSL's, with every dialect on call and remarks collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from xdsl.context import Context
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

from igniter.isolation import Isolation
from igniter.registry import DIALECTS, external, load_dialect
from igniter.remarks import Remarks
from igniter.rewrites import Rewrites


def _factories() -> dict[str, Callable[[], Dialect]]:
    return {name: partial(load_dialect, name) for name in DIALECTS}


@dataclass
class IgniterContext(Context):
    """Knows every dialect by name and imports one when the parser meets its prefix.

    Dialects of installed packages (entry points) are looked up only for a prefix that Igniter does not have.
    """

    _registered_dialects: dict[str, Callable[[], Dialect]] = field(default_factory=_factories)
    remarks: Remarks = field(default_factory=lambda: Remarks(enabled=False))
    machine: object = None
    """The `igniter.analysis.machine.MachineModel` that passes work for, which `machine_of` of that module reads; None
    stands for the typical one. A layer below the analyses can hold it, and no more."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the model's symbols typically are, as far as somebody said so: `igniter.analysis.typical_sizes`."""
    rewrites: Rewrites = field(default_factory=Rewrites)
    """How many rewrites the passes made, and how many they may make."""
    isolation: Isolation = field(default_factory=Isolation)
    """Whether a kernel that fails is given up alone, and those that were."""

    def clone(self) -> IgniterContext:
        """A copy that shares the remarks' collector and the count of rewrites: what a pass says of a clone is
        said of the compilation, and what it does to it counts."""
        return IgniterContext(
            self.allow_unregistered,
            self._loaded_dialects.copy(),
            self._loaded_ops.copy(),
            self._loaded_attrs.copy(),
            self._loaded_types.copy(),
            self._registered_dialects.copy(),
            self.remarks,
            self.machine,
            self.sizes,
            self.rewrites,
        )

    def whole(self) -> IgniterContext:
        """The same context for passes of which none may fail alone: they are the step of one unit themselves."""
        return self.on(self.machine, Isolation())

    def on(
        self, machine: object, isolation: Isolation | None = None, sizes: Mapping[str, int] | None = None
    ) -> IgniterContext:
        """The same context for passes that work for `machine`, and with `isolation` note there what fails, and with
        `sizes` take these for typical: what they load and remark is this one's."""
        return IgniterContext(
            self.allow_unregistered,
            self._loaded_dialects,
            self._loaded_ops,
            self._loaded_attrs,
            self._loaded_types,
            self._registered_dialects,
            self.remarks,
            machine,
            self.sizes if sizes is None else sizes,
            self.rewrites,
            self.isolation if isolation is None else isolation,
        )

    def _find_external(self, name: str) -> None:
        dialect, _, rest = name.partition(".")
        if rest and dialect not in self._registered_dialects and dialect in external("dialects"):
            self.register_dialect(dialect, partial(load_dialect, dialect))

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        self._find_external(name)
        return super().get_optional_op(name, dialect_stack=dialect_stack)

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        self._find_external(name)
        return super().get_optional_type(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        self._find_external(name)
        return super().get_optional_attr(name)
