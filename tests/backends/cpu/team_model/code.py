"""The functions of a module as lists of steps, read with llvmlite's parser."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from igniter.backends.cpu.codegen import _llvm

Operand = tuple[str, Any]
"""("register", name) or ("value", an integer or ("address", name))."""

ORDERING = re.compile(r" (monotonic|acquire|release|acq_rel|seq_cst), align \d+$")
PURE = {"add", "sub", "and", "or", "xor", "shl", "lshr"}
MOVES = {"ptrtoint", "inttoptr"}
"""An atomic pointer is an integer to clang."""
ADDRESS = re.compile(r"= getelementptr (?:inbounds |nuw |nusw )*(\S+), ptr [^,]+, \S+ [^,]+$")
PREDICATE = re.compile(r"= icmp (\w+) ")
RMW = re.compile(r"= atomicrmw (add|xchg) ")


@dataclass
class Step:
    """One instruction. `where` are the indices of the steps that branches go to."""

    kind: str
    result: str
    operands: tuple[Operand, ...]
    detail: str = ""
    ordering: str = ""
    where: tuple[int, ...] = ()
    phis: tuple[dict[str, Operand], ...] = ()
    """Of a branch: what each of its targets takes from this block, by the phi's name."""
    text: str = ""


@dataclass
class Function:
    """A function's steps in order. `live` are the registers that a step and those behind it may read."""

    name: str
    arguments: tuple[str, ...]
    steps: list[Step] = field(default_factory=list)
    live: list[tuple[str, ...]] = field(default_factory=list)


def read_functions(module: Any, without: Collection[str] = ()) -> dict[str, Function]:
    """Every function of a module with a body, except `without`, by name; `ValueError` for an unknown instruction."""
    module.verify()
    layout = _llvm().create_target_data("e-i64:64")
    sizes = {"i8": 1, **{f"%{t.name}": layout.get_abi_size(t) for t in module.struct_types}}
    found: dict[str, Function] = {}
    for function in module.functions:
        if not function.is_declaration and function.name not in without:
            _name_values(function)
            found[function.name] = _read(function, sizes)
    return found


def _name_values(function: Any) -> None:
    """Gives a name to each value that clang left without one."""
    for block in function.blocks:
        for i in block.instructions:
            if not i.name and str(i.type) != "void":
                i.name = "v"


def _read(function: Any, sizes: Mapping[str, int]) -> Function:
    blocks = list(function.blocks)
    phis: dict[str, list[Any]] = {}
    starts: dict[str, int] = {}
    flat: list[tuple[str, Any]] = []
    for block in blocks:
        instructions = list(block.instructions)
        phis[block.name] = [i for i in instructions if i.opcode == "phi"]
        starts[block.name] = len(flat)
        flat += [(block.name, i) for i in instructions if i.opcode != "phi"]
    made = Function(function.name, tuple(a.name for a in function.arguments))
    made.steps = [_step(i, block, starts, phis, sizes) for block, i in flat]
    made.live = _live(made.steps)
    return made


def _step(i: Any, block: str, starts: dict[str, int], phis: dict[str, list[Any]], sizes: Mapping[str, int]) -> Step:
    text = str(i).strip()
    operands = list(i.operands)
    if i.opcode == "br":
        # LLVM lists the condition, then the target where it does not hold.
        targets = [o.name for o in operands if o.value_kind.name == "basic_block"][::-1]
        return Step(
            "br",
            "",
            tuple(_operand(o) for o in operands if o.value_kind.name != "basic_block"),
            where=tuple(starts[t] for t in targets),
            phis=tuple({p.name: _incoming(p, block) for p in phis[t]} for t in targets),
            text=text,
        )
    step = Step(i.opcode, i.name, tuple(_operand(o) for o in operands), text=text)
    if i.opcode in ("load", "store", "atomicrmw"):
        ordering = ORDERING.search(text)
        step.ordering = ordering[1] if ordering else ""
    if i.opcode == "atomicrmw":
        step.detail = _match(RMW, text)
    elif i.opcode == "icmp":
        step.detail = _match(PREDICATE, text)
    elif i.opcode == "getelementptr":
        # One index, of elements of a known size.
        size = sizes.get(_match(ADDRESS, text))
        if size is None:
            raise ValueError(f"the model has no meaning for: {text}")
        step.detail = str(size)
    elif i.opcode not in PURE | MOVES | {"load", "store", "call", "ret", "alloca"}:
        raise ValueError(f"the model has no meaning for: {text}")
    return step


def _match(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    if found is None:
        raise ValueError(f"the model has no meaning for: {text}")
    return found[1]


def _incoming(phi: Any, block: str) -> Operand:
    blocks = [b.name for b in phi.incoming_blocks]
    return _operand(list(phi.operands)[blocks.index(block)])


def _operand(value: Any) -> Operand:
    kind = value.value_kind.name
    if kind in ("instruction", "argument"):
        return ("register", value.name)
    if kind in ("function", "global_variable"):
        return ("value", ("address", value.name))
    if kind == "constant_pointer_null":
        return ("value", 0)
    if kind != "constant_int":
        raise ValueError(f"the model has no meaning for the operand {value}")
    return ("value", value.get_constant_value())


def _live(steps: list[Step]) -> list[tuple[str, ...]]:
    """The registers that are live before each step."""
    live: list[set[str]] = [set() for _ in steps]
    changed = True
    while changed:
        changed = False
        for k in reversed(range(len(steps))):
            step = steps[k]
            after: set[str] = set()
            if step.kind == "br":
                for target, phis in zip(step.where, step.phis, strict=True):
                    after |= (live[target] - set(phis)) | {name for kind, name in phis.values() if kind == "register"}
            elif step.kind != "ret":
                after = live[k + 1]
            before = (after - {step.result}) | {name for kind, name in step.operands if kind == "register"}
            if before != live[k]:
                live[k], changed = before, True
    return [tuple(sorted(names)) for names in live]
