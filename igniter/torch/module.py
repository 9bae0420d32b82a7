"""A compiled module in place of the original one.

Each structure of arguments (their number, nesting, types and ranks) is exported once, for all sizes. A call that
`torch.export` cannot trace uses `torch.compile(backend="igniter")`, so the code between graph breaks is compiled. In
training mode, and while gradients are recorded, the original module runs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from igniter.errors import IgniterError
from igniter.torch.backend import igniter as backend
from igniter.torch.backend import why_eager
from igniter.torch.exported import Exported
from igniter.torch.names import is_tensor, pytree, torch
from igniter.torch.options import TorchOptions, options_of
from igniter.torch.state import ModuleState
from igniter.torch.statistics import log, note

DELEGATED = (
    "state_dict",
    "load_state_dict",
    "parameters",
    "named_parameters",
    "buffers",
    "named_buffers",
    "children",
    "named_children",
    "modules",
    "named_modules",
    "get_parameter",
    "get_buffer",
    "get_submodule",
    "requires_grad_",
    "zero_grad",
    "apply",
)
"""Methods delegated to the wrapped module."""

OWN = ("wrapped", "options", "statistics", "why_eager", "training")
"""Attributes set on the wrapper; all others are set on the module."""

HASHABLE = (torch.Tensor, bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
"""Types of arguments comparable between calls. A call with other arguments is compiled in parts."""

NUMBERS = 6
"""The maximum number of exports for arguments that differ only in numbers. Beyond it, Dynamo makes numbers symbolic."""
TRIES = 3
"""The maximum number of exports for arguments of the same kinds, per kept session."""


@dataclass
class SessionStatistics:
    """Statistics of the cache of sessions. `hits` counts calls with a cached session, `misses` those without one,
    `evicted` the sessions dropped as least recently used, `eager` calls of the original module, `partly` calls through
    `torch.compile`."""

    hits: int = 0
    misses: int = 0
    evicted: int = 0
    eager: int = 0
    partly: int = 0
    sessions: int = 0
    limit: int = 0

    def __str__(self) -> str:
        return (
            f"{self.sessions} of {self.limit} sessions: {self.hits} hits, {self.misses} misses, "
            f"{self.evicted} evicted, {self.partly} calls in parts, {self.eager} eager"
        )


class Igniter(torch.nn.Module):
    """`module`, compiled at its calls. Its state dict, parameters, submodules and other attributes are those of the
    original module. `options` are fields of `TorchOptions`.

    `statistics` describes the cache of sessions. `why_eager` counts the calls of the original module by reason.
    """

    def __init__(self, module: Any, **options: Any):
        super().__init__()
        if isinstance(module, Igniter):
            module = module.wrapped
        if not isinstance(module, torch.nn.Module):
            raise IgniterError(
                f"igniter.torch.compile needs a torch.nn.Module, not a {type(module).__name__}; use torch.compile(f, "
                "backend='igniter') for functions"
            )
        self.wrapped: Any = module
        self.options: TorchOptions = options_of(options)
        self.statistics = SessionStatistics(limit=self.options.sessions)
        self.why_eager: dict[str, int] = {}
        self._given = dict(options)
        self._lock = threading.RLock()
        self._sessions: OrderedDict[int, tuple[Any, Exported]] = OrderedDict()
        self._untraceable: dict[Any, ModuleState | None] = {}
        self._tries: dict[Any, list[int]] = {}
        self._parts: Callable[..., Any] | None = None
        self._made = 0
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        reason = self._reason(leaves)
        if reason:
            return self._eager(reason, args, kwargs)
        found = None
        if all(isinstance(leaf, HASHABLE) for leaf in leaves):
            kinds = (*map(_kind, leaves), _same_objects(leaves), *_ambient())
            with self._lock:
                found = self._find((hash((spec, kinds)), spec, kinds), leaves)
        if found is None:
            self.statistics.partly += 1
            # By default, Dynamo does not check for hooks added after the trace.
            with torch._dynamo.config.patch(skip_nnmodule_hook_guards=False):
                return self._in_parts()(*args, **kwargs)
        return found(leaves)

    def _reason(self, leaves: Sequence[Any]) -> str:
        """Returns the reason to run the original module; empty if the compiled one can run."""
        if self.wrapped.training:
            return "the module is in training mode"
        if torch.compiler.is_compiling():
            return "the caller is being compiled"
        if isinstance(self.wrapped, torch.jit.ScriptModule):
            return "a scripted module has no Python code to trace; compile the original module"
        # Parameters are only checked with gradients on: there may be hundreds.
        return why_eager(leaves) or (why_eager(list(self.wrapped.parameters())) if torch.is_grad_enabled() else "")

    def _eager(self, reason: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if reason not in self.why_eager:
            log.warning("%s runs eager: %s", type(self.wrapped).__name__, reason)
        self.why_eager[reason] = self.why_eager.get(reason, 0) + 1
        self.statistics.eager += 1
        return self.wrapped(*args, **kwargs)

    def _find(self, key: tuple[int, Any, Any], leaves: Sequence[Any]) -> Exported | None:
        """Returns an export valid for a call, made if necessary; `None` if the call must be compiled in parts."""
        if key in self._untraceable:
            state = self._untraceable[key]
            if state is None or state.unchanged():
                return None
        for number, (other, candidate) in reversed(self._sessions.items()):
            if other == key and candidate.holds_for(leaves):
                self._sessions.move_to_end(number)
                self.statistics.hits += 1
                return None if candidate.failed or candidate.writes_shared(leaves) else candidate
        self.statistics.misses += 1
        made = self._export(key, leaves)
        if made is None:
            return None
        self._made += 1
        self._sessions[self._made] = (key, made)
        while len(self._sessions) > self.options.sessions:
            self._sessions.popitem(last=False)
            self.statistics.evicted += 1
        self.statistics.sessions = len(self._sessions)
        return None if made.writes_shared(leaves) else made

    def _export(self, key: tuple[int, Any, Any], leaves: Sequence[Any]) -> Exported | None:
        """Returns an export for a call. If that is impossible, records this for similar calls and returns `None`."""
        report = note(f"igniter.torch.compile({type(self.wrapped).__name__})", 0)
        state = ModuleState(self.wrapped)
        like = (key[1], tuple(map(_loose_kind, leaves)))
        tries = self._tries.setdefault(like, [])
        tries.append(key[0])
        if state.hooked:
            self._untraceable[key] = state
            report.leave("submodules have hooks, which run at each call: compiled in parts")
            return None
        if len(set(tries)) > NUMBERS or len(tries) > TRIES * self.options.sessions:
            self._untraceable[key] = None
            report.leave("numbers, sizes or attributes differ from call to call: compiled in parts")
            return None
        try:
            return Exported(self.wrapped, leaves, key[1], self.options, report, state)
        except Exception as error:
            # torch.export's errors have no common base class. A call it cannot trace is compiled in parts.
            self._untraceable[key] = state
            text = str(error).strip().splitlines()
            why = text[0] if text else ""
            if isinstance(error, IgniterError):
                report.leave(f"{why}: compiled in parts")
            else:
                report.leave(f"torch.export failed ({type(error).__name__}: {why}): compiled in parts")
            return None

    def _in_parts(self) -> Callable[..., Any]:
        made = self._parts
        if made is None:
            attributes = cast("dict[str, Any]", vars(self.wrapped))
            before = set(attributes)
            made = torch.compile(self.wrapped, backend=backend, dynamic=True, options=self._given)
            for name in set(attributes) - before:
                # torch.compile adds a marker attribute; it must not count as a change of the module.
                del attributes[name]
            self._parts = made
        return made

    # -- behaviour of the original module -----------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name == "wrapped":
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # `wrapped` is not a submodule, so names in the state dict do not change.
        if name in OWN or name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self.wrapped, name, value)

    def train(self, mode: bool = True) -> Igniter:
        self.wrapped.train(mode)
        self.training = mode
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> Igniter:
        """Implements `.to`, `.half` and `.cuda`. The next call detects the moved weights."""
        self.wrapped._apply(fn, recurse)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles only the module and the options. Sessions are made again."""
        return _remade, (self.wrapped, self._given)

    def __repr__(self) -> str:
        return f"Igniter({self.wrapped!r})"


def _remade(module: Any, options: Mapping[str, Any]) -> Igniter:
    return Igniter(module, **options)


def _delegated(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self.wrapped, name)(*args, **kwargs)
        return self if result is self.wrapped else result

    method.__name__ = name
    return method


for _name in DELEGATED:
    setattr(Igniter, _name, _delegated(_name))


def compile(module: Any, **options: Any) -> Igniter:
    """Returns a compiled version of `module`: `Igniter(module, **options)`."""
    return Igniter(module, **options)


def _kind(value: Any) -> Any:
    """Returns the properties of an argument that must match for an earlier export to be reused."""
    if is_tensor(value):
        return (value.dtype, value.dim(), value.device.type, value.layout, _order(value))
    # Floats by their text: NaNs are unequal to themselves, and zeros of both signs are equal.
    return (type(value), repr(value) if isinstance(value, (float, complex)) else value)


def _order(value: Any) -> Any:
    """Returns the memory layout of a tensor: `None` if contiguous, else its axes by stride, the axes of stride 0, and
    its density. `contiguous` and `reshape` decide by the layout if they copy."""
    if value.layout is not torch.strided or value.is_contiguous():
        return None
    axes = sorted(range(value.dim()), key=lambda axis: -value.stride(axis))
    dense = value.permute(axes).is_contiguous()
    return (tuple(axes), tuple(stride == 0 for stride in value.stride()), dense)


def _loose_kind(value: Any) -> Any:
    """Returns the same as `_kind`, but without the values of numbers."""
    return type(value) if isinstance(value, (int, float, complex)) else _kind(value)


def _same_objects(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Returns for each tensor the position of the first identical object. Code may test identity, as attention does."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(id(leaf), place) for place, leaf in enumerate(leaves) if is_tensor(leaf))


def _ambient() -> tuple[Any, ...]:
    """Returns the global settings that affect the results of ops: the autocast and default types."""
    autocast = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
    return (autocast, torch.get_default_dtype())
