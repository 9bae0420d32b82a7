"""The machine model of schedule authors: one frozen object, every figure with its unit and its source.

Passes find it in the context (`machine_of`); the default is `TYPICAL`. The model of a target is made in
`igniter.backends.cpu.machine`, and `override` replaces its figures by given or measured ones. Equal models and equal
options give equal code; the source of a figure does not matter.

Some figures are assumptions of authors rather than properties of the machine (`l2_budget`, `sum_chains`,
`products_a_cycle`, `task_cycles`, `launch_elements`). They are the same for every target, because the code of every
target was tuned with them, and follow the property behind them only once it is given or measured (`DERIVED`).
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from xdsl.context import Context

Source = Literal["archspec", "llvm", "manuals", "sysfs", "typical", "derived", "measured", "given"]
"""The source of a figure: archspec's database, LLVM's tables of CPUs, the vendors' optimisation manuals, Linux's data
about this machine, a value for most machines, another given figure, a measurement, or the user."""

Given = tuple[str, Any, Source]
"""A figure that replaces the target's own: its name, its value and its source."""

OP_CYCLES = (
    ("arith.divf", 8), ("arith.divsi", 25), ("arith.divui", 25), ("arith.remf", 30), ("arith.remsi", 25),
    ("arith.remui", 25), ("math.acos", 30), ("math.acosh", 40), ("math.asin", 30), ("math.asinh", 40),
    ("math.atan", 30), ("math.atan2", 40), ("math.atanh", 40), ("math.cbrt", 40), ("math.cos", 24),
    ("math.cosh", 30), ("math.erf", 22), ("math.exp", 12), ("math.exp2", 10), ("math.expm1", 20), ("math.log", 16),
    ("math.log1p", 20), ("math.log2", 16), ("math.powf", 50), ("math.rsqrt", 12), ("math.sin", 24), ("math.sinh", 30),
    ("math.sqrt", 8), ("math.tan", 40), ("math.tanh", 16),
)  # fmt: skip
"""Cycles of the ops that take more than one, for a vector of f32 (the integer divisions: for a vector of i32)."""


DIVISIONS = frozenset(
    ("arith.divf", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "math.sqrt")
)
"""Divisions and roots."""

CHEAP_MATH = frozenset(f"math.{name}" for name in ("absf", "absi", "ceil", "copysign", "floor", "fma", "trunc"))
"""Ops of the math dialect that are one instruction."""


class MachineError(IgniterError):
    """An unknown figure, or an impossible value for the target's machine."""

    code = "IGN0201"


def fact(default: Any, unit: str, about: str) -> Any:
    """Declares a figure of the model, with its description for the table of `igniter machine`."""
    return field(default=default, metadata={"unit": unit, "about": about})


@dataclass(frozen=True)
class MachineModel:
    """A machine as schedules see it. The defaults are those of an unnamed server with AVX-512."""

    name: str = fact("x86-64-v4", "", "the target of the model")
    cpu: str = fact("x86-64-v4", "", "the CPU, by LLVM's name")
    arch: str = fact("x86_64", "", "the instruction set")
    microarchitecture: str = fact("x86_64_v4", "", "the microarchitecture, by archspec's name")

    features: str = fact("", "", "a digest of the instruction set's features")

    vector_bytes: int = fact(64, "bytes", "a vector register")
    registers: int = fact(32, "", "vector registers")
    fma: bool = fact(True, "", "multiply-add is one instruction")
    half_loads: bool = fact(True, "", "a vector of f16 becomes f32 in one instruction")
    byte_products: bool = fact(True, "", "four products of bytes are added in one instruction")
    byte_tiles: bool = fact(False, "", "tiles of bytes are multiplied in one instruction (AMX)")
    half_tiles: bool = fact(False, "", "tiles of bf16 are multiplied in one instruction (AMX)")
    byte_pairs: bool = fact(False, "", "two rows by two columns of bytes in one instruction (Arm)")
    half_pairs: bool = fact(False, "", "two rows by two columns of bf16 in one instruction (Arm)")

    fma_ports: float = fact(2.0, "a cycle", "multiply-adds of vectors, as throughput")
    fma_latency: float = fact(4.0, "cycles", "latency of a multiply-add")
    add_latency: float = fact(4.0, "cycles", "latency of an addition of floats")
    load_ports: float = fact(2.0, "a cycle", "loads of vectors, as throughput")
    store_ports: float = fact(1.0, "a cycle", "stores of vectors, as throughput")
    op_cycles: tuple[tuple[str, int], ...] = fact(
        OP_CYCLES, "cycles", ("cost of a vector, for ops of more than one cycle")
    )
    access_cycles: int = fact(2, "cycles", "an access that mostly hits the first-level cache")
    gather_accesses: int = fact(16, "accesses", "a vector gathered element by element")
    loop_cycles: int = fact(8, "cycles", "to enter and leave a loop")
    step_cycles: float = fact(1.0, "cycles", "overhead of an iteration: branch, addresses")
    division_additions: int = fact(5, "additions", "cost of recomputing a division or a root")
    function_additions: int = fact(20, "additions", "cost of recomputing an elementary function")
    l2_move_products: int = fact(5, "products", "cost of moving an element within the second-level cache")
    l3_move_products: int = fact(7, "products", "the same, within the third-level cache")
    memory_move_products: int = fact(10, "products", "cost of reading an element sequentially from memory")
    pack_rows: int = fact(4, "rows", "the fewest that repay packing their shared factor")
    pack_rows_beside: int = fact(32, "rows", "the same, for contiguous columns in long rows")
    clock_ghz: float = fact(2.5, "cycles/ns", "the clock")

    line_bytes: int = fact(64, "bytes", "a line of the caches")
    page_bytes: int = fact(4096, "bytes", "a page, where prefetchers stop")
    stretch_lines: int = fact(8, "lines", "read contiguously of a row, so that prefetchers detect it")
    read_streams: int = fact(8, "rows", "read in parallel, as prefetchers can follow them")
    l1d_bytes: int = fact(32 << 10, "bytes", "the first-level data cache of a core")
    l2_bytes: int = fact(1 << 20, "bytes", "the second-level cache of a core")
    l3_bytes: int = fact(32 << 20, "bytes", "the third-level cache (0: none)")
    l3_cores: int = fact(16, "cores", "sharing the third-level cache")
    cores: int = fact(16, "", "cores of the machine")
    l1_bytes_cycle: float = fact(128.0, "bytes/cycle", "bandwidth of a core's first-level cache")
    l2_bytes_cycle: float = fact(32.0, "bytes/cycle", "bandwidth of a core's second-level cache")
    l3_bytes_cycle: float = fact(8.0, "bytes/cycle", "bandwidth of the third-level cache, for a core")
    memory_bytes_us: float = fact(8_000.0, "bytes/µs", "bandwidth of one thread to and from memory")

    handover_cycles: int = fact(512, "cycles", "delay until another thread starts a task")
    task_cycles: int = fact(32 * 512, "cycles", "the least work worth a task")
    most_tasks: int = fact(64, "tasks", "the most tasks of a loop")
    launch_us: float = fact(1.0, "µs", "overhead of a node in ONNX Runtime")
    launch_elements: int = fact(1 << 14, "elements", "packed in the time of launch_us")
    team_bytes: int = fact(1 << 20, "bytes", "input bytes of a program from which its threads stay together")
    idle_looks: int = fact(1 << 15, "looks", "polls for work before a thread leaves, about a millisecond")

    l2_budget: int = fact(1 << 20, "bytes", "part of the second-level cache that schedules use")
    sum_chains: int = fact(4, "vectors", "independent partial sums, to hide latency")
    products_a_cycle: int = fact(16, "a cycle", "products of f32 in a micro-kernel, as throughput")

    sources: Mapping[str, Source] = field(default_factory=dict[str, Source], compare=False, repr=False)
    """The sources of figures, by their names; those of missing figures are typical."""

    # -- for authors ----------------------------------------------------------------------------------------------

    @property
    def tile_bytes(self) -> int:
        """The bytes for a tile of columns between the nests of a group."""
        return self.l2_budget

    @property
    def group_bytes(self) -> int:
        """The bytes of packed panels in one block, multiplied by all rows before the next block: a quarter of the
        second-level cache, beside the rows and the sums."""
        return self.l2_budget // 4

    @property
    def filed_as(self) -> str:
        """The name under which measurements of the machine are filed. For this machine it is the CPU and a digest of
        its features, to distinguish it from other machines in a shared file."""
        return self.name if self.name != "native" else f"{self.cpu}-{self.features}"

    @property
    def row_elements(self) -> int:
        """The elements of a row worth keeping in the cache between the nests of a group, one row a thread."""
        return self.l2_budget // 64

    @property
    def stream_vectors(self) -> int:
        """The vectors of a row read at a time where rows are streamed: a page of the widest vectors. Narrower vectors
        would need more of them for a page; their code was tuned with this number."""
        return max(1, self.page_bytes // self.line_bytes)

    @property
    def l3_share(self) -> int:
        """The bytes of the third-level cache for one core."""
        return self.l3_bytes // max(1, self.l3_cores)

    def cycles_of(self, op: str) -> int:
        """Returns the cycles of an op on one vector, by its name; 1 by default."""
        return _op_cycles(self.op_cycles).get(op, 1)

    def additions_of(self, op: str) -> int:
        """Returns the cost of recomputing an op, by its name, in additions."""
        if op in DIVISIONS:
            return self.division_additions
        return self.function_additions if op.startswith("math.") and op not in CHEAP_MATH else 1

    def source_of(self, name: str) -> Source:
        return self.sources.get(name, "typical")

    # -- as data --------------------------------------------------------------------------------------------------

    def values(self) -> dict[str, Any]:
        """Returns every figure by its name, in JSON's types."""
        found = {f.name: getattr(self, f.name) for f in figures()}
        return {**found, "op_cycles": dict(self.op_cycles)}

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> MachineModel:
        """Returns the machine with these figures, and the default's where there is none: `values` of a machine gives
        an equal one."""
        known = {f.name for f in figures()}
        unknown = sorted(values.keys() - known)
        if unknown:
            raise MachineError(f"a machine has no figure '{unknown[0]}'")
        said = dict(values)
        if "op_cycles" in said:
            said["op_cycles"] = _checked_ops(said["op_cycles"])
        return cls(**said)

    def key(self) -> str:
        """Returns a hash of the figures: part of the cache keys of code for the machine."""
        return hashlib.sha256(json.dumps(self.values(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of a file for `--machine`: each figure with its value, its unit and its source."""
        values = self.values()
        return {
            f.name: {"value": values[f.name], "unit": f.metadata["unit"], "source": self.source_of(f.name)}
            for f in figures()
        }


IDENTITY = ("name", "cpu", "arch", "microarchitecture", "features")
"""The identity of the machine. A file gives it for its readers; a value other than the target's is an error."""

INSTRUCTIONS = (
    "vector_bytes",
    "registers",
    "fma",
    "half_loads",
    "byte_products",
    "byte_tiles",
    "half_tiles",
    "byte_pairs",
    "half_pairs",
)
"""Figures of the target's instruction set: a user may give less of it; more would not be valid code for the target."""

LEAST = {"l3_bytes": 0, "launch_us": 0, "step_cycles": 0, "stretch_lines": 2}
"""The least value of figures where it is 0 or 2 (a stretch of one line is none)."""

TYPICAL = MachineModel()
"""The default machine of passes."""

Derivation = tuple[tuple[str, ...], Callable[[MachineModel], int]]

DERIVED: dict[str, Derivation] = {
    # 1 MiB for every target: with half of it (Neoverse N1) or twice (Sapphire Rapids) tiles would be others.
    "l2_budget": (("l2_bytes",), lambda m: m.l2_bytes),
    # 4 for every target: with less latency (Zen, Neoverse) fewer would do.
    "sum_chains": (("add_latency",), lambda m: max(1, round(m.add_latency))),
    # 16 for every target, right for AVX2 and half of two 512-bit ports: grains of tasks would be others.
    "products_a_cycle": (("fma_ports", "vector_bytes"), lambda m: max(1, int(m.fma_ports * m.vector_bytes / 4))),
    # 64 KiB of f32, about a microsecond of reads from a second-level cache.
    "launch_elements": (("launch_us",), lambda m: max(1, round((1 << 14) * m.launch_us))),
    # A hand-over may take 3% of a task.
    "task_cycles": (("handover_cycles",), lambda m: 32 * m.handover_cycles),
}
"""The assumptions of authors, with the properties behind them; they follow these once one is given or measured."""


def figures() -> list[dataclasses.Field[Any]]:
    """Returns the figures among the fields of a model, in order."""
    return [f for f in dataclasses.fields(MachineModel) if "unit" in f.metadata]


def machine_of(ctx: Context) -> MachineModel:
    """Returns the target machine of a context's passes."""
    found = getattr(ctx, "machine", None)
    return found if isinstance(found, MachineModel) else TYPICAL


@lru_cache(maxsize=8)
def _op_cycles(pairs: tuple[tuple[str, int], ...]) -> dict[str, int]:
    return dict(pairs)


# -- overriding -------------------------------------------------------------------------------------------------------


def given_of(data: Mapping[str, Any]) -> tuple[Given, ...]:
    """Parses the figures of a file or a caller: values by name, each alone or as `{"value": .., "source": ..}`.

    Raises `MachineError` for an unknown name, and for an impossible value.
    """
    found: list[Given] = []
    names = [f.name for f in figures()]
    for name, entry in data.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(names)}"
            raise MachineError(f"unknown figure '{name}' of a machine; {hint}")
        value, source = entry, "given"
        if isinstance(entry, Mapping) and "value" in entry:
            whole = cast("Mapping[str, Any]", entry)
            value, source = whole["value"], whole.get("source", "given")
            unknown = sorted(set(whole) - {"value", "unit", "source"})
            if unknown or source not in get_args(Source):
                what = f"key '{unknown[0]}'" if unknown else f"source '{source}'"
                raise MachineError(
                    f"figure '{name}': unknown {what}; an entry has a value, its unit, and one of the sources "
                    f"{', '.join(get_args(Source))}"
                )
        found.append((name, _checked(name, value), cast("Source", source)))
    return tuple(found)


def override(base: MachineModel, given: Iterable[Given]) -> MachineModel:
    """Returns `base` with other figures, and with the figures derived from them.

    A figure equal to that of `base`, and neither given by hand nor measured, is a copy of it: it decides nothing, and
    figures derived from others stay derived. Raises `MachineError` if the machine cannot be the target's.
    """
    asked = {n: (v, s) for n, v, s in given if s in ("given", "measured") or v != getattr(base, n)}
    changed: dict[str, Any] = {}
    sources = dict(base.sources)
    for name, (value, source) in asked.items():
        own = getattr(base, name)
        if name in IDENTITY and value != own and name != "name":
            raise MachineError(
                f"the machine's {name} is '{value}', but target '{base.name}' has '{own}'; name the target of the "
                f"machine's description, or leave out '{name}'"
            )
        if name in INSTRUCTIONS and value > own:
            raise MachineError(
                f"figure '{name}' is {_shown(value)}, but target '{base.name}' has {_shown(own)}; name a target that "
                "has it"
            )
        if name in IDENTITY:
            continue
        if name == "op_cycles":
            value = tuple(sorted({**dict(own), **dict(value)}.items()))
        changed[name] = value
        sources[name] = source if source in ("given", "measured") else "given"
    model = dataclasses.replace(base, **changed)
    for name, (facts, value) in DERIVED.items():
        if (name not in changed or asked[name][1] == "derived") and any(f in changed for f in facts):
            follows = value(model)
            # A derived figure of a file that differs from its derivation was changed by hand.
            if name not in changed or changed[name] == follows:
                model = dataclasses.replace(model, **{name: follows})
                sources[name] = "derived"
    return dataclasses.replace(model, sources=sources)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _checked(name: str, value: Any) -> Any:
    """Returns `value` as the figure's type; raises `MachineError` for another type, or an impossible value."""
    default = getattr(TYPICAL, name)
    if name == "op_cycles":
        return _checked_ops(value)
    if isinstance(default, str):
        if isinstance(value, str):
            return value
        raise MachineError(f"figure '{name}' is {value!r}; it must be a name")
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        raise MachineError(f"figure '{name}' is {value!r}; it must be true or false")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (isinstance(default, int) and value % 1):
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise MachineError(f"figure '{name}' is {value!r}; it must be {kind}")
    least = LEAST.get(name, 1 if isinstance(default, int) else 0.01)
    if not least <= value < float(1 << 50):
        raise MachineError(f"figure '{name}' is {value}; it must be at least {least}")
    if name == "vector_bytes" and value not in (16, 32, 64):
        raise MachineError(f"figure 'vector_bytes' is {value}; it must be 16, 32 or 64")
    if name == "registers" and value < 8:
        raise MachineError(f"figure 'registers' is {value}; it must be at least 8")
    return type(default)(value)


def _checked_ops(value: Any) -> tuple[tuple[str, int], ...]:
    known = dict(OP_CYCLES)
    if not isinstance(value, Mapping):
        raise MachineError(f"figure 'op_cycles' is {value!r}; it must map names of ops to cycles")
    found: list[tuple[str, int]] = []
    for op, cycles in cast("Mapping[str, Any]", value).items():
        if op not in known:
            close = difflib.get_close_matches(op, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}"
            raise MachineError(f"figure 'op_cycles': op '{op}' always counts as one cycle; {hint}")
        if isinstance(cycles, bool) or not isinstance(cycles, int) or not 0 < cycles < 1_000_000:
            raise MachineError(
                f"figure 'op_cycles': '{op}' takes {cycles!r} cycles; it must be a positive whole number"
            )
        found.append((op, cycles))
    return tuple(sorted(found))


# -- passes -----------------------------------------------------------------------------------------------------------


ISAS = ("avx2", "avx512", "avx512-amx")
"""The instruction sets by which measurements are filed."""


def isa_of(machine: MachineModel) -> str:
    """Returns the instruction set of a machine by the name in `ISAS`; "" for any other."""
    if machine.arch != "x86_64" or not machine.fma or machine.vector_bytes < 32:
        return ""
    if machine.vector_bytes == 32:
        return "avx2"
    return "avx512-amx" if machine.byte_tiles or machine.half_tiles else "avx512"


def pass_figures(machines: Sequence[MachineModel]) -> dict[str, object]:
    """Returns the machine figures for passes, by the names of their options (`igniter.passes`).

    Of several machines, the first gives vectors and tiles. Products of bytes are on if any machine has them. Measured
    points count if all machines have the same instruction set.
    """
    first = machines[0]
    return {
        "vector_bytes": first.vector_bytes,
        "registers": first.registers,
        "half_loads": all(m.half_loads for m in machines),
        "byte_products": any(m.byte_products for m in machines),
        "byte_tiles": first.byte_tiles,
        "half_tiles": first.half_tiles,
        "byte_pairs": first.byte_pairs,
        "half_pairs": first.half_pairs,
        "fma": first.fma,
        "unsigned": all(m.arch == "x86_64" for m in machines),
        "cpu": first.filed_as,
        "points": isas.pop() if len(isas := {isa_of(m) for m in machines}) == 1 else "",
    }
