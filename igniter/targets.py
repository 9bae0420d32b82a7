"""Backends: what the rest of the compiler asks of the code generator for a target.

A backend knows its targets by name and the machine model of each; what it has code for, who decides what is fused and
how kernels are scheduled, and which words of schedules it understands; the pipelines that end in what its emitter
takes; and how a scheduled kernel becomes text, machine code, and a function that can be called. All else in the
compiler goes through `Backend`, and finds one by the name of a target, a pass by the machine of its context
(`backend_of`):

    backend = backend_for("x86-64-v3")
    target = backend.target_of("x86-64-v3")
    text = backend.emit_func(func, target)

`igniter/registry.py` names the backends; a package adds one by an entry point of the group `igniter.backends`. A target
is written `BACKEND:NAME`, or by the backend's name alone; all other names are for `cpu`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from igniter.analysis.machine import TYPICAL, Given, MachineError, MachineModel, given_of, machine_of, override
from igniter.errors import IgniterError
from igniter.registry import BACKENDS, external, load_backend

if TYPE_CHECKING:
    import numpy as np
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from igniter.analysis.fusion.cost import CostModel
    from igniter.analysis.fusion.legality import Reason
    from igniter.dialects.loop import ComputeOp, FuncOp, NestOp
    from igniter.dialects.onnx.base import OnnxOp

DEFAULT = "cpu"
"""The backend of the targets whose names do not say one."""


class Target(Protocol):
    """What code is compiled for, complete: two equal targets get the same code. Each backend has a class of its own."""

    @property
    def name(self) -> str:
        """By which it was named, and by which its backend is found: `BACKEND:NAME` but for those of `cpu`."""
        ...

    @property
    def key(self) -> str:
        """What is measured on it is filed under this (`MachineModel.filed_as`)."""
        ...

    @property
    def triple(self) -> str:
        """The machine and the system whose linker takes its objects, by LLVM's name."""
        ...

    @property
    def level(self) -> int:
        """Of the targets of a library, the one of the highest level that a machine reaches runs there; 0 asks for
        nothing."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """What the library says of it, by which it can be told from other targets."""
        ...


class CompiledFunc(Protocol):
    """A kernel in memory. It is called with its buffers, inputs then outputs, and its symbols by name."""

    def __call__(self, *buffers: np.ndarray, threads: int = 1, **symbols: int) -> None: ...

    def prepared(self, buffers: Sequence[np.ndarray], symbols: Mapping[str, int], threads: int = 1) -> Any:
        """The call as a function without arguments, for timing it."""
        ...


class AssemblyLoop(Protocol):
    """An innermost loop of a kernel's assembly."""

    @property
    def label(self) -> str: ...

    @property
    def lines(self) -> tuple[str, ...]: ...

    @property
    def instructions(self) -> int: ...

    @property
    def multiply_adds(self) -> int: ...

    @property
    def vector_registers(self) -> int: ...

    @property
    def spills(self) -> int: ...


class Listing(Protocol):
    """The assembly of a kernel, read."""

    @property
    def text(self) -> str: ...

    @property
    def spills(self) -> int: ...

    @property
    def bytes_of_stack(self) -> int: ...

    def loops(self) -> Sequence[AssemblyLoop]:
        """The innermost loops, those that matter most first."""
        ...


class Rates(Protocol):
    """Generated loops that show what a core of this machine can do: see `igniter.runtime.machine_measurement`."""

    @property
    def VECTORS(self) -> int:
        """The vectors that the buffers of `functions` have."""
        ...

    def peak(
        self, kind: Literal["f32", "bf16", "int8"] = "f32", trips: int = ..., chains: int = ...
    ) -> tuple[CompiledFunc, int] | None:
        """A loop of independent multiply-adds, and the operations of one call; `None` where there is none."""
        ...

    def reader(self, size: int | None = None) -> CompiledFunc:
        """Reads a buffer again and again."""
        ...

    def flusher(self) -> CompiledFunc | None:
        """Takes the lines of a buffer out of the caches; `None` where the machine has nothing for it."""
        ...

    def clock(self, trips: int = ...) -> tuple[CompiledFunc, int]:
        """A chain of a cycle a link, and the links."""
        ...

    def additions(self, trips: int = ...) -> tuple[CompiledFunc, int]:
        """A chain of additions, and the links."""
        ...

    def functions(self, ops: Sequence[str]) -> CompiledFunc:
        """Elementary functions of a vector."""
        ...

    def answers(self) -> CompiledFunc:
        """One of two threads that answer each other."""
        ...


@dataclass(frozen=True)
class Pipelines:
    """The pipelines that lead from a model to what an emitter takes, each by its name or as text; the driver runs these
    (`igniter/driver.py`)."""

    onnx: str
    """A graph, simplified."""
    fusion: str
    """Its nodes in regions."""
    loop: str
    """A structured kernel for each region."""
    schedule: str
    """One kernel by itself: to nests with schedules, the last of these passes being `choose-schedule`, and on to what
    is emitted and `form-ort-library`."""
    kernels: str
    """All kernels of a module by the last one, for looking at: `schedule-kernels`."""
    programs: str
    """Regions that are entered together."""
    calls: str
    """The calls of programs."""
    weights: str
    """The weights as kernels read them."""
    tiles: str = ""
    """Behind `onnx`, unless an option says otherwise: convolutions in tiles."""


@dataclass(frozen=True)
class Expectation:
    """What a launch is expected to take."""

    launch: str
    microseconds: float
    limit: str
    """What takes longest."""
    megabytes: float
    """Of memory."""
    gigaops: float
    device: str
    sizes: str
    """Of the symbols of its func, as `b=1, s=128`."""

    def __str__(self) -> str:
        where = f" at {self.sizes}" if self.sizes else ""
        return (
            f"{self.microseconds:.1f} us are expected on {self.device} by its data sheet{where}, by {self.limit}: "
            f"{self.megabytes:.2f} MB, {self.gigaops:.2f} Gop"
        )


class Backend(ABC):
    """The code generator for one kind of target. What takes a target takes one of its own."""

    name: str
    """What its targets are called by: `NAME:...`."""
    pipelines: Pipelines
    fusion_author: str
    """Who decides what is fused where nobody names an author: `NAME`, or `NAME{option=value ...}`."""
    schedule_author: str
    """And who writes schedules."""
    provider: str = ""
    """The execution provider of ONNX Runtime that runs what it compiles; "" is that of CPUs."""
    no_library: str = ""
    """Why no library is made of its code, which can be looked at; "" where one is."""
    lacking: tuple[str, ...] = ()
    """The options of `CompileOptions` that it does not have."""
    modules: tuple[str, ...] = ()
    """What a process that is going to compile may import ahead of that."""

    # -- targets and machines -----------------------------------------------------------------------------------------

    @abstractmethod
    def target_of(self, name: str) -> Target:
        """The target called `name`; `IgniterError` lists what there is."""

    @abstractmethod
    def targets_of(self, names: str) -> Sequence[Target]:
        """The targets that a comma-separated list names, each once; `IgniterError` where no library is for all."""

    def target_names(self, start: str = "") -> Sequence[str]:
        """The names of its targets that begin with `start`, for a shell to complete; what can be added to a target
        once `start` adds something to it."""
        del start
        return ()

    @abstractmethod
    def machine_for(self, target: Target | str, given: Iterable[Given] = ()) -> MachineModel:
        """The model of a target, with the figures that were given in the place of its own; `MachineError` where it
        cannot have them."""

    @abstractmethod
    def host_figures(self) -> Mapping[str, int]:
        """What the system says of this machine, which its model and therefore the code depend on."""

    @abstractmethod
    def rates(self) -> Rates:
        """Loops that measure this machine."""

    def machines_for(self, names: str, given: Iterable[Given] = ()) -> list[MachineModel]:
        """The models of the targets of a list; figures can be given for a single one alone."""
        found, figures = self.targets_of(names), tuple(given)
        if figures and len(found) > 1:
            raise MachineError(
                f"a machine is given, and the targets are several ('{names}'): name the one that it is of"
            )
        return [self.machine_for(t, figures) for t in found]

    # -- fusion -------------------------------------------------------------------------------------------------------

    def fusion_reason(self, op: OnnxOp, machine: MachineModel) -> Reason | None:
        """Why a node that has a lowering can be in no region all the same: there is no code for its types, or for it,
        on `machine`. None where nothing is against it."""
        del op, machine
        return None

    def cost_model(self, machine: MachineModel, typical_dim: int, typical: Mapping[str, int]) -> CostModel:
        """What authors of fusion count with: the time that a launch and a byte take, at typical sizes."""
        from igniter.analysis.fusion.cost import CostModel

        return CostModel(typical_dim, typical, machine)

    # -- schedules ----------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def words(self) -> frozenset[str]:
        """What schedules may say, of `igniter.dialects.loop.schedule.VOCABULARY`: what the passes of its pipeline and
        its emitter do."""

    def lacks(self, micro_kernel: str, target: Target) -> str | None:
        """Why a target does not have a micro-kernel that is declared; None where it does, or it is not declared."""
        del micro_kernel, target
        return None

    def schedule_reason(self, op: ComputeOp, machine: MachineModel) -> str | None:
        """Why a schedule that is one says what this backend cannot do: the loop and the word, or the micro-kernel."""
        from igniter.dialects.loop import NestOp
        from igniter.dialects.loop.schedule import Loop, Product, words_of

        for step in op.schedule.data if op.schedule is not None else ():
            missing = next((word for word in words_of(step) if word not in self.words), None)
            where = f"loop '{step.axis}'" if isinstance(step, Loop) else f"'{step}'"
            if missing is not None:
                listed = ", ".join(sorted(self.words)) or "none"
                return f"{where}: the backend '{self.name}' has no '{missing}'; its words are {listed}"
            if isinstance(step, Product) and isinstance(op, NestOp):
                kernel = step.kernel or _chosen_kernel(op)
                reason = self.lacks(kernel, self.target_of(machine.name)) if kernel else None
                if reason is not None:
                    return f"{where}: {reason}"
        return None

    def around_schedules(self) -> tuple[str, str]:
        """The pipeline `schedule` in two: the passes that lead to nests with schedules, `choose-schedule` the last of
        them, and those that carry these out, down to what is emitted."""
        from igniter.passes import flat_passes

        passes = flat_passes(self.pipelines.schedule)
        names = [each.partition("{")[0] for each in passes]
        end = names.index("choose-schedule") + 1
        behind = [each for each, name in zip(passes[end:], names[end:], strict=True) if name != "form-ort-library"]
        return ",".join(passes[:end]), ",".join(behind)

    # -- emission -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def emit_func(self, func: FuncOp, target: Target, sanitize: bool = False) -> str:
        """One scheduled kernel as text; `IgniterError` names what cannot be said. With `sanitize`, every access of it
        checks its address."""

    @abstractmethod
    def emit_module(self, module: ModuleOp, target: Target) -> str:
        """Every scheduled kernel of a module, as one text."""

    def vouch(self, text: str, target: Target) -> None:
        """Raises `IgniterError` where no machine code can be made of a text: there it costs one kernel, and later the
        model. Nothing to do for an emitter whose text always compiles."""
        del text, target

    def expected(self, func: FuncOp, text: str, target: Target) -> Sequence[Expectation]:
        """How long each launch of a func is expected to take, `text` being what it became; none where the backend does
        not say."""
        del func, text, target
        return ()

    # -- linking ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def identity(self, target: Target) -> tuple[str, ...]:
        """All that machine code depends on besides the text that it is made from."""

    @abstractmethod
    def needed(self, texts: Iterable[str], target: Target) -> list[str]:
        """The texts of what kernels call and is in none of them (micro-kernels), each once."""

    def launched(self, texts: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Of a backend whose code launches kernels of its own: the names of those that each func launches, itself or
        through what it calls. See `igniter.backends.launches`."""
        del texts
        return {}

    @abstractmethod
    def merged(self, texts: Sequence[str], target: Target) -> str:
        """One text with the functions of all, and with what they need."""

    @abstractmethod
    def assembly(self, text: str, target: Target) -> str:
        """The assembly of a text."""

    @abstractmethod
    def object_code(self, text: str, target: Target) -> bytes:
        """The relocatable object of a text."""

    @abstractmethod
    def least(self, target: Target) -> Target:
        """The target for what a library runs before it is known which machine it is on."""

    # -- on this machine ----------------------------------------------------------------------------------------------

    @abstractmethod
    def compile_func(self, func: FuncOp, target: Target | str = "native", sanitize: bool | None = None) -> CompiledFunc:
        """A scheduled kernel, compiled for this machine; sanitized if asked to, or if the environment asks for it."""

    @abstractmethod
    def listing(self, func: FuncOp, target: Target) -> Listing:
        """The assembly of one scheduled kernel, to be looked at."""


# -- finding one ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """The targets of a library that are one backend's."""

    backend: Backend
    names: str
    """As they were named."""
    suffix: str = ""
    """What the names of its funcs end in, where those of others are beside them."""

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """The targets, each once; `IgniterError` where there is no such target."""
        return tuple(self.backend.targets_of(self.names))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """What the names of the funcs for each target end in."""
        count = len(self.targets)
        return tuple(self.suffix + variant_suffix(k, count) for k in range(count))

    def machines(self, given: Iterable[Given] = ()) -> list[MachineModel]:
        """The models of the targets."""
        return self.backend.machines_for(self.names, given)


def parts_for(targets: str) -> list[Part]:
    """The backends of the targets that a comma-separated list names: one, or two whose code runs in different execution
    providers. What is formed of a model for all of them, the first forms: the one for GPUs. `IgniterError` where
    no library is for all."""
    named: dict[str, list[str]] = {}
    for target in targets.split(","):
        named.setdefault(_backend_name(target.strip()), []).append(target)
    backends = [_made(name) for name in named]
    if len(backends) > 2 or (len(backends) == 2 and bool(backends[0].provider) == bool(backends[1].provider)):
        raise _several(targets, named)
    parts: list[Part] = []
    for backend in sorted(backends, key=lambda b: not b.provider):
        own = f".{backend.name}" if backend.provider and len(backends) > 1 else ""
        parts.append(Part(backend, ",".join(named[backend.name]), own))
    return parts


def variant_suffix(number: int, count: int) -> str:
    """What the names of the kernels of one CPU end in, in a library for `count`."""
    return f".v{number}" if count > 1 else ""


def _several(targets: str, names: Iterable[str]) -> IgniterError:
    return IgniterError(f"targets '{targets}' are for the backends {' and '.join(names)}: name those of one")


def backend_for(targets: str) -> Backend:
    """The backend of the targets that a comma-separated list names; `IgniterError` where they have several."""
    names = list(dict.fromkeys(_backend_name(target.strip()) for target in targets.split(",")))
    if len(names) > 1:
        raise _several(targets, names)
    return _made(names[0])


def backend_of(ctx: Context) -> Backend:
    """The backend that passes in a context work for: that of the machine's target."""
    return backend_for(machine_of(ctx).name)


def _chosen_kernel(nest: NestOp) -> str:
    """The micro-kernel that a product becomes whose schedule names none; "" where there is none."""
    from igniter.analysis.structured.contractions import contraction_of

    found = contraction_of(nest)
    return "" if isinstance(found, str) else found.kind


def _backend_name(target: str) -> str:
    named = target.partition(":")[0].partition("+")[0]
    return named if named in BACKENDS or named in external("backends") else DEFAULT


@cache
def _made(name: str) -> Backend:
    return load_backend(name)()


# -- machines that are given ------------------------------------------------------------------------------------------


def described_machines(
    targets: str | None, machine: Mapping[str, Any] | str | os.PathLike[str] | None
) -> list[MachineModel]:
    """The models that passes are to work for: those of `targets`, or without them the typical one, with what `machine`
    gives in the place of their figures."""
    given = given_machine(machine)
    return backend_for(targets).machines_for(targets, given) if targets is not None else [override(TYPICAL, given)]


def given_machine(machine: Mapping[str, Any] | str | os.PathLike[str] | Sequence[Given] | None) -> tuple[Given, ...]:
    """What a caller gives of a machine: a file, figures by name, or what this function made of either before."""
    if machine is None:
        return ()
    if isinstance(machine, (str, os.PathLike)):
        return read_machine(machine) if machine else ()
    if isinstance(machine, Mapping):
        return given_of(machine)
    return tuple(machine)


def read_machine(path: str | os.PathLike[str]) -> tuple[Given, ...]:
    """The figures of a file that `igniter machine -o` wrote, or somebody by hand; `MachineError` says what is wrong."""
    import json

    try:
        data: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise MachineError(f"cannot read the machine {os.fspath(path)}: {error.strerror}") from error
    except ValueError as error:
        raise MachineError(f"{os.fspath(path)} is no machine: it is not JSON ({error})") from error
    if not isinstance(data, dict):
        raise MachineError(
            f"{os.fspath(path)} is no machine: it has to be an object, of values by the names of figures"
        )
    try:
        return given_of(cast("dict[str, Any]", data))
    except MachineError as error:
        raise MachineError(f"{os.fspath(path)}: {error.message}") from error
