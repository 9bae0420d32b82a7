"""The protocol of the team of threads: every interleaving of a few threads, and planted faults that are found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from igniter.backends.c_runtime.build import SOURCES, compile_unit
from igniter.backends.c_runtime.units import link_needed, units
from igniter.backends.cpu.builder import LlvmModule
from igniter.backends.cpu.codegen import _llvm, parse
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.team import RUN, emit_team
from igniter.dialects.loop import Team

from .team_model.code import read_functions
from .team_model.execution import BUFFERS, FIELDS, FOR, LOOKS, MEMBER, OPAQUE, PROGRAM, SCRATCH, SYMBOLS, World
from .team_model.search import Verdict, explore

Edit = tuple[str, str]
"""A piece of `team.c`, and what takes its place."""

OUTSIDE = {"p", RUN, *OPAQUE, *units("x86_64")["load"].functions}
"""The functions that the model does not read."""

compiles = pytest.mark.skipif(find_spec("ziglang") is None, reason="faults are planted in C, and ziglang is missing")


def entry(jobs: Sequence[int], target: str = "x86-64", edits: Sequence[Edit] = ()) -> Any:
    """A program of these jobs, each by the number of its tasks, linked with the team."""
    module = LlvmModule(target_of(target))
    calls = [f"call void %for(ptr %team, ptr @task.{k}, i64 {n}, ptr @data.{k})" for k, n in enumerate(jobs)]
    body = "\n  ".join([*calls, "ret void"])
    module.functions.append(
        f"define internal void @p.alone(ptr %b, ptr %s, ptr %m, ptr %for, ptr %team) #0 {{\n  {body}\n}}"
    )
    module.functions += [f"declare void @task.{k}(ptr, i64)\n@data.{k} = external global i8" for k in range(len(jobs))]
    emit_team(module, "p", Team(64, 7))
    context = _llvm().create_context()
    made = parse(module.text(), context)
    if edits:
        made.link_in(parse(edited(tuple(edits)), context))
    else:
        link_needed(made, context, module.target.arch)
    return made


@cache
def edited(edits: tuple[Edit, ...]) -> str:
    """The IR of `team.c` with these edits; each has to find its piece in one place."""
    text = (SOURCES / "team.c").read_text()
    for piece, other in edits:
        assert text.count(piece) == 1, (piece, text.count(piece))
        text = text.replace(piece, other)
    with TemporaryDirectory() as folder:
        for header in SOURCES.glob("*.h"):
            (Path(folder) / header.name).write_text(header.read_text())
        (Path(folder) / "team.c").write_text(text)
        return compile_unit("team", "x86_64", Path(folder))


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
    functions = read_functions(entry(jobs, edits=edits), without=OUTSIDE)
    return explore(World(functions, "p", tuple(jobs), threads, task_runs, programs, weak, looks, joins))


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

RELAXED = "__ATOMIC_RELAXED"


def stored(field: str, value: str, ordering: str, other: str = RELAXED) -> Edit:
    return f"__atomic_store_n(&{field}, {value}, {ordering})", f"__atomic_store_n(&{field}, {value}, {other})"


def loaded(into: str, field: str, ordering: str = RELAXED) -> Edit:
    return f"{into}__atomic_load_n(&{field}, __ATOMIC_ACQUIRE)", f"{into}__atomic_load_n(&{field}, {ordering})"


Faults = dict[str, tuple[list[Edit], dict[str, object], str]]
"""Edits of the code, what to search, and what the fault found says (one of several, apart by `|`), by their names."""

ORDERS: Faults = {
    "a task counts as done before it has run": (
        [("    task(data, INDEX(ticket));\n    ENDED(team);", "    ENDED(team);\n    task(data, INDEX(ticket));")],
        {},
        "runs while the leader is at job|has not ended",
    ),
    "the generation is read before the job": (
        [
            ("  uint64_t now = __atomic_load_n(&team->ticket, __ATOMIC_ACQUIRE);\n", ""),
            (
                "  igniter_task task = __atomic",
                "  uint64_t now = __atomic_load_n(&team->ticket, __ATOMIC_ACQUIRE);\n  igniter_task task = __atomic",
            ),
        ],
        {"jobs": (1, 1, 2)},
        "the job has 1|gets the data|begins twice|runs while",
    ),
    "a job is published before its count is reset": (
        [
            ("  __atomic_store_n(&team->finished, 0, __ATOMIC_RELAXED);\n", ""),
            (
                "  __atomic_store_n(&team->ticket, first, __ATOMIC_RELEASE);\n",
                "  __atomic_store_n(&team->ticket, first, __ATOMIC_RELEASE);\n"
                "  __atomic_store_n(&team->finished, 0, __ATOMIC_RELAXED);\n",
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
        [("jobs[GENERATION(ticket) & 1]", "jobs[GENERATION(ticket) & 0]")],
        {"jobs": (1, 2)},
        "the job has|gets the data|runs while|begins twice",
    ),
    "a helper does not look at the generation again": (
        [("GENERATION(now) == GENERATION(ticket) && ", "(void)now, ")],
        {"jobs": (1, 1, 2)},
        "the job has 1|gets the data|begins twice|runs while",
    ),
    "the count of ended tasks is not reset": (
        [("  __atomic_store_n(&team->finished, 0, __ATOMIC_RELAXED);\n", "")],
        {},
        "has not ended",
    ),
    "the leader takes no tasks": (
        [("(index = INDEX(NEXT(team))) < count;", "(index = INDEX(NEXT(team))) < 0;")],
        {},
        "no step leads to an end",
    ),
    "helpers are not told the end and do not tire": (
        [("\n  __atomic_store_n(&team->done, 1, __ATOMIC_RELEASE);\n", "\n"), ("if (++idle >", "if (idle >")],
        {},
        "no step leads to an end",
    ),
    "a dismissed helper is given tasks": (
        [
            (
                "    for (uint64_t index = 0; index < count; index++)\n      task(data, index);\n    return;\n",
                "    __atomic_store_n(&team->done, 0, __ATOMIC_RELEASE);\n"
                "    for (uint64_t index = 0; index < count; index++)\n      task(data, index);\n    return;\n",
            ),
            ("  __atomic_store_n(&team->finished, 0, __ATOMIC_RELAXED);\n", ""),
        ],
        {"jobs": (1, 1, 1)},
        "has not ended",
    ),
    "two threads lead": (
        [
            (
                "if (__atomic_exchange_n(&team->led, 1, __ATOMIC_ACQ_REL)) {",
                "uint64_t led = __atomic_load_n(&team->led, __ATOMIC_ACQUIRE);\n"
                "  __atomic_store_n(&team->led, 1, __ATOMIC_RELEASE);\n"
                "  if (led) {",
            )
        ],
        {},
        "begins twice|runs while|the leader leaves|task",
    ),
}

ORDERINGS: Faults = {
    "the fields of a job are stored without release": (
        [
            stored("job->task", "task", "__ATOMIC_RELEASE"),
            stored("job->count", "count", "__ATOMIC_RELEASE"),
            stored("job->data", "data", "__ATOMIC_RELEASE"),
        ],
        {"jobs": (1, 1, 2), "weak": True},
        "the job has 1",
    ),
    "a job is published without release": (
        [stored("team->ticket", "first", "__ATOMIC_RELEASE")],
        {"weak": True},
        "no step leads to an end|called as a task|gets the data",
    ),
    "a helper takes a task without acquire": (
        [
            (
                "uint64_t ticket = NEXT(team);",
                "uint64_t ticket = __atomic_fetch_add(&team->ticket, 1, __ATOMIC_RELEASE);",
            )
        ],
        {"weak": True},
        "no step leads to an end|called as a task|gets the data|does not see",
    ),
    "a helper ends a task without release": (
        [
            (
                "    task(data, INDEX(ticket));\n    ENDED(team);",
                "    task(data, INDEX(ticket));\n    __atomic_fetch_add(&team->finished, 1, __ATOMIC_ACQUIRE);",
            )
        ],
        {"weak": True},
        "the leader does not see",
    ),
    "the leader waits without acquire": (
        [loaded("while (", "team->finished")],
        {"weak": True},
        "the leader does not see",
    ),
}


def must_find(edits: list[Edit], given: dict[str, object], message: str) -> None:
    given = {"jobs": (1, 1), "threads": 2, "task_runs": 2, **given}
    found = searched(edits=edits, **given)  # type: ignore[arg-type]
    assert found.fault
    assert any(part in found.fault for part in message.split("|")), "\n".join((found.fault, *found.trace))


@compiles
@pytest.mark.parametrize("name", ORDERS)
def test_steps_in_another_order_are_found(name: str) -> None:
    must_find(*ORDERS[name])


@compiles
@pytest.mark.parametrize("name", OMISSIONS)
def test_a_step_that_is_left_out_is_found(name: str) -> None:
    must_find(*OMISSIONS[name])


@compiles
@pytest.mark.parametrize("name", ORDERINGS)
def test_a_weaker_ordering_is_found(name: str) -> None:
    must_find(*ORDERINGS[name])


# -- the model and the code -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["x86-64", "aarch64"])
def test_the_model_runs_what_is_compiled(target: str) -> None:
    """The steps of the model are the instructions of the module, those of both architectures alike."""
    module = entry((1, 1), target)
    found = read_functions(module, without=OUTSIDE)
    for name, function in found.items():
        own = [i for b in module.get_function(name).blocks for i in b.instructions if i.opcode != "phi"]
        assert [step.kind for step in function.steps] == [i.opcode for i in own]
        assert [step.text for step in function.steps] == [str(i).strip() for i in own]
    assert found.keys() == {"p.alone", MEMBER, FOR}
    other = read_functions(entry((1, 1)), without=OUTSIDE)
    for name, function in found.items():
        pairs = zip(function.steps, other[name].steps, strict=True)
        assert all(_without_attributes(a.text) == _without_attributes(b.text) for a, b in pairs)


def _without_attributes(text: str) -> str:
    """The text of an instruction without the number of its attribute group, which the rest of the module decides."""
    return re.sub(r" #\d+$", "", text)


def test_the_team_is_0_before_the_pool_is_entered() -> None:
    """The model begins behind the entry, with locations that are 0."""
    functions = read_functions(entry((1,)), without=OUTSIDE - {RUN})
    written: dict[int, object] = {}
    address: dict[str, int] = {}
    for step in functions[RUN].steps:
        if step.kind == "alloca":
            address[step.result] = 0
        elif step.kind == "getelementptr":
            (_, base), (_, index) = step.operands
            address[step.result] = address[base] + index * int(step.detail)
        elif step.kind == "store":
            (_, value), (_, to) = step.operands
            written[address[to]] = value
        elif step.kind == "call" and step.operands[-1] == ("register", "parallel_for"):
            break
    else:
        raise AssertionError("the pool is not entered")
    assert {offset: value for offset, value in written.items() if offset in FIELDS} == dict.fromkeys(FIELDS, 0)
    assert written.keys() - FIELDS == {PROGRAM, BUFFERS, SYMBOLS, SCRATCH, LOOKS}


@compiles
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("__atomic_thread_fence(__ATOMIC_SEQ_CST);", "the model has no meaning for: fence"),
        ("if (*(volatile uint64_t *)&team->done) return;", "an access that races with others"),
        ("if (__atomic_fetch_or(&team->done, 1, __ATOMIC_ACQ_REL)) return;", "the model has no meaning for"),
        ("if (__atomic_load_n((uint64_t *)((char *)team + 8), __ATOMIC_ACQUIRE)) return;",
         "the model knows no such field"),
    ],
)  # fmt: skip
def test_steps_that_the_model_does_not_know_are_refused(line: str, message: str) -> None:
    edits = [("  uint64_t idle = 0;\n", f"  uint64_t idle = 0;\n  {line}\n")]
    try:
        said = searched((1,), 2, 2, edits=edits).fault
    except ValueError as error:
        said = str(error)
    assert message in said
