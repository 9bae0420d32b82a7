"""Ops that are built by their fields are, field by field, what xDSL makes."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import TensorProto, helper
from xdsl.dialects.builtin import DictionaryAttr, StringAttr, f32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

import igniter
from igniter.dialects.onnx import building
from igniter.dialects.onnx.attributes import text_attr
from igniter.dialects.onnx.base import name_hint, op_class
from igniter.dialects.onnx.structure import ReturnOp
from igniter.dialects.sym import tensor_of
from igniter.frontend.late_texts import LateTexts

TYPE = tensor_of(f32, ["n", 3])


def _fields(thing: object, names: set[str], around: dict[object, object]) -> dict[str, Any]:
    """The fields of an op or a value; what belongs to the other build is called by what it is there."""

    def same(value: Any) -> Any:
        if isinstance(value, tuple):
            return type(value), tuple(map(same, value))
        return around.get(value, value) if isinstance(value, (SSAValue, Operation, Block, Region)) else value

    return {name: same(getattr(thing, name)) for name in names}


def _hint(value: SSAValue, name: str) -> None:
    """Gives a value the name that xDSL makes of its own names: no numeric suffix is left, where xDSL strips one."""
    value.name_hint = name
    while value.name_hint != name:
        name = value.name_hint or ""
        value.name_hint = name or None


def _slow(block: Block, operands: list[SSAValue], regions: list[Region], name: str) -> Operation:
    attributes: dict[str, Attribute] = {"axis": StringAttr("a")}
    op = op_class("", "Add").create(
        operands=operands,
        result_types=[TYPE, TYPE],
        attributes=attributes,
        properties={"node_name": StringAttr("b")},
        regions=regions,
    )
    block.add_op(op)
    _hint(op.results[0], name)
    return op


def _fast(block: Block, operands: list[SSAValue], regions: list[Region], name: str) -> Operation:
    attributes: dict[str, Attribute] = {"axis": StringAttr("a")}
    properties: dict[str, Attribute] = {"node_name": building.text("b")}
    op = building.new_op(op_class("", "Add"), operands, [TYPE, TYPE], attributes, properties, regions)
    building.append(block, op)
    building.set_hint(op.results[0], name)
    return op


def _build(make: Any) -> tuple[Block, list[Operation]]:
    block = Block(arg_types=[TYPE])
    first = make(block, [], [], "plain")
    second = make(block, [block.args[0], first.results[1]], [], "numbered_12")
    third = make(block, [second.results[0], second.results[0], block.args[0]], [Region(Block())], "a_1_2")
    return block, [first, second, third]


def test_ops_have_the_fields_that_xdsl_gives_them() -> None:
    (slow_block, slow), (fast_block, fast) = _build(_slow), _build(_fast)
    around: dict[object, object] = {fast_block: slow_block, fast_block.args[0]: slow_block.args[0]}
    for old, new in zip(slow, fast, strict=True):
        around |= {new: old, **dict(zip(new.results, old.results, strict=True))}
        around |= dict(zip(new.regions, old.regions, strict=True))
    # Links between uses are of the uses of each build: their order is compared below.
    links = {"_operand_uses", "first_use"}
    for old, new in zip(slow, fast, strict=True):
        for theirs, ours in ((old, new), *zip(old.results, new.results, strict=True)):
            # What is not set is what the class has, which is the same for both.
            names = (vars(theirs).keys() | vars(ours).keys()) - links
            assert _fields(ours, names, around) == _fields(theirs, names, {})
    values = [slow_block.args[0], *(r for op in slow for r in op.results)]
    others = [fast_block.args[0], *(r for op in fast for r in op.results)]
    for a, b in zip(values, others, strict=True):
        assert [(u.operation, u.index) for u in a.uses] == [(around[u.operation], u.index) for u in b.uses]
    assert building.ops_of(fast_block) == list(fast_block.ops) == fast


def test_built_ops_can_be_changed_as_others() -> None:
    block, (first, second, third) = _build(_fast)
    third.operands[1] = first.results[0]
    assert [(u.operation, u.index) for u in second.results[0].uses] == [(third, 0)]
    second.results[0].replace_all_uses_with(first.results[0])
    block.erase_op(third)
    block.erase_op(second)
    assert list(block.ops) == [first] and not first.results[0].uses
    block.add_op(ReturnOp.make([first.results[0]]))
    assert block.last_op is not None and block.last_op.prev_op is first


def test_texts_are_those_of_xdsl() -> None:
    made = building.text("name")
    assert made == StringAttr("name") and vars(made) == vars(StringAttr("name"))
    assert hash(made) == hash(StringAttr("name"))


def test_names_of_values_have_no_numeric_suffix() -> None:
    value, other = Block(arg_types=[TYPE, TYPE]).args
    for name in ("x", "x_1", "x_1_2", "x1", "x_", "a.b_7", "x_1.2", "/a/b_3", "1", "v_00", "x__4", "x-5"):
        hint = name_hint(name)
        if hint is not None:
            _hint(value, hint)
            building.set_hint(other, hint)
            assert value.name_hint == other.name_hint, name


def _nested() -> onnx.ModelProto:
    """An If whose branches read a value of the graph around them."""
    scalar = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xyz")
    graphs = [helper.make_graph([helper.make_node(op, ["m"], ["z"])], op, [], [z]) for op in ("Neg", "Exp")]
    nodes = [
        helper.make_node("Add", ["x", "x"], ["m"], "add"),
        helper.make_node("If", ["c"], ["y"], "if", then_branch=graphs[0], else_branch=graphs[1]),
    ]
    return helper.make_model(helper.make_graph(nodes, "g", [scalar, x], [y]))


def test_a_copy_is_that_of_xdsl() -> None:
    module = igniter.load(_nested()).ir
    ours, theirs = building.clone(module), module.clone()
    assert str(ours) == str(theirs) == str(module)
    ours.verify()
    assert ours.is_structurally_equivalent(theirs)
    assert len(list(ours.walk())) == len(building.ops_inside(ours))
    for a, b in zip(ours.walk(), theirs.walk(), strict=True):
        for mine, other in zip(a.results, b.results, strict=True):
            assert [u.index for u in mine.uses] == [u.index for u in other.uses]
            assert [u.operation.name for u in mine.uses] == [u.operation.name for u in other.uses]


def test_metadata_that_is_read_late_is_the_same() -> None:
    entries = [onnx.StringStringEntryProto(key=k, value=v) for k, v in (("a", "1"), ("b", "ä"), ("c", ""))]
    keys = ("a", "b", "c")
    late = LateTexts.of(keys, entries)
    whole = DictionaryAttr({k: text_attr(e.value) for k, e in zip(keys, entries, strict=True)})
    assert late["b"] == whole.data["b"] and "d" not in late and len(late) == 3 and list(late) == ["a", "b", "c"]
    assert DictionaryAttr(late) == whole and whole == DictionaryAttr(late)
    assert hash(LateTexts.of(keys, entries)) == hash(whole.data)
    assert str(DictionaryAttr(LateTexts.of(keys, entries))) == str(whole)
    assert dict(LateTexts.of(keys, entries).delete("a")) == dict(whole.data.delete("a"))


def test_metadata_of_a_message_that_others_may_change_is_read_at_once() -> None:
    model = _nested()
    model.graph.node[0].metadata_props.add(key="k", value="before")
    module = igniter.load(model)
    text = str(module)
    model.graph.node[0].metadata_props[0].value = "after"
    assert "before" in text and str(module) == text
