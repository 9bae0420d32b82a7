"""The protocol of the team of threads: every interleaving of a few threads, and planted faults that are found."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from igniter.backends.cpu.builder import Module
from igniter.backends.cpu.codegen import _llvm
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.team import emit_team
from igniter.dialects.loop import Team

from .team_model.code import read_functions
from .team_model.execution import World
from .team_model.search import Verdict, explore

Edit = tuple[str, str, str]
"""A function, a line of it (by its begin), and what takes its place."""


def entry(jobs: Sequence[int], looks: int = 0, target: str = "x86-64") -> str:
    """The IR of a program of these jobs, each by the number of its tasks, whose helpers look `looks` times more."""
    module = Module(target_of(target))
    calls = [f"call void %for(ptr %team, ptr @task.{k}, i64 {n}, ptr @data.{k})" for k, n in enumerate(jobs)]
    body = "\n  ".join([*calls, "ret void"])
    module.functions.append(
        f"define internal void @p.alone(ptr %b, ptr %s, ptr %m, ptr %for, ptr %team) #0 {{\n  {body}\n}}"
    )
    module.functions += [f"declare void @task.{k}(ptr, i64)\n@data.{k} = external global i8" for k in range(len(jobs))]
    emit_team(module, "p", Team(64, looks))
    return module.text()


def edited(text: str, edits: Sequence[Edit]) -> str:
    """`text` with lines of functions replaced, all at a time; each edit has to find one line."""
    for function in dict.fromkeys(function for function, _, _ in edits):
        head, mark, rest = text.partition(f"define internal void @{function}(")
        body, end, tail = rest.partition("\n}")
        lines = body.split("\n")
        changed = list(lines)
        for begin, other in ((b, o) for f, b, o in edits if f == function):
            found = [k for k, line in enumerate(lines) if line.strip().startswith(begin)]
            assert mark and len(found) == 1, (function, begin, found)
            changed[found[0]] = other
        text = head + mark + "\n".join(changed) + end + tail
    return text


def searched(
    jobs: Sequence[int],
    threads: int,
    task_runs: int,
    *,
    edits: Sequence[Edit] = (),
    looks: int = 0,
    weak: bool = False,
    programs: int = 1,
    joins: bool = True,
) -> Verdict:
    functions = read_functions(edited(entry(jobs, looks), edits), without="p")
    return explore(World(functions, "p", tuple(jobs), threads, task_runs, programs, weak, joins))


# -- the protocol -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "threads", "task_runs", "given"),
    [
        # A place of a job is used again by the next job but one.
        ((1, 1, 2), 2, 2, {"weak": True}),
        ((2, 1), 3, 3, {}),
        # A helper that leaves comes back with the next run of the task; the next program is in the same memory.
        ((1, 1), 2, 3, {"programs": 2, "looks": 1}),
        # No task, and a pool with one thread.
        ((0, 1), 2, 2, {"weak": True}),
        ((2, 1), 1, 3, {"weak": True}),
    ],
    ids=str,
)
def test_every_interleaving(jobs: tuple[int, ...], threads: int, task_runs: int, given: dict[str, object]) -> None:
    found = searched(jobs, threads, task_runs, **given)  # type: ignore[arg-type]
    assert not found.fault, "\n".join((found.fault, *found.trace))
    assert found.states > (100 if threads > 1 else 20)


@pytest.mark.full
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("jobs", "threads", "task_runs", "given"),
    [
        ((1, 1), 3, 3, {"weak": True}),
        ((2, 1, 2), 2, 3, {"weak": True, "looks": 1}),
        ((2, 2, 2), 3, 4, {"looks": 1}),
        ((2, 1), 3, 4, {"programs": 2}),
        ((2, 1), 4, 4, {}),
    ],
    ids=str,
)
def test_every_interleaving_of_more(
    jobs: tuple[int, ...], threads: int, task_runs: int, given: dict[str, object]
) -> None:
    found = searched(jobs, threads, task_runs, **given)  # type: ignore[arg-type]
    assert not found.fault, "\n".join((found.fault, *found.trace))
    print(f"{jobs}, {threads} threads, {task_runs} runs, {given}: {found.states} states, {found.steps} steps")


# -- planted faults ---------------------------------------------------------------------------------------------------

FOR, HELP, ENTRY = "igniter.team.for", "igniter.team.help", "p.team"
DONE, TAKE = "%finished.at, i64 1 acq_rel, align 8", "= atomicrmw add ptr %ticket.at, i64 1 acq_rel, align 8"


def stored(field: str, value: str, ordering: str) -> Edit:
    return FOR, f"store atomic {value}, ptr %{field}.at", f"store atomic {value}, ptr %{field}.at {ordering}, align 8"


Faults = dict[str, tuple[list[Edit], dict[str, object], str]]
"""Edits of the code, what to search, and what the fault found says (one of several, apart by `|`), by their names."""

ORDERS: Faults = {
    "a task counts as done before it has run": (
        [
            (HELP, "call void %task", f"%own = atomicrmw add ptr {DONE}"),
            (HELP, "%own = atomicrmw", "call void %task(ptr %data, i64 %index)"),
        ],
        {},
        "runs while the leader is at job|has not ended",
    ),
    "the generation is read before the job": (
        [
            (HELP, "%task = load", "%now = load atomic i64, ptr %ticket.at acquire, align 8"),
            (HELP, "%now = load", "%task = load atomic ptr, ptr %task.at acquire, align 8"),
        ],
        {"jobs": (1, 1, 2)},
        "the job has 1|gets the data|begins twice|runs while",
    ),
    "a job is published before its count is reset": (
        [
            (FOR, "store atomic i64 0, ptr %finished.at", ""),
            (
                FOR,
                "store atomic i64 %first",
                "store atomic i64 %first, ptr %ticket.at release, align 8\n"
                "store atomic i64 0, ptr %finished.at monotonic, align 8",
            ),
        ],
        {},
        "no step leads to an end",
    ),
    "the pool returns while helpers are inside": (
        [],
        {"programs": 2, "joins": False},
        "the team of a run that has ended is touched",
    ),
}

OMISSIONS: Faults = {
    "one place for all jobs": (
        [
            (FOR, "%which = and", "%which = and i64 %generation, 0"),
            (HELP, "%which = and", "%which = and i64 %generation, 0"),
            (HELP, "%seen.which = and", "%seen.which = and i64 %seen.generation, 0"),
        ],
        {"jobs": (1, 2)},
        "the job has|gets the data|runs while|begins twice",
    ),
    "a helper does not look at the generation again": (
        [(HELP, "%mine = and", "%mine = and i1 %inside, %inside")],
        {"jobs": (1, 1, 2)},
        "the job has 1|gets the data|begins twice|runs while",
    ),
    "the count of ended tasks is not reset": (
        [(FOR, "store atomic i64 0, ptr %finished.at", "")],
        {},
        "has not ended",
    ),
    "the leader takes no tasks": (
        [(FOR, "%more = icmp", "%more = icmp ult i64 %index, 0")],
        {},
        "no step leads to an end",
    ),
    "helpers are not told the end and do not tire": (
        [
            (ENTRY, "store atomic i64 1, ptr %done.at", ""),
            (HELP, "%more.looks = add", "%more.looks = add i64 %looks, 0"),
        ],
        {},
        "no step leads to an end",
    ),
    "two threads lead": (
        [
            (
                ENTRY,
                "%leads = atomicrmw",
                "%leads = load atomic i64, ptr %team acquire, align 8\nstore atomic i64 1, ptr %team release, align 8",
            )
        ],
        {},
        "begins twice|runs while|the leader leaves|task",
    ),
}

ORDERINGS: Faults = {
    "the fields of a job are stored without release": (
        [
            stored("task", "ptr %task", "monotonic"),
            stored("count", "i64 %count", "monotonic"),
            stored("data", "ptr %data", "monotonic"),
        ],
        {"jobs": (1, 1, 2), "weak": True},
        "the job has 1",
    ),
    "a job is published without release": (
        [stored("ticket", "i64 %first", "monotonic")],
        {"weak": True},
        "no step leads to an end|called as a task|gets the data",
    ),
    "a helper takes a task without acquire": (
        [(HELP, "%ticket = atomicrmw", f"%ticket {TAKE.replace('acq_rel', 'release')}")],
        {"weak": True},
        "no step leads to an end|called as a task|gets the data|does not see",
    ),
    "a helper ends a task without release": (
        [(HELP, "%own = atomicrmw", f"%own = atomicrmw add ptr {DONE.replace('acq_rel', 'acquire')}")],
        {"weak": True},
        "the leader does not see",
    ),
    "the leader waits without acquire": (
        [(FOR, "%finished = load", "%finished = load atomic i64, ptr %finished.at monotonic, align 8")],
        {"weak": True},
        "the leader does not see",
    ),
}


def must_find(edits: list[Edit], given: dict[str, object], message: str) -> None:
    given = {"jobs": (1, 1), "threads": 2, "task_runs": 2, **given}
    found = searched(edits=edits, **given)  # type: ignore[arg-type]
    assert found.fault
    assert any(part in found.fault for part in message.split("|")), "\n".join((found.fault, *found.trace))


@pytest.mark.parametrize("name", ORDERS)
def test_steps_in_another_order_are_found(name: str) -> None:
    must_find(*ORDERS[name])


@pytest.mark.parametrize("name", OMISSIONS)
def test_a_step_that_is_left_out_is_found(name: str) -> None:
    must_find(*OMISSIONS[name])


@pytest.mark.parametrize("name", ORDERINGS)
def test_a_weaker_ordering_is_found(name: str) -> None:
    must_find(*ORDERINGS[name])


# -- the model and the code -------------------------------------------------------------------------------------------


def unnumbered(text: str) -> str:
    """An instruction without the number that LLVM gives to a type of a name that it has seen before."""
    return re.sub(r"(%igniter\.team)\.\d+", r"\1", text)


@pytest.mark.parametrize("target", ["x86-64", "aarch64"])
def test_the_model_runs_what_is_compiled(target: str) -> None:
    """The steps of the model are the instructions of the module, those of both architectures alike."""
    text = entry((1, 1), 7, target)
    found = read_functions(text, without="p")
    module = _llvm().parse_assembly(text)
    for name, function in found.items():
        own = [i for b in module.get_function(name).blocks for i in b.instructions if i.opcode != "phi"]
        assert [step.kind for step in function.steps] == [i.opcode for i in own]
        assert [unnumbered(step.text) for step in function.steps] == [unnumbered(str(i).strip()) for i in own]
    assert found.keys() == {"p.alone", "p.team", "igniter.team.for", "igniter.team.help"}
    other = read_functions(entry((1, 1), 7), without="p")
    for name, function in found.items():
        pairs = zip(function.steps, other[name].steps, strict=True)
        assert all(unnumbered(a.text) == unnumbered(b.text) for a, b in pairs if "@llvm." not in a.text + b.text)


def test_the_team_is_0_before_the_pool_is_entered() -> None:
    """The model begins behind the entry, with fields that are 0."""
    module = _llvm().parse_assembly(entry((1,)))
    blocks = {b.name: list(b.instructions) for b in module.get_function("p").blocks}
    first, *rest = blocks["together"]
    assert first.opcode == "store" and next(first.operands).value_kind.name == "constant_aggregate_zero"
    assert [i.opcode for i in rest if i.opcode != "getelementptr"] == ["store", "store", "store", "call", "ret"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fence seq_cst", "the model has no meaning for: fence"),
        ("%x = load i64, ptr %done.at, align 8", "an access that races with others"),
        ("%x = atomicrmw umax ptr %done.at, i64 1 acq_rel, align 8", "the model has no meaning for"),
        ("%y = getelementptr %igniter.team, ptr %team, i64 0, i32 1\n"
         "%x = load atomic i64, ptr %y acquire, align 8", "the model knows no such field"),
    ],
)  # fmt: skip
def test_steps_that_the_model_does_not_know_are_refused(line: str, message: str) -> None:
    edits = [(HELP, "%done = load", f"{line}\n%done = load atomic i64, ptr %done.at acquire, align 8")]
    try:
        said = searched((1,), 2, 2, edits=edits).fault
    except ValueError as error:
        said = str(error)
    assert message in said
