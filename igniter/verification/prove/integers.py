"""Relations over integers, by isl: expressions as quasi-affine text, and the limits of a question.

Sizes are parameters of relations. A product of sizes, such as `n*m`, is one opaque parameter, because isl has no
products of variables; so is any other function of sizes, unless it is quasi-affine. An expression with a product of a
size and an axis, or with data, has no relation: `NotDecided`.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, MemRefType, TensorType
from xdsl.ir import Attribute, Operation

from igniter.dialects.loop.attrs import AxesAttr
from igniter.dialects.sym import DimsAttr, dims_of
from igniter.dialects.sym.expr import INDIRECT, Atom, Call, Expr, Monomial, Sym, floordiv, mod
from igniter.dialects.sym.requirements import Requirement
from igniter.errors import IgniterError

Relation: TypeAlias = Any
"""A relation of isl (`isl.Map`): islpy has no complete types."""
Relations: TypeAlias = Any
"""A union of relations between several spaces (`isl.UnionMap`)."""
Points: TypeAlias = Any
"""A set of isl (`isl.Set`)."""

MAX_OPERATIONS = 8_000_000
"""The limit of isl's operations for the proof of one kernel after one pass."""
MAX_SECONDS = 60.0
"""The limit of processor time for the same, tested between operations."""
UNUSED = frozenset(("grain", "offset", "scratch", "next_at", "requires", "typical"))
"""Properties with sizes outside of all relations."""
OUT_OF_OPERATIONS = "maximal number of operations"
"""The error of isl at the limit."""
PARAMETER = re.compile(r"\bp\d+\b")


class NotDecided(Exception):
    """Raised if a question has no answer; the text is the reason."""


@cache
def isl() -> Any:
    """Returns the module `islpy`; raises `IgniterError` without it."""
    try:
        return importlib.import_module("islpy")
    except ImportError as error:
        raise IgniterError("proofs need islpy, which is not installed: pip install 'onnx-igniter[prove]'") from error


def coalesced(relation: Relation) -> Relation:
    """Returns a relation in fewer pieces.

    Redundant constraints are removed first: with them, isl may end in an internal error (`original tableau does not
    correspond to original basic map`), after which none of its objects can be used any more.
    """
    try:
        return relation.remove_redundancies().coalesce()
    except isl().Error as error:
        if OUT_OF_OPERATIONS in str(error):
            raise
        raise NotDecided("isl fails to coalesce a relation") from error


@dataclass
class Limits:
    """The limits of time and operations of one proof."""

    operations: int = MAX_OPERATIONS
    seconds: float = MAX_SECONDS
    _end: float = 0.0

    def __enter__(self) -> Limits:
        context = isl().DEFAULT_CONTEXT
        context.reset_operations()
        context.set_max_operations(self.operations)
        self._end = time.process_time() + self.seconds
        return self

    def __exit__(self, *_: object) -> None:
        isl().DEFAULT_CONTEXT.set_max_operations(0)

    def check(self) -> None:
        """Raises `NotDecided` after the end of the time."""
        if time.process_time() > self._end:
            raise NotDecided(f"it takes more than {self.seconds:.0f} s of processor time")


@dataclass
class Sizes:
    """The parameters of all relations of a proof: the symbols of a kernel, and opaque functions of them."""

    symbols: dict[str, str] = field(default_factory=dict[str, str])
    opaque: dict[Monomial, str] = field(default_factory=dict[Monomial, str])
    facts: list[str] = field(default_factory=list[str])
    """Constraints on all sizes, as text."""
    defined: dict[str, str] = field(default_factory=dict[str, str])
    """The definitions of quotients."""
    exprs: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """The meaning of every parameter."""
    shapes: list[tuple[Expr, ...]] = field(default_factory=list[tuple[Expr, ...]])
    """The dims of tensors that axes over products of sizes are split by; none for scheduled kernels."""
    divisors: dict[str, int] = field(default_factory=dict[str, int])
    """Divisors of sizes: the parameter of such a symbol is the quotient."""
    _context: tuple[int, Points] | None = None

    def symbol(self, name: str) -> str:
        """Returns the parameter of a symbol."""
        if name not in self.symbols:
            self.symbols[name] = f"p{len(self.exprs)}"
            self.exprs[self.symbols[name]] = Expr.of(name)
        return self.symbols[name]

    def monomial(self, monomial: Monomial) -> str:
        """Returns the opaque parameter of a product or a call of sizes."""
        if monomial not in self.opaque:
            self.opaque[monomial] = f"p{len(self.exprs)}"
            self.exprs[self.opaque[monomial]] = Expr({monomial: 1})
        return self.opaque[monomial]

    def require(self, requirements: Iterable[Requirement]) -> None:
        """Adds the requirements of a kernel to the facts."""
        for r in requirements:
            try:
                left, right = (self.text(e, {}) for e in (r.left, r.right))
            except NotDecided:
                continue
            fact = f"{left} = {right}" if r.relation == "==" else f"{left} <= {right}"
            if fact not in self.facts:
                self.facts.append(fact)

    def text(self, e: Expr, env: Mapping[str, str]) -> str:
        """Returns an expression as quasi-affine text; `env` has the text of each axis."""
        parts: list[str] = []
        for monomial, c in e.terms:
            factor = self._monomial_text(monomial, env)
            parts.append(str(c) if factor == "" else f"{c}*{factor}" if c != 1 else factor)
        return "(" + " + ".join(parts) + ")" if parts else "0"

    def _monomial_text(self, monomial: Monomial, env: Mapping[str, str]) -> str:
        if not monomial:
            return ""
        if len(monomial) == 1:
            return self._atom_text(monomial[0], env)
        if not _is_of_sizes(monomial, env):
            raise NotDecided(f"'{Expr({monomial: 1})}' is a product of a size and an axis, or has data")
        return self.monomial(monomial)

    def _atom_text(self, atom: Atom, env: Mapping[str, str]) -> str:
        if isinstance(atom, Sym):
            if atom.name in env:
                return env[atom.name]
            if INDIRECT.fullmatch(atom.name):
                raise NotDecided("an index is data")
            return self.symbol(atom.name)
        if atom.fn in ("floordiv", "mod"):
            divisor = atom.args[1].constant
            if divisor is None or divisor <= 0:
                if not _is_of_sizes((atom,), env):
                    raise NotDecided(f"'{atom}' divides an axis by a size")
                return self.monomial((atom,))
            inner = self.text(atom.args[0], env)
            if _is_of_sizes((atom,), env):
                quotient = self._quotient(atom.args[0], divisor, inner)
                return quotient if atom.fn == "floordiv" else f"({inner} - {divisor}*{quotient})"
            return f"floor({inner}/{divisor})" if atom.fn == "floordiv" else f"({inner} mod {divisor})"
        texts = [self.text(a, env) for a in atom.args]
        result = texts[0]
        for text in texts[1:]:
            result = f"{atom.fn}({result}, {text})"
        return result

    def holds(self, guards: Sequence[Expr], env: Mapping[str, str]) -> list[str]:
        """Returns constraints, all of which hold where every guard is >= 0."""
        return [f"{self.text(e, env)} >= 0" for guard in guards for e in least(guard)]

    def _quotient(self, e: Expr, divisor: int, inner: str) -> str:
        """Returns the parameter of a quotient of sizes. As a parameter it is shared by all relations, where a quotient
        of its own would slow down every operation."""
        whole = Expr({(Call("floordiv", (e, Expr.of(divisor))),): 1}).terms[0][0]
        name = self.monomial(whole)
        self.defined.setdefault(name, f"{divisor}*{name} <= {inner} <= {divisor}*{name} + {divisor - 1}")
        return name

    def known(self, text: str) -> list[str]:
        """Returns the facts about the parameters in a text."""
        found: dict[str, str] = {}
        open_names = list(dict.fromkeys(PARAMETER.findall(text)))
        while open_names:
            name = open_names.pop()
            if name in found:
                continue
            found[name] = self.defined.get(name, "")
            open_names += PARAMETER.findall(found[name])
        signs = [f"{n} >= 0" for n in found if n not in self.defined and self._is_size(n)]
        return [*signs, *filter(None, found.values())]

    def _is_size(self, name: str) -> bool:
        """True for a symbol or a product of symbols: it is not negative."""
        return all(isinstance(a, Sym) for m, _ in self.exprs[name].terms for a in m)

    def parameters(self, text: str) -> str:
        """Returns the declaration of the parameters in a text: `[p0, p1] -> `."""
        used = dict.fromkeys(PARAMETER.findall(text))
        return f"[{', '.join(used)}] -> " if used else ""

    def points(self, tuple_text: str, constraints: Sequence[str]) -> Points:
        """Returns the set of a tuple under constraints."""
        body = f"{{ {tuple_text} : {' and '.join(constraints)} }}" if constraints else f"{{ {tuple_text} }}"
        return isl().Set(self.parameters(body) + body).intersect_params(self.context())

    def relation(self, left: str, right: str, constraints: Sequence[str] = ()) -> Relation:
        """Returns the relation between two tuples under constraints."""
        where = f" : {' and '.join(constraints)}" if constraints else ""
        body = f"{{ {left} -> {right}{where} }}"
        return isl().Map(self.parameters(body) + body)

    def context(self) -> Points:
        """Returns the valid sizes of a kernel: no symbol is negative, and its requirements hold."""
        count = len(self.exprs) + len(self.facts)
        if self._context is None or self._context[0] != count:
            facts = [*self.facts, *self.known(" ".join([*self.exprs, *self.facts]))]
            body = f"{{ : {' and '.join(facts)} }}" if facts else "{ : }"
            self._context = count, isl().Set(self.parameters(body) + body).coalesce()
        return self._context[1]

    def discover(self, op: Operation, symbols: Collection[str]) -> None:
        """Adds the functions of `symbols` in the expressions of an op and below: relations with all facts about sizes
        from the start stay smaller."""
        for inner in op.walk():
            attributes = [v for k, v in inner.properties.items() if k not in UNUSED]
            attributes += [v.type for v in inner.results]
            attributes += [a.type for region in inner.regions for block in region.blocks for a in block.args]
            for attribute in attributes:
                for e in _exprs_in(attribute):
                    self._discover(e, symbols)

    def _discover(self, e: Expr, symbols: Collection[str]) -> None:
        for monomial, _ in e.terms:
            for atom in monomial:
                if isinstance(atom, Call):
                    for argument in atom.args:
                        self._discover(argument, symbols)
            if Expr({monomial: 1}).symbols <= set(symbols):
                self._monomial_text(monomial, {})


def least(e: Expr) -> list[Expr]:
    """Returns expressions with `e` as their minimum. So `i < min(a, b)` is the convex set of `i < a` and `i < b`, where
    isl would make two sets of it."""
    for monomial, c in e.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        if not isinstance(atom, Call):
            continue
        rest = e - Expr({monomial: c})
        if atom.fn == ("min" if c > 0 else "max"):
            divisor = _rounded(rest, atom, c)
            parts = atom.args
            if divisor is not None:
                # Rounding down is monotonic: `min(a, b) - min(a, b) mod k` is the minimum of both, rounded.
                rest = rest + c * mod(Expr({monomial: 1}), divisor)
                parts = tuple(a - mod(a, divisor) for a in parts)
            return [x for a in parts for x in least(rest + c * a)]
        if atom.fn == "floordiv" and c > 0 and _is_positive(divisor := atom.args[1]):
            inner = least(atom.args[0])
            if len(inner) > 1:
                return [x for a in inner for x in least(rest + c * floordiv(a, divisor))]
    return [e]


def _rounded(rest: Expr, atom: Call, c: int) -> Expr | None:
    """Returns the `k` of a term `-c*(atom mod k)`."""
    for monomial, factor in rest.terms:
        other = monomial[0] if len(monomial) == 1 else None
        if isinstance(other, Call) and other.fn == "mod" and factor == -c and other.args[0].call == atom:
            return other.args[1] if _is_positive(other.args[1]) else None
    return None


def _is_positive(e: Expr) -> bool:
    return e.constant is not None and e.constant > 0


def _exprs_in(attribute: Attribute) -> Iterator[Expr]:
    if isinstance(attribute, DimsAttr):
        yield from attribute.data
    elif isinstance(attribute, AxesAttr):
        yield from (a.extent for a in attribute.data)
    elif attribute.name in (TensorType.name, MemRefType.name):
        yield from dims_of(attribute)
    elif isinstance(attribute, ArrayAttr):
        for each in cast("Iterable[Attribute]", attribute.data):
            yield from _exprs_in(each)


def _is_of_sizes(monomial: Monomial, env: Mapping[str, str]) -> bool:
    """True if a product consists of symbols of dims only."""
    names = Expr({monomial: 1}).symbols
    return not any(n in env or INDIRECT.fullmatch(n) for n in names)


def is_call(atom: Atom) -> bool:
    """True for `floordiv`, `mod`, `min` and `max`."""
    return isinstance(atom, Call)
