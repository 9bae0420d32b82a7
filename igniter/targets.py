"""Backends: the interface between the compiler and the code generator for a target.

A backend defines its targets and their machine models, the ops with code, its authors of fusion and of schedules, its
directives of schedules, and the pipelines from a model to its emitter's input. It turns a scheduled kernel into text,
machine code, and a callable function. The rest of the compiler uses backends only through `Backend`, found by the name
of a target, or in a pass by the machine of its context (`backend_of`):

    backend = backend_for("x86-64-v3")
    target = backend.target_of("x86-64-v3")
    text = backend.emit_func(func, target)

`igniter/registry.py` names the backends; a package adds one by an entry point of the group `igniter.backends`. A target
is written `BACKEND:NAME`, or by the backend's name alone; all other names are for `cpu`.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from igniter.analysis.machine import TYPICAL, Given, MachineError, MachineModel, given_of, machine_of, override
from igniter.crashes import crash_text
from igniter.errors import IgniterError
from igniter.registry import BACKENDS, external, load_backend

if TYPE_CHECKING:
    import numpy as np
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from igniter.analysis.fusion.cost import CostModel
    from igniter.analysis.fusion.legality import Reason
    from igniter.dialects.loop import ComputeOp, FuncOp, KernelOp, NestOp
    from igniter.dialects.loop.schedule import ScheduleAttr
    from igniter.dialects.onnx.base import OnnxOp

DEFAULT = "cpu"
"""The backend of target names without a backend."""


class Target(Protocol):
    """The full description of the generated code's target: equal targets get equal code. Each backend has its own
    class."""

    @property
    def name(self) -> str:
        """The name in options, with the backend's name as prefix: `BACKEND:NAME`, except for targets of `cpu`."""
        ...

    @property
    def key(self) -> str:
        """The key of measurements on this target (`MachineModel.filed_as`)."""
        ...

    @property
    def triple(self) -> str:
        """LLVM's name of the machine and of the system whose linker takes its objects."""
        ...

    @property
    def level(self) -> int:
        """The level for the choice at load time: a library runs its target of the highest level within the machine's; 0
        has no requirements."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """The entries in the library to identify this target."""
        ...


class CompiledFunc(Protocol):
    """A kernel in memory, called with its buffers, inputs then outputs, and its symbols by name."""

    def __call__(self, *buffers: np.ndarray, threads: int = 1, **symbols: int) -> None: ...

    def prepared(self, buffers: Sequence[np.ndarray], symbols: Mapping[str, int], threads: int = 1) -> Any:
        """Returns the call as a function without arguments, for timing."""
        ...


class SearchParameter(Protocol):
    """One choice of a space of schedules; the first value keeps the current one."""

    @property
    def name(self) -> str: ...

    @property
    def values(self) -> tuple[str, ...]: ...


class SearchSpace(Protocol):
    """The schedules of a kernel among which a tuner searches (`igniter.schedules.space`)."""

    @property
    def parameters(self) -> Sequence[SearchParameter]: ...
    def first(self) -> dict[str, str]: ...
    def points(self, seed: int = 0) -> Iterator[dict[str, str]]: ...
    def schedules(self, point: Mapping[str, str]) -> Mapping[str, ScheduleAttr]: ...

    def seconds(self, point: Mapping[str, str]) -> float | None:
        """Returns the expected seconds at a point, if the space knows more than the cost of the scheduled kernel."""
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
    """The parsed assembly of a kernel."""

    @property
    def text(self) -> str: ...

    @property
    def spills(self) -> int: ...

    @property
    def bytes_of_stack(self) -> int: ...

    def loops(self) -> Sequence[AssemblyLoop]:
        """Returns the innermost loops, the most important first."""
        ...


class Rates(Protocol):
    """Generated loops to measure a core of this machine: see `igniter.toolbox.machine.measurement`."""

    @property
    def VECTORS(self) -> int:
        """The number of vectors in the buffers of `functions`."""
        ...

    def peak(
        self, kind: Literal["f32", "bf16", "int8"] = "f32", trips: int = ..., chains: int = ...
    ) -> tuple[CompiledFunc, int] | None:
        """Returns a loop of independent multiply-adds, and the operations of one call; `None` if unsupported."""
        ...

    def reader(self, size: int | None = None) -> CompiledFunc:
        """Returns a loop of repeated reads of a buffer."""
        ...

    def flusher(self) -> CompiledFunc | None:
        """Returns a function that evicts the lines of a buffer from the caches; `None` if the machine lacks the
        instruction."""
        ...

    def clock(self, trips: int = ...) -> tuple[CompiledFunc, int]:
        """Returns a dependent chain of one cycle a link, and the number of links."""
        ...

    def additions(self, trips: int = ...) -> tuple[CompiledFunc, int]:
        """Returns a dependent chain of additions, and the number of links."""
        ...

    def functions(self, ops: Sequence[str]) -> CompiledFunc:
        """Returns a loop of elementary functions on vectors."""
        ...

    def answers(self) -> CompiledFunc:
        """Returns the function of each thread in a pair of threads answering each other."""
        ...


@dataclass(frozen=True)
class Pipelines:
    """The pipelines from a model to an emitter's input, each by its name or as text; the driver runs them
    (`igniter/compiler/driver.py`)."""

    onnx: str
    """The simplified graph."""
    fusion: str
    """The nodes in regions."""
    loop: str
    """A structured kernel for each region."""
    schedule: str
    """One kernel by itself: to nests with schedules, the last of these passes being `choose-schedule`, then to the
    emitter's input and `form-ort-library`."""
    kernels: str
    """All kernels of a module through `schedule`, for inspection: `schedule-kernels`."""
    programs: str
    """The regions joined to programs."""
    calls: str
    """The calls of programs."""
    weights: str
    """The weights in the layout of kernels."""
    tiles: str = ""
    """The convolutions in tiles; runs after `onnx`, unless an option disables it."""
    subnormals: str = ""
    """Subnormal weights written as 0; runs after `onnx`, before `tiles`, unless an option disables it. Empty for
    machines on which they cost nothing."""
    made: str = ""
    """The constants that kernels compute when a session is created; runs before `weights`, unless an option disables
    it. Empty for backends without such kernels."""


@dataclass(frozen=True)
class Expectation:
    """The expected duration of a launch."""

    launch: str
    microseconds: float
    limit: str
    """The resource with the longest time."""
    megabytes: float
    """The memory traffic."""
    gigaops: float
    device: str
    sizes: str
    """The sizes of its func's symbols, as `b=1, s=128`."""

    def __str__(self) -> str:
        where = f" at {self.sizes}" if self.sizes else ""
        return (
            f"{self.microseconds:.1f} us are expected on {self.device} by its data sheet{where}, by {self.limit}: "
            f"{self.megabytes:.2f} MB, {self.gigaops:.2f} Gop"
        )


class Backend(ABC):
    """The code generator for one kind of target. Its methods take targets of this backend only."""

    name: str
    """The prefix of its targets: `NAME:...`."""
    pipelines: Pipelines
    fusion_author: str
    """The default fusion author: `NAME`, or `NAME{option=value ...}`."""
    schedule_author: str
    """The default schedule author."""
    algorithms: bool = False
    """True if it computes procedures by their algorithm (`ProcedureOp.computes`), not by their body."""
    provider: str = ""
    """The execution provider of ONNX Runtime for its code; "" is the provider of CPUs."""
    no_library: str = ""
    """The reason why its code cannot be linked to a library; "" if it can."""
    lacking: tuple[str, ...] = ()
    """The options of `CompileOptions` without support here."""
    modules: tuple[str, ...] = ()
    """The modules for a process to import ahead of a compilation."""

    # -- targets and machines -----------------------------------------------------------------------------------------

    @abstractmethod
    def target_of(self, name: str) -> Target:
        """Returns the target called `name`; `IgniterError` lists the known ones."""

    @abstractmethod
    def targets_of(self, names: str) -> Sequence[Target]:
        """Returns the targets of a comma-separated list, without duplicates; raises `IgniterError` if one library
        cannot hold all."""

    def target_names(self, start: str = "") -> Sequence[str]:
        """Returns the names of its targets with the prefix `start`, for shell completion; once `start` adds a feature
        to a target, the possible features."""
        del start
        return ()

    @abstractmethod
    def machine_for(self, target: Target | str, given: Iterable[Given] = ()) -> MachineModel:
        """Returns the machine model of a target, with `given` figures in place of its own; raises `MachineError` for a
        figure without meaning there."""

    @abstractmethod
    def host_figures(self) -> Mapping[str, int]:
        """Returns the facts about this machine from the system: inputs of its model and of the code."""

    @abstractmethod
    def rates(self) -> Rates:
        """Returns loops to measure this machine."""

    def machines_for(self, names: str, given: Iterable[Given] = ()) -> list[MachineModel]:
        """Returns the models of the targets of a list; figures can be given for a single target only."""
        found, figures = self.targets_of(names), tuple(given)
        if figures and len(found) > 1:
            raise MachineError(
                f"a machine is given, and the targets are several ('{names}'): name the one that it is of"
            )
        return [self.machine_for(t, figures) for t in found]

    # -- fusion -------------------------------------------------------------------------------------------------------

    def fusion_reason(self, op: OnnxOp, machine: MachineModel) -> Reason | None:
        """Returns the reason why a node with a lowering can be in no region: the backend has no code for its types, or
        for the node itself, on `machine`. Returns None if there is no reason."""
        del op, machine
        return None

    def cost_model(self, machine: MachineModel, typical_dim: int, typical: Mapping[str, int]) -> CostModel:
        """Returns the cost model of fusion authors: the time of a launch and of a byte, at typical sizes."""
        from igniter.analysis.fusion.cost import CostModel

        return CostModel(typical_dim, typical, machine)

    # -- schedules ----------------------------------------------------------------------------------------------------

    @property
    def words(self) -> frozenset[str]:
        """The words of schedules that the passes of its pipeline carry out."""
        from igniter.dialects.loop.schedule import vocabulary_of
        from igniter.passes import flat_passes

        return vocabulary_of({each.partition("{")[0] for each in flat_passes(self.pipelines.schedule)})

    def lacks(self, micro_kernel: str, target: Target) -> str | None:
        """Returns the reason why a target lacks a declared micro-kernel; None if it has it, or if it is not
        declared."""
        del micro_kernel, target
        return None

    def schedule_reason(self, op: ComputeOp, machine: MachineModel) -> str | None:
        """Returns the reason why this backend cannot carry out a valid schedule: the loop and the directive, or the
        micro-kernel."""
        from igniter.dialects.loop import NestOp
        from igniter.dialects.loop.schedule import Loop, Product, words_of

        steps = op.schedule.data if op.schedule is not None else ()
        words = self.words if steps else frozenset[str]()
        for step in steps:
            missing = next((word for word in words_of(step) if word not in words), None)
            where = f"loop '{step.axis}'" if isinstance(step, Loop) else f"'{step}'"
            if missing is not None:
                listed = ", ".join(sorted(words)) or "none"
                return f"{where}: the backend '{self.name}' has no '{missing}'; its words are {listed}"
            if isinstance(step, Product) and isinstance(op, NestOp):
                kernel = step.kernel or _chosen_kernel(op)
                reason = self.lacks(kernel, self.target_of(machine.name)) if kernel else None
                if reason is not None:
                    return f"{where}: {reason}"
        return None

    def around_schedules(self) -> tuple[str, str]:
        """Splits the pipeline `schedule` in two: the passes up to `choose-schedule`, which gives nests their schedules,
        and the passes from there to the emitter's input."""
        from igniter.passes import flat_passes

        passes = flat_passes(self.pipelines.schedule)
        names = [each.partition("{")[0] for each in passes]
        end = names.index("choose-schedule") + 1
        behind = [each for each, name in zip(passes[end:], names[end:], strict=True) if name != "form-ort-library"]
        return ",".join(passes[:end]), ",".join(behind)

    # -- emission -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def emit_func(self, func: FuncOp, target: Target, sanitize: bool = False) -> str:
        """Emits one scheduled kernel as text; `IgniterError` names an op without a translation. With `sanitize`, every
        access checks its address."""

    @abstractmethod
    def emit_module(self, module: ModuleOp, target: Target) -> str:
        """Emits every scheduled kernel of a module, as one text."""

    def with_nodes(self, texts: Sequence[str], module: ModuleOp, suffix: str) -> list[str]:
        """Returns the texts of kernels and programs with debug information: the ONNX nodes of each function. `suffix`
        ends the names of the functions for this target. A backend without it lists `debug_info` in `lacking`."""
        raise IgniterError(f"the backend '{self.name}' writes no debug information; leave debug_info out")

    def llvm_text(
        self, module: ModuleOp, target: Target, version: int | str | None = None, debug_info: bool = False
    ) -> str:
        """Returns what `--emit=llvm` writes: the text of `emit_module`, or with a `version` (a number, or `newest`) a
        complete module for that LLVM, and with `debug_info` the nodes of each kernel. Raises `IgniterError` for these
        options if the backend emits no LLVM IR."""
        if version is not None or debug_info:
            option = "--debug-info" if version is None else f"--llvm={version}"
            raise IgniterError(
                f"{option}: the target '{target.name}' has no LLVM IR; {option.split('=')[0]} is for CPUs"
            )
        return self.emit_module(module, target)

    def vouch(self, text: str, target: Target) -> None:
        """Raises `IgniterError` if a text cannot become machine code: here this costs one kernel, later the model. Does
        nothing for an emitter whose text always compiles."""
        del text, target

    def expected(self, func: FuncOp, text: str, target: Target) -> Sequence[Expectation]:
        """Returns the expected duration of each launch of a func with the emitted `text`; empty if the backend has no
        estimate."""
        del func, text, target
        return ()

    # -- linking ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def identity(self, target: Target) -> tuple[str, ...]:
        """Returns all inputs of machine code besides its text."""

    @abstractmethod
    def needed(self, texts: Iterable[str], target: Target) -> list[str]:
        """Returns the texts of functions called by kernels and defined outside them (micro-kernels), without
        duplicates."""

    def launched(self, texts: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Returns the names of the kernels launched by each func, directly or through a callee, for a backend with
        launches. See `igniter.backends.launches`."""
        del texts
        return {}

    @abstractmethod
    def merged(self, texts: Sequence[str], target: Target) -> str:
        """Merges the functions of all texts, and the functions needed by them, into one text."""

    @abstractmethod
    def assembly(self, text: str, target: Target) -> str:
        """Returns the assembly of a text."""

    @abstractmethod
    def object_code(self, text: str, target: Target) -> bytes:
        """Returns the relocatable object of a text."""

    @abstractmethod
    def least(self, target: Target) -> Target:
        """Returns the target for a library's code before the machine is known."""

    def instructions(self, identity: Mapping[str, str]) -> Sequence[str]:
        """Returns the CPU features that code for a target may use, by the entries of the target in a library
        (`Target.identity`): a library asks for them when it is loaded (`igniter.cpu_features`)."""
        del identity
        return ()

    # -- on this machine ----------------------------------------------------------------------------------------------

    @abstractmethod
    def compile_func(self, func: FuncOp, target: Target | str = "native", sanitize: bool | None = None) -> CompiledFunc:
        """Compiles a scheduled kernel for this machine; `sanitize` defaults to the environment's setting."""

    @abstractmethod
    def listing(self, func: FuncOp, target: Target) -> Listing:
        """Returns the assembly of one scheduled kernel, for inspection."""

    # -- tuning -------------------------------------------------------------------------------------------------------

    def timed_on(self, target: Target) -> str:
        """Returns the device that times kernels of a target on this machine, for the keys of tuned schedules; "" for a
        CPU, whose target is the key. Raises `IgniterError` if the machine has no such device."""
        del target
        return ""

    def schedule_space(self, kernel: KernelOp, target: Target, threads: int) -> SearchSpace | None:
        """Returns the schedules to search among; None for those of loops on CPUs (`igniter.schedules.space`)."""
        del kernel, target, threads
        return None

    def expected_seconds(self, func: FuncOp, sizes: Mapping[str, int], target: Target) -> float | None:
        """Returns the expected seconds of a scheduled kernel at given sizes; None if the cost model of loops counts its
        cycles."""
        del func, sizes, target
        return None


# -- finding one ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """The targets of a library from one backend."""

    backend: Backend
    names: str
    """The names as given in the list of targets."""
    suffix: str = ""
    """The suffix of its funcs' names, if the library has funcs of other backends."""

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """The targets, without duplicates; raises `IgniterError` for an unknown target."""
        return tuple(self.backend.targets_of(self.names))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the funcs' names, one for each target."""
        count = len(self.targets)
        return tuple(self.suffix + variant_suffix(k, count) for k in range(count))

    def machines(self, given: Iterable[Given] = ()) -> list[MachineModel]:
        """Returns the machine models of the targets."""
        return self.backend.machines_for(self.names, given)


def parts_for(targets: str) -> list[Part]:
    """Returns the backends of a comma-separated list of targets: one, or two whose code runs in different execution
    providers. The first one, for GPUs, forms the regions for all. Raises `IgniterError` if one library cannot hold
    all."""
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
    """Returns the suffix of the names of kernels for one CPU, in a library for `count` CPUs."""
    return f".v{number}" if count > 1 else ""


def _several(targets: str, names: Iterable[str]) -> IgniterError:
    return IgniterError(f"targets '{targets}' are for the backends {' and '.join(names)}: name targets of one backend")


def backend_for(targets: str) -> Backend:
    """Returns the backend of a comma-separated list of targets; raises `IgniterError` if they have several."""
    names = list(dict.fromkeys(_backend_name(target.strip()) for target in targets.split(",")))
    if len(names) > 1:
        raise _several(targets, names)
    return _made(names[0])


def backend_of(ctx: Context) -> Backend:
    """Returns the backend of a context's passes, found by the machine's target."""
    return backend_for(machine_of(ctx).name)


def _chosen_kernel(nest: NestOp) -> str:
    """Returns the default micro-kernel of a product whose schedule names none; "" if it has none."""
    from igniter.analysis.structured.contractions import contraction_of

    found = contraction_of(nest)
    return "" if isinstance(found, str) else found.kind


def _backend_name(target: str) -> str:
    named = target.partition(":")[0].partition("+")[0]
    return named if named in BACKENDS or named in external("backends") else DEFAULT


@cache
def _made(name: str) -> Backend:
    made = load_backend(name)
    try:
        return made()
    except Exception as error:  # a plug-in's code raises anything
        raise IgniterError(f"the backend '{name}' cannot be made: {crash_text(error)}") from error


# -- machines that are given ------------------------------------------------------------------------------------------


def described_machines(
    targets: str | None, machine: Mapping[str, Any] | str | os.PathLike[str] | None
) -> list[MachineModel]:
    """Returns the machine models for passes: those of `targets`, by default the typical one, with the figures of
    `machine` in place of their own."""
    given = given_machine(machine)
    return backend_for(targets).machines_for(targets, given) if targets is not None else [override(TYPICAL, given)]


def given_machine(machine: Mapping[str, Any] | str | os.PathLike[str] | Sequence[Given] | None) -> tuple[Given, ...]:
    """Normalises a caller's figures of a machine: a file, figures by name, or an earlier result of this function."""
    if machine is None:
        return ()
    if isinstance(machine, (str, os.PathLike)):
        return read_machine(machine) if machine else ()
    if isinstance(machine, Mapping):
        return given_of(machine)
    return tuple(machine)


def read_machine(path: str | os.PathLike[str]) -> tuple[Given, ...]:
    """Reads the figures of a file written by `igniter machine -o` or by hand; `MachineError` names the error in it."""
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
