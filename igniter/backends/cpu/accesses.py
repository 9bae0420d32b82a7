"""Loads, stores and accumulations of `loop.func`, scalar and along lanes, guarded and unguarded.

The coefficient of the lane variable in the linear offset selects the code of an access:

    1           a vector load or store; masked where guards depend on the lane
    0           a scalar load and a splat; an accumulation reduces the lanes first
    -1, 2, 3, 4 a load of all that lies between, and shuffles; of the lanes that are on, where guards depend on the lane
    a pattern   where the place of each lane is known, and a vector reaches it: one load and a shuffle
    otherwise   llvm.masked.gather / scatter, which LLVM turns into scalar accesses where the CPU has no better

Some offsets are no multiple of the lane but grow by at most one from lane to lane (the reflections and clamps of a
`Pad`, the remainder of a repetition). Their load first tests whether its lanes are contiguous.

Guards independent of the lane are one condition for the whole access: a mask of equal lanes if the CPU has masked
accesses, otherwise a branch. An address is dereferenced only where every guard holds. If the guards may fail for all
lanes of a masked access, the address is then replaced by a place on the stack: a fully masked access to an unmapped
page costs some hundred cycles.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from igniter.analysis.structured.bounds import enclosing_guards
from igniter.backends.cpu import arithmetic
from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.errors import EmitError
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.lanes import Condition, growth, lane_values, local_ranges, names_of, scalar_guard
from igniter.backends.cpu.llvm_types import I64, Type, llvm_type, memory_type
from igniter.backends.cpu.registers import RegisterFile
from igniter.dialects.loop import Combiner, LoadOp, MemoryOp, element_bytes, is_unsigned
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, linearize
from igniter.dialects.sym.ranges import is_nonneg

SHUFFLED = frozenset((-1, 2, 3, 4))
"""The strides of loads done by contiguous loads and shuffles: fewer micro-operations than a gather."""

SPREAD = frozenset((2, 3, 4))
"""The strides of masked loads done by masked contiguous loads and shuffles, for elements that CPUs can mask."""


class Access:
    """One memory op, with the analysis of its access."""

    def __init__(self, f: Function, op: MemoryOp, registers: RegisterFile, func: str):
        self.f = f
        self.op = op
        self.func = func
        self.registers = registers
        self.buffer: SSAValue = op.accessed
        self.element = element_of(self.buffer.type)
        value = op.result if isinstance(op, LoadOp) else op.value  # pyright: ignore
        self.type: Type = llvm_type(value.type)  # pyright: ignore
        self.memory = memory_type(self.type)
        self.align = element_bytes(self.element)
        self.here: dict[str, Value] = {}
        self.vectors: dict[str, Value] = {}
        for k, index in enumerate(op.indices):
            where = self.vectors if isinstance(index.type, VectorType) else self.here
            where[f"_{k}"] = f.find_value(index)
        self.lane = op.lane
        with local_ranges(f, self.lane, self.lanes, len(op.indices)):
            self.offset = self._prepare(linearize(op.subscripts, dims_of(self.buffer.type)))
            self.guards, self.never = self._relevant_guards()
        self.stride = self._stride()
        varying = names_of(self.vectors, self.lane)
        self.lane_guards = [g for g in self.guards if g.symbols & varying]
        self.uniform_guards = [g for g in self.guards if not g.symbols & varying]

    @property
    def lanes(self) -> int:
        return self.type.lanes

    def _prepare(self, e: Expr) -> Expr:
        return self.f.prepare(e) if self.lane is None else self.f.prepare_lanes(e, self.lane, self.lanes)

    def _relevant_guards(self) -> tuple[list[Expr], bool]:
        kept: list[Expr] = []
        guards = self.op.guards
        # Guards tested around the loop of the access are not tested again for each vector.
        known = frozenset(enclosing_guards(self.op)) if guards else frozenset[Expr]()
        for guard in guards:
            if guard in known:
                continue
            g = self._prepare(guard)
            if is_nonneg(-g - 1, self.f.ranges):
                return [], True
            if not is_nonneg(g, self.f.ranges):
                kept.append(g)
        return kept, False

    def _stride(self) -> int | None:
        """Returns the distance in elements between lanes, if it is one constant."""
        if self.lane is None:
            return 0
        if self.offset.symbols & self.vectors.keys():
            return None
        coefficient = self.offset.coefficient(self.lane)
        return None if coefficient is None else coefficient.constant

    def _pattern(self) -> list[int] | None:
        """Returns the distance of each lane from lane 0, in elements, if it is known and within the reach of a vector:
        two, four or eight lanes at one place, as in a grouped convolution whose channels read the image's."""
        lane = self.lane
        if lane is None or self.offset.symbols & self.vectors.keys():
            return None
        found = Expr({m: c for m, c in self.offset.terms if lane in Expr({m: c}).symbols})
        if found.symbols != frozenset((lane,)):
            return None
        steps = [found.evaluate({lane: k}) for k in range(self.lanes)]
        places = [step - steps[0] for step in steps]
        return places if min(places) == 0 and max(places) < self.lanes else None

    # -- conditions, addresses ----------------------------------------------------------------------------------------

    def _condition(self) -> Condition:
        return False if self.never else scalar_guard(self.f, self.uniform_guards, self.here)

    def _mask(self) -> Value | None:
        """Returns one bit a lane for the guards that depend on the lane; None without such guards."""
        mask: Value | None = None
        for guard in self.lane_guards:
            bits = self._guard_mask(guard)
            mask = bits if mask is None else self.f.binary("and", mask, bits)
        return mask

    def _full_mask(self, condition: Condition) -> Value:
        """Returns the mask of all guards together."""
        f, t = self.f, Type("i1", self.lanes)
        mask = self._mask()
        if isinstance(condition, Value):
            whole = f.splat(condition, self.lanes)
            mask = whole if mask is None else f.binary("and", mask, whole)
        return mask if mask is not None else f.const(t, 1)

    def _step(self, guard: Expr) -> int | None:
        """Returns the increment of a guard from lane to lane, if it is one constant."""
        if guard.symbols & self.vectors.keys() or self.lane is None:
            return None
        coefficient = guard.coefficient(self.lane)
        return None if coefficient is None else coefficient.constant

    def _guard_mask(self, guard: Expr) -> Value:
        f, step = self.f, self._step(guard)
        if step not in (1, -1) or self.lane is None:
            values = lane_values(f, guard, self.lane, self.lanes, self.vectors, self.here)
            return f.icmp("sge", values, f.zero(values.type))
        # l <= rest, or l >= -rest: a small number, compared in elements as wide as the data.
        rest = guard.without(self.lane)
        count = f.prepare(rest + 1 if step == -1 else -rest)
        bound = f.expr(count, self.here)
        if not is_nonneg(count, f.ranges):
            bound = f.binary_intrinsic("smax", bound, f.const(I64, 0))
        bound = f.binary_intrinsic("smin", bound, f.const(I64, self.lanes))
        narrow = Type(f"i{max(8, min(64, self.memory.bits))}")
        bound = f.cast("trunc", bound, narrow)
        lanes = narrow.with_lanes(self.lanes)
        return f.icmp("ult" if step == -1 else "uge", f.iota(lanes), f.splat(bound, self.lanes))

    def _some_lane(self, condition: Condition, mask: Value) -> Condition:
        """Returns a condition that holds if any lane of a masked access is on; each guard is tested by itself."""
        f = self.f
        result = condition
        for guard in self.lane_guards:
            bit: Condition
            if self._step(guard) in (1, -1) and self.lane is not None:
                last = 0 if self._step(guard) == -1 else self.lanes - 1
                bit = scalar_guard(f, [f.prepare(guard.without(self.lane) + last)], self.here)
            else:
                bits = f.bitcast(mask, Type(f"i{self.lanes}"))
                bit = f.icmp("ne", bits, f.zero(bits.type))
            if isinstance(result, Value) and isinstance(bit, Value):
                bit = f.binary("and", result, bit)
            result = bit if isinstance(bit, Value) else result and bit
        return result

    def _mapped(self, address: Value, condition: Condition, mask: Value) -> Value:
        """Returns the address of a masked access to contiguous elements; a place on the stack if no lane is on."""
        f = self.f
        some = self._some_lane(condition, mask) if f.target.has_masks else True
        if some is True:
            return address
        return f.select(arithmetic.as_bit(f, some), address, f.unused_place())

    # -- for the sanitizer --------------------------------------------------------------------------------------------

    def addresses(self) -> Value:
        """Returns the address of the element, or of every lane's."""
        return self._pointers() if self.lanes else self._base()

    def active(self) -> Value:
        """Returns the result of the guards: a bit, or one a lane."""
        condition = self._condition()
        if self.lanes:
            return self._full_mask(condition) if condition is not False else self.f.const(Type("i1", self.lanes), 0)
        return arithmetic.as_bit(self.f, condition)

    def _checked(self) -> Condition:
        sanitizer = self.f.module.sanitizer
        return True if sanitizer is None else sanitizer.check(self)

    def _address(self, offset: Expr) -> Value:
        inbounds = not self.op.guards and self.f.module.sanitizer is None
        return self.f.address(self.f.find_pointer(self.buffer), self.memory.scalar, offset, self.here, inbounds)

    def _base(self) -> Value:
        """Returns the address of lane 0."""
        return self._address(self.offset if self.lane is None else self.offset.without(self.lane))

    def _pointers(self) -> Value:
        """Returns the address of every lane."""
        f = self.f
        varying = names_of(self.vectors, self.lane)
        fixed = Expr({m: c for m, c in self.offset.terms if not Expr({m: c}).symbols & varying})
        lanes = lane_values(f, self.offset - fixed, self.lane, self.lanes, self.vectors, self.here)
        return f.gep(self.memory.scalar, self._address(fixed), lanes)

    # -- the three ops ------------------------------------------------------------------------------------------------

    def load(self, op: LoadOp) -> Value:
        f = self.f
        otherwise = f.find_value(op.otherwise) if op.otherwise is not None else f.zero(self.type)
        if self.never:
            return otherwise
        if self.registers.holds(self.buffer):
            return self._load_register(otherwise)
        return self._branch_load(self._checked(), lambda: self._load_memory(otherwise), otherwise)

    def _load_memory(self, otherwise: Value) -> Value:
        f = self.f
        condition = self._condition()
        if condition is False:
            return otherwise
        if self.lanes == 0:
            return self._branch_load(condition, lambda: self._read_scalar(), otherwise)
        if self.stride == 0:
            return self._load_uniform(condition, otherwise)
        if isinstance(condition, Value) and not f.target.has_masks:
            return self._branch_load(condition, lambda: self._read_vector(True, otherwise), otherwise)
        return self._read_vector(condition, otherwise)

    def store(self, value: Value) -> None:
        if self.never:
            return
        if self.registers.holds(self.buffer):
            self._store_register(value)
            return
        self._branch(self._checked(), lambda: self._store_memory(value))

    def _store_memory(self, value: Value) -> None:
        f = self.f
        condition = self._condition()
        if condition is False:
            return
        if self.lanes == 0:
            self._branch(condition, lambda: self._write_scalar(value))
            return
        if self.stride == 0:
            raise EmitError(self.func, self.op, "every lane writes the same element")
        if isinstance(condition, Value) and not f.target.has_masks:
            self._branch(condition, lambda: self._write_vector(True, value))
        else:
            self._write_vector(condition, value)

    def accumulate(self, combiner: Combiner, value: Value) -> None:
        f = self.f
        if self.never:
            return
        if self.lanes and self.stride == 0:
            self._accumulate_reduced(combiner, value)
            return
        if self.registers.holds(self.buffer):
            slot = self._slot()
            old = f.emit(self.type, f"load {self.type}, ptr {slot.text}")
            self._store_register(self._combine(combiner, old, value), old)
            return
        self._branch(self._checked(), lambda: self._accumulate_memory(combiner, value))

    def _accumulate_memory(self, combiner: Combiner, value: Value) -> None:
        f = self.f
        condition = self._condition()
        if condition is False:
            return
        if self.lanes == 0:
            self._branch(condition, lambda: self._write_scalar(self._combine(combiner, self._read_scalar(), value)))
        elif self.stride == 1:

            def update() -> None:
                old = self._read_vector(inner, value)
                self._write_vector(inner, self._combine(combiner, old, value))

            inner: Condition = condition
            if isinstance(condition, Value) and not f.target.has_masks:
                inner = True
                self._branch(condition, update)
            else:
                update()
        else:
            self._accumulate_lanes(combiner, value, condition)

    def _combine(self, combiner: Combiner, old: Value, new: Value) -> Value:
        return arithmetic.combine(self.f, combiner, old, new, is_unsigned(self.element))

    # -- branches -----------------------------------------------------------------------------------------------------

    def _branch(self, condition: Condition, then: Callable[[], None]) -> None:
        if condition is True:
            then()
            return
        assert isinstance(condition, Value)
        yes, done = self.f.label("if"), self.f.label("fi")
        self.f.branch(condition, yes, done)
        self.f.start(yes)
        then()
        self.f.jump(done)
        self.f.start(done)

    def _branch_load(self, condition: Condition, then: Callable[[], Value], otherwise: Value) -> Value:
        if condition is True:
            return then()
        assert isinstance(condition, Value)
        yes, done = self.f.label("if"), self.f.label("fi")
        before = self.f.block
        self.f.branch(condition, yes, done)
        self.f.start(yes)
        value = then()
        inside = self.f.block
        self.f.jump(done)
        self.f.start(done)
        return self.f.phi(value.type, [(value, inside), (otherwise, before)])

    # -- memory -------------------------------------------------------------------------------------------------------

    def _from_memory(self, value: Value) -> Value:
        if self.type.element != "i1":
            return value
        return self.f.icmp("ne", value, self.f.zero(value.type))

    def _to_memory(self, value: Value) -> Value:
        return self.f.cast("zext", value, memory_type(value.type))

    def _read_scalar(self) -> Value:
        t = self.memory.scalar
        value = self.f.emit(t, f"load {t}, ptr {self._base().text}, align {self.align}")
        return self._from_memory(value)

    def _write_scalar(self, value: Value) -> None:
        self.f.raw(f"store {self._to_memory(value).typed}, ptr {self._base().text}, align {self.align}")

    def _load_uniform(self, condition: Condition, otherwise: Value) -> Value:
        """Loads one element for all lanes."""
        f = self.f
        mask = self._mask()
        if mask is not None:
            some = f.call(f"llvm.vector.reduce.or.{mask.type.mangled}", Type("i1"), [mask])
            condition = f.binary("and", some, condition) if isinstance(condition, Value) else some
        if condition is True:
            return f.splat(self._read_scalar(), self.lanes)
        value = self._branch_load(condition, lambda: f.splat(self._read_scalar(), self.lanes), otherwise)
        return value if mask is None else f.select(mask, value, otherwise)

    def _read_vector(self, condition: Condition, otherwise: Value) -> Value:
        f = self.f
        masked = isinstance(condition, Value) or bool(self.lane_guards)
        t, suffix = self.memory, self.memory.mangled
        if self.stride == 1 and not masked:
            return self._from_memory(self._read_whole(0))
        if self.stride in SHUFFLED and self.stride <= self.lanes and not masked:
            return self._from_memory(self._read_shuffled(self.stride))
        places = None if masked or self.stride is not None else self._pattern()
        if places is not None:
            return self._from_memory(self._read_places(places))
        passthru = self._to_memory(otherwise)
        mask = self._full_mask(condition)
        gather = f"llvm.masked.gather.{suffix}.v{self.lanes}p0"
        if self.stride == 1:
            address = self._mapped(self._base(), condition, mask)
            value = self._masked_read(f"llvm.masked.load.{suffix}.p0", address, mask, passthru)
        elif f.target.has_masks and self.stride in SPREAD and self.memory.bits >= 32:
            value = self._read_spread(self.stride, self._mapped(self._base(), condition, mask), mask, passthru)
        elif self.lane is not None and not self.vectors and growth(self.offset, self.lane)[0] == 1:
            with local_ranges(f, None, 0, len(self.op.indices)):
                first, last = (f.prepare(self.offset.substitute({self.lane: Expr.of(k)})) for k in (0, self.lanes - 1))
            distance = f.binary("sub", f.expr(last, self.here), f.expr(first, self.here))
            neighbours = f.icmp("eq", distance, f.const(I64, self.lanes - 1))
            near, far, done = f.label("near"), f.label("far"), f.label("read")
            f.branch(neighbours, near, far)
            f.start(near)
            address = self._address(first)
            if masked:
                address = self._mapped(address, condition, mask)
                whole = self._masked_read(f"llvm.masked.load.{suffix}.p0", address, mask, passthru)
            else:
                whole = f.emit(t, f"load {t}, ptr {address.text}, align {self.align}")
            f.jump(done)
            f.start(far)
            apart = self._masked_read(gather, self._pointers(), mask, passthru)
            after = f.block
            f.jump(done)
            f.start(done)
            value = f.phi(t, [(whole, near), (apart, after)])
        else:
            value = self._masked_read(gather, self._pointers(), mask, passthru)
        return self._from_memory(value)

    def _masked_read(self, name: str, address: Value, mask: Value, passthru: Value) -> Value:
        f, t = self.f, self.memory
        f.module.declare(name, t, [address.type, mask.type, t])
        where = f"{address.type} align {self.align} {address.text}"
        return f.emit(t, f"call {t} @{name}({where}, {mask.typed}, {passthru.typed})")

    def _read_whole(self, first: int) -> Value:
        """Loads the vector of contiguous elements that begins `first` elements from lane 0."""
        t, offset = self.memory, self.offset if self.lane is None else self.offset.without(self.lane)
        return self.f.emit(t, f"load {t}, ptr {self._address(offset + first).text}, align {self.align}")

    def _read_shuffled(self, stride: int) -> Value:
        """Loads all elements between the first and the last lane, and selects the lanes from them.

        It accesses nothing outside: the last vector ends at the last lane and overlaps the one before it. This requires
        at least as many lanes as the stride.
        """
        f, n = self.f, self.lanes
        if stride < 0:
            value = self._read_whole(1 - n)
            return f.shuffle(value, value, range(n - 1, -1, -1))
        value = self._read_whole(0)
        # The place of each lane in `value`, if it is there.
        lanes = [min(stride * lane, n - 1) for lane in range(n)]
        for k in range(1, stride):
            start = k * n if k < stride - 1 else k * (n - 1)
            for lane in range(n):
                if stride * lane >= k * n and stride * lane - start < n:
                    lanes[lane] = n + stride * lane - start
            value = f.shuffle(value, self._read_whole(start), lanes)
            lanes = list(range(n))
        return value

    def _read_spread(self, stride: int, address: Value, mask: Value, passthru: Value) -> Value:
        """Loads the lanes that are on by masked loads of whole vectors, whose other elements are off."""
        f, t, n = self.f, self.memory, self.lanes
        off, value = f.const(mask.type, 0), f.zero(t)
        lanes = list(range(n))
        for k in range(stride):
            here = {stride * lane - k * n: lane for lane in range(n) if k * n <= stride * lane < (k + 1) * n}
            part = f.shuffle(mask, off, [here.get(e, n) for e in range(n)])
            where = address if k == 0 else f.gep(t.scalar, address, f.const(I64, k * n))
            found = self._masked_read(f"llvm.masked.load.{t.mangled}.p0", where, part, f.zero(t))
            for e, lane in here.items():
                lanes[lane] = n + e
            value = f.shuffle(value, found, lanes)
            lanes = list(range(n))
        return f.select(mask, value, passthru)

    def _read_places(self, places: list[int]) -> Value:
        """Loads one vector from lane 0 on, only up to the last place, and selects its lanes."""
        f, t, count = self.f, self.memory, max(places) + 1
        lane = self.lane
        assert lane is not None
        with local_ranges(f, None, 0, len(self.op.indices)):
            address = self._address(f.prepare(self.offset.substitute({lane: Expr.of(0)})))
        wanted = Type("i1", self.lanes)
        mask = Value(wanted, "<" + ", ".join(f"i1 {int(k < count)}" for k in range(self.lanes)) + ">")
        whole = self._masked_read(f"llvm.masked.load.{t.mangled}.p0", address, mask, f.zero(t))
        return f.shuffle(whole, whole, places)

    def _write_vector(self, condition: Condition, value: Value) -> None:
        f = self.f
        masked = isinstance(condition, Value) or bool(self.lane_guards)
        stored = self._to_memory(value)
        t, suffix = self.memory, self.memory.mangled
        if self.stride == 1 and not masked:
            f.raw(f"store {stored.typed}, ptr {self._base().text}, align {self.align}")
            return
        mask = self._full_mask(condition)
        if self.stride == 1:
            name, address = f"llvm.masked.store.{suffix}.p0", self._mapped(self._base(), condition, mask)
        else:
            name, address = f"llvm.masked.scatter.{suffix}.v{self.lanes}p0", self._pointers()
        if f.target.arch == "x86_64" and t.spelled.startswith("i") and t.bits < 64:
            # LLVM 22 folds a truncation into a masked store. If the mask is then known to have one lane, the lane is
            # stored in its width before the truncation (tests/backends/cpu/test_masked_stores.py). Truncations come
            # from casts and from LLVM's rewrites of other integer code, so the value is hidden from LLVM.
            stored = f.opaque(stored)
        f.module.declare(name, "void", [t, address.type, mask.type])
        where = f"{address.type} align {self.align} {address.text}"
        f.raw(f"call void @{name}({stored.typed}, {where}, {mask.typed})")

    def _accumulate_reduced(self, combiner: Combiner, value: Value) -> None:
        """Accumulates all lanes into one element: reduces them, then combines the scalar."""
        f = self.f
        mask = self._mask()
        if mask is not None:
            nothing = arithmetic.neutral(f, combiner, self.type, is_unsigned(self.element))
            value = f.select(mask, value, nothing)
        total = arithmetic.reduce_lanes(f, combiner, value, is_unsigned(self.element))
        scalar = ScalarAccess(self)
        scalar.accumulate(combiner, total)

    def _accumulate_lanes(self, combiner: Combiner, value: Value, condition: Condition) -> None:
        """Accumulates lanes one by one, because two of them may access the same element."""
        f = self.f
        pointers = self._pointers()
        mask = self._full_mask(condition) if self.lane_guards or condition is not True else None
        scalar = self.memory.scalar
        for lane in range(self.lanes):

            def update(lane: int = lane) -> None:
                where = f.extract(pointers, lane).text
                old = self._from_memory(f.emit(scalar, f"load {scalar}, ptr {where}, align {self.align}"))
                new = self._to_memory(self._combine(combiner, old, f.extract(value, lane)))
                f.raw(f"store {new.typed}, ptr {where}, align {self.align}")

            self._branch(True if mask is None else f.extract(mask, lane), update)

    # -- registers ----------------------------------------------------------------------------------------------------

    def _slot(self) -> Value:
        lane = self.lane
        offset = self.offset if lane is None else self.offset.without(lane)
        if offset.constant is None or self.stride not in (0, 1):
            raise EmitError(
                self.func,
                self.op,
                f"subscripts [{', '.join(map(str, self.op.subscripts))}] of a register buffer are not constant; "
                "unroll the loops around it, or keep it in space 'local'",
            )
        t = self.type if self.stride == 1 else self.type.scalar
        return self.registers.slot(self.f, self.op, self.buffer, offset.constant, t)

    def _register_mask(self) -> Value | None:
        """Returns all guards, as a bit a lane or as one bit."""
        condition = self._condition()
        if not self.lanes:
            return None if condition is True else arithmetic.as_bit(self.f, condition)
        if condition is True and not self.lane_guards:
            return None
        if condition is False:
            return self.f.const(Type("i1", self.lanes), 0)
        return self._full_mask(condition)

    def _load_register(self, otherwise: Value) -> Value:
        f = self.f
        slot = self._slot()
        t = self.type if self.stride == 1 else self.type.scalar
        value = f.emit(t, f"load {t}, ptr {slot.text}")
        if self.lanes and self.stride == 0:
            value = f.splat(value, self.lanes)
        mask = self._register_mask()
        return value if mask is None else f.select(mask, value, otherwise)

    def _store_register(self, value: Value, old: Value | None = None) -> None:
        f = self.f
        if self.lanes and self.stride == 0:
            raise EmitError(self.func, self.op, "every lane writes the same element")
        slot = self._slot()
        mask = self._register_mask()
        if mask is not None:
            old = old or f.emit(self.type, f"load {self.type}, ptr {slot.text}")
            value = f.select(mask, value, old)
        f.raw(f"store {value.typed}, ptr {slot.text}")


class ScalarAccess(Access):
    """An access to the one element shared by all lanes of a vector access."""

    def __init__(self, whole: Access):
        self.__dict__.update(whole.__dict__)
        self.type = whole.type.scalar
        self.memory = whole.memory.scalar
        self.lane = None
        self.stride = 0
        self.lane_guards = []
