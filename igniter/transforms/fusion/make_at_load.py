"""`make-at-load`: has constants computed by a kernel when a session is created, rather than stored.

    %t = onnx.Constant() <{initializer_name = "conv.winograd"}> : () -> tensor<36x4x64x16xf32>
    %y = fusion.program @p0 (.., %a = %p : tensor<3x3x64x64xf32>, %b = %t : tensor<36x4x64x16xf32>) -> .. { .. }

becomes

    %t = onnx.Constant() <{initializer_name = "conv.winograd"}> : () -> tensor<36x4x64x16xf32>
    %m = fusion.make @tile_weights_4_f32(%p) or %t : tensor<3x3x64x64xf32> to tensor<36x4x64x16xf32>
    %y = fusion.program @p0 (.., %a = %p : tensor<3x3x64x64xf32>, %b = %m : tensor<36x4x64x16xf32>) -> .. { .. }
    loop.kernel @tile_weights_4_f32 symbols [c, p] (%w : tensor<3x3x?x?xf32, ..>) -> (tensor<36x?x?x16xf32, ..>) { .. }

The constant is derived from another one, and its derivation has a recipe (`igniter.dialects.onnx.made_weights`): a
kernel with the same bits. Weights of convolutions in tiles are such constants, 4 times as large as the plain weights.
The program then takes the plain weight in place of the transformed one; the run time computes the latter once per
session, and sessions with equal weights share it (docs/explanation/c-runtime.md).

Where a constant stays, a remark has the reason. ONNX Runtime shows an op only the constants of its own graph, so a
constant around the body of an If is stored. Regions outside programs with one kernel share an op: all of them have the
constant computed, or none.

The pass runs when the programs exist, before `fold-packs`. It adds loop.kernels, which are to be compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.fusion import GroupOp, PackOp, RegionOp, program_around
from igniter.dialects.loop import KernelOp
from igniter.dialects.made import MakeOp
from igniter.dialects.onnx.attributes import text_of
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.made_weights import Loadable, Recipe
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.ort import Made, OpOp, Port, PortAttr
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.bind_symbols import Bind, Solve, bind_symbols
from igniter.remarks import remark
from igniter.rewrite_budget import budget

STORED = (
    "it is stored: ONNX Runtime does not show an op the constants of a graph around its own, and the one from which it "
    "is computed is such a constant for the op, or for another one with the same kernel"
)


@dataclass(frozen=True)
class MakeAtLoad(ModulePass):
    """Has constants computed by a kernel when a session is created."""

    name = "make-at-load"
    one_rewrite = "a constant computed when a session is created"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        wanted = _wanted(op)
        plain = _constants(op) if wanted else {}
        kernels: dict[str, str] = {}
        done: list[_Use] = []
        for uses in wanted.values():
            sources = [plain.get((use.recipe.source, use.group.parent)) for use in uses]
            for use, source in zip(uses, sources, strict=True):
                if source is None or None in sources:
                    remark(ctx, self.name, use.label, "missed", STORED)
                elif budget(ctx, self.name).take(use.label, "it is computed when a session is created"):
                    name = kernels.get(use.recipe.name) or _add_kernel(op, use.recipe)
                    kernels[use.recipe.name] = name
                    _make(use, name, source)
                    done.append(use)
                    remark(ctx, self.name, use.label, "applied", f"@{name} computes it when a session is created")
        if wanted:
            # Inputs of one op with the same weight share their memory.
            size = sum({(u.group, u.weight): u.weight.nbytes for u in done}.values())
            of = sum(map(len, wanted.values()))
            message = f"{len(done)} of {of} constants are computed when a session is created, {size / 1e6:.1f} MB"
            remark(ctx, self.name, "", "note", message, count=len(done), stored=of - len(done), bytes=size)


@dataclass(frozen=True, eq=False)
class _Use:
    """An input of a program, or of a region outside programs, that is a constant with a recipe."""

    group: GroupOp
    index: int
    weight: Weight
    recipe: Recipe
    label: str

    @property
    def value(self) -> SSAValue:
        return self.group.inputs[self.index]


def _wanted(module: ModuleOp) -> dict[object, list[_Use]]:
    """Returns the constants with a recipe, in lists that are decided together: one of an op's inputs each."""
    found: dict[object, list[_Use]] = {}
    for group in [op for op in module.walk() if isinstance(op, GroupOp) and program_around(op) is None]:
        kernel = group.kernel_name if isinstance(group, RegionOp) else None
        for index, value in enumerate(group.inputs):
            weight = constant_weight(value)
            if weight is not None and isinstance(weight.derivation, Loadable):
                assert isinstance(value.owner, OnnxOp)
                label = text_of(value.owner.properties.get("initializer_name"))
                use = _Use(group, index, weight, weight.derivation.recipe(), label)
                found.setdefault((kernel or group, index), []).append(use)
    return found


def _constants(module: ModuleOp) -> dict[tuple[Weight, object], OnnxOp]:
    """Returns the stored constants, by their weight and block."""
    found: dict[tuple[Weight, object], OnnxOp] = {}
    for op in module.walk():
        weight = constant_weight(op.results[0]) if isinstance(op, OnnxOp) and op.op_type == "Constant" else None
        if weight is not None and weight.derivation is None and isinstance(op, OnnxOp):
            found.setdefault((weight, op.parent_block()), op)
    return found


def _add_kernel(module: ModuleOp, recipe: Recipe) -> str:
    """Adds the kernel of a recipe, and returns its name: that of the recipe, or a similar one if it is taken."""
    taken = {op.label for op in module.walk() if isinstance(op, GroupOp)}
    taken |= {op.sym_name.data for op in module.ops if isinstance(op, KernelOp)}
    name, kernel = recipe.name, recipe.build()
    while name in taken:
        name += "_"
    kernel.sym_name = StringAttr(name)
    module.body.block.add_op(kernel)
    return name


def _make(use: _Use, kernel: str, plain: OnnxOp) -> None:
    """Inserts the op that computes a constant, and has its reader take it."""
    make = MakeOp(kernel, _packed(plain, use.recipe), use.value)
    make.result.name_hint = use.value.name_hint
    block = use.group.parent
    assert block is not None
    block.insert_op_before(make, use.group)
    use.group.operands[use.index] = make.result


def _packed(plain: OnnxOp, recipe: Recipe) -> SSAValue:
    """Returns the source in the layout of the recipe; the readers of a weight in one layout share it."""
    for use in plain.results[0].uses:
        if isinstance(use.operation, PackOp) and use.operation.layout == recipe.layout:
            return use.operation.result
    type_ = plain.results[0].type
    dims, element = recipe.layout.stored_dims(dims_of(type_)), recipe.layout.stored_element(element_of(type_))
    pack = PackOp(plain.results[0], recipe.layout, tensor_of(element, dims))
    assert plain.parent is not None
    plain.parent.insert_op_after(pack, plain)
    return pack.result


# -- the ops of the library -------------------------------------------------------------------------------------------


def with_made(op: OpOp, group: GroupOp, kernels: Mapping[str, OpOp]) -> OpOp:
    """Returns the op of a group whose made inputs take their sources. `kernels` are the ops of the kernels."""
    makes = {index: v.owner for index, v in enumerate(group.inputs) if isinstance(v.owner, MakeOp)}
    if not makes:
        return op
    ports = list(op.inputs)
    for index, make in makes.items():
        ports[index] = _made_port(ports[index], make, kernels[make.kernel_name])
    found = op.clone()
    found.inputs_attr = ArrayAttr(PortAttr(p) for p in ports)
    return found


def _made_port(port: Port, make: MakeOp, kernel: OpOp) -> Port:
    source = make.source.type
    values = _symbols(kernel, [d.constant or 0 for d in dims_of(source)])
    symbols = tuple(values[s] for s in kernel.symbol_names)
    made = Made(kernel.kernel_name, symbols, port.bytes, kernel.scratch.evaluate(values))
    return replace(port, element=element_of(source), dims=dims_of(source), made=made)


def _symbols(kernel: OpOp, dims: Sequence[int]) -> dict[str, int]:
    """Returns the values of a kernel's symbols for the dims of its argument."""
    values: dict[str, int] = {}
    for step in bind_symbols([(p.dims, True) for p in kernel.inputs]).steps:
        if isinstance(step, Bind):
            values.setdefault(step.symbol, dims[step.axis])
        elif isinstance(step, Solve):
            values[step.symbol] = (dims[step.axis] - step.rest.evaluate(values)) // step.coefficient
    return values
