"""The threads of a pool that run a team: their states, and the steps that each can take."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .code import MOVES, Function, Operand, Step

FIELDS = {
    0: 0,
    64: 1,
    128: 2,
    192: 3,
    **{256 + 64 * slot + 8 * f: 4 + 3 * slot + f for slot in (0, 1) for f in (0, 1, 2)},
}
"""The atomic locations of a team by their offsets in `struct igniter_team`: led, ticket, finished, done, two jobs."""

PROGRAM, BUFFERS, SYMBOLS, SCRATCH, LOOKS = 384, 392, 400, 408, 416
"""The offsets of the fields that are written before the pool starts, and only read afterwards."""

MEMBER, FOR = "igniter_team_member", "igniter_team_for"
"""The task of the pool, and the leader's function for a job."""

LOAD = 448
"""The offset of the leader's account of the team (`load.h`), which only the functions below touch."""

OPAQUE = {
    "igniter_load_pause": (None,),
    "igniter_load_start": (None,),
    "igniter_load_publish": (None,),
    "igniter_load_task": (None,),
    "igniter_load_wait": (None,),
    "igniter_load_ended": (0, 1),
    "igniter_load_stop": (None,),
}
"""The functions of unit `load`, which touch no field of the protocol, and their possible results. The model tries each:
the leader may dismiss the team after any job."""

COMPARED = {
    "ult": operator.lt,
    "uge": operator.ge,
    "ugt": operator.gt,
    "ule": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}
COMPUTED = {
    "add": operator.add, "sub": operator.sub, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "shl": operator.lshift, "lshr": operator.rshift,
}  # fmt: skip
"""Of integers that the protocol keeps far from where 64 bits end."""

TASK = "a task"
"""The name of the frame of a task that a thread is in; its step is the task's number."""

BEGUN, ENDED = 1, 2

View = tuple[int, ...]


class Message(NamedTuple):
    """A value that was stored, and what a thread sees that acquires it (None: nothing but the value)."""

    value: Any
    view: View | None


class Frame(NamedTuple):
    """A call in progress: its function, its next step and the live registers there, in the order of `Function.live`."""

    function: str
    step: int
    registers: tuple[Any, ...]


class Thread(NamedTuple):
    """A thread of the pool; without frames it is between two runs of the task."""

    view: View
    frames: tuple[Frame, ...]
    run: int
    """The run of the program that its frames belong to."""


class State(NamedTuple):
    """All that the future follows from."""

    memory: tuple[tuple[Message, ...], ...]
    threads: tuple[Thread, ...]
    waiting: int
    """Runs of the task that no thread has begun."""
    run: int
    """The run of the program, from 0."""
    ended: int
    """Jobs that the leader has left."""
    tasks: tuple[int, ...]
    """Of each task of each job in turn: 0 not begun, 1 begun, 2 ended."""


class ProtocolFault(Exception):
    """The forbidden outcomes of an interleaving."""


@dataclass(frozen=True)
class World:
    """A program, its jobs by their numbers of tasks, and the pool that runs it."""

    functions: dict[str, Function]
    entry: str
    jobs: tuple[int, ...]
    threads: int
    task_runs: int
    """The number of times that the pool runs the team's task."""
    programs: int = 1
    """Runs of the program one after the other, in the same memory."""
    weak: bool = True
    """Loads may give values that were overwritten; else memory is sequentially consistent."""
    looks: int = 0
    """The number of times that a helper looks for work without success, before it leaves."""
    joins: bool = True
    """The pool returns when all runs of the task have ended (False: when the leader has, a fault of the pool)."""

    @property
    def given(self) -> dict[int, Any]:
        """The values of fields that nobody writes, by their offsets."""
        program = ("address", f"{self.entry}.alone")
        return {PROGRAM: program, BUFFERS: 0, SYMBOLS: 0, SCRATCH: 0, LOOKS: self.looks}

    # -- the state space ----------------------------------------------------------------------------------------------

    def first(self) -> State:
        return self._fresh(0, tuple(Thread(self._nothing(), (), 0) for _ in range(self.threads)))

    def _nothing(self) -> View:
        return (0,) * (len(FIELDS) + sum(self.jobs))

    def _fresh(self, run: int, threads: tuple[Thread, ...]) -> State:
        memory = tuple((Message(0, self._nothing()),) for _ in FIELDS)
        return State(memory, threads, self.task_runs, run, 0, (0,) * sum(self.jobs))

    def is_final(self, state: State) -> bool:
        """All runs of all programs have ended."""
        idle = not any(t.frames for t in state.threads)
        return state.run == self.programs - 1 and state.waiting == 0 and idle

    def check_end(self, state: State) -> None:
        """`ProtocolFault` where a final state has work left."""
        if state.ended != len(self.jobs) or set(state.tasks) - {ENDED}:
            raise ProtocolFault(f"the pool returns after {state.ended} jobs of {len(self.jobs)}")

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        """Each step of each thread, in words, with the state that it leads to."""
        if self._over(state) and state.run + 1 < self.programs:
            yield "the pool returns; the next run", self._next_run(state)
        seen: set[Thread] = set()
        for k, thread in enumerate(state.threads):
            # Threads in equal states can do the same.
            if thread in seen:
                continue
            seen.add(thread)
            for words, after in Moves(self, state, k).all():
                yield f"thread {k}: {words}", after

    def _over(self, state: State) -> bool:
        if self.joins:
            return state.waiting == 0 and not any(t.frames for t in state.threads)
        return state.ended == len(self.jobs) and not any(
            f.function == f"{self.entry}.alone" for t in state.threads for f in t.frames if t.run == state.run
        )

    def _next_run(self, state: State) -> State:
        nothing = self._nothing()
        threads = tuple(t if t.frames else Thread(nothing, (), state.run + 1) for t in state.threads)
        return self._fresh(state.run + 1, threads)

    def canonical(self, state: State) -> State:
        """The state without what no future follows from: which thread is which, what a thread has seen that starts
        nothing more, and messages that no thread can read any more."""
        nothing = self._nothing()
        threads = [t if t.frames or state.waiting else Thread(nothing, (), state.run) for t in state.threads]
        if self.weak:
            views = [t.view for t in threads if t.frames or state.waiting]
            oldest = [min(stamps) for stamps in zip(*views, strict=True)][: len(FIELDS)]
            # What tasks wrote has no history.
            floor = (*oldest, *nothing[len(oldest) :])
            threads = [t._replace(view=lowered(t.view, floor)) for t in threads]
            memory = tuple(
                tuple(Message(value, view and lowered(view, floor)) for value, view in history[floor[k] :])
                for k, history in enumerate(state.memory)
            )
            state = state._replace(memory=memory)
        # Threads whose hashes are equal by chance are in any order: states are then told apart that are one.
        return state._replace(threads=tuple(sorted(threads, key=hash)))

    def first_task(self, job: int) -> int:
        return sum(self.jobs[:job])

    def result_of(self, job: int, index: int) -> int:
        """The place in a view of what a task writes."""
        return len(FIELDS) + self.first_task(job) + index


class Moves:
    """The steps of one thread in one state. A step is one access of memory, or the begin or the end of a task; what
    follows it in registers only is part of it."""

    def __init__(self, world: World, state: State, number: int):
        self._world = world
        self._state = state
        self._number = number
        self._thread = state.threads[number]

    def all(self) -> Iterator[tuple[str, State]]:
        state, world, thread = self._state, self._world, self._thread
        if not thread.frames:
            if state.waiting and thread.run == state.run:
                frame = Call(world.functions[MEMBER], 0, {"data": ("field", 0), "index": 0})
                yield "starts a run of the task", self._go(state._replace(waiting=state.waiting - 1), thread, [frame])
            return
        frames = [
            Call(f, frame.step, dict(zip(f.live[frame.step], frame.registers, strict=True)))
            for frame in thread.frames
            if (f := world.functions.get(frame.function)) is not None
        ]
        top = frames[-1]
        step = top.function.steps[top.step]
        if thread.run != state.run:
            raise ProtocolFault(f"the team of a run that has ended is touched: {step.text}")
        if thread.frames[-1].function == TASK:
            yield self._end_task(thread.frames[-1].step, frames)
        elif step.kind == "call" and (results := OPAQUE.get(_callee(step, top.registers))) is not None:
            for result in results:
                after = [*frames[:-1], top.after(step, result)]
                yield f"{step.text} -> {result}", self._go(state, thread, after)
        elif step.kind == "call":
            yield self._begin_task(step, top.registers)
        else:
            yield from self._access(step, frames)

    # -- memory -------------------------------------------------------------------------------------------------------

    def _access(self, step: Step, frames: list[Call]) -> Iterator[tuple[str, State]]:
        top = frames[-1]
        values = [value_of(o, top.registers) for o in step.operands]
        place = location(values[1] if step.kind == "store" else values[0], step)
        history = self._state.memory[place]
        if step.kind == "store":
            yield step.text, self._stored(step, place, values[0], None, frames)
        elif step.kind == "atomicrmw":
            read = history[-1]
            new = read.value + values[1] if step.detail == "add" else values[1]
            yield f"{step.text} -> {shown(read.value)}", self._stored(step, place, new, read, frames)
        else:
            oldest = self._thread.view[place] if self._world.weak else len(history) - 1
            for stamp in range(oldest, len(history)):
                message = history[stamp]
                view = seen(self._thread.view, place, stamp) if self._world.weak else self._thread.view
                if step.ordering in ("acquire", "seq_cst") and message.view is not None:
                    view = joined(view, message.view)
                after = [*frames[:-1], top.after(step, message.value)]
                words = f"{step.text} -> {shown(message.value)}"
                yield words, self._go(self._state, self._thread._replace(view=view), after)

    def _stored(self, step: Step, place: int, value: Any, read: Message | None, frames: list[Call]) -> State:
        history = self._state.memory[place]
        if self._world.weak:
            view = seen(self._thread.view, place, len(history))
            if read is not None and read.view is not None and step.ordering in ("acquire", "acq_rel", "seq_cst"):
                view = joined(view, read.view)
            carried = view if step.ordering in ("release", "acq_rel", "seq_cst") else None
            if read is not None and read.view is not None and carried is None:
                # An addition goes on with the release sequence of the store that it read.
                carried = read.view
            message = Message(value, carried)
        else:
            view, message, history = self._thread.view, Message(value, None), ()
        memory = (*self._state.memory[:place], (*history, message), *self._state.memory[place + 1 :])
        after = [*frames[:-1], frames[-1].after(step, None if read is None else read.value)]
        return self._go(self._state._replace(memory=memory), self._thread._replace(view=view), after)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def _begin_task(self, step: Step, registers: dict[str, Any]) -> tuple[str, State]:
        world, state = self._world, self._state
        data, index, callee = (value_of(o, registers) for o in step.operands)
        kind, _, number = str(callee[1] if isinstance(callee, tuple) else callee).partition(".")
        if kind != "task":
            raise ProtocolFault(f"{shown(callee)} is called as a task")
        job = int(number)
        name = f"task {index} of job {job}"
        if data != ("address", f"data.{job}"):
            raise ProtocolFault(f"{name} gets the data {shown(data)}")
        if not index < world.jobs[job]:
            raise ProtocolFault(f"{name} begins, and the job has {world.jobs[job]}")
        place = world.first_task(job) + index
        if state.tasks[place]:
            raise ProtocolFault(f"{name} begins twice")
        self._while_led(place)
        if job:
            self._must_see(self._thread.view, job - 1, f"{name} does not see")
        begun = state._replace(tasks=replaced(state.tasks, place, BEGUN))
        thread = self._thread._replace(frames=(*self._thread.frames, Frame(TASK, place, ())))
        return f"begins {name}", self._put(begun, thread)

    def _end_task(self, place: int, frames: list[Call]) -> tuple[str, State]:
        self._while_led(place)
        view = self._thread.view
        if self._world.weak:
            view = seen(view, len(FIELDS) + place, 1)
        ended = self._state._replace(tasks=replaced(self._state.tasks, place, ENDED))
        top = frames[-1]
        after = [*frames[:-1], top.after(top.function.steps[top.step], None)]
        return f"ends task {place}", self._go(ended, self._thread._replace(view=view), after)

    def _while_led(self, place: int) -> None:
        job = next(j for j in range(len(self._world.jobs)) if place < self._world.first_task(j + 1))
        if job != self._state.ended:
            raise ProtocolFault(f"a task of job {job} runs while the leader is at job {self._state.ended}")

    def _must_see(self, view: View, job: int, who: str) -> None:
        for index in range(self._world.jobs[job]):
            if self._world.weak and not view[self._world.result_of(job, index)]:
                raise ProtocolFault(f"{who} what task {index} of job {job} wrote")

    # -- registers ----------------------------------------------------------------------------------------------------

    def _go(self, state: State, thread: Thread, frames: list[Call]) -> State:
        """Runs the thread until its next access, its next task or the end of its run."""
        while frames:
            top = frames[-1]
            step = top.function.steps[top.step]
            if step.kind in ("load", "store", "atomicrmw"):
                pointer = value_of(step.operands[1 if step.kind == "store" else 0], top.registers)
                if step.ordering:
                    break
                if step.kind != "load" or pointer[1] not in self._world.given:
                    raise ProtocolFault(f"an access that races with others: {step.text}")
                frames[-1] = top.after(step, self._world.given[pointer[1]])
            elif step.kind == "call":
                name = _callee(step, top.registers)
                if name in self._world.functions:
                    called = self._world.functions[name]
                    values = [value_of(o, top.registers) for o in step.operands[:-1]]
                    frames.append(Call(called, 0, dict(zip(called.arguments, values, strict=True))))
                elif name.startswith("llvm.") or OPAQUE.get(name) == (None,):
                    frames[-1] = top.after(step, None)
                else:
                    break
            elif step.kind == "ret":
                state = self._returned(state, thread, frames.pop())
                if frames:
                    frames[-1] = frames[-1].after(frames[-1].function.steps[frames[-1].step], None)
            else:
                frames[-1] = top.pure(step)
        return self._put(state, thread._replace(frames=tuple(frame.frozen() for frame in frames)))

    def _returned(self, state: State, thread: Thread, frame: Call) -> State:
        """The invariants when the leader leaves a job, and when it leaves the program."""
        jobs = self._world.jobs
        if frame.function.name == FOR:
            first = self._world.first_task(state.ended)
            for index in range(jobs[state.ended]):
                if state.tasks[first + index] != ENDED:
                    raise ProtocolFault(f"the leader leaves job {state.ended}, whose task {index} has not ended")
            self._must_see(thread.view, state.ended, "the leader does not see")
            return state._replace(ended=state.ended + 1)
        return state

    def _put(self, state: State, thread: Thread) -> State:
        return state._replace(threads=(*state.threads[: self._number], thread, *state.threads[self._number + 1 :]))


class Call:
    """A frame that runs."""

    def __init__(self, function: Function, step: int, registers: dict[str, Any]):
        self.function = function
        self.step = step
        self.registers = registers

    def after(self, step: Step, result: Any) -> Call:
        """The frame behind `step`, which gave `result`."""
        registers = {**self.registers, step.result: result} if step.result else self.registers
        return Call(self.function, self.step + 1, registers)

    def pure(self, step: Step) -> Call:
        """The frame behind a step that touches registers only."""
        values = [value_of(o, self.registers) for o in step.operands]
        if step.kind == "br":
            way = 0 if not values or values[0] else 1
            given = {name: value_of(o, self.registers) for name, o in step.phis[way].items()}
            return Call(self.function, step.where[way], {**self.registers, **given})
        if step.kind == "getelementptr":
            (kind, offset), index = values
            assert kind == "field", step.text
            return self.after(step, ("field", offset + index * int(step.detail)))
        if step.kind in MOVES:
            return self.after(step, values[0])
        if step.kind == "icmp":
            return self.after(step, int(COMPARED[step.detail](*values)))
        return self.after(step, COMPUTED[step.kind](*values))

    def frozen(self) -> Frame:
        names = self.function.live[self.step]
        return Frame(self.function.name, self.step, tuple(self.registers[name] for name in names))


def _callee(step: Step, registers: dict[str, Any]) -> str:
    callee = value_of(step.operands[-1], registers)
    return str(callee[1]) if isinstance(callee, tuple) else ""


def value_of(operand: Operand, registers: dict[str, Any]) -> Any:
    kind, value = operand
    return registers[value] if kind == "register" else value


def location(pointer: Any, step: Step) -> int:
    """Returns the number of the field that a pointer is of."""
    offset = pointer[1] if isinstance(pointer, tuple) and pointer[0] == "field" else None
    if offset not in FIELDS:
        raise ValueError(f"the model knows no such field: {step.text}")
    return FIELDS[offset]


def seen(view: View, place: int, stamp: int) -> View:
    return view if view[place] >= stamp else replaced(view, place, stamp)


def joined(one: View, other: View) -> View:
    return tuple(map(max, one, other))


def lowered(view: View, floor: View) -> View:
    return tuple(max(0, a - b) for a, b in zip(view, floor, strict=True))


def replaced(values: tuple[int, ...], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])


def shown(value: Any) -> str:
    """A value in a trace; tickets as generation and index."""
    if isinstance(value, tuple):
        return f"@{value[1]}"
    return f"{value >> 32}:{value & 0xFFFFFFFF}" if isinstance(value, int) and value >> 32 else str(value)
