"""`lower-to-triton`: lowers nests with GPU schedules to kernels of the `tt` dialect and their launches.

    %m = loop.nest "max" [i: parallel n, k: reduction 64] schedule [i grid fuse "l0", k vector 64, launch ..] -> ..
    %y = loop.nest "sub" [i: parallel n, j: parallel 64] schedule [i grid fuse "l0", j vector 64, launch ..] -> ..
becomes
    tt.func @r0.l0(..) { .. }
    loop.func @r0 (%x, %y) { loop.launch @r0.l0 grid [n] warps 4 stages 1 symbols [n] (%x, %y) }

Nests with one label form a launch. Each of its dims is a `grid` loop, with one block per program, or a loop over blocks
in a program, or wholly in a program; the lanes of its `vector` are a dim of blocks. The order of loops has no meaning:
consecutive programs differ in the last dim of the grid, or, with `group`, first in the one before it.

Inside a program, values are computed on demand. A read of another nest of the launch is computed on the current block;
a read of another tensor is loaded, once. Sums over several blocks accumulate in one block and are reduced at the end. A
tensor that is only read inside the launch is never in memory.

A procedure with an algorithm has launches of its own (`algorithm_launches.py`), with blocks of the algorithm's dims.

A kernel with variants becomes a `loop.if` on the sizes for each variant and one for the rest, with the launches of
each. Versions share equal kernels: the host only selects.

Refused, with the nest's name: procedures without an algorithm, checks of data, nests that read each other's results
outside their block, directives for CPUs, and ops and types that Triton lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.structured.attention import Attention, attention_of
from igniter.dialects import triton as tt
from igniter.dialects.loop import (
    AllocOp,
    Axis,
    ComputeOp,
    FuncOp,
    IfOp,
    IfSharedOp,
    KernelOp,
    LaunchOp,
    NestOp,
    ProcedureOp,
)
from igniter.dialects.loop.schedule import Launch, vocabulary_of, words_of
from igniter.dialects.loop.sharing import IN_PLACE
from igniter.dialects.loop.variants import guards_of
from igniter.dialects.loop.words import LAUNCHES
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, minimum, product
from igniter.errors import IgniterError
from igniter.schedules.launch_groups import (
    LaunchGroup,
    attention_dims,
    first_names,
    in_order,
    joined,
    root_of,
)
from igniter.transforms.conversion.algorithm_launches import bodies_of
from igniter.transforms.conversion.attention_body import AttentionBody
from igniter.transforms.conversion.attention_parts import (
    JOIN_WARPS,
    AttentionJoin,
    SharedAttentionBody,
    dims_of_join,
    shapes_of_parts,
)
from igniter.transforms.conversion.launch_body import LaunchBody
from igniter.transforms.conversion.update_body import UpdateBody, update_of_launch

WORDS = vocabulary_of({LAUNCHES})
"""The words of launch schedules."""


@dataclass(frozen=True)
class LowerToTriton(ModulePass):
    """Lowers every loop.kernel to launches of Triton kernels."""

    name = "lower-to-triton"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            func, kernels = lower_kernel(kernel)
            for each in (*kernels, func):
                op.body.block.insert_op_before(each, kernel)
            kernel.detach()
            kernel.erase()


@dataclass(frozen=True)
class Dim:
    """The traversal of a dim by a launch."""

    name: str
    extent: Expr
    grid: bool
    """True if the grid has one block per program along the dim."""
    looped: bool
    """True if each program loops over the blocks of the dim."""
    lanes: int
    """The elements of a block; 1 if the dim is no dim of blocks."""
    share: int = 0
    """For a dim reduced by several programs, the elements per program; 0: one program has all of them."""
    unrolled: bool = False
    """True if the loop over the elements is unrolled."""

    def one_by_one(self) -> Dim:
        """Returns the dim with a program for each element."""
        return replace(self, grid=True, looped=False, lanes=1)

    @property
    def programs(self) -> Expr:
        """The dim's factor in the number of programs."""
        if self.share:
            return self.extent.ceildiv(self.share)
        return self.blocks if self.grid else ONE

    @property
    def blocks(self) -> Expr:
        """The number of blocks."""
        return self.extent if self.lanes == 1 else self.extent.ceildiv(self.lanes)

    @property
    def is_exact(self) -> bool:
        """True if all blocks are full. A dim wholly in a program is full only if its extent is the number of lanes."""
        known = self.extent.constant
        if self.grid or self.looped:
            return self.lanes == 1 or (known is not None and known % self.lanes == 0)
        return known == self.lanes


def lower_kernel(kernel: KernelOp) -> tuple[FuncOp, list[tt.FuncOp]]:
    """Returns the func that launches the Triton kernels of a kernel, and these kernels."""
    return _Lowering(kernel).run()


Parts = tuple[str, LaunchGroup, Sequence[Dim], Sequence[SSAValue], Sequence[SSAValue], Sequence[str]]
"""The name, the nests, the dims, the tensors, the stored ones and the symbols of a launch."""


class _Lowering:
    def __init__(self, kernel: KernelOp):
        self.kernel = kernel
        self.whole = Block()
        """The body of the func."""
        self.block = self.whole
        """The body of the func or of one of its versions."""
        self.buffers: dict[SSAValue, SSAValue] = {}
        """The memrefs of tensors, without views."""
        self.kernels: list[tt.FuncOp] = []
        self.named: dict[str, str] = {}
        """The names of the kernels, by their launch and their text without a name."""

    def run(self) -> tuple[FuncOp, list[tt.FuncOp]]:
        kernel = self.kernel
        inputs = [self._argument(v) for v in kernel.block.args]
        outputs = [self._argument(v) for v in kernel.returned]
        blocks: dict[KernelOp, Block] = {}
        # The kernel's own body comes first: kernels that versions share have its names.
        for version in (kernel, *kernel.variants):
            self.block = blocks[version] = self.whole if not kernel.variants else Block()
            self._version(version, inputs, outputs)
        if kernel.variants:
            self.whole.add_ops(IfOp(guards, blocks[version]) for version, guards in guards_of(kernel))
        facts = kernel.requires, kernel.checks, kernel.typical
        attributes = dict(kernel.attributes.items())
        if any(isinstance(op, IfSharedOp) for op in self.whole.walk()):
            attributes[IN_PLACE] = UnitAttr()
        symbols = kernel.symbol_names
        func = FuncOp(kernel.sym_name.data, symbols, len(outputs), Region(self.whole), None, attributes, *facts)
        return func, self.kernels

    def _version(self, kernel: KernelOp, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        """Adds the launches of the kernel or of one of its variants to the block."""
        if kernel.checks:
            raise IgniterError(
                f"lower-to-triton: kernel @{kernel.sym_name.data} checks its data, and a GPU cannot report a failed "
                "check; run drop-checks to remove the checks"
            )
        for op in kernel.computations:
            if isinstance(op, ProcedureOp) and op.computes is None:
                raise IgniterError(f"lower-to-triton: procedure '{op.label}' has no algorithm with a Triton kernel")
        self.buffers = dict(zip(kernel.block.args, inputs, strict=True))
        groups = in_order(scheduled_groups(kernel))
        for value, output in zip(kernel.returned, outputs, strict=True):
            # Each nest's result is in at most one of the caller's buffers.
            root = root_of(value)
            if isinstance(root.owner, ComputeOp) and root not in self.buffers:
                self.buffers[root] = output
        path = [self.kernel.sym_name.data, *([] if kernel is self.kernel else [kernel.sym_name.data])]
        for number, group in enumerate(groups):
            self._launch(group, ".".join([*path, str(number)]))
        for value, output in zip(kernel.returned, outputs, strict=True):
            if self.buffers.get(root_of(value)) is not output:
                raise IgniterError(
                    f"lower-to-triton: kernel @{kernel.sym_name.data} returns a tensor twice, or an input"
                )

    def _argument(self, value: SSAValue) -> SSAValue:
        made = self.whole.insert_arg(memref_of(element_of(value.type), dims_of(value.type)), len(self.whole.args))
        made.name_hint = value.name_hint
        return made

    def _launch(self, group: LaunchGroup, name: str) -> None:
        if group.procedure is not None:
            self._launch_procedure(group, group.procedure, name)
            return
        stored = [v for nest in group.members for v in nest.outputs if self._is_stored(v, group)]
        for value in stored:
            if value not in self.buffers:
                owner = value.owner
                assert isinstance(owner, NestOp)
                alloc = AllocOp(owner.label, memref_of(element_of(value.type), dims_of(value.type), "scratch"))
                self.block.add_op(alloc)
                self.buffers[value] = alloc.results[0]
        loaded = [root_of(op.source) for nest in group.members for op in nest.reads if not group.makes(op.source)]
        tensors = list(dict.fromkeys([*loaded, *stored]))
        dims = dims_of_group(group)
        said = name, group, dims, tensors, stored, self.kernel.symbol_names
        if group.attention is None:
            self._launch_nests(said)
        elif not any(d.share for d in dims):
            self._add_either(AttentionBody(*said), lambda: AttentionBody(f"{name}.addresses", *said[1:]), group)
        else:
            self._launch_shared(name, group, dims, loaded, stored)

    def _launch_nests(self, said: Parts) -> None:
        """Adds a launch without an attention. An update of a tensor of the caller, in a buffer of the caller, also gets
        a launch for the case that the two are one buffer."""
        name, group, dims, _, stored, _ = said
        update = update_of_launch(group, dims)
        past = None if update is None else self.buffers.get(root_of(update.past))
        present = self.buffers[stored[0]] if update is not None else None
        if update is None or past is None or not {past, present} <= set(self.whole.args):
            self._add_either(LaunchBody(*said), lambda: LaunchBody(f"{name}.addresses", *said[1:]), group)
            return
        assert present is not None
        around, blocks = self.block, (Block(), Block())
        bodies = UpdateBody(f"{name}.rows", *said[1:], update), LaunchBody(*said)
        for self.block, body in zip(blocks, bodies, strict=True):
            self._add(body, launch_of(group))
        self.block = around
        self.block.add_op(IfSharedOp(past, present, *blocks))

    def _launch_procedure(self, group: LaunchGroup, procedure: ProcedureOp, name: str) -> None:
        """Adds the launches of an algorithm."""
        for value in procedure.outputs:
            if value not in self.buffers:
                self.buffers[value] = self._scratch(procedure.label, element_of(value.type), dims_of(value.type))

        def dim(name: str, extent: Expr) -> Dim:
            return _dim(name, Axis(name, extent, "parallel"), procedure, shared=False)

        scratch = partial(self._scratch, procedure.label)
        for body, launch in bodies_of(name, group, dim, scratch, self.kernel.symbol_names):
            self._add(body, launch)

    def _scratch(self, label: str, element: Attribute, dims: Sequence[Expr]) -> SSAValue:
        alloc = AllocOp(label, memref_of(element, dims, "scratch"))
        self.block.add_op(alloc)
        self.buffers[alloc.result] = alloc.result
        return alloc.result

    def _launch_shared(
        self, name: str, group: LaunchGroup, dims: list[Dim], loaded: Sequence[SSAValue], stored: Sequence[SSAValue]
    ) -> None:
        """Adds an attention whose keys are split over several programs, and the kernel that combines their sums."""
        if group.descriptors:
            raise IgniterError(
                f"lower-to-triton: nest '{group.members[0].label}': programs share the keys of this attention, which "
                "descriptors do not support; remove 'descriptors'"
            )
        parts: list[SSAValue] = []
        for label, shape in shapes_of_parts(group, dims):
            alloc = AllocOp(label, memref_of(Float32Type(), shape, "scratch"))
            self.block.add_op(alloc)
            parts.append(alloc.results[0])
            self.buffers[parts[-1]] = parts[-1]
        symbols, launch = self.kernel.symbol_names, launch_of(group)
        inputs = list(dict.fromkeys(loaded))
        body = SharedAttentionBody(name, group, dims, [*inputs, *parts], [], symbols)
        body.parts = parts
        self._add(body, launch)
        tensors = list(dict.fromkeys([*parts, *inputs, *stored]))
        joined_dims = dims_of_join(group, dims)
        join = AttentionJoin(f"{name}.join", group, joined_dims, tensors, stored, symbols)
        join.parts = parts
        self._add(join, Launch(JOIN_WARPS, 1))

    def _add_either(self, body: LaunchBody, other: Callable[[], LaunchBody], group: LaunchGroup) -> None:
        """Adds a launch. If it has descriptors that some sizes do not allow, the host takes the `other` one then, with
        addresses."""
        launch, func, symbols = launch_of(group), *body.emit()
        lacking = body.descriptors.lacking
        if lacking == ZERO:
            self._add_emitted(body, func, symbols, launch)
            return
        around = self.block
        self.block = Block()
        self._add_emitted(body, func, symbols, launch)
        around.add_op(IfOp([-lacking], self.block))
        self.block, group.descriptors, group.specialized = Block(), False, False
        self._add(other(), replace(launch, descriptors=False, specialized=False))
        around.add_op(IfOp([lacking - 1], self.block))
        self.block = around

    def _add(self, body: LaunchBody, launch: Launch) -> None:
        """Emits the kernel of a launch, and adds the launch."""
        self._add_emitted(body, *body.emit(), launch)

    def _add_emitted(self, body: LaunchBody, func: tt.FuncOp, symbols: Sequence[str], launch: Launch) -> None:
        """Adds the kernel of a launch, unless another version has the same, and the launch."""
        func.sym_name = StringAttr("")
        name = self.named.setdefault(f"{launch}: {func}", body.name)
        if name == body.name:
            func.sym_name = StringAttr(name)
            self.kernels.append(func)
        used = [Expr.of(s) for s in symbols]
        described = body.descriptors.tensors
        buffers = [self.buffers[t] for t in (*body.tensors, *(tensor for tensor, _ in described))]
        maps = [sizes for _, sizes in described]
        grid = product(d.programs for d in body.dims)
        if launch.persistent:
            grid = minimum(grid, Expr.of(launch.persistent))
        self.block.add_op(LaunchOp(name, grid, buffers, used, launch.warps, launch.stages, maps))

    def _is_stored(self, value: SSAValue, group: LaunchGroup) -> bool:
        """True if a value has readers outside the launch."""
        for use in value.uses:
            parent = use.operation.parent_op()
            if not (isinstance(parent, NestOp) and parent in group.names):
                return True
        return False


def scheduled_groups(kernel: KernelOp) -> list[LaunchGroup]:
    """Returns the launches that the schedules of a kernel define: nests with one label and procedures, in the order of
    the kernel."""
    labels: dict[str, list[NestOp]] = {}
    procedures: list[LaunchGroup] = []
    for op in kernel.computations:
        if op.schedule is None or op.schedule.launch is None:
            raise IgniterError(f"lower-to-triton: nest '{op.label}' needs a schedule with 'launch'")
        _require_words(op)
        if isinstance(op, ProcedureOp):
            procedures.append(LaunchGroup(procedure=op))
        elif isinstance(op, NestOp):
            labels.setdefault(_label(op), []).append(op)
    groups = {label: LaunchGroup(_attention(nests)) for label, nests in labels.items()}
    for label, group in groups.items():
        for nest in _in_turn(group, labels[label]):
            names = joined(group, nest) if group.members else first_names(nest)
            if isinstance(names, str):
                raise IgniterError(f"lower-to-triton: nest '{nest.label}' cannot be in launch '{label}': {names}")
            group.add(nest, names)
    for group in groups.values():
        launch = launch_of(group)
        group.products, group.blocks_together = launch.products, launch.group
        group.descriptors, group.specialized = launch.descriptors, launch.specialized
        group.persistent = launch.persistent
    return [*groups.values(), *procedures]


def _in_turn(group: LaunchGroup, nests: Sequence[NestOp]) -> list[NestOp]:
    """Returns the nests of a launch in the order of joining: those of an attention first."""
    first = list(group.attention.members) if group.attention is not None else []
    return [*first, *(nest for nest in nests if nest not in first)]


def _attention(nests: Sequence[NestOp]) -> Attention | None:
    """Returns the attention formed by the first nests of a launch, or None."""
    found = (attention_of(nest, nests) for nest in nests)
    return next((each for each in found if each is not None and each.scores is nests[0]), None)


def _require_words(nest: ComputeOp) -> None:
    """Raises if a schedule contains a directive that a launch does not have."""
    assert nest.schedule is not None
    for step in nest.schedule.data:
        said = [word for word in words_of(step) if word not in WORDS]
        if said:
            raise IgniterError(f"lower-to-triton: nest '{nest.label}': '{step}': a launch cannot have '{said[0]}'")


def launch_of(group: LaunchGroup) -> Launch:
    """Returns the launch parameters of a group; raises if its nests disagree."""
    first, *others = [(nest, nest.schedule.launch if nest.schedule else None) for nest in group.members]
    for nest, launch in others:
        if launch != first[1]:
            raise IgniterError(
                f"lower-to-triton: nest '{nest.label}' has '{launch}', but '{first[0].label}' of the same launch has "
                f"'{first[1]}'"
            )
    assert first[1] is not None
    return first[1]


def _label(nest: NestOp) -> str:
    assert nest.schedule is not None
    labels = {loop.fuse for loop in nest.schedule.loops if loop.fuse}
    if len(labels) > 1:
        raise IgniterError(f"lower-to-triton: nest '{nest.label}' is in two launches: {', '.join(sorted(labels))}")
    return labels.pop() if labels else f"nest {nest.label}"


def dims_of_group(group: LaunchGroup) -> list[Dim]:
    """Returns the dims of a launch; raises if its nests disagree about one."""
    found: dict[str, Dim] = {}
    at = attention_dims(group)
    keys = at.keys if at is not None else ""
    for nest in group.members:
        assert nest.schedule is not None
        for axis in nest.axes:
            name = group.names[nest][axis.name]
            dim = _dim(name, axis, nest, shared=name == keys)
            other = found.setdefault(dim.name, dim)
            if other != dim:
                raise IgniterError(
                    f"lower-to-triton: nest '{nest.label}' schedules '{axis.name}' differently than the other nests "
                    "of its launch"
                )
    return [found[name] for name in group.dims]


def _dim(name: str, of: Axis, nest: ComputeOp, *, shared: bool) -> Dim:
    assert nest.schedule is not None
    axis, extent, kind = of.name, of.extent, of.kind
    loops = [loop for loop in nest.schedule.loops if loop.axis == axis]
    lanes = max((loop.vector for loop in loops), default=0) or 1
    outer = loops[:-1] if lanes > 1 or len(loops) > 1 else loops
    where = f"lower-to-triton: nest '{nest.label}': '{axis}'"
    share = 0
    if shared and len(outer) == 2 and outer[0].grid and not outer[1].grid:
        # A program may have a part of the keys of an attention.
        share, outer = outer[0].by, outer[1:]
        if share % lanes:
            raise IgniterError(f"{where}: {share} elements per program are not a multiple of {lanes} lanes")
    if len(outer) > 1:
        raise IgniterError(f"{where} has loops that a launch cannot have: {', '.join(map(str, loops))}")
    grid = bool(outer) and outer[0].grid
    if outer and outer[0].by != lanes:
        raise IgniterError(f"{where} has blocks of {outer[0].by}, and {lanes} lanes")
    if not outer and (extent.constant is None or extent.constant > lanes):
        raise IgniterError(f"{where} is entirely in one program, but {lanes} lanes cannot hold its {extent} elements")
    if lanes & (lanes - 1):
        raise IgniterError(f"{where} has {lanes} lanes; the number must be a power of two")
    unrolled = bool(outer) and outer[0].unroll is not None
    if unrolled and (outer[0].unroll or grid or lanes > 1 or extent.constant is None or kind != "reduction"):
        raise IgniterError(f"{where}: a launch unrolls only whole reductions of known size, without lanes")
    return Dim(name, extent, grid, bool(outer) and not grid, lanes, share, unrolled)
