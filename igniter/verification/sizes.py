"""Sizes for the symbolic dims of a model: proposals from its facts, and a search for sizes that run.

The search has two parts. The first finds any assignment that runs in the original. It tries the rungs of a ladder of
sizes by role: each unchanged, then with equal sizes for dims inferred to be equal, then for dims of one role, and the
same with a batch of one. The second part starts there and looks for several kinds of cases, since each finds other
faults: all ones, all different, odd, equal, many rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from igniter.dialects.sym.expr import Expr
from igniter.verification.graph_facts import GraphFacts
from igniter.verification.report import Refusal
from igniter.verification.roles import Role, roles_of, tied_by_role
from igniter.verification.specs import InputSpec, symbols_of

Sizes = dict[str, int]
Ties = Mapping[str, "str | int | Expr"]
"""The value of each tied symbol: another symbol, a number, or an expression over symbols."""
Rung = Mapping[Role, tuple[int, ...]]
"""Sizes by role: for the first symbol of the role, the second ...; the last size is repeated."""


def _rung(
    batch: tuple[int, ...],
    height: int,
    width: int,
    length: tuple[int, ...],
    frames: tuple[int, ...],
    samples: int,
    channels: int = 3,
    other: tuple[int, ...] = (),
) -> Rung:
    return {
        Role.BATCH: batch,
        Role.HEIGHT: (height,),
        Role.WIDTH: (width,),
        Role.LENGTH: length,
        Role.FRAMES: frames,
        Role.SAMPLES: (samples,),
        Role.CHANNELS: (channels,),
        Role.OTHER: other or length,
    }


ONES: Rung = dict.fromkeys(Role, (1,))
UNEQUAL = _rung((3, 2, 4), 64, 96, (8, 7, 5, 6, 9, 11), (100, 70), 1536)
ODD = _rung((1, 3), 33, 47, (13, 21, 17, 9), (101, 75), 1537)
EQUAL = _rung((2,), 64, 64, (13,), (64,), 512)
MANY = _rung((9, 2), 128, 160, (67, 23, 17, 9), (300, 70), 16000)

LADDER: tuple[Rung, ...] = (
    UNEQUAL,
    _rung((1,), 48, 192, (32, 17, 23, 9), (100,), 16000),
    _rung((1,), 224, 224, (13,), (200,), 512, 1, (16,)),
    _rung((1,), 320, 320, (64,), (128,), 576, 3, (64,)),
    _rung((2,), 32, 32, (16,), (64,), 4096, 4, (128,)),
    _rung((1,), 640, 640, (128,), (300,), 32000, 3, (256,)),
    _rung((1,), 48, 320, (77,), (80,), 1024, 2, (512,)),
    _rung((1,), 256, 256, (256,), (3000,), 48000, 3, (768,)),
    _rung((1,), 112, 112, (512,), (32,), 400, 3, (4,)),
    _rung((1,), 28, 28, (50,), (1000,), 160, 1, (10,)),
    _rung((1,), 512, 512, (197,), (16,), 80000, 3, (2,)),
)


@dataclass(frozen=True)
class Proposal:
    """Sizes worth trying, with the kind of their case."""

    kind: str
    sizes: Sizes


T = TypeVar("T")


@dataclass
class Search(Generic[T]):
    """A search for sizes. `attempt` runs the original at some sizes and returns its result or a `Refusal`. `fixed`
    holds the requested sizes."""

    specs: Sequence[InputSpec]
    facts: GraphFacts
    attempt: Callable[[Sizes], T | Refusal]
    fixed: Sizes = field(default_factory=dict[str, int])
    deadline: float = float("inf")
    """The end of the search, in `time.monotonic` seconds."""
    most: int = 60
    """The maximum number of assignments to try."""
    refused: list[Refusal] = field(default_factory=list[Refusal])
    last: Sizes | None = None
    """The last sizes of a run."""
    _known_ties: list[Ties] | None = None
    _seen: dict[tuple[tuple[str, int], ...], T | None] = field(
        default_factory=dict[tuple[tuple[str, int], ...], "T | None"]
    )

    def run(self) -> Iterator[tuple[Proposal, T]]:
        """Yields valid assignments with the results of their runs: cases of different kinds, small ones first."""
        free = [s for s in symbols_of(self.specs) if s not in self.fixed]
        if not free:
            yield from self._try(Proposal("given" if self.fixed else "as in the model", dict(self.fixed)))
            return
        numbers = tied_by_inference(self.specs, self.facts.dims)
        self.fixed = {**{s: n for s in free if isinstance(n := numbers.get(s), int)}, **self.fixed}
        free = [s for s in free if s not in self.fixed]
        found: list[Sizes] = []
        for result in self._steps(free):
            found.append(result[0].sizes)
            yield result
        if found:
            return
        roles = {s: r for s, r in roles_of(self.specs, self._convolved()).items() if s in free}
        for result in self._first(roles):
            found.append(result[0].sizes)
            yield result
        if found:
            yield from self._kinds(roles, found)

    def _steps(self, free: Sequence[str]) -> Iterator[tuple[Proposal, T]]:
        """Yields steps and prompts of a decoder with caches."""
        if self.facts.caches is None:
            return
        for kind, sizes in self.facts.caches.sizes():
            if set(free) <= set(sizes) and not self._is_over():
                yield from self._try(Proposal(kind, {**{s: sizes[s] for s in free}, **self.fixed}))

    # -- a first assignment -------------------------------------------------------------------------------------------

    def _first(self, roles: Mapping[str, Role]) -> Iterator[tuple[Proposal, T]]:
        """Yields all ones, if that runs, and the first other valid assignment."""
        yield from self._try(Proposal("ones", {**_sizes(roles, ONES), **self.fixed}))
        for kind, sizes in self._proposals(roles):
            if self._is_over():
                return
            hits = list(self._try(Proposal(kind, {**sizes, **self.fixed})))
            if hits:
                yield from hits
                return

    def _proposals(self, roles: Mapping[str, Role]) -> Iterator[tuple[str, Sizes]]:
        ties = self._ties(roles)
        for rung in self._rungs():
            sizes = {**_sizes(roles, rung), **self.fixed}
            starts = (sizes, _with_role(sizes, roles, (Role.BATCH,), 1))
            variants = [v for start in starts for v in (start, *(_tied(start, tie) for tie in ties))]
            # All others small: some models need only one long dim.
            variants.append(_with_role(sizes, roles, (Role.BATCH, Role.FRAMES, Role.LENGTH, Role.OTHER), 1))
            for v in variants:
                yield kind_of(v), v

    def _ties(self, roles: Mapping[str, Role]) -> list[Ties]:
        """Returns ties of dims, the most certain first: from inference, from broadcasting, by role, all equal."""
        if self._known_ties is None:
            inferred = tied_by_inference(self.specs, self.facts.dims)
            likely = tied_by_inference(self.specs, self.facts.likely_dims()) if len(roles) > 1 else inferred
            one = dict.fromkeys(roles, next(iter(roles), ""))
            self._known_ties = [inferred, likely, tied_by_role(roles), one]
        return self._known_ties

    def _rungs(self) -> Iterator[Rung]:
        yield UNEQUAL
        stated = self.facts.image_size
        if stated is not None:
            yield {**UNEQUAL, Role.BATCH: (1,), Role.HEIGHT: (stated[0],), Role.WIDTH: (stated[1],)}
        s = self.facts.stride
        if s > 1 and 64 % s:
            yield {
                **UNEQUAL,
                Role.HEIGHT: (2 * s,),
                Role.WIDTH: (3 * s,),
                Role.LENGTH: (2 * s,),
                Role.SAMPLES: (8 * s,),
            }
        yield from LADDER[1:]

    # -- cases of other kinds -----------------------------------------------------------------------------------------

    def _kinds(self, roles: Mapping[str, Role], found: list[Sizes]) -> Iterator[tuple[Proposal, T]]:
        ties = self._ties(roles)
        base = found[-1]
        for kind, rung in (("unequal", UNEQUAL), ("odd", ODD), ("equal", EQUAL), ("many", MANY)):
            if any(kind_of(sizes) == kind for sizes in found) and kind != "many":
                continue
            sizes = {**_sizes(roles, rung), **self.fixed}
            options = [sizes, *(_tied(sizes, tie) for tie in ties), *self._beside(base, roles, kind)]
            for option in options[:6]:
                if self._is_over():
                    return
                hits = list(self._try(Proposal(kind, {**option, **self.fixed})))
                if hits:
                    found.append(hits[0][0].sizes)
                    yield from hits
                    break

    def _beside(self, base: Sizes, roles: Mapping[str, Role], kind: str) -> Iterator[Sizes]:
        """Yields assignments near the valid `base`: first with another batch, then with each dim changed in turn."""
        batch = {"unequal": 3, "odd": 5, "equal": 2, "many": 16}[kind]
        if Role.BATCH in roles.values():
            yield _with_role(base, roles, (Role.BATCH,), batch)
        step = {"unequal": (3, 2), "odd": (1, 1), "equal": (1, 1), "many": (2, 1)}[kind]
        for symbol in roles:
            if roles[symbol] is not Role.BATCH:
                yield {**base, symbol: base[symbol] * step[0] // step[1] + (kind == "odd")}

    def _try(self, proposal: Proposal) -> Iterator[tuple[Proposal, T]]:
        key = tuple(sorted(proposal.sizes.items()))
        if key in self._seen or len(self._seen) >= self.most:
            return
        result = self.attempt(proposal.sizes)
        self._seen[key] = None
        if isinstance(result, Refusal):
            self.refused.append(result)
        else:
            self.last = proposal.sizes
            yield proposal, result

    def _is_over(self) -> bool:
        return time.monotonic() > self.deadline

    def _convolved(self) -> list[str]:
        return [spec.name for spec in self.specs if self.facts.sound and spec.is_float]


def _sizes(roles: Mapping[str, Role], rung: Rung) -> Sizes:
    counts: dict[Role, int] = {}
    sizes: Sizes = {}
    for symbol, role in roles.items():
        # Symbols without a known role share the sizes of lengths, so no two of them are equal.
        shared = Role.LENGTH if role is Role.OTHER else role
        index = counts.get(shared, 0)
        counts[shared] = index + 1
        choices = rung[role]
        sizes[symbol] = choices[min(index, len(choices) - 1)]
    return sizes


def _tied(sizes: Sizes, ties: Ties) -> Sizes:
    def size(symbol: str) -> int:
        to = ties.get(symbol, symbol)
        if isinstance(to, Expr):
            return max(to.evaluate({s: size(s) if s != symbol else sizes[s] for s in to.symbols}), 1)
        return to if isinstance(to, int) else sizes.get(to, sizes[symbol])

    return {s: size(s) for s in sizes}


def _with_role(sizes: Sizes, roles: Mapping[str, Role], which: Sequence[Role], size: int) -> Sizes:
    """Returns the sizes with `size` for the symbols of the roles in `which`. Requested sizes have no role."""
    return {s: size if roles.get(s) in which else old for s, old in sizes.items()}


def tied_by_inference(specs: Sequence[InputSpec], dims: Mapping[str, Sequence[str]]) -> Ties:
    """Maps every symbol to an equal number, first symbol, or expression over first symbols, from the inputs' inferred
    `dims`."""
    first: dict[str, str] = {}
    tied: dict[str, str | int | Expr] = {}
    sums: list[tuple[str, str]] = []
    for spec in specs:
        for dim, inferred in zip(spec.exprs(), dims.get(spec.name, []), strict=False):
            if dim.symbol is None:
                continue
            if inferred.isdigit():
                tied.setdefault(dim.symbol, int(inferred))
            elif inferred.isidentifier():
                tied.setdefault(dim.symbol, first.setdefault(inferred, dim.symbol))
            else:
                sums.append((dim.symbol, inferred))
    for symbol, text in sums:
        try:
            found = Expr.parse(text)
        except ValueError:
            continue
        if found.symbols <= set(first) and symbol not in first.values():
            tied.setdefault(symbol, found.substitute({s: Expr.of(first[s]) for s in found.symbols}))
    return tied


def kind_of(sizes: Sizes) -> str:
    """Returns the kind of a case with these sizes."""
    values = list(sizes.values())
    if all(v == 1 for v in values):
        return "ones"
    if len(values) > 1 and len(set(values)) == 1:
        return "equal"
    if any(v % 2 and v > 1 for v in values) and len(values) == 1:
        return "odd"
    return "unequal" if len(set(values)) == len(values) else "usual"
