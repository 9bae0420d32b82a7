"""Scheduling a kernel from Python: primitives, checked one by one.

    s = igniter.Schedule("gemm.mlir")
    s.split("matmul", "j", 48)                     # ('j by 48', 'j')
    s.split("matmul", "i", 8)
    s.reorder("matmul", "j by 48", "i by 8", "k", "i", "j")
    s.vectorize("matmul", "j", 16)
    s.unroll("matmul", "i")
    s.threads("matmul", "j by 48")
    print(s.text())                                # the IR, for a file that `igniter kernel` takes
    print(s.time(igniter.Schedule("gemm.mlir", author=True)))

The name of a loop is its axis, or its axis and its blocks: `"j"`, `"j by 48"`. Each primitive returns its result, or
raises `IgniterError` with the reason and leaves the schedule unchanged. `inline`, `pack`, `cache` and `split_reduction`
rewrite the nests themselves, with the passes of these names; `variant` adds schedules for some sizes; the others change
the schedule of one nest (`igniter/dialects/loop/schedule.py`). Errors detected only by a pass (a dependence between
iterations, an `unroll` without a constant) are raised by `apply`, and so by `run`, `time` and `asm`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, OpResult, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from igniter.analysis.machine import pass_figures
from igniter.compiler.arguments import require_integer
from igniter.context import IgniterContext
from igniter.dialects.loop import Axis, Clause, FuncOp, KernelOp, NestOp, ReadOp, YieldOp
from igniter.dialects.loop.schedule import Loop, Product, ScheduleAttr, Step, Store
from igniter.dialects.loop.storage import Memory
from igniter.dialects.loop.variants import parse_when
from igniter.dialects.loop.words import Tail
from igniter.dialects.sym import ParserTokens, dims_of
from igniter.errors import IgniterError
from igniter.passes import parse_passes, run_passes
from igniter.registry import UnknownName
from igniter.schedules.primitives import find, loops_of, name_of, plain, reorder, split, store_at, tensorize, with_words
from igniter.targets import backend_for
from igniter.toolbox.kernel.workbench import find_kernel, outputs_of, study, version_of
from igniter.toolbox.kernel.workbench import schedule as by_default
from igniter.toolbox.object_html import schedule_html
from igniter.transforms.structured.inline_nests import inline_nest
from igniter.transforms.structured.nest_rewriting import fresh_label
from igniter.transforms.structured.pack_operands import pack_operand
from igniter.transforms.structured.split_reductions import split_reduction

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from igniter.toolbox.kernel.workbench import Study, Version

T = TypeVar("T")


class Schedule:
    """A structured kernel with schedules, changed step by step.

    `kernel` is one, or a file with it (`.onnx`, `.mlir`), where its name is `name`. Its nests begin with their own
    schedules, or with plain loops in the order of their axes; with `author`, with those of the default author for
    `target`.
    """

    def __init__(
        self, kernel: KernelOp | str | PathLike[str], name: str = "", *, target: str = "native", author: bool = False
    ):
        backend = backend_for(target)
        self.target = backend.target_of(target)
        if isinstance(kernel, KernelOp):
            self.kernel = kernel.clone()
        else:
            self.kernel = find_kernel(kernel, name, backend.machine_for(self.target), chosen_by="the argument 'name'")
        if author:
            for op in self.kernel.computations:
                op.schedule = None
            self.kernel = by_default("", self.kernel, self.target).kernel
        self._module = ModuleOp([self.kernel])
        for nest in self.kernel.nests:
            if nest.schedule is None:
                nest.schedule = plain(nest)

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def nests(self) -> list[str]:
        """The labels of the nests, in order."""
        return [nest.label for nest in self.kernel.nests]

    def nest(self, label: str) -> NestOp:
        """Returns one nest; `IgniterError` lists the nests if the label is unknown."""
        found = next((n for n in self.kernel.nests if n.label == label), None)
        if found is None:
            raise UnknownName("nest", label, dict.fromkeys(self.nests), listed=True)
        return found

    def loops(self, label: str) -> list[str]:
        """Returns the names of a nest's loops, outermost first."""
        return [name_of(loop) for loop in self._schedule(label).loops]

    def text(self) -> str:
        """Returns the kernel with its schedules, as IR."""
        return str(self._module) + "\n"

    def __str__(self) -> str:
        return "\n".join(f"{nest.label}: {nest.schedule}" for nest in self.kernel.nests)

    def __repr__(self) -> str:
        nests = f"{len(self.nests)} nest{'s' * (len(self.nests) != 1)}"
        return f"<igniter.Schedule of @{self.kernel.sym_name.data}: {nests}, for {self.target.name}>"

    def _repr_html_(self) -> str:
        """Returns the loop tree, for notebooks."""
        return schedule_html(repr(self)[1:-1], [(n.label, self._schedule(n.label)) for n in self.kernel.nests])

    # -- loops -------------------------------------------------------------------------------------------------------

    def split(self, label: str, loop: str, by: int, tail: Tail = "") -> tuple[str, str]:
        """Splits a loop into one over blocks of `by` iterations and, right inside, one over the iterations of a block;
        returns their names. `tail` selects the code of a partial last block."""
        require_integer("split", "by", by)
        steps = self._changed(label, split, loop, by, tail)
        place = self._find(label, loop)
        self._set(label, steps)
        outer, inner = loops_of(steps[place : place + 2])
        return name_of(outer), name_of(inner)

    def reorder(self, label: str, *loops: str) -> list[str]:
        """Puts the named loops in this order, at their places together; returns all loops of the nest."""
        self._set(label, self._changed(label, reorder, *loops))
        return self.loops(label)

    def word(self, label: str, loop: str, **words: Any) -> str:
        """Sets words of a loop by their names in the table of words (`threads=4`, `prefetch=True`); returns the loop
        with its words. The other methods are this one for common words."""
        steps = self._changed(label, with_words, loop, **words)
        place = self._find(label, loop)
        self._set(label, steps)
        return str(steps[place])

    def vectorize(self, label: str, loop: str, lanes: int, accumulators: int = 0) -> str:
        """Makes the iterations of a loop the lanes of vectors; a sum is kept in `accumulators` vectors."""
        require_integer("vectorize", "lanes", lanes)
        require_integer("vectorize", "accumulators", accumulators)
        return self.word(label, loop, vector=lanes, accumulators=accumulators)

    def unroll(self, label: str, loop: str, count: int = 0) -> str:
        """Copies the body of a loop, `count` times or for each iteration."""
        require_integer("unroll", "count", count)
        return self.word(label, loop, unroll=count)

    def threads(self, label: str, loop: str, grain: int = 0) -> str:
        """Distributes the iterations of a loop over the thread pool, `grain` a task, or a profitable number."""
        require_integer("threads", "grain", grain)
        return self.word(label, loop, threads=grain)

    def into_result(self, label: str, loop: str) -> str:
        """Adds the sum of each block of a reduction to the result in memory."""
        return self.word(label, loop, into_result=True)

    def compute_at(self, label: str, other: str, loop: str) -> str:
        """Computes a nest at a loop of another nest, its reader or producer: their loops down to this one are fused.
        This nest's loops are split into the other's blocks if necessary. Returns the group's label."""
        wanted = self._schedule(other).loops
        at = [name_of(x) for x in wanted].index(loop) if loop in self.loops(other) else self._find(other, loop)

        def change() -> str:
            taken = {x.fuse for nest in self.nests for x in self._schedule(nest).loops}
            fresh = next(name for k in count(1) if (name := f"at{k}") not in taken)
            group = next((x.fuse for x in wanted if x.fuse), fresh)
            for k, theirs in enumerate(wanted[: at + 1]):
                self._match_loop(label, k, theirs, other, f"'{loop}' of '{other}'")
                for of in (label, other):
                    steps = list(self._schedule(of).data)
                    place = [p for p, step in enumerate(steps) if isinstance(step, Loop)][k]
                    step = steps[place]
                    assert isinstance(step, Loop)
                    steps[place] = replace(step, fuse=group)
                    self._set(of, steps)
            self._lower("fuse-loops{strict=true}")
            return group

        return self._or_undo(change)

    def store_at(self, label: str, loop: str = "", memory: Memory = "") -> str:
        """Stores the result of a nest for one iteration of a loop shared with its readers (`compute_at`), with the size
        of the part written there; without a loop, for the whole kernel. `memory`: registers, stack or arena."""
        steps = self._changed(label, store_at, loop, memory)

        def change() -> str:
            self._set(label, steps)
            self._lower("fuse-loops{strict=true},promote-buffers,plan-buffers")
            return str(Store(memory))

        return self._or_undo(change)

    def tensorize(
        self, label: str, rows: str, columns: str, depth: str, tile: tuple[int, int], kernel: str = ""
    ) -> str:
        """Replaces the loops over `rows` (which may be ""), `columns` and `depth` by a micro-kernel of at most `tile`
        rows and panels, if their semantics are equal; the loops of the tile's rows and columns move it to the result.
        The micro-kernel is `kernel`, by default the one for products of the elements."""
        product = Product(rows, columns, depth, tile, kernel)
        missing = backend_for(self.target.name).lacks(kernel, self.target) if kernel else None
        if missing is not None:
            raise IgniterError(missing)

        def change() -> str:
            self._set(label, tensorize(self._schedule(label).data, product))
            self._lower("")
            return str(product)

        return self._or_undo(change)

    # -- nests -------------------------------------------------------------------------------------------------------

    def inline(self, label: str) -> list[str]:
        """Inlines a nest into its readers; returns their labels."""
        nest = self.nest(label)
        users = {use.operation.parent_op() for result in nest.outputs for use in result.uses}
        readers = [n.label for n in self.kernel.nests if n in users]

        def change() -> list[str]:
            reason = inline_nest(self.nest(label))
            if reason is not None:
                raise IgniterError(f"nest '{label}' cannot be inlined: {reason}")
            return readers

        return self._or_undo(change)

    def pack(self, label: str) -> str:
        """Packs the right factor of a contraction into the panels of micro-kernels, by a nest of its own; returns its
        label."""

        def change() -> str:
            machine = backend_for(self.target.name).machine_for(self.target)
            nest, before = self.nest(label), set(self.nests)
            own, nest.schedule = nest.schedule, None
            reason = pack_operand(nest, machine)
            if reason is not None:
                raise IgniterError(f"nothing to pack in nest '{label}': {reason or 'its factors lie as they have to'}")
            nest.schedule = own
            (made,) = set(self.nests) - before
            self.nest(made).schedule = plain(self.nest(made))
            return made

        return self._or_undo(change)

    def cache(self, label: str, operand: int) -> str:
        """Makes a nest read a copy of one of its operands, in the order of its reads; returns the label of the copying
        nest, meant to be computed at a loop of this one."""

        def change() -> str:
            nest = self.nest(label)
            sources = list(dict.fromkeys(read.source for read in nest.reads))
            if not 0 <= operand < len(sources):
                raise IgniterError(f"nest '{label}' reads {len(sources)} tensors: there is no number {operand}")
            source = sources[operand]
            axes = [Axis(f"c{k}", dim, "parallel") for k, dim in enumerate(dims_of(source.type))]
            read = ReadOp(source, [a.name for a in axes])
            body = Block([read, YieldOp([Clause("none", read.result, [a.name for a in axes])])])
            made = NestOp(fresh_label(nest, f"{label}.cache"), axes, [source.type], Region(body))
            made.schedule = plain(made)
            block = nest.parent
            assert block is not None
            block.insert_op_before(made, nest)
            source.replace_uses_with_if(made.outputs[0], lambda use: use.operation.parent_op() is nest)
            return made.label

        return self._or_undo(change)

    def split_reduction(self, label: str, axis: str, parts: int) -> str:
        """Splits a reduction into `parts` partial ones, in a nest of its own, and one over their results; returns its
        label."""

        def change() -> str:
            nest = self.nest(label)
            nest.schedule = None
            made = split_reduction(nest, axis, parts)
            for each in (made, self.nest(label)):
                each.schedule = plain(each)
            return made.label

        return self._or_undo(change)

    # -- sizes -------------------------------------------------------------------------------------------------------

    def variant(self, name: str, when: str, other: Schedule) -> str:
        """Adds a variant: if `when` holds (`"m <= 8"`), a call computes the kernel with the current schedule of
        `other`, otherwise with this one; the first variant whose condition holds is used. Returns its text in the
        IR."""

        def change() -> str:
            variant = other.kernel.clone()
            variant.sym_name = StringAttr(name)
            parser = Parser(IgniterContext(), f"when {when}", "<condition>")
            wrong = f"'{when}' is no condition: write m <= 8"
            try:
                variant.when = parse_when(parser)
            except ParseError as error:
                raise IgniterError(wrong) from error
            if ParserTokens(parser).peek():
                raise IgniterError(wrong)
            self.kernel.set_variants([*self.kernel.variants, variant])
            return f"@{name} when {when}"

        return self._or_undo(change)

    # -- what comes of it --------------------------------------------------------------------------------------------

    def apply(self) -> FuncOp:
        """Returns the scheduled kernel; raises `IgniterError` with the reason if a pass refuses."""
        _, behind = backend_for(self.target.name).around_schedules()
        module = ModuleOp([self.kernel.clone()])
        self._run(module, "check-bounds{guard=true}")
        self._run(module, behind.replace("fuse-loops", "fuse-loops{strict=true}"))
        return next(op for op in module.ops if isinstance(op, FuncOp))

    def run(self, *inputs: npt.ArrayLike, threads: int = 1) -> list[np.ndarray]:
        """Returns the kernel's results for arrays of its inputs, compiled for this machine."""
        return outputs_of(self.kernel, self.apply(), self.target, inputs, threads)

    def time(self, *others: Schedule, rounds: int = 9, threads: int = 1, **sizes: int) -> Study:
        """Checks and times this schedule and `others` of the same kernel in turns; the first result is its own. `sizes`
        are the values of symbols."""
        versions = [each._version(f"schedule {k}") for k, each in enumerate((self, *others))]
        return study(self.kernel, versions, self.target, sizes=sizes, rounds=rounds, threads=threads)

    def asm(self) -> str:
        """Returns the machine code, as text."""
        return self._version("").listing.text

    # -- internals ---------------------------------------------------------------------------------------------------

    def _version(self, name: str) -> Version:
        return version_of(name, self.kernel, self.apply(), self.target)

    def _schedule(self, label: str) -> ScheduleAttr:
        schedule = self.nest(label).schedule
        assert schedule is not None
        return schedule

    def _changed(self, label: str, primitive: Callable[..., list[Step]], *args: Any, **words: Any) -> list[Step]:
        """Returns the steps of a nest after a primitive; an error names the nest."""
        steps = self._schedule(label).data
        try:
            return primitive(steps, *args, **words)
        except IgniterError as error:
            raise IgniterError(f"nest '{label}' {error}") from error

    def _find(self, label: str, loop: str) -> int:
        """Returns the place of a loop among the steps of a nest."""
        steps = self._schedule(label).data
        try:
            return find(steps, loop)[0]
        except IgniterError as error:
            raise IgniterError(f"nest '{label}' {error}") from error

    def _match_loop(self, label: str, place: int, theirs: Loop, other: str, where: str) -> None:
        """Moves the loop of a nest to the place of its counterpart in another nest, in blocks of the same size.

        Its axis is the one along which one nest reads the other's result; without such a read, one of equal extent.
        """
        nest, loops, extent = self.nest(label), self._schedule(label).loops, self.nest(other).axis(theirs.axis).extent
        axis = _same_axis(nest, self.nest(other), theirs.axis)
        found = next(
            (
                x
                for x in loops[place:]
                if nest.axis(x.axis).extent == extent
                and axis in (None, x.axis)
                and (x.by == theirs.by or (x.by == 1 and not theirs.tail))
            ),
            None,
        )
        if found is None:
            left = [f"'{name_of(x)}' over {nest.axis(x.axis).extent}" for x in loops[place:]]
            has = ", ".join(left) or "no more loops"
            raise IgniterError(
                f"nest '{label}' cannot be computed at {where}, where '{name_of(theirs)}' goes over {extent}: "
                f"it has {has}"
            )
        name = name_of(found)
        if found.by != theirs.by:
            name, _ = self.split(label, name, theirs.by)
        steps = list(self._schedule(label).data)
        moved = steps.pop(self._find(label, name))
        before = [p for p, step in enumerate(steps) if isinstance(step, Loop)][place:]
        steps.insert(before[0] if before else len(steps), moved)
        self._set(label, steps)

    def _set(self, label: str, steps: Sequence[Step]) -> None:
        nest = self.nest(label)
        old, nest.schedule = nest.schedule, ScheduleAttr(steps)
        try:
            nest.verify_schedule()
        except VerifyException as error:
            nest.schedule = old
            raise IgniterError(str(error)) from error

    def _or_undo(self, change: Callable[[], T]) -> T:
        """Returns the result of a change; restores the kernel if the change fails."""
        before = self.kernel.clone()
        try:
            found = change()
            self._module.verify()
        except Exception as error:  # the kernel is restored after any error, which is raised again
            self.kernel.detach()
            self.kernel = before
            self._module = ModuleOp([before])
            if isinstance(error, VerifyException):
                raise IgniterError(str(error)) from error
            raise
        return found

    def _lower(self, more: str) -> None:
        """Tries to create the loops, on a copy."""
        self._run(ModuleOp([self.kernel.clone()]), f"lower-to-loops{',' if more else ''}{more}")

    def _run(self, module: ModuleOp, pipeline: str) -> None:
        machine = backend_for(self.target.name).machine_for(self.target)
        run_passes(IgniterContext().on(machine), module, parse_passes(pipeline, pass_figures([machine])))


def _same_axis(nest: NestOp, other: NestOp, axis: str) -> str | None:
    """Returns the axis of `nest` for `other`'s `axis`, if one reads the other's result; otherwise None."""
    for reader, writer in ((nest, other), (other, nest)):
        for read in reader.reads:
            if not isinstance(read.source, OpResult) or read.source.owner is not writer:
                continue
            clause = writer.yield_op.clauses[read.source.index]
            for written, taken in zip(clause.subscripts, read.subscripts, strict=True):
                pair = (taken.symbol, written.symbol) if reader is nest else (written.symbol, taken.symbol)
                if pair[1] == axis and pair[0] is not None:
                    return pair[0]
    return None
