"""Lowers the loops of programs to the scheduled level: a part of `lower-programs`.

    %h, %y = onnx.Scan(%h0, %x) ({^bb0(%s : tensor<8xf32>, %e : tensor<8xf32>):
      %n = fusion.region @r0 (%a = %s, %b = %e) kernel @r0 -> (tensor<8xf32>) { .. }
      onnx.return %n, %n
    }) {num_scan_inputs = 1} : (tensor<8xf32>, tensor<?x8xf32, #sym.dims<t, 8>>) -> ..

becomes

    %states = loop.alloc "scan" : memref<2x8xf32, "scratch">
    loop.for c1 = 0 to 8 { .. }                                     // %h0 into %states[0]
    loop.for t2 = 0 to t sequential {
      %s = loop.slice %states[t2 mod 2] : memref<2x8xf32, "scratch"> to memref<8xf32>
      %n = loop.slice %states[(t2 + 1) mod 2] : memref<2x8xf32, "scratch"> to memref<8xf32>
      %e = loop.slice %x[t2] : memref<?x8xf32, #sym.dims<t, 8>> to memref<8xf32>
      loop.call @r0 symbols [] (%s, %e) -> (%n)
      loop.for c3 = 0 to 8 { .. }                                   // %n into %y[t2]
    }
    %h = loop.slice %states[t mod 2] : memref<2x8xf32, "scratch"> to memref<8xf32>

A state has two alternating buffers: an iteration reads one and writes the other. Results stacked along the first axis
are written in place. Along another axis, and for a tensor needed in two places, they are copied. A slice of an input
along the first axis is a view; along another one it is a copy. A state that no iteration changes is the initial tensor.

The trip count is an expression over symbols or a value read before the loop. A condition is an element that the body
writes and `while` tests. If the trip count is a value or there is a condition, the iterations are counted, and the last
state is copied from the buffer selected by the count.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, NoneType, i1, i64
from xdsl.ir import Block, Operation, SSAValue

from igniter.analysis.fusion.graph import node_label
from igniter.analysis.fusion.legality import Reason
from igniter.analysis.fusion.program_loops import LoopForm, Sliced, State, loop_form
from igniter.dialects.loop import ForOp, IndexOp, LoadOp, SliceOp, StoreOp
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, mod
from igniter.dialects.sym.requirements import at_most
from igniter.errors import IgniterError
from igniter.transforms.conversion.lower_programs import ProgramLowering

FOREVER = (1 << 63) - 1
"""A bound that the iteration count never reaches."""


def lower_loop(p: ProgramLowering, op: Operation) -> None:
    """Adds the statements of a Loop or a Scan to a program."""
    assert isinstance(op, OnnxOp)
    form = loop_form(op)
    if isinstance(form, Reason):
        raise IgniterError(f"lower-programs: {node_label(op)}: {form}")
    _LoopLowering(p, form).run()


@dataclass
class _LoopLowering:
    p: ProgramLowering
    form: LoopForm
    slots: dict[State, SSAValue] = field(default_factory=dict[State, SSAValue])
    """The two buffers of each state that changes."""

    def run(self) -> None:
        p, form = self.p, self.form
        label = node_label(form.node)
        if form.node.op_type == "Scan" and form.count is not None:
            p.requires.append(at_most(1, form.count, "its scanned input is empty").at(label))
        for state in form.states:
            if not state.unchanged:
                slots = p.alloc(label, memref_of(element_of(state.argument.type), [2, *self._dims(state)], "scratch"))
                self.slots[state] = slots
                p.copy(p.buffers[state.initial], p.add(SliceOp(slots, [0])).result)
        for output in form.outputs:
            if output.whole not in p.buffers:
                whole = output.whole.type
                p.buffers[output.whole] = p.alloc(label, memref_of(element_of(whole), dims_of(whole), "scratch"))
        going = self._condition()
        counted = form.count is None or going is not None
        done = p.alloc("iterations", memref_of(i64, [], "scratch")) if counted else None
        if done is not None:
            self._store(0, done)
        indices: list[SSAValue] = []
        end = form.count
        if end is None and form.limit is not None:
            end = Expr.of("_0")
            indices.append(p.add(LoadOp(p.buffers[form.limit], [0] * len(dims_of(form.limit.type)))).result)
        axis, body, outer = p.axis("t"), Block(), p.block
        p.add(ForOp(axis, 0, FOREVER if end is None else end, body, sequential=True, indices=indices, going=going))
        p.block = body
        self._body(Expr.of(axis), going)
        if done is not None:
            p.add(StoreOp(p.add(IndexOp(Expr.of(axis) + 1)).result, done, []))
        p.block = outer
        self._results(done)

    def _dims(self, state: State) -> tuple[Expr, ...]:
        return dims_of(state.argument.type)

    def _store(self, value: int, buffer: SSAValue) -> None:
        constant = self.p.add(arith.ConstantOp(IntegerAttr(value, i1 if element_of(buffer.type) == i1 else i64)))
        self.p.add(StoreOp(constant.result, buffer, [0] * len(dims_of(buffer.type))))

    def _condition(self) -> SSAValue | None:
        """Allocates the condition of the loop and stores its initial value; None if only the count ends the loop."""
        p, form = self.p, self.form
        if form.start is None and form.going is None:
            return None
        going = p.alloc("condition", memref_of(i1, [], "scratch"))
        if form.start is None:
            self._store(1, going)
        else:
            first = p.add(LoadOp(p.buffers[form.start], [0] * len(dims_of(form.start.type))))
            p.add(StoreOp(first.result, going, []))
        return going

    # -- an iteration -------------------------------------------------------------------------------------------------

    def _body(self, step: Expr, going: SSAValue | None) -> None:
        p, form = self.p, self.form
        for state in form.states:
            if state.unchanged:
                p.buffers[state.argument] = p.buffers[state.initial]
            else:
                p.buffers[state.argument] = p.add(SliceOp(self.slots[state], [mod(step, Expr.of(2))])).result
        for sliced in form.inputs:
            p.buffers[sliced.part] = self._slice(sliced, step)
        if form.counter is not None and form.counter.first_use is not None:
            p.buffers[form.counter] = counter = p.alloc(
                "iteration", memref_of(i64, dims_of(form.counter.type), "scratch")
            )
            p.add(StoreOp(p.add(IndexOp(step)).result, counter, [0] * len(dims_of(counter.type))))
        if form.condition is not None and any(use.operation is not form.body.last_op for use in form.condition.uses):
            p.buffers[form.condition] = p.alloc("true", memref_of(i1, dims_of(form.condition.type), "scratch"))
            self._store(1, p.buffers[form.condition])
        wanted = self._wanted(step, going)
        copies = [(value, target) for value, target in wanted if not p.compute_into(value, target)]
        for op in form.body.ops:
            p.lower(op)
        for value, target in copies:
            p.copy(p.buffers[value], target)
        for output in (o for o in form.outputs if o.axis):
            self._stack(output, step)

    def _wanted(self, step: Expr, going: SSAValue | None) -> list[tuple[SSAValue, SSAValue]]:
        """Returns the values that an iteration must store, with their destinations."""
        p, form = self.p, self.form
        after = mod(step + 1, Expr.of(2))
        found: list[tuple[SSAValue, SSAValue]] = []
        for state, slots in self.slots.items():
            found.append((state.following, p.add(SliceOp(slots, [after])).result))
        for output in form.outputs:
            if not output.axis:
                whole, place = p.buffers[output.whole], output.place(step, form.count or ZERO)
                found.append((output.part, p.add(SliceOp(whole, [place])).result))
        if form.going is not None and going is not None:
            dims = dims_of(form.going.type)
            found.append((form.going, p.view_of(going, memref_of(i1, dims)) if dims else going))
        return found

    def _slice(self, sliced: Sliced, step: Expr) -> SSAValue:
        """Returns an iteration's slice of an input."""
        p, whole = self.p, self.p.buffers[sliced.whole]
        place = sliced.place(step, self.form.count or ZERO)
        if not sliced.axis:
            return p.add(SliceOp(whole, [place])).result
        dims = dims_of(sliced.part.type)
        part = p.alloc(node_label(self.form.node), memref_of(element_of(whole.type), dims, "scratch"))
        p.copy_elements(whole, part, dims, lambda at: (_inserted(at, sliced.axis, place), at))
        return part

    def _stack(self, output: Sliced, step: Expr) -> None:
        """Copies a slice to its place along an axis other than the first."""
        p, place = self.p, output.place(step, self.form.count or ZERO)
        part = p.buffers[output.part]
        p.copy_elements(
            part, p.buffers[output.whole], dims_of(part.type), lambda at: (at, _inserted(at, output.axis, place))
        )

    # -- afterwards ---------------------------------------------------------------------------------------------------

    def _results(self, done: SSAValue | None) -> None:
        """Stores the last states in the buffers allocated for them, or uses their current buffers."""
        p = self.p
        for state in self.form.states:
            if isinstance(state.result.type, NoneType):
                continue
            target = p.buffers.get(state.result)
            if done is not None and not state.unchanged:
                if target is None:
                    memref = memref_of(element_of(state.result.type), self._dims(state), "scratch")
                    target = p.buffers[state.result] = p.alloc(node_label(self.form.node), memref)
                self._copy_last(self.slots[state], target, done)
                continue
            if state.unchanged:
                last = p.buffers[state.initial]
            else:
                assert self.form.count is not None
                last = p.add(SliceOp(self.slots[state], [mod(self.form.count, Expr.of(2))])).result
            if target is None:
                p.buffers[state.result] = last
            else:
                p.copy(last, target)

    def _copy_last(self, slots: SSAValue, target: SSAValue, done: SSAValue) -> None:
        """Copies the last state, selected by the number of iterations."""
        p = self.p
        count = p.add(LoadOp(done, [])).result
        one = p.add(arith.ConstantOp(IntegerAttr(1, i64))).result
        which = p.add(arith.AndIOp(count, one)).result
        chosen = Expr.of("_0")
        p.copy_elements(
            slots,
            target,
            dims_of(target.type),
            lambda at: ([chosen, *at], at),
            indices=[which],
            guards=[chosen, ONE - chosen],
        )


def _inserted(at: list[Expr], axis: int, place: Expr) -> list[Expr]:
    return [*at[:axis], place, *at[axis:]]
