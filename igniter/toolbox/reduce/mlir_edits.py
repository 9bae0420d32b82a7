"""Edits of modules in MLIR's generic form. mlir-opt refuses the ones that are not valid, and they are no candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap
from xdsl.rewriter import Rewriter

from igniter.toolbox.reduce.edits import CannotEdit, Edit, Reduction
from igniter.toolbox.reduce.mlir_case import CONSTANTS, ends_block
from igniter.verification.mlir.machine import attr_of, ints_of, name_of
from igniter.verification.mlir.values import DYNAMIC, element_of, is_integer, is_tensor, is_vector, shape_of


def erase(op: Operation) -> None:
    """Removes an op with its regions. Raises `CannotEdit` if its results are used."""
    if any(r.first_use is not None for r in op.results):
        raise CannotEdit("its results are used")
    op.detach()
    op.erase(safe_erase=False)


def inner_ops(module: ModuleOp) -> Iterator[Operation]:
    """Yields the ops inside functions, terminators left out, the last one of a block first."""
    for op in reversed(list(module.walk())):
        if op is not module and op.parent_op() is not module and not ends_block(op):
            yield op


# -- whole ops ---------------------------------------------------------------------------------------------------------


def symbols(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop a function or a global."""
    for op in module.ops:
        yield Edit(op, "drop", erase)


def statements(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop an op whose results are not used."""
    for op in inner_ops(module):
        if all(r.first_use is None for r in op.results):
            yield Edit(op, "drop", erase)


def operands(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace an op by one of its operands."""
    for op in inner_ops(module):
        for i, operand in enumerate(op.operands):
            if len(op.results) == 1 and operand.type == op.results[0].type:
                yield Edit(op, "its operand instead", partial(_take_operand, i))


def _take_operand(place: int, op: Operation) -> None:
    if op.operands[place].type != op.results[0].type:
        raise CannotEdit("the operand has another type")
    _replace(op, [op.operands[place]])


def _replace(op: Operation, values: list[SSAValue]) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    erase(op)


def zeros(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace an op by constants."""
    for op in inner_ops(module):
        if op.results and name_of(op) not in CONSTANTS and all(zero_attr(r.type) is not None for r in op.results):
            yield Edit(op, "a constant instead", _take_zero)


def _take_zero(op: Operation) -> None:
    block = op.parent
    assert block is not None
    made = [make_constant(r.type, zero_attr(r.type)) for r in op.results]
    block.insert_ops_before(made, op)
    _replace(op, [m.results[0] for m in made])


def zero_attr(type_: Attribute) -> Attribute | None:
    """Returns the zero of a type; `None` if it has no constants."""
    if is_vector(type_) or is_tensor(type_):
        zero = zero_attr(element_of(type_))
        if zero is None or DYNAMIC in shape_of(type_):
            return None
        shaped: Any = type_
        return builtin.DenseIntOrFPElementsAttr.from_list(shaped, [0 if is_integer(shaped.element_type) else 0.0])
    if is_integer(type_):
        return integer(0, type_)
    if isinstance(type_, builtin.AnyFloat):
        return builtin.FloatAttr(0.0, type_)
    return None


def integer(value: int, type_: Any) -> Attribute:
    """Returns an integer of a type."""
    return builtin.IntegerAttr(value, type_)


def make_constant(type_: Attribute, value: Attribute | None) -> Operation:
    """Returns an `arith.constant`. Raises `CannotEdit` without a value."""
    if value is None:
        raise CannotEdit(f"there are no constants of the type {type_}")
    return UnregisteredOp.with_name("arith.constant").create(properties={"value": value}, result_types=[type_])


def arguments(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace an op by new arguments of its function."""
    for op in inner_ops(module):
        if op.results and name_of(op) not in CONSTANTS:
            yield Edit(op, "arguments instead", _take_arguments)


def _take_arguments(op: Operation) -> None:
    func = function_of(op)
    block = func.regions[0].blocks[0]
    values = [block.insert_arg(r.type, len(block.args)) for r in op.results]
    _retype(func)
    _replace(op, list(values))


def function_of(op: Operation) -> Operation:
    """Returns the function around an op. Raises `CannotEdit` without one."""
    above: Operation | None = op
    while above is not None and name_of(above) != "func.func":
        above = above.parent_op()
    if above is None:
        raise CannotEdit("it is in no function")
    return above


def _retype(func: Operation) -> None:
    """Gives a function the type of its block and of its return."""
    blocks = func.regions[0].blocks
    old = attr_of(func, "function_type")
    assert isinstance(old, builtin.FunctionType)
    ends = [op for block in blocks for op in block.ops if name_of(op) == "func.return"]
    outputs = [o.type for o in ends[0].operands] if ends else list(old.outputs)
    new = builtin.FunctionType.from_lists([a.type for a in blocks[0].args], outputs)
    for place in (func.properties, func.attributes):
        # Attributes of arguments and results would have the wrong number.
        place.pop("arg_attrs", None)
        place.pop("res_attrs", None)
    (func.properties if "function_type" in func.properties else func.attributes)["function_type"] = new


# -- regions -----------------------------------------------------------------------------------------------------------


def bodies(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace a loop by its first iteration, and other ops with regions by their regions."""
    for op in inner_ops(module):
        for number, region in enumerate(op.regions):
            if len(region.blocks) == 1:
                yield Edit(op, "its body once", partial(_inline, number))


def _inline(number: int, op: Operation) -> None:
    block = op.parent
    region = op.regions[number]
    if block is None or len(region.blocks) != 1:
        raise CannotEdit("it has no single block")
    inner = region.blocks[0]
    end = inner.last_op
    if end is None or not ends_block(end):
        raise CannotEdit("its block has no terminator")
    for argument, value in zip(inner.args, _entering(op, inner, block), strict=True):
        argument.replace_all_uses_with(value)
    results = list(end.operands)
    if len(results) != len(op.results):
        raise CannotEdit("its region has other values than its results")
    for moved in [o for o in inner.ops if o is not end]:
        moved.detach()
        block.insert_ops_before([moved], op)
    end.detach()
    end.erase(safe_erase=False)
    _replace(op, results)


def _entering(op: Operation, inner: Block, block: Block) -> list[SSAValue]:
    """Returns the values of a region's arguments in the first iteration."""
    name = name_of(op)
    if name == "scf.for":
        return [op.operands[0], *op.operands[3:]]
    if name == "affine.for":
        lower = _constant_bound(op, "lowerBoundMap")
        if lower is None:
            raise CannotEdit("its lower bound is no constant")
        index = builtin.IndexType()
        first = make_constant(index, builtin.IntegerAttr(lower, index))
        block.insert_ops_before([first], op)
        count = ints_of(attr_of(op, "operandSegmentSizes"))
        return [first.results[0], *op.operands[count[0] + count[1] :]]
    if inner.args:
        raise CannotEdit("the values of its arguments are not known")
    return []


def carried(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop a value that a loop carries and nothing after it uses."""
    for op in inner_ops(module):
        if name_of(op) in ("scf.for", "affine.for"):
            for i in reversed(range(len(op.results))):
                if op.results[i].first_use is None:
                    yield Edit(op, "one value less", partial(_drop_carried, i))


def _drop_carried(place: int, op: Operation) -> None:
    (inner,) = op.regions[0].blocks
    end = inner.last_op
    if place >= len(op.results) or op.results[place].first_use is not None or end is None:
        raise CannotEdit("the value is used")
    start = len(op.operands) - len(op.results)
    init = op.operands[start + place]
    inner.args[1 + place].replace_all_uses_with(init)
    inner.erase_arg(inner.args[1 + place])
    end.operands = [o for i, o in enumerate(end.operands) if i != place]
    properties = dict(op.properties)
    sizes = properties.get("operandSegmentSizes")
    if sizes is not None:
        first, second, third = ints_of(sizes)
        properties["operandSegmentSizes"] = builtin.DenseArrayBase.from_list(builtin.i32, [first, second, third - 1])
    region = op.detach_region(op.regions[0])
    made = type(op).create(
        operands=[o for i, o in enumerate(op.operands) if i != start + place],
        result_types=[r.type for i, r in enumerate(op.results) if i != place],
        properties=properties,
        attributes=dict(op.attributes),
        regions=[region],
    )
    block = op.parent
    assert block is not None
    block.insert_ops_before([made], op)
    rest = [r for i, r in enumerate(op.results) if i != place]
    for old, new in zip(rest, made.results, strict=True):
        old.replace_all_uses_with(new)
    erase(op)


# -- functions ---------------------------------------------------------------------------------------------------------


def results(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop a result of a function."""
    for op in module.walk():
        if name_of(op) == "func.return":
            for i in reversed(range(len(op.operands))):
                yield Edit(op, "one result less", partial(_drop_result, i))


def _drop_result(place: int, op: Operation) -> None:
    if place >= len(op.operands):
        raise CannotEdit("it has no such result")
    op.operands = [o for i, o in enumerate(op.operands) if i != place]
    _retype(function_of(op))


def parameters(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop an unused argument of a function, or to replace it by a constant."""
    for op in module.ops:
        if name_of(op) == "func.func" and op.regions[0].blocks:
            args = op.regions[0].blocks[0].args
            for i in reversed(range(len(args))):
                if args[i].first_use is None or zero_attr(args[i].type) is not None:
                    yield Edit(op, "one argument less", partial(_drop_parameter, i))


def _drop_parameter(place: int, op: Operation) -> None:
    block = op.regions[0].blocks[0]
    argument = block.args[place]
    first = block.first_op
    if argument.first_use is not None and first is not None:
        made = make_constant(argument.type, zero_attr(argument.type))
        block.insert_ops_before([made], first)
        argument.replace_all_uses_with(made.results[0])
    block.erase_arg(argument)
    _retype(op)


# -- numbers -----------------------------------------------------------------------------------------------------------


def numbers(shrink: Callable[[int], int]) -> Callable[[ModuleOp], Iterator[Edit]]:
    """Returns the finder of edits that make the integers of constants and bounds smaller."""

    def find(module: ModuleOp) -> Iterator[Edit]:
        for op in module.walk():
            value = attr_of(op, "value")
            if name_of(op) in CONSTANTS and isinstance(value, builtin.IntegerAttr):
                if shrink(value.value.data) != value.value.data:
                    yield Edit(op, "a smaller constant", partial(_shrink_constant, shrink))
            elif name_of(op) == "affine.for":
                for name in ("upperBoundMap", "lowerBoundMap"):
                    bound = _constant_bound(op, name)
                    if bound is not None and shrink(bound) != bound:
                        yield Edit(op, "a smaller bound", partial(_shrink_bound, shrink, name))

    return find


def _shrink_constant(shrink: Callable[[int], int], op: Operation) -> None:
    value = attr_of(op, "value")
    assert isinstance(value, builtin.IntegerAttr)
    op.properties["value"] = integer(shrink(value.value.data), cast(Any, value).type)


def _constant_bound(op: Operation, name: str) -> int | None:
    bound = attr_of(op, name)
    if not isinstance(bound, builtin.AffineMapAttr) or len(bound.data.results) != 1:
        return None
    constant = bound.data.results[0]
    return constant.value if isinstance(constant, AffineConstantExpr) else None


def _shrink_bound(shrink: Callable[[int], int], name: str, op: Operation) -> None:
    bound = _constant_bound(op, name)
    if bound is None:
        raise CannotEdit("the bound is no constant")
    op.properties[name] = builtin.AffineMapAttr(AffineMap.constant_map(shrink(bound)))


def _half(n: int) -> int:
    return n // 2 if n >= 0 else -(-n // 2)


def _less(n: int) -> int:
    return n - 1 if n > 0 else n + 1 if n < 0 else 0


# -- types -------------------------------------------------------------------------------------------------------------


def sizes(shrink: Callable[[int], int]) -> Callable[[ModuleOp], Iterator[Edit]]:
    """Returns the finder of edits that replace a size in all types of the module."""

    def find(module: ModuleOp) -> Iterator[Edit]:
        found = {n for value in _values(module) if _has_dims(value.type) for n in shape_of(value.type)}
        for n in sorted(found, reverse=True):
            new = 2 if n == DYNAMIC else shrink(n)
            if new != n and new > 0:
                yield Edit(module, f"{new} instead of {n}", partial(_resize, n, new))

    return find


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _has_dims(type_: Attribute) -> bool:
    return isinstance(type_, (builtin.VectorType, builtin.TensorType, builtin.MemRefType))


def _resize(old: int, new: int, module: Operation) -> None:
    assert isinstance(module, ModuleOp)
    for value in list(_values(module)):
        Rewriter.replace_value_with_new_type(value, resized(value.type, old, new))
    for op in module.walk():
        for place in (op.properties, op.attributes):
            for name, attribute in list(place.items()):
                place[name] = resized(attribute, old, new)


def resized(attribute: Attribute, old: int, new: int) -> Attribute:
    """Returns a type, or a constant of a splat, with another size."""
    if isinstance(attribute, builtin.FunctionType):
        return builtin.FunctionType.from_lists(
            [resized(t, old, new) for t in attribute.inputs], [resized(t, old, new) for t in attribute.outputs]
        )
    if isinstance(attribute, builtin.DenseIntOrFPElementsAttr):
        dense = cast(Any, attribute)
        type_: Any = resized(dense.type, old, new)
        made: Attribute = builtin.DenseIntOrFPElementsAttr.from_list(type_, list(dense.get_values())[:1])
        return made if dense.is_splat() else cast(Attribute, dense)
    if not _has_dims(attribute):
        return attribute
    shape = [new if n == old else n for n in shape_of(attribute)]
    element = resized(element_of(attribute), old, new)
    if isinstance(attribute, builtin.MemRefType):
        return builtin.MemRefType(element, shape, attribute.layout, attribute.memory_space)
    if is_tensor(attribute):
        return builtin.TensorType(element, shape)
    return builtin.VectorType(element, shape)


def hints(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to drop the attributes that an op's dialect does not define."""
    for op in module.walk():
        if set(op.attributes) - {"op_name__"}:
            yield Edit(op, "no attributes", _drop_hints)


def _drop_hints(op: Operation) -> None:
    for name in list(op.attributes):
        if name != "op_name__":
            del op.attributes[name]


REDUCTIONS: tuple[Reduction, ...] = (
    Reduction("drop functions", symbols),
    Reduction("drop results", results),
    Reduction("drop ops", statements),
    Reduction("replace by operands", operands),
    Reduction("replace by constants", zeros),
    Reduction("inline regions", bodies),
    Reduction("drop carried values", carried),
    Reduction("replace by arguments", arguments),
    Reduction("drop arguments", parameters),
    Reduction("drop attributes", hints),
    Reduction("set numbers to 0", numbers(lambda _: 0)),
    Reduction("set numbers to 1", numbers(lambda n: min(n, 1))),
    Reduction("halve numbers", numbers(_half)),
    Reduction("decrease numbers", numbers(_less)),
    Reduction("set sizes to 1", sizes(lambda _: 1)),
    Reduction("halve sizes", sizes(lambda n: max(n // 2, 1))),
    Reduction("decrease sizes", sizes(lambda n: max(n - 1, 1))),
)
"""All kinds of edits, in the order of the attempts."""
