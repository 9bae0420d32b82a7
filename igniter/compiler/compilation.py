"""The inputs of a compilation: the options, and one model on its way through the stages of `driver.py`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from igniter._version import build_id
from igniter.activity import doing
from igniter.environment import wants_sanitizer
from igniter.errors import IgniterError
from igniter.isolation import Isolation
from igniter.memory import collection_paused, peak_memory
from igniter.observation import PassObserver, PassWatcher
from igniter.registry import load, plugin_code
from igniter.targets import given_machine, parts_for

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.analysis.fusion.program_steps import ProgramSteps
    from igniter.analysis.machine import Given, MachineModel
    from igniter.context import IgniterContext
    from igniter.runtime.cache import Cache
    from igniter.targets import Backend, Part, Pipelines, Target

    Machine: TypeAlias = "Mapping[str, Any] | str | PathLike[str] | None"
    Inputs: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path | None"


_log = logging.getLogger(__name__)

WINOGRAD = ("off", "auto", "on")
"""The values of `winograd`, besides the largest tile."""

TILE_WEIGHTS = ("load", "file")
"""The values of `tile_weights`."""

_SPLICED = "igniter.compiler.spliced:spliced"
"""Found by name, because a result from the cache without edits needs no parser of pipelines."""

SUBNORMALS = ("flush", "flush-values", "keep")
"""The values of `subnormals`."""


@dataclass(frozen=True)
class CompileOptions:
    """The options of a compilation: all inputs of its code, except the model."""

    target: str = "native"
    """The name of the target: see `igniter.targets`, and `docs/reference/cli.md` for the CPUs."""
    machine: tuple[Given, ...] = ()
    """Figures in place of the target's own, as returned by `igniter.targets.given_machine` for a file or for values by
    name: see `igniter.analysis.machine`."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Typical sizes of the model's symbols, by name; a mapping is accepted. Schedules and fusion are optimised for
    these sizes, and the code is correct for all. See `igniter.analysis.typical_sizes`."""
    precision: str = "f32"
    """The type for computing products with weights: see `igniter.transforms.onnx.lower_precision`."""
    winograd: int | str = "auto"
    """The convolutions of 3 x 3 computed in tiles: with `auto` the profitable ones by the backend's estimate, with 2 or
    4 the same with at most this number of results in a tile along each axis; with `on` all possible ones; with `off` or
    0 none. See `igniter.transforms.onnx.winograd`."""
    tile_weights: str = "load"
    """The transformed weights of convolutions in tiles: with `load` a kernel computes them when a session is created;
    with `file` the folder stores them. See `igniter.transforms.fusion.make_at_load`."""
    subnormals: str = "flush"
    """`flush` to write subnormal weights as 0 where the outputs can change by no more than a stated bound, or `keep`:
    see `igniter.transforms.onnx.flush_subnormals`. With `flush-values`, kernels on CPUs also take subnormal operands
    and results for 0, by the mode of their threads: see `docs/explanation/numerics.md`."""
    onnx_passes: str | None = None
    """The pipeline of this level; the fields below are for the other levels. `None` selects the backend's pipeline."""
    fusion_passes: str | None = None
    fusion_author: str = ""
    """The fusion author, `NAME` or `NAME{option=value ...}`: the `author` of `form-fusion-regions` if `fusion_passes`
    sets none; "" is the backend's own. See `igniter.analysis.fusion.author`."""
    loop_passes: str | None = None
    schedule_passes: str | None = None
    tuned: str = ""
    """A database of schedules found by `igniter tune`, for `apply-tuned-schedules`; "" uses none."""
    program_passes: str | None = None
    """The pipeline from regions to programs; "" leaves each region a custom op of its own."""
    profile: bool = False
    """True if programs record the time between their steps, in outputs of their own: see `igniter bench --profile`."""
    left: tuple[tuple[str, str], ...] = ()
    """The nodes to leave to ONNX Runtime, by the name of remarks, each with the reason; a mapping is accepted. A node
    without a kernel in ONNX Runtime is compiled all the same. See `igniter.compiler.measuring`."""
    provider: str = ""
    """The execution provider for custom ops of GPU kernels; "" is the backend's own."""
    passes: str = ""
    """Edits of the backend's pipeline: `with my-pass after canonicalize-onnx`; `cpu` in front is accepted. See
    `igniter.pipeline_text`. The IR is then verified after every pass."""
    sanitize: bool = field(default_factory=wants_sanitizer)
    """True if every access of a kernel checks its address at run time: see `docs/explanation/safety.md`. The default
    comes from the environment variable `IGNITER_SANITIZE`."""
    debug_info: bool = False
    """True if the library has debug information (DWARF): the ONNX nodes of each kernel, for debuggers and profilers."""

    def __post_init__(self) -> None:
        given = cast("object", self.machine)
        if not isinstance(given, tuple):
            # Callers may write figures by name, or a file.
            from igniter.targets import given_machine

            object.__setattr__(self, "machine", given_machine(cast("Any", given)))
        sizes = dict(cast("Any", self.sizes))
        if sizes:  # A cached result is found without importing the compiler.
            from igniter.analysis.typical_sizes import checked_sizes

            sizes = checked_sizes(sizes)
        object.__setattr__(self, "sizes", tuple(sorted(sizes.items())))
        object.__setattr__(self, "left", tuple(sorted(dict(cast("Any", self.left)).items())))
        for name, why in self.left:
            if "=" in why:
                raise IgniterError(
                    f"the reason '{why}' to leave the node '{name}' has a '=', which ends names: reword it"
                )
        if isinstance(self.winograd, str) and self.winograd not in WINOGRAD:
            raise IgniterError(f"winograd must be {', '.join(WINOGRAD)}, 2 or 4, not '{self.winograd}'")
        if self.tile_weights not in TILE_WEIGHTS:
            raise IgniterError(f"tile_weights must be {' or '.join(TILE_WEIGHTS)}, not '{self.tile_weights}'")
        if self.subnormals not in SUBNORMALS:
            raise IgniterError(f"subnormals must be one of {', '.join(SUBNORMALS)}, not '{self.subnormals}'")
        object.__setattr__(self, "winograd", 0 if self.winograd == "off" else self.winograd)

    @property
    def flushes_values(self) -> bool:
        """True if kernels take subnormal operands and results for 0."""
        return self.subnormals == "flush-values"

    def key(self) -> str:
        """Returns a hash of the options and of Igniter's version: part of every cache key."""
        text = json.dumps([build_id(), self._said(), self.tuned_digest()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def kernel_key(self) -> str:
        """Returns `key` without the options of programs, of weights and of nodes left to ONNX Runtime, and without
        typical sizes: the former do not affect a kernel, the latter are part of the kernel's text where they matter."""
        weights = {"subnormals": "flush", "tile_weights": "load"}
        plain = dataclasses.replace(
            self, program_passes="", profile=False, sizes=(), left=(), debug_info=False, **weights
        )
        return plain.key()

    def tuned_digest(self) -> str:
        """Returns a hash of the schedules for the targets in the database; "" without one. Raises `IgniterError` if the
        file does not exist."""
        if not self.tuned:
            return ""
        from igniter.transforms.structured.schedule_database import opened

        with opened(self.tuned) as database:
            return database.digest(t.key for part in parts_for(self.target) for t in part.targets)

    @property
    def pipelines(self) -> Pipelines:
        """The pipelines given here, and the backend's for the rest; of several backends, the first's."""
        given = {
            "onnx": self.onnx_passes,
            "fusion": self.fusion_passes,
            "loop": self.loop_passes,
            "schedule": self.schedule_passes,
            "programs": self.program_passes,
        }
        own = parts_for(self.target)[0].backend.pipelines
        chosen = dataclasses.replace(own, **{level: text for level, text in given.items() if text is not None})
        return load(_SPLICED)(chosen, self.passes)[0] if self.passes else chosen

    def edit_notes(self) -> tuple[str, ...]:
        """Returns the choices made for edits of pipelines with several possible places."""
        return load(_SPLICED)(dataclasses.replace(self, passes="").pipelines, self.passes)[1] if self.passes else ()

    @classmethod
    def of_report(cls, said: Mapping[str, Any]) -> CompileOptions:
        """Reconstructs the options from a report's `options`.

        A report names all pipelines. A pipeline equal to the backend's own is restored as `None`, because an explicit
        one differs in effect: an explicit `onnx` pipeline alone decides about tiles of convolutions (`winograd`).
        """
        names = {field.name for field in dataclasses.fields(cls)} & said.keys()
        given = {name: said[name] for name in names}
        own = cls(target=str(given.get("target", cls.target)), passes=str(given.get("passes", ""))).pipelines
        for level in ("onnx", "fusion", "loop", "schedule", "programs"):
            name = "program_passes" if level == "programs" else f"{level}_passes"
            if given.get(name) == getattr(own, level):
                given[name] = None
        given["machine"] = tuple(tuple(figure) for figure in given.get("machine", ()))
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """Returns the options for reports."""
        said = {**self._said(), "sizes": dict(self.sizes), "left": dict(self.left)}
        return {**said, "tuned_digest": self.tuned_digest()} if self.tuned else said

    def _said(self) -> dict[str, Any]:
        """Returns every option by its name, with the effective pipelines."""
        pipelines = self.pipelines
        return {
            **dataclasses.asdict(self),
            "onnx_passes": pipelines.onnx,
            "fusion_passes": pipelines.fusion,
            "loop_passes": pipelines.loop,
            "schedule_passes": pipelines.schedule,
            "program_passes": pipelines.programs,
        }


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel or program: its text for each target, and its custom op in the text of `ort` for each backend."""

    name: str
    variants: tuple[str, ...]
    ops: tuple[str, ...]
    tasks: Mapping[str, Any] | None = None
    """The tasks for threads, as `KernelTasks.to_dict` gives them; `None` for programs and for kernels of a GPU."""


@dataclass
class Compilation:
    """One model on its way through the stages. `module` is rewritten in place; `make_llvm` fills `kernels`."""

    module: ModuleOp
    options: CompileOptions
    ctx: IgniterContext
    cache: Cache | None = None
    verify_each: bool = False
    strict: bool = False
    """True if a node without a kernel is an error rather than left to ONNX Runtime."""
    required: tuple[str, ...] = ()
    """Ops whose nodes must be compiled, because ONNX Runtime failed to load them."""
    progress: Callable[[str], None] = lambda _: None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    peak_memory: dict[str, int] = field(default_factory=dict[str, int])
    """The process's peak memory after each stage, in bytes."""
    kernels: list[CompiledKernel] = field(default_factory=list[CompiledKernel])
    programs: list[CompiledKernel] = field(default_factory=list[CompiledKernel])
    makers: list[CompiledKernel] = field(default_factory=list[CompiledKernel])
    """The kernels that compute constants when a session is created."""
    steps: list[ProgramSteps] = field(default_factory=list["ProgramSteps"])
    """The steps of the programs, for reports and profiles."""
    nodes_before: int = 0
    measured: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The outcome of a measurement before this compilation, for reports; empty without one."""
    observers: tuple[PassObserver, ...] = ()
    """The observers of all passes. With any, this process compiles every kernel, so that they see its passes; passes of
    a kernel from the cache do not run."""
    cached_kernels: int = 0
    """The number of kernels taken from the cache."""
    isolation: Isolation = field(default_factory=Isolation)
    """The nodes returned to ONNX Runtime because their kernel failed to compile, with the reasons."""

    @cached_property
    def parts(self) -> list[Part]:
        """The targets, by backend. The passes of the first backend form the regions for all."""
        return parts_for(self.options.target)

    @property
    def backend(self) -> Backend:
        """The code generator for the targets; of several, the first."""
        return self.parts[0].backend

    def require_options(self) -> None:
        """Raises `IgniterError` for an option without support in a backend."""
        options, first = self.options, self.backend
        if options.provider and not first.provider:
            raise IgniterError(
                f"kernels of the backend '{first.name}' run in the execution provider for CPUs, not in "
                f"{options.provider}; leave out the provider"
            )
        if len(self.parts) > 1 and (options.schedule_passes is not None or options.machine):
            what = "a machine" if options.machine else "a pipeline of schedules"
            raise IgniterError(
                f"{what} is given with targets of two backends ('{options.target}'); name targets of one backend"
            )
        hosts = {part.backend.least(part.targets[0]).triple for part in self.parts}
        if len(hosts) > 1:
            raise IgniterError(
                f"no library can serve all of '{options.target}': the machines are {' and '.join(sorted(hosts))}, and "
                "kernels of a GPU are launched by the kind of CPU that compiles them"
            )
        if self.options.flushes_values and not any(part.backend.pipelines.subnormals for part in self.parts):
            raise IgniterError(
                f"subnormals=flush-values sets a mode of CPUs, and '{self.options.target}' has none; leave it out"
            )
        plain = CompileOptions(sanitize=False)
        for part in self.parts:
            for name in part.backend.lacking:
                if getattr(options, name) not in (getattr(plain, name), 0):
                    raise IgniterError(
                        f"the backend '{part.backend.name}' has no {name} other than "
                        f"{getattr(plain, name) or 'none'}; leave it out"
                    )

    def require_library(self) -> None:
        """Raises `IgniterError` if a target does not support libraries."""
        for part in self.parts:
            if part.backend.no_library:
                raise IgniterError(part.backend.no_library)

    @cached_property
    def pipelines(self) -> Pipelines:
        """The effective pipelines, by level."""
        return self.options.pipelines

    @cached_property
    def targets(self) -> Sequence[Target]:
        """The targets; a library for several of them chooses one when it is loaded."""
        return [target for part in self.parts for target in part.targets]

    @cached_property
    def machines(self) -> list[MachineModel]:
        """The machine models of the targets, for schedules."""
        return [machine for part in self.parts for machine in part.machines(self.options.machine)]

    def machine_of(self, part: Part) -> MachineModel:
        """Returns the backend's representative machine, the machine of the part's first target."""
        return self.machines[self.targets.index(part.targets[0])]

    @cached_property
    def kernel_settings(self) -> str:
        """The inputs of a kernel's code besides its text: part of the key of each. For a database of schedules, its
        contents at the lookup of the first kernel."""
        from igniter.dialects.loop.instructions import outside_identity

        machines = (m.key() for m in self.machines)
        own = self.options.kernel_key(), repr(self.targets), *machines
        return "".join([*own, outside_identity(), plugin_code()])

    def context(self, machine: MachineModel | None = None) -> IgniterContext:
        """Returns the context of passes, for one machine, or for all of the compilation, represented by the first. The
        failure of a kernel affects only this kernel, unless the compilation is strict."""
        self.isolation.enabled = not self.strict
        self.ctx.strict = self.strict
        ctx = self.ctx.on(machine or self.machines[0], self.isolation, dict(self.options.sizes))
        return ctx.observed(self.watchers) if self.observers else ctx

    @property
    def watchers(self) -> tuple[PassWatcher, ...]:
        """The observers that see nested passes."""
        return tuple(o for o in self.observers if isinstance(o, PassWatcher))

    @property
    def verifies_each(self) -> bool:
        """True if the IR is verified after every pass: on request, and with passes spliced in."""
        return self.verify_each or bool(self.options.passes)

    def one_target(self) -> Target:
        """Returns the one CPU to compile for; raises `IgniterError` if there are several, because only a library can
        hold them."""
        if len(self.targets) > 1:
            raise IgniterError(f"only a library can have several targets ('{self.options.target}'); name one target")
        return self.targets[0]

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Times one stage, notes the process's peak memory after it, and announces it."""
        self.progress(name)
        start = time.perf_counter()
        try:
            with doing(f"the stage '{name}' ran"), collection_paused(), ExitStack() as steps:
                for watcher in self.watchers:
                    steps.enter_context(watcher.step(f"({name})"))
                yield
        finally:
            seconds = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            _log.info("stage %s: %.3f s", name, seconds)
            self.peak_memory[name] = peak_memory()

    def report_seconds(self) -> dict[str, float]:
        """Returns the seconds of every stage so far, for reports."""
        return {name: round(seconds, 4) for name, seconds in self.seconds.items()}


def chosen_options(
    options: CompileOptions | None = None,
    target: str = "native",
    machine: Machine = None,
    sizes: Mapping[str, int] | None = None,
    precision: str = "f32",
    winograd: int | str = "auto",
    subnormals: str = "flush",
    tile_weights: str = "load",
    fusion_author: str = "",
    sanitize: bool = False,
    passes: str = "",
    debug_info: bool = False,
) -> CompileOptions:
    """Merges the options given by name into `options`, in place of defaults. Raises `IgniterError` if both set an
    option, to different values."""
    figures: tuple[Given, ...] = ()
    if machine is not None:
        figures = given_machine(machine)
    by_name: dict[str, Any] = {
        "target": target,
        "machine": figures,
        "sizes": tuple(sorted(dict(sizes or {}).items())),
        "precision": precision,
        "winograd": 0 if winograd == "off" else winograd,
        "subnormals": subnormals,
        "tile_weights": tile_weights,
        "fusion_author": fusion_author,
        "passes": passes,
        "debug_info": debug_info,
    }
    chosen, plain = options or CompileOptions(), CompileOptions()
    added: dict[str, Any] = {"sanitize": True} if sanitize else {}
    for name, value in by_name.items():
        default, said = getattr(plain, name), getattr(chosen, name)
        if value in (default, said):
            continue
        if said != default:
            raise IgniterError(f"{name} is given twice, as {value!r} and in the options as {said!r}: choose one")
        added[name] = value
    return dataclasses.replace(chosen, **added) if added else chosen
