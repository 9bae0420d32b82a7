"""Every state that a world can reach, and what is wrong with one of them."""

from __future__ import annotations

from dataclasses import dataclass

from .execution import ProtocolFault, State, World


@dataclass(frozen=True)
class Verdict:
    """What a search found: the number of states and of steps between them, and a fault with the steps that lead to it
    (empty: there is none)."""

    states: int
    steps: int
    fault: str = ""
    trace: tuple[str, ...] = ()


def explore(world: World, limit: int = 5_000_000) -> Verdict:
    """Visits every state, breadth first, so that a fault's trace is a shortest one. `RuntimeError` above `limit`
    states: nothing is left out without a word."""
    first = world.first()
    numbers = {world.canonical(first): 0}
    states, parents = [first], [-1]
    before: list[list[int]] = [[]]
    finals: list[int] = []
    number = steps = 0
    while number < len(states):
        state = states[number]
        try:
            if world.is_final(state):
                world.check_end(state)
                finals.append(number)
            for _, after in world.successors(state):
                steps += 1
                found = numbers.setdefault(world.canonical(after), len(states))
                if found == len(states):
                    if found >= limit:
                        raise RuntimeError(f"more than {limit} states")
                    states.append(after)
                    parents.append(number)
                    before.append([])
                before[found].append(number)
        except ProtocolFault as fault:
            return Verdict(len(states), steps, str(fault), _trace(world, states, parents, number))
        number += 1
    stuck = _stuck(before, finals)
    if stuck is not None:
        trace = _trace(world, states, parents, stuck)
        return Verdict(len(states), steps, "no step leads to an end from here", trace)
    return Verdict(len(states), steps)


def _stuck(before: list[list[int]], finals: list[int]) -> int | None:
    """The first state from which no final one can be reached."""
    reaches = bytearray(len(before))
    todo = list(finals)
    for number in todo:
        reaches[number] = 1
    while todo:
        for number in before[todo.pop()]:
            if not reaches[number]:
                reaches[number] = 1
                todo.append(number)
    found = reaches.find(0)
    return None if found < 0 else found


def _trace(world: World, states: list[State], parents: list[int], number: int) -> tuple[str, ...]:
    words: list[str] = []
    while (parent := parents[number]) >= 0:
        words.append(next(text for text, after in world.successors(states[parent]) if after == states[number]))
        number = parent
    return tuple(reversed(words))
