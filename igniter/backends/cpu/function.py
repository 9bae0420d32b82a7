"""One LLVM function during its construction: scopes, symbolic expressions, addresses, and captures.

Every loop opens a scope. An expression over axes and symbols is computed once, in the outermost scope with all of its
names: its terms are summed scope by scope, outermost first, so that the invariant part of a loop is summed before the
loop. Addresses are built the same way, with the constant last, where it becomes a displacement.

A function needs values of the function around it (buffers, symbols, axes): they become parameters, in the order of
their first use (`captures`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial, reduce
from itertools import starmap
from math import prod

from xdsl.ir import SSAValue

from igniter.backends.cpu.builder import Builder, Lines, LlvmModule, Value, new_lines
from igniter.backends.cpu.llvm_types import I64, PTR, Type
from igniter.dialects.sym.expr import Atom, Call, Expr, Monomial, Sym, call
from igniter.dialects.sym.lowering import Lowering
from igniter.dialects.sym.ranges import Ranges, simplify

NOTHING: Mapping[str, Value] = {}


@dataclass
class Scope:
    """The body of a function or of a loop in it. `head` receives the code hoisted to its start."""

    head: Lines = field(default_factory=new_lines)
    names: dict[str, Value] = field(default_factory=dict[str, Value])
    exprs: dict[Expr, Value] = field(default_factory=dict[Expr, Value])
    addresses: dict[tuple[str, str, Expr], Value] = field(default_factory=dict[tuple[str, str, Expr], Value])


@dataclass(frozen=True)
class Pointer:
    """The start of a buffer."""

    value: Value
    depth: int
    """The scope of the address."""
    constant_size: int | None = None


class Arena(Enum):
    """The scratch memory of the call, as a key for captures by nested functions."""

    SCRATCH = "scratch"


CaptureKey = str | SSAValue | Arena
"""A name in expressions, a value of the IR, or the arena."""


class Function(Builder):
    """A `Builder` with the scopes of the loops around it."""

    def __init__(self, module: LlvmModule, name: str, parent: Function | None = None):
        super().__init__(module)
        self.function_name = name
        self.parent = parent
        self.allocas: Lines = []
        self.scopes: list[Scope] = [Scope()]
        self.fixed: dict[str, Expr] = dict(parent.fixed) if parent else {}
        self.axes: dict[str, tuple[Expr, Expr]] = dict(parent.axes) if parent else {}
        self.strides: dict[str, int] = dict(parent.strides) if parent else {}
        """A divisor of all values of each axis."""
        self.values: dict[SSAValue, Value] = {}
        self.pointers: dict[SSAValue, Pointer] = {}
        self.captures: list[tuple[CaptureKey, Value]] = []
        self.arena: Value | None = None
        self.unused: Value | None = None
        self.call_arrays: tuple[Value, Value] | None = None
        """The arrays of buffers and symbols for calls of other kernels."""
        self.launch_arrays: tuple[Value, Value] | None = None
        """The arrays of parameters and of their addresses for launches."""
        self.uses_tiles = False
        """True if a micro-kernel that it calls leaves AMX tiles configured."""
        self.lines = [self.allocas, self.scopes[0].head]

    @property
    def depth(self) -> int:
        return len(self.scopes) - 1

    @property
    def ranges(self) -> Ranges:
        return Ranges(self.axes)

    def alloca(self, t: str, align: int, hint: str) -> Value:
        name = self.name(hint)
        self.allocas.append(f"  {name} = alloca {t}, align {align}")
        return Value(PTR, name)

    def unused_place(self) -> Value:
        """Returns a mapped place on the stack, of a vector's size, never accessed."""
        if self.unused is None:
            self.unused = self.alloca("[256 x i8]", 64, "unused")
        return self.unused

    # -- names and values ---------------------------------------------------------------------------------------------

    def find_name(self, name: str) -> tuple[Value, int]:
        """Returns the value of an axis or a symbol, and its scope."""
        for depth in range(self.depth, -1, -1):
            found = self.scopes[depth].names.get(name)
            if found is not None:
                return found, depth
        if self.parent is None:
            raise KeyError(name)
        self.parent.find_name(name)
        value = self._capture(name, I64, "s")
        self.scopes[0].names[name] = value
        return value, 0

    def find_value(self, value: SSAValue) -> Value:
        """Returns the register of a scalar or vector value."""
        found = self.values.get(value)
        if found is None:
            if self.parent is None:
                raise KeyError(value)
            outer = self.parent.find_value(value)
            found = outer if outer.is_constant else self._capture(value, outer.type, "c")
            self.values[value] = found
        return found

    def find_pointer(self, buffer: SSAValue) -> Pointer:
        """Returns the start of a buffer."""
        found = self.pointers.get(buffer)
        if found is None:
            if self.parent is None:
                raise KeyError(buffer)
            self.parent.find_pointer(buffer)
            found = Pointer(self._capture(buffer, PTR, "b"), 0)
            self.pointers[buffer] = found
        return found

    def find_arena(self) -> Pointer:
        """Returns the start of the scratch memory."""
        if self.arena is None:
            if self.parent is None:
                raise KeyError(Arena.SCRATCH)
            self.arena = self._capture(Arena.SCRATCH, PTR, "scratch")
        return Pointer(self.arena, 0)

    def _capture(self, key: CaptureKey, t: Type, hint: str) -> Value:
        value = Value(t, self.name(hint))
        self.captures.append((key, value))
        return value

    def resolve(self, key: CaptureKey) -> Value:
        """Returns this function's value for a capture of a nested function."""
        if isinstance(key, str):
            return self.find_name(key)[0]
        if isinstance(key, Arena):
            return self.find_arena().value
        try:
            return self.find_pointer(key).value
        except KeyError:
            return self.find_value(key)

    # -- expressions --------------------------------------------------------------------------------------------------

    def prepare(self, e: Expr) -> Expr:
        """Returns `e` with axes of one iteration replaced by their value, simplified by the ranges."""
        return simplify(e.substitute(self.fixed), self.ranges)

    def prepare_lanes(self, e: Expr, lane: str, lanes: int) -> Expr:
        """Applies `prepare`, and takes the lane out of divisions without carry: `(j + v) floordiv 64` is `j floordiv
        64` for 16 lanes if `j` is a multiple of 16, and `(j + v) mod 64` is `j mod 64 + v`. If `j` is a multiple of 4,
        `(j + v) floordiv 4` is `j floordiv 4 + v floordiv 4`: the lane's part is the same for all."""
        e = self.prepare(e)
        if e.coefficient(lane) is not None:
            return e
        return e.map_atoms(lambda atom: self._without_carry(atom, lane, lanes))

    def _without_carry(self, atom: Atom, lane: str, lanes: int) -> Expr:
        whole = Expr({(atom,): 1})
        if isinstance(atom, Sym) or lane not in whole.symbols:
            return whole
        args = [self.prepare_lanes(a, lane, lanes) for a in atom.args]
        if atom.fn in ("floordiv", "mod") and args[0].coefficient(lane) == 1:
            base, divisor = args[0].without(lane), args[1].constant
            if divisor is not None and divisor % lanes == 0 and self._is_multiple(base, lanes):
                return call(atom.fn, [base, args[1]]) + (Expr.of(lane) if atom.fn == "mod" else 0)
            if divisor is not None and divisor > 0 and self._is_multiple(base, divisor):
                own = call(atom.fn, [Expr.of(lane), args[1]])
                return own if atom.fn == "mod" else call("floordiv", [base, args[1]]) + own
        return call(atom.fn, args)

    def _is_multiple(self, e: Expr, n: int) -> bool:
        """True if every term is a multiple of `n`, by its coefficient and the strides of its axes."""

        def stride(atom: Atom) -> int:
            return self.strides.get(atom.name, 1) if isinstance(atom, Sym) else 1

        return all((c * prod(stride(a) for a in monomial)) % n == 0 for monomial, c in e.terms)

    def expr(self, e: Expr, here: Mapping[str, Value] = NOTHING) -> Value:
        """Returns the value of a prepared expression. `here` binds names for this point only."""
        return _Scalars(self, here).lower(e).value

    def level_of(self, e: Expr) -> int:
        """Returns the outermost scope with all names of a prepared expression."""
        return self.depth_of(e, NOTHING)

    def depth_of(self, e: Expr, here: Mapping[str, Value] = NOTHING) -> int:
        """Returns the depth of the outermost scope with all names of `e`; one past the innermost if it uses a name of
        `here`."""
        depth = 0
        for name in sorted(e.symbols):  # the order of a set of strings differs between processes
            depth = max(depth, self.depth + 1 if name in here else self.find_name(name)[1])
        return depth

    def by_depth(self, e: Expr, here: Mapping[str, Value]) -> list[tuple[int, Expr]]:
        """Groups the terms of `e` by scope, outermost first; the constant joins the last group."""
        groups: dict[int, Expr] = {}
        constant = 0
        for monomial, c in e.terms:
            if not monomial:
                constant = c
                continue
            term = Expr({monomial: c})
            depth = self.depth_of(term, here)
            groups[depth] = groups[depth] + term if depth in groups else term
        ordered = sorted(groups.items())
        if constant:
            depth, last = ordered.pop()
            ordered.append((depth, last + constant))
        return ordered

    def emit_at(self, level: int, op: str, a: Value, b: Value) -> Value:
        return self._line(level, I64, f"{op} i64 {a.text}, {b.text}")

    def call_at(self, level: int, intrinsic: str, args: list[Value]) -> Value:
        self.module.declare(intrinsic, I64, [a.type for a in args])
        return self._line(level, I64, f"call i64 @{intrinsic}({', '.join(a.typed for a in args)})")

    def _line(self, level: int, t: Type, instruction: str, hint: str = "x") -> Value:
        name = self.name(hint)
        where = self.scopes[level].head if level <= self.depth else self.lines
        where.append(f"  {name} = {instruction}")
        return Value(t, name)

    # -- addresses ----------------------------------------------------------------------------------------------------

    def address(
        self, pointer: Pointer, element: Type, offset: Expr, here: Mapping[str, Value] = NOTHING, inbounds: bool = False
    ) -> Value:
        """Returns the address of element `offset` (prepared) of a buffer.

        `inbounds` asserts that the access happens; the flag is emitted only if every partial sum is in bounds too.
        """
        flags = "inbounds " if inbounds and self._monotone(offset) else ""
        constant = 0
        base, level = pointer.value, pointer.depth
        variable: list[tuple[int, Expr]] = []
        for depth, group in self.by_depth(offset, here) if offset.constant is None else [(0, offset)]:
            c = dict(group.terms).get((), 0)
            constant += c
            if group.terms and group.constant is None:
                variable.append((depth, group - c))
        for depth, group in variable:
            level = max(level, depth)
            base = self._gep(level, element, base, group, here, flags)
        if constant:
            base = self._gep(level, element, base, Expr.of(constant), here, flags)
        return base

    def _gep(
        self, level: int, element: Type, base: Value, offset: Expr, here: Mapping[str, Value], flags: str
    ) -> Value:
        key = (base.text, flags + element.element, offset)
        cache = self.scopes[level].addresses if level <= self.depth else None
        if cache is not None and key in cache:
            return cache[key]
        index = self.expr(offset, here)
        result = self._line(level, PTR, f"getelementptr {flags}{element}, ptr {base.text}, i64 {index.text}", "p")
        if cache is not None:
            cache[key] = result
        return result

    def _monotone(self, offset: Expr) -> bool:
        """True if every term is provably >= 0, so that no partial sum is outside the buffer."""
        for monomial, c in offset.terms:
            if c < 0:
                return False
            for atom in monomial:
                if not isinstance(atom, Sym):
                    return False
                bounds = self.axes.get(atom.name)
                if bounds is not None and (bounds[0].constant is None or bounds[0].constant < 0):
                    return False
        return True


Emit = Callable[[str, Value, Value], Value]


def divided(fn: str, a: Value, b: Value, exact: bool, emit: Emit, sign: Value) -> Value:
    """Returns the quotient rounded towards minus infinity, or its remainder, by a positive divisor. `exact`: the
    dividend is not negative. `sign` is the place of the sign bit."""
    if exact:
        return emit("udiv" if fn == "floordiv" else "urem", a, b)
    remainder = emit("srem", a, b)
    negative = emit("ashr", remainder, sign)
    if fn == "mod":
        return emit("add", remainder, emit("and", negative, b))
    return emit("add nsw", emit("sdiv", a, b), negative)


@dataclass(frozen=True)
class _Placed:
    """A value and the depth of the scope that computes it."""

    value: Value
    level: int


class _Scalars(Lowering[_Placed]):
    """Expressions as i64 registers, each call computed once, in the outermost scope with all of its names."""

    coefficient_first = False

    def __init__(self, f: Function, here: Mapping[str, Value]):
        self._f = f
        self._here = here

    @property
    def ranges(self) -> Ranges:
        return self._f.ranges

    def lower(self, e: Expr) -> _Placed:
        if e.constant is not None:
            return self.constant(e.constant)
        depth = self._f.depth_of(e, self._here)
        known = self._known(depth)
        if e not in known:
            terms = (t for _, group in self._f.by_depth(e, self._here) for t in group.terms)
            known[e] = reduce(self.add, starmap(self.term, terms)).value
        return _Placed(known[e], depth)

    def term(self, monomial: Monomial, coefficient: int) -> _Placed:
        # All products of a term are computed in its scope, even those of factors from outer scopes.
        level = self._f.depth_of(Expr({monomial: coefficient}), self._here)
        factors = (_Placed(self.atom(a).value, level) for a in monomial)
        return self.multiply(factors, None if coefficient == 1 and monomial else coefficient)

    def call(self, call: Call) -> _Placed:
        level = max(self._f.depth_of(a, self._here) for a in call.args)
        known, whole = self._known(level), Expr({(call,): 1})
        if whole not in known:
            args = [_Placed(self.lower(a).value, level) for a in call.args]
            known[whole] = self.apply(call, args).value
        return _Placed(known[whole], level)

    def _known(self, level: int) -> dict[Expr, Value]:
        """Returns the values that a scope has computed; nothing past the innermost scope is kept."""
        return self._f.scopes[level].exprs if level <= self._f.depth else {}

    def constant(self, value: int) -> _Placed:
        return _Placed(self._f.const(I64, value), 0)

    def symbol(self, name: str) -> _Placed:
        found = self._here.get(name)
        return _Placed(*self._f.find_name(name)) if found is None else _Placed(found, self._f.depth + 1)

    def add(self, a: _Placed, b: _Placed) -> _Placed:
        return self._emit("add nsw", a, b)

    def mul(self, a: _Placed, b: _Placed) -> _Placed:
        return self._emit("mul nsw", a, b)

    def floordiv(self, a: _Placed, b: _Placed, call: Call) -> _Placed:
        return self._divide(a, b, call)

    def mod(self, a: _Placed, b: _Placed, call: Call) -> _Placed:
        return self._divide(a, b, call)

    def _divide(self, a: _Placed, b: _Placed, call: Call) -> _Placed:
        level = max(a.level, b.level)
        if not b.value.is_constant:
            # Hoisted out of the loop that proves it positive, a divisor could be an empty dim.
            b = self.maximum(b, self.constant(1))
        emit = partial(self._f.emit_at, level)
        value = divided(call.fn, a.value, b.value, self.is_exact(call), emit, self._f.const(I64, 63))
        return _Placed(value, level)

    def minimum(self, a: _Placed, b: _Placed) -> _Placed:
        return self._extremum("smin", a, b)

    def maximum(self, a: _Placed, b: _Placed) -> _Placed:
        return self._extremum("smax", a, b)

    def _extremum(self, name: str, a: _Placed, b: _Placed) -> _Placed:
        level = max(a.level, b.level)
        return _Placed(self._f.call_at(level, f"llvm.{name}.i64", [a.value, b.value]), level)

    def _emit(self, op: str, a: _Placed, b: _Placed) -> _Placed:
        level = max(a.level, b.level)
        return _Placed(self._f.emit_at(level, op, a.value, b.value), level)
