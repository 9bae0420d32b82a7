"""The context of Igniter's tools: xDSL's, with dialects imported on demand and a collector of remarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from xdsl.context import Context
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

from igniter.isolation import Isolation
from igniter.observation import PassWatcher, Unit
from igniter.observation.statistics import Statistics
from igniter.registry import DIALECTS, external, load_dialect
from igniter.remarks import Remarks
from igniter.reproducers import Recorder
from igniter.rewrite_budget import Rewrites


def _factories() -> dict[str, Callable[[], Dialect]]:
    return {name: partial(load_dialect, name) for name in DIALECTS}


@dataclass
class IgniterContext(Context):
    """A context with every dialect by name; the parser imports one when it meets its prefix.

    Dialects of installed packages (entry points) are looked up only for prefixes unknown to Igniter.
    """

    _registered_dialects: dict[str, Callable[[], Dialect]] = field(default_factory=_factories)
    remarks: Remarks = field(default_factory=lambda: Remarks(enabled=False))
    machine: object = None
    """The `igniter.analysis.machine.MachineModel` for passes, read by `machine_of` of that module; None is the typical
    machine. Its type is `object` because this layer is below the analyses."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Typical sizes of the model's symbols, where given: see `igniter.analysis.typical_sizes`."""
    rewrites: Rewrites = field(default_factory=Rewrites)
    """The count of rewrites made by passes, with its limit."""
    isolation: Isolation = field(default_factory=Isolation)
    """The setting for isolated failures, and the failed units."""
    statistics: Statistics = field(default_factory=Statistics)
    """The counts of passes."""
    watchers: tuple[PassWatcher, ...] = ()
    """The observers of the running passes that see nested passes too; `run_passes` sets them."""
    unit: Unit | None = None
    """The kernel of the nested run of passes; `None` outside of one."""
    verify_each: bool = False
    """True if the IR is verified after each nested pass; `run_passes` sets it."""
    strict: bool = False
    """True if a failed rule of a plug-in is an error rather than a warning."""
    recorder: Recorder | None = None
    """The setting for reproducers of failures (`igniter.reproducers`); `None` leaves none."""

    def clone(self) -> IgniterContext:
        """Returns a copy with the same collector of remarks and count of rewrites: remarks and rewrites on a clone
        count for the compilation."""
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
            statistics=self.statistics,
            strict=self.strict,
            recorder=self.recorder,
        )

    def quiet(self) -> IgniterContext:
        """Returns a context with the same dialects, machine and sizes for a trial: without remarks, isolation, a limit
        of rewrites observers or reproducers."""
        plain = self.on(self.machine, Isolation())
        plain.remarks, plain.rewrites, plain.recorder = Remarks(enabled=False), Rewrites(), None
        plain.statistics, plain.watchers, plain.unit = Statistics(), (), None
        return plain

    def whole(self) -> IgniterContext:
        """Returns the same context without isolation, for passes inside the step of one unit."""
        return self.on(self.machine, Isolation())

    def on(
        self, machine: object, isolation: Isolation | None = None, sizes: Mapping[str, int] | None = None
    ) -> IgniterContext:
        """Returns this context for another `machine`, and optionally another `isolation` and typical `sizes`; loaded
        dialects and remarks are shared with this one."""
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
            self.statistics,
            self.watchers,
            self.unit,
            self.verify_each,
            self.strict,
            self.recorder,
        )

    def observed(self, watchers: tuple[PassWatcher, ...], unit: Unit | None = None) -> IgniterContext:
        """Returns this context with `watchers` for nested passes, and within the nested run of `unit` if it is given;
        the rest is shared with this one."""
        copy = self.on(self.machine)
        copy.watchers = watchers
        copy.unit = self.unit if unit is None else unit
        return copy

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
