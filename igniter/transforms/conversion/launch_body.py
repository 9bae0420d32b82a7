"""The body of one launch: emits the blocks of its nests, on demand from the results.

Phases run in sequence: a reduction over several blocks is a loop, and the readers of its sums follow it. In a phase
every value is computed once, at its first use (`Scope`).

Products of blocks (`igniter.analysis.structured.dot_products`) have a dim of their factors only, the depth. The
factors, with their operands, are computed on blocks of two own dims: rows by depth and depth by columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr, IntegerType, bf16, f16, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from igniter.analysis.structured.block_accesses import BlockAccess, block_access
from igniter.analysis.structured.clamped import is_clamped
from igniter.analysis.structured.codes import codes_of
from igniter.analysis.structured.dot_products import LEAST, DotProduct, dot_product, hangs_on
from igniter.dialects import triton as tt
from igniter.dialects.loop import IndexOp, NestOp, ReadOp, YieldOp
from igniter.dialects.loop.attrs import is_float
from igniter.dialects.loop.combiners import TABLE, identity, neutral
from igniter.dialects.sym import axis_ranges, dims_of, element_of
from igniter.dialects.sym.expr import Expr, linearize, product, symbols_of
from igniter.dialects.triton.loops import specialize
from igniter.errors import IgniterError
from igniter.schedules.launch_groups import LaunchGroup, renamed, root_of
from igniter.transforms.conversion.block_builder import BlockBuilder
from igniter.transforms.conversion.block_descriptors import Descriptors, as_in_memory, first_elements, in_order
from igniter.transforms.conversion.block_exprs import divided_dims, first_of, lane_of
from igniter.transforms.conversion.device_erf import erf_plus_one, one_plus_erf
from igniter.transforms.conversion.device_math import elementwise
from igniter.transforms.conversion.launch_values import (
    Scope,
    combined,
    from_memory,
    largest_value,
    memory_element,
    renamed_names,
    to_memory,
)
from igniter.transforms.conversion.packed_factors import Unpacking, block_name, placed, side_by_side
from igniter.transforms.conversion.program_order import blocks_of_program

if TYPE_CHECKING:
    from igniter.transforms.conversion.lower_to_triton import Dim


class LaunchBody:
    """The kernel of a launch: `tensors` in the order of its arguments; it writes `stored`."""

    def __init__(
        self,
        name: str,
        group: LaunchGroup,
        dims: Sequence[Dim],
        tensors: Sequence[SSAValue],
        stored: Sequence[SSAValue],
        symbols: Sequence[str],
    ):
        self.name, self.group, self.dims = name, group, tuple(dims)
        self.tensors, self.stored = tuple(tensors), frozenset(stored)
        self.symbols = tuple(s for s in symbols if s in self._used())
        self.by_name = {d.name: d for d in self.dims}
        self.products: dict[NestOp, DotProduct] = {}
        self.laned: tuple[str, ...] = ()
        self._place_dims()
        self.folded: dict[SSAValue, SSAValue] = {}
        """The reduced values, on the blocks of a program."""
        self.pointers: dict[SSAValue, SSAValue] = {}
        self.descriptors = Descriptors(Block())

    def _place_dims(self) -> None:
        """Finds the products of blocks, and the dims of stored blocks."""
        self.products = self._products()
        depths = {product.depth for product in self.products.values()}
        self.laned = tuple(d.name for d in self.dims if d.lanes > 1 and d.name not in depths)

    def _products(self) -> dict[NestOp, DotProduct]:
        """Returns the nests that become products of blocks, with dims for axes. They need enough lanes along exactly
        rows, columns and depth, and no other wanted nest may use their depth."""
        found: dict[NestOp, DotProduct] = {}
        order = [d.name for d in self.dims]
        for nest in self.group.members:
            names, dot = self.group.names[nest], dot_product(nest)
            if dot is None:
                continue
            dims = dot.renamed(names)
            wide = {n for n in names.values() if self.by_name[n].lanes > 1}
            others = (n for n in self.group.members if n is not nest and dims.depth in self.group.names[n].values())
            if wide != {dims.row, dims.column, dims.depth} or any(self._is_wanted(n) for n in others):
                continue
            if min(self.by_name[n].lanes for n in wide) >= LEAST:
                found[nest] = dims if order.index(dims.row) < order.index(dims.column) else dims.swapped()
        return found

    def _is_wanted(self, nest: NestOp) -> bool:
        """True if a nest is computed on its own, not only for its readers."""
        return self._reduces(nest) or any(v in self.stored for v in nest.outputs)

    def _used(self) -> set[str]:
        """Returns all names used by the launch, including symbols."""
        found = set(symbols_of(d.extent for d in self.dims))
        for nest in self.group.members:
            for op in nest.block.ops:
                if isinstance(op, ReadOp):
                    found |= symbols_of((*op.subscripts, *op.guards, *dims_of(op.source.type)))
                elif isinstance(op, IndexOp):
                    found |= op.value.symbols
                elif isinstance(op, YieldOp):
                    found |= symbols_of(e for c in op.clauses for e in c.subscripts)
            found |= symbols_of(d for v in nest.outputs for d in dims_of(v.type))
        return found

    def emit(self) -> tuple[tt.FuncOp, tuple[str, ...]]:
        """Emits the kernel. Returns it with the symbols whose values it takes after its tensors."""
        kinds = [tt.PointerType(self._memory(t)) for t in self.tensors]
        block = Block(arg_types=[*kinds, *(i64 for _ in self.symbols)])
        self.pointers = dict(zip(self.tensors, block.args, strict=False))
        self.descriptors = Descriptors(block)
        divided = divided_dims(self.products, self.group, self.dims)
        parts = (
            (name, size) for d in divided for name, size in ((first_of(d.name), d.extent), (lane_of(d.name), d.lanes))
        )
        ranges = axis_ranges([*((d.name, d.extent) for d in self.dims), *parts])
        builder = BlockBuilder(block, ranges, self._index_type())
        builder.blocks = {d.name: d.lanes for d in divided}
        index: dict[str, SSAValue] = dict(zip(self.symbols, block.args[len(self.tensors) :], strict=True))
        self._blocks(Scope(builder, index, {}, self.laned, {}))
        block.add_op(tt.ReturnOp())
        self._require_descriptors()
        unused = [not arg.uses for arg in block.args]
        behind = unused[len(self.tensors) :]
        self.tensors = tuple(t for t, drop in zip(self.tensors, unused, strict=False) if not drop)
        self.symbols = tuple(s for s, drop in zip(self.symbols, behind, strict=False) if not drop)
        for arg, drop in zip(list(block.args), unused, strict=True):
            if drop:
                block.erase_arg(arg)
        return tt.FuncOp(self.name, [arg.type for arg in block.args], Region(block)), self.symbols

    def _blocks(self, scope: Scope) -> None:
        """Computes the block of a program; with `persistent`, the blocks of a program in sequence: from its number on,
        in steps of the number of programs."""
        builder = scope.builder
        if not self.group.persistent:
            self._programs(scope)
            self._compute(scope)
            return
        count = builder.from_index(builder.expr(product(d.programs for d in self.dims), scope.index), i32)
        body = Block(arg_types=[i32])
        inside = Scope(builder.inside(body), dict(scope.index), {}, scope.laned, {})
        self._programs(inside, body.args[0])
        self._compute(inside)
        body.add_op(scf.YieldOp())
        first, step = builder.add(tt.GetProgramIdOp(0)), builder.add(tt.GetNumProgramsOp(0))
        builder.block.add_op(scf.ForOp(first, count, step, [], Region(body)))

    def _require_descriptors(self) -> None:
        """Raises if the schedule asks for descriptors, and no access can have one."""
        if self.group.descriptors and not self.descriptors.arguments:
            reasons = self.descriptors.reasons or ["it has no product of blocks"]
            raise IgniterError(
                f"lower-to-triton: nest '{self.group.members[0].label}': no access of the launch can have a descriptor "
                f"({'; '.join(dict.fromkeys(reasons))}); remove 'descriptors'"
            )

    def _index_type(self) -> IntegerType:
        """Returns i32 if all sizes are constant, every offset is proven to fit, and no index is data; else i64. Masked
        lanes may overflow, but their masks may not."""
        found = [product(dims_of(t.type)).constant for t in self.tensors]
        found += [(d.extent + max(d.lanes, d.share)).constant for d in self.dims]
        for nest in self.group.members:
            if not all(is_clamped(index) for read in nest.reads for index in read.indices):
                return i64
            found += [largest_value(op.value, nest) for op in nest.block.ops if isinstance(op, IndexOp)]
        return i32 if not self.symbols and all(f is not None and f < 1 << 31 for f in found) else i64

    def _memory(self, tensor: SSAValue) -> Attribute:
        """Returns the element type of a tensor in memory."""
        found = memory_element(element_of(tensor.type))
        if found is None:
            raise IgniterError(
                f"lower-to-triton: nest '{self.group.label}': there is no code for elements of "
                f"{element_of(tensor.type)}"
            )
        return found

    # -- dims ---------------------------------------------------------------------------------------------------------

    def _programs(self, scope: Scope, number: SSAValue | None = None) -> None:
        """Enters the blocks of a program, of the given number or its own, along the dims of the grid, and whole
        dims."""
        for dim, block in blocks_of_program(scope.builder, scope.index, self.group, self.dims, number):
            if dim.share:
                self._take_share(dim, block)
            else:
                self._enter(scope, dim, block)
        for dim in self.dims:
            if not dim.grid and not dim.looped:
                self._enter(scope, dim, None)

    def _take_share(self, dim: Dim, number: SSAValue) -> None:
        """Sets the program's share of a dim reduced by several programs."""
        del number
        raise IgniterError(
            f"lower-to-triton: programs split the dim '{dim.name}'; this is supported only for an attention"
        )

    def _enter(self, scope: Scope, dim: Dim, block: SSAValue | None) -> None:
        """Enters the `block`-th block of a dim, or the whole dim, into a scope."""
        builder = scope.builder
        first = block
        if block is not None and dim.lanes > 1:
            scope.index[block_name(dim.name)] = block
            first = builder.binary(arith.MuliOp, block, builder.number(dim.lanes))
        scope.firsts[dim.name] = first
        if dim.lanes == 1 or dim.name in scope.laned:
            self._span(scope, dim)

    def _span(self, scope: Scope, dim: Dim) -> None:
        """Adds the elements of the current block to a scope."""
        builder, first = scope.builder, scope.firsts[dim.name]
        if dim.lanes > 1:
            lanes = builder.to_index(builder.lanes(dim.lanes, scope.laned.index(dim.name), len(scope.laned)))
            if dim.name in builder.blocks:
                scope.index[first_of(dim.name)] = builder.number(0) if first is None else first
                scope.index[lane_of(dim.name)] = lanes
            first = lanes if first is None else builder.binary(arith.AddiOp, first, lanes)
        scope.index[dim.name] = builder.number(0) if first is None else first
        if not dim.is_exact:
            scope.masks[dim.name] = builder.below(scope.index[dim.name], builder.expr(dim.extent, scope.index))

    def _mask(self, scope: Scope, names: frozenset[str]) -> list[SSAValue]:
        """Returns the masks of blocks that depend on these dims."""
        return [mask for name, mask in scope.masks.items() if name in names]

    # -- phases -------------------------------------------------------------------------------------------------------

    def _compute(self, scope: Scope) -> None:
        if not self.products:
            for phase in self._phases():
                self._phase(phase, scope)
            return
        self._load_ahead(scope)
        product, *later = self._phases()
        self._phase(product, scope)
        inside = self._branch(scope) if later and self._loads_after() else scope
        for phase in later:
            self._phase(phase, inside)
        if inside is not scope:
            inside.builder.block.add_op(scf.YieldOp())

    def _load_ahead(self, scope: Scope) -> None:
        """Loads, before the loop over the depth, the small operands of the nests after a product: a bias, not a
        residual, whose block would fill the registers during the loop. A load between the last product and its use
        makes ptxas wait for each product (its message C7514)."""
        depths = {product.depth for product in self.products.values()}
        for nest in self._after_products():
            names = self.group.names[nest]
            for read in nest.reads:
                if read.indices or read.otherwise is not None or self.group.makes(read.source):
                    continue
                used = symbols_of(renamed((*read.subscripts, *read.guards), names))
                if used.isdisjoint(depths) and sum(name in used for name in scope.laned) <= 1:
                    self._value(nest, read.result, scope)

    def _loads_after(self) -> bool:
        """True if a nest computed on the blocks of sums reads other tensors."""
        return any(not self.group.makes(read.source) for nest in self._after_products() for read in nest.reads)

    def _branch(self, scope: Scope) -> Scope:
        """Returns a scope in a branch that every program takes: its block of rows has a row. Without the branch, ptxas
        may move reads of the sums up to the last products, and then makes each product wait (its message C7514)."""
        builder = scope.builder
        dim = self.by_name[next(iter(self.products.values())).row]
        first = scope.firsts[dim.name]
        taken = builder.below(builder.number(0) if first is None else first, builder.expr(dim.extent, scope.index))
        block = Block()
        builder.block.add_op(scf.IfOp(taken, [], Region(block)))
        inner = builder.inside(block)
        return Scope(
            inner,
            dict(scope.index),
            dict(scope.masks),
            scope.laned,
            dict(scope.firsts),
            dict(scope.values),
            dict(scope.loads),
        )

    def _after_products(self) -> list[NestOp]:
        """Returns the nests computed on the blocks of sums, in the order of the launch."""
        pending = [nest for nest in self.group.members if self._is_wanted(nest) and not self._reduces(nest)]
        found: set[NestOp] = set()
        while pending:
            nest = pending.pop()
            if nest not in found and not self._looped(nest):
                found.add(nest)
                sources = [read.source.owner for read in nest.reads if self.group.makes(read.source)]
                pending += [s for s in sources if isinstance(s, NestOp) and not self._reduces(s)]
        return [nest for nest in self.group.members if nest in found]

    def _looped(self, nest: NestOp) -> tuple[str, ...]:
        names = set(self.group.names[nest].values())
        return tuple(d.name for d in self.dims if d.looped and d.name in names)

    def _phases(self) -> Iterator[list[NestOp]]:
        """Yields groups of nests to compute together: nests over the same loops, after the sums that they read."""
        levels: dict[NestOp, int] = {}
        phases: dict[tuple[int, tuple[str, ...]], list[NestOp]] = {}
        for nest in self.group.members:
            level = 0
            for read in nest.reads:
                source = read.source.owner
                if isinstance(source, NestOp) and source in levels:
                    sums = self._reduces(source) and bool(self._looped(source))
                    level = max(level, levels[source] + sums)
            levels[nest] = level
            if self._is_wanted(nest):
                phases.setdefault((level, self._looped(nest)), []).append(nest)
        yield from (phases[key] for key in sorted(phases))

    def _reduces(self, nest: NestOp) -> bool:
        return any(a.kind == "reduction" for a in nest.axes)

    def _phase(self, nests: Sequence[NestOp], scope: Scope) -> None:
        loops = [d for d in self.dims if d.name in self._looped(nests[0])]
        if not loops:
            for nest in nests:
                if self._reduces(nest):
                    self._finish(nest, scope, self._terms(nest, scope), started=nest in self.products)
                else:
                    self._finish(nest, scope, None)
            return
        sums = [n for n in nests if self._reduces(n)]
        carried = [(n, k) for n in sums for k in range(len(n.outputs))]
        kept = self._loops(loops, nests, carried, [self._initial(n, k, scope) for n, k in carried], scope)
        for nest in sums:
            self._finish(nest, scope, [kept[carried.index((nest, k))] for k in range(len(nest.outputs))])

    def _loops(
        self,
        loops: Sequence[Dim],
        nests: Sequence[NestOp],
        carried: Sequence[tuple[NestOp, int]],
        kept: Sequence[SSAValue],
        scope: Scope,
    ) -> list[SSAValue]:
        """Emits nested loops over the blocks of dims; reductions accumulate in blocks of full size."""
        if not loops:
            return self._iteration(nests, carried, kept, scope)
        builder, dim = scope.builder, loops[0]
        if dim.unrolled:
            for element in range(dim.extent.constant or 0):
                inside = Scope(builder, dict(scope.index), dict(scope.masks), scope.laned, dict(scope.firsts))
                self._enter(inside, dim, builder.number(element))
                kept = self._loops(loops[1:], nests, carried, kept, inside)
            return list(kept)
        first, end, step = builder.number(0), builder.expr(dim.blocks, scope.index), builder.number(1)
        body = Block(arg_types=[builder.index, *(v.type for v in kept)])
        inner = builder.inside(body, is_loop=True)
        inside = Scope(inner, dict(scope.index), dict(scope.masks), scope.laned, dict(scope.firsts))
        self._enter(inside, dim, body.args[0])
        body.add_op(scf.YieldOp(*self._loops(loops[1:], nests, carried, body.args[1:], inside)))
        loop = scf.ForOp(first, end, step, list(kept), Region(body))
        if self.group.specialized and len(loops) == 1 and not self.products.keys().isdisjoint(nests):
            specialize(loop)
        builder.block.add_op(loop)
        return list(loop.results)

    def _iteration(
        self,
        nests: Sequence[NestOp],
        carried: Sequence[tuple[NestOp, int]],
        kept: Sequence[SSAValue],
        scope: Scope,
    ) -> list[SSAValue]:
        made = list(kept)
        for nest in nests:
            if not self._reduces(nest):
                self._finish(nest, scope, None)
                continue
            if nest in self.products:
                place = carried.index((nest, 0))
                made[place] = self._product(nest, kept[place], scope)
                continue
            for k, term in enumerate(self._terms(nest, scope)):
                place = carried.index((nest, k))
                made[place] = self._combined(nest, k, scope.builder, kept[place], term)
        return made

    def _initial(self, nest: NestOp, k: int, scope: Scope) -> SSAValue:
        """Returns the initial block of a sum."""
        shape = self._shape(self.group.names[nest].values())
        return scope.builder.shaped(self._identity(nest, k, scope), shape) if shape else self._identity(nest, k, scope)

    def _identity(self, nest: NestOp, k: int, scope: Scope) -> SSAValue:
        clause = nest.yield_op.clauses[k]
        return self._constant(identity(clause.combiner, element_of(nest.outputs[k].type)), scope)

    def _constant(self, constant: arith.ConstantOp, scope: Scope) -> SSAValue:
        number = cast("FloatAttr[Float32Type] | IntegerAttr[IntegerType]", constant.value).value.data
        return scope.builder.const(number, constant.result.type)

    # -- sums ---------------------------------------------------------------------------------------------------------

    def _terms(self, nest: NestOp, scope: Scope) -> list[SSAValue]:
        """Returns the operands of a nest's reduction, on the current blocks, with the neutral element where masked."""
        names = self.group.names[nest]
        if nest in self.products:
            return [self._product(nest, self._initial(nest, 0, scope), scope)]
        found: list[SSAValue] = []
        for k, clause in enumerate(nest.yield_op.clauses):
            value = self._value(nest, clause.value, scope)
            reduced = frozenset(names[a.name] for a in nest.axes if a.kind == "reduction")
            mask = scope.builder.all_of(self._mask(scope, reduced))
            if mask is not None:
                nothing = neutral(clause.combiner, element_of(nest.outputs[k].type))
                value = scope.builder.select(mask, value, self._constant(nothing, scope))
            found.append(scope.builder.shaped(value, self._shape(names.values())) if self.laned else value)
        return found

    def _product(self, nest: NestOp, kept: SSAValue, scope: Scope) -> SSAValue:
        """Adds the product of the current blocks to a block of sums."""
        dims = self.products[nest]
        a = self._factor(nest, dims.a, (dims.row, dims.depth), dims.depth, scope)
        b = self._factor(nest, dims.b, (dims.depth, dims.column), dims.depth, scope)
        return self._dot(a, b, kept, scope.builder)

    def _dot(self, a: SSAValue, b: SSAValue, kept: SSAValue, builder: BlockBuilder) -> SSAValue:
        """Emits a product of blocks; the schedule sets the precision of f32."""
        single = isinstance(tt.element_type(a.type), Float32Type)
        return builder.add(tt.DotOp(a, b, kept, (self.group.products if single else "") or "ieee"))

    def _factor(self, nest: NestOp, wanted: SSAValue, laned: tuple[str, str], depth: str, scope: Scope) -> SSAValue:
        """Returns a factor of a product on blocks of two dims, 0 beyond the end of the depth."""
        builder, inside = scope.builder, self._across(laned, scope)
        shape = tuple(self.by_name[n].lanes for n in laned)
        axis = next(axis for axis, name in self.group.names[nest].items() if name == depth)
        codes = codes_of(wanted, axis)
        if codes is None:
            value = builder.shaped(self._value(nest, wanted, inside), shape)
        else:
            value = self._unpacked(nest, wanted, laned, Unpacking(self.by_name[depth], codes), scope)
        mask = inside.masks.get(depth)
        if mask is None or self._ends_with_zero(nest, wanted, depth):
            return value
        return builder.select(mask, value, builder.const(0, tt.element_type(value.type)))

    def _unpacked(
        self, nest: NestOp, wanted: SSAValue, laned: tuple[str, str], depth: Unpacking, scope: Scope
    ) -> SSAValue:
        """Returns a factor of codes: each part of the bytes on blocks of its own, then all of them side by side."""
        ranges = depth.ranges(scope.builder.ranges)
        builder = BlockBuilder(scope.builder.block, ranges, scope.builder.index)
        at = laned.index(depth.depth.name)
        names = (*laned[:at], *depth.lanes, *laned[at + 1 :])
        lanes = {**{n: self.by_name[n].lanes for n in laned}, **depth.lanes}
        index = {name: value for name, value in scope.index.items() if name not in scope.laned}
        looped = depth.block_name in index
        first = Scope(builder, index, {}, names, scope.firsts)
        for name in names:
            if name in self.by_name:
                self._span(first, self.by_name[name])
            else:
                index[name] = builder.to_index(builder.lanes(lanes[name], names.index(name), len(names)))
        if not depth.depth.is_exact:
            end = builder.expr(depth.depth.extent, index)
            for name, start in depth.starts(looped).items():
                first.masks[name] = builder.below(builder.expr(start, index), end)
        parts: list[SSAValue] = []
        for part in range(depth.codes.parts):
            places = {depth.depth.name: depth.place(part, looped)}
            each = Scope(builder, index, first.masks, names, scope.firsts, {}, first.loads, places)
            parts.append(builder.shaped(self._value(nest, wanted, each), [lanes[n] for n in names]))
        return side_by_side(builder, parts, at + len(depth.lanes), [lanes[n] for n in laned])

    def _across(self, laned: tuple[str, ...], scope: Scope) -> Scope:
        """Returns a scope of the current blocks along other dims."""
        index = {name: value for name, value in scope.index.items() if name not in scope.laned}
        inside = Scope(scope.builder, index, {}, laned, scope.firsts, factor=True)
        for name in laned:
            self._span(inside, self.by_name[name])
        return inside

    def _ends_with_zero(self, nest: NestOp, value: SSAValue, depth: str) -> bool:
        """True if a value is a load with 0 beyond the end of the depth."""
        read = value.owner
        if not isinstance(read, ReadOp) or read.otherwise is not None or self.group.makes(read.source):
            return False
        return depth in symbols_of(renamed(read.subscripts, self.group.names[nest]))

    def _shape(self, names: Iterable[str]) -> tuple[int, ...]:
        """Returns the shape of blocks that depend on these dims."""
        known = set(names)
        lanes = {d.name: d.lanes for d in self.dims}
        return tuple(lanes[name] if name in known else 1 for name in self.laned)

    def _combined(self, nest: NestOp, k: int, builder: BlockBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
        element = element_of(nest.outputs[k].type)
        return combined(builder, nest.yield_op.clauses[k].combiner, element, a, b)

    def _finish(self, nest: NestOp, scope: Scope, terms: Sequence[SSAValue] | None, *, started: bool = True) -> None:
        """Folds the reduced values, starting from the identity unless already `started`, and stores wanted results."""
        for k, (clause, result) in enumerate(zip(nest.yield_op.clauses, nest.outputs, strict=True)):
            if clause.otherwise is not None:
                raise IgniterError(
                    f"lower-to-triton: nest '{nest.label}' has padding around its result, which launches do not support"
                )
            if terms is None:
                if result not in self.stored:
                    continue
                value = self._value(nest, clause.value, scope)
            else:
                value = self._folded(nest, k, terms[k], scope)
                padded = TABLE[clause.combiner].float_neutral is not None and is_float(element_of(result.type))
                if padded and not started:
                    start = scope.builder.shaped(self._identity(nest, k, scope), tt.shape_of(value.type))
                    value = self._combined(nest, k, scope.builder, start, value)
                self.folded[result] = value
            if result in self.stored:
                self._store(nest, value, result, clause.subscripts, scope)

    def _folded(self, nest: NestOp, k: int, value: SSAValue, scope: Scope) -> SSAValue:
        builder, names = scope.builder, self.group.names[nest]
        for axis in nest.axes:
            if axis.kind != "reduction" or names[axis.name] not in scope.laned or not tt.is_block(value.type):
                continue
            place = scope.laned.index(names[axis.name])
            if tt.shape_of(value.type)[place] == 1:
                continue
            element = tt.element_type(value.type)
            body = Block(arg_types=[element, element])
            inner = BlockBuilder(body, builder.ranges)
            made = self._combined(nest, k, inner, body.args[0], body.args[1])
            body.add_op(tt.ReduceReturnOp([made]))
            value = builder.add(tt.ReduceOp([value], place, Region(body)))
            if tt.is_block(value.type):
                value = builder.add(tt.ExpandDimsOp(value, place))
        return value

    def _store(self, nest: NestOp, value: SSAValue, result: SSAValue, subscripts: Sequence[Expr], scope: Scope) -> None:
        builder = scope.builder
        at = renamed(subscripts, self.group.names[nest])
        value = to_memory(builder, value, element_of(result.type))
        access = self._block_access(result, at, scope) if self.group.descriptors and self.products else None
        if access is not None and self._memory(result) in (f16, bf16):
            value = as_in_memory(builder, builder.shaped(value, self._lanes_of(scope)), access, scope.laned)
            descriptor = self.descriptors.argument(root_of(result), self._memory(result), access)
            places = first_elements(builder, access, scope.firsts, scope.index)
            builder.block.add_op(tt.DescriptorStoreOp(descriptor, places, value))
            return
        offset = builder.expr(linearize(at, dims_of(result.type)), scope.index)
        mask = builder.all_of(self._mask(scope, symbols_of(at)))
        given = [offset, value, *([mask] if mask is not None else [])]
        given = builder.together(given)
        wide = [d for d, size in zip(scope.laned, tt.shape_of(given[1].type), strict=False) if size > 1]
        if not symbols_of(at).issuperset(wide):
            raise IgniterError(f"lower-to-triton: nest '{nest.label}' would store an element in several lanes")
        pointers = self._pointers(builder, result, given[0])
        builder.block.add_op(tt.StoreOp(pointers, given[1], given[2] if mask is not None else None))

    def _block_access(self, tensor: SSAValue, at: Sequence[Expr], scope: Scope) -> BlockAccess | None:
        """Returns the access of a tensor on the current blocks, if a descriptor can make it."""
        lanes = {name: self.by_name[name].lanes for name in scope.laned}
        extents = {d.name: d.extent for d in self.dims}
        grid = {d.name for d in self.dims if d.grid}
        found = block_access(at, dims_of(tensor.type), self._memory(tensor), lanes, extents, grid)
        if not isinstance(found, str):
            return found
        self.descriptors.reasons.append(found)
        return None

    def _lanes_of(self, scope: Scope) -> tuple[int, ...]:
        return tuple(self.by_name[name].lanes for name in scope.laned)

    def _pointers(self, builder: BlockBuilder, tensor: SSAValue, offset: SSAValue) -> SSAValue:
        base = builder.shaped(self.pointers[root_of(tensor)], tt.shape_of(offset.type))
        return builder.add(tt.AddPtrOp(base, offset))

    # -- values -------------------------------------------------------------------------------------------------------

    def _value(self, nest: NestOp, wanted: SSAValue, scope: Scope) -> SSAValue:
        """Returns a value of the body of a nest, on the current blocks."""
        known = scope.values.get(wanted)
        if known is not None:
            return known
        op = wanted.owner
        assert isinstance(op, Operation)
        builder = scope.builder
        if isinstance(op, ReadOp):
            made = self._read(nest, op, scope)
        elif isinstance(op, IndexOp):
            (e,) = placed(renamed([op.value], self.group.names[nest]), scope.places, builder.ranges)
            made = builder.expr(e, scope.index)
            made = builder.from_index(made, op.result.type)
        elif (argument := erf_plus_one(op)) is not None:
            made = one_plus_erf(builder, self._value(nest, argument, scope))
        else:
            made = elementwise(builder, op, [self._value(nest, v, scope) for v in op.operands], nest.label)
        scope.values[wanted] = made
        return made

    def _read(self, nest: NestOp, op: ReadOp, scope: Scope) -> SSAValue:
        builder, names = scope.builder, self.group.names[nest]
        guards = placed(renamed(op.guards, names), scope.places, builder.ranges)
        env = dict(scope.index)
        for k, index in enumerate(op.indices):
            env[f"_{k}"] = builder.to_index(self._value(nest, index, scope))
        conditions = [builder.nonneg(g, env) for g in guards]
        otherwise = None if op.otherwise is None else self._value(nest, op.otherwise, scope)
        if self.group.makes(op.source):
            value = self._of_launch(op.source, scope)
            mask = builder.all_of(conditions)
            if mask is None:
                return value
            zero = builder.const(0, tt.element_type(value.type)) if otherwise is None else otherwise
            return builder.select(mask, value, zero)
        at = placed(renamed(op.subscripts, names), scope.places, builder.ranges)
        key = (op.source, at, guards, tuple(self._value(nest, i, scope) for i in op.indices), otherwise)
        if key not in scope.loads:
            scope.loads[key] = self._load(op, at, conditions, otherwise, env, scope)
        return scope.loads[key]

    def _of_launch(self, source: SSAValue, scope: Scope) -> SSAValue:
        """Returns the result of another nest of the launch."""
        if source in self.folded:
            if scope.laned != self.laned:
                raise IgniterError("lower-to-triton: a factor of a product of blocks reads sums of the same launch")
            return self.folded[source]
        owner = source.owner
        assert isinstance(owner, NestOp)
        if self._reduces(owner):
            raise IgniterError(f"lower-to-triton: the sums of nest '{owner.label}' are used before they are computed")
        index = list(owner.outputs).index(source)  # pyright: ignore[reportArgumentType]
        return self._value(owner, owner.yield_op.clauses[index].value, scope)

    def _load(
        self,
        op: ReadOp,
        at: Sequence[Expr],
        conditions: list[SSAValue],
        otherwise: SSAValue | None,
        env: Mapping[str, SSAValue],
        scope: Scope,
    ) -> SSAValue:
        builder, element = scope.builder, element_of(op.source.type)
        nest = op.parent_op()
        assert isinstance(nest, NestOp)
        names = self.group.names[nest]
        described = self.group.descriptors and scope.factor
        if described and not conditions and not op.indices and otherwise is None:
            access = self._block_access(op.source, at, scope)
            if access is not None:
                source, memory = root_of(op.source), self._memory(op.source)
                descriptor = self.descriptors.argument(source, memory, access)
                places = first_elements(builder, access, scope.firsts, env)
                loaded = builder.add(tt.DescriptorLoadOp(descriptor, places))
                return from_memory(builder, in_order(builder, loaded, access, scope.laned), element)
        offset = builder.expr(linearize(at, dims_of(op.source.type)), env)
        # An indirect access depends only on the dims of its indices: a wider block would be stored twice.
        there = symbols_of(at).union(*(renamed_names(hangs_on(i), names) for i in op.indices))
        mask = builder.all_of([*conditions, *self._mask(scope, there)])
        memory = self._memory(op.source)
        if mask is None:
            return from_memory(builder, builder.add(tt.LoadOp(self._pointers(builder, op.source, offset))), element)
        other = builder.const(0, memory) if otherwise is None else to_memory(builder, otherwise, element)
        offset, mask, other = builder.together([offset, mask, other])
        loaded = builder.add(tt.LoadOp(self._pointers(builder, op.source, offset), mask, other))
        return from_memory(builder, loaded, element)
