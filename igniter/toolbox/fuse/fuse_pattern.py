"""`fuse-pattern`: replaces the instances of a pattern by one call each.

    %h = onnx.Mul(%x, %half)                   %y = onnx.custom(%x) <{domain = "fused", op_type = "Gelu"}>
    %e = onnx.Erf(%d)   ...            ->
    %y = onnx.Mul(%h, %t)                      onnx.function @Gelu ... { the nodes that were there }

The call is of a function of the model whose body is the matched nodes, so it computes the same bits in any runtime.
Equal instances share one function. With `into` the call is an op instead, such as `com.microsoft.Gelu`, with attributes
taken from the model; then the runtime must know the op.

Patterns are files, or come with Igniter (`graph_pattern`). A file may have alternatives; the first match wins. Remarks
report failed matches: the furthest attempts, and the point of failure. The pass runs after `infer-shapes`, because
conditions need dims, and the rank is needed to count axes from the front.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.onnx.attributes import entries_of, text_attr, texts_attr, to_attr, to_python
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_value, make_op, no_value_near
from igniter.dialects.onnx.structure import FunctionOp, GraphOp, ReturnOp, functions
from igniter.dialects.onnx.types import NONE, UNKNOWN
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrite_budget import Budget, budget
from igniter.toolbox.fuse.graph_pattern import Pattern, Target, load_patterns, parse_target
from igniter.toolbox.fuse.pattern_matching import Attempt, Failure, Match
from igniter.transforms.onnx.fold_constants import erase_dead

NEAREST = 5
"""The number of failed attempts to report."""
FUNCTION_IR_VERSION = 8
"""The first version of ONNX's IR with functions."""


@dataclass(frozen=True)
class FusePattern(ModulePass):
    """Replaces the instances of a pattern by calls of a function, or by an op."""

    name = "fuse-pattern"
    one_rewrite = "an instance of the pattern replaced"
    pattern: str = ""
    """The file of the pattern, or the name of a shipped one."""
    into: str = ""
    """The op that replaces an instance, OP or OP<name = @parameter>(inputs) => (outputs); `default` for the pattern's
    own. Empty: a function."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.pattern:
            raise IgniterError("fuse-pattern needs a pattern: its file, or the name of one that comes with Igniter")
        patterns = load_patterns(self.pattern)
        target = parse_target(self.into) if self.into not in ("", "default") else None
        fuser = _Fuser(op, ctx, patterns, target, self.into == "default", budget(ctx, self.name))
        for graph in [g for g in op.ops if isinstance(g, GraphOp)]:
            fuser.block(graph.body)
        fuser.tell()


def keeps_types(module: ModuleOp) -> bool:
    """True if the types of a model say more than inference could: all are there, including types of calls, unknown to
    inference. This is the case after an earlier fusion."""
    graphs = [op for op in module.ops if isinstance(op, GraphOp)]
    nodes = [op for graph in graphs for op in graph.body.ops if isinstance(op, OnnxOp)]
    typed = all(r.type == NONE or known_dims_of(r.type) is not None for op in nodes for r in op.results)
    return typed and any(op.schema is None for op in nodes)


@dataclass
class _Fuser:
    module: ModuleOp
    ctx: Context
    patterns: Sequence[Pattern]
    target: Target | None
    by_default: bool
    rewrites: Budget
    count: int = 0
    failures: dict[OnnxOp, Failure] = field(default_factory=dict[OnnxOp, Failure])
    _made: dict[str, FunctionOp] = field(default_factory=dict[str, FunctionOp])

    def block(self, block: Block) -> None:
        """Processes the nodes of a block in order, and of the graphs in it."""
        roots = {p.root.qualified_name for p in self.patterns}
        for op in list(block.ops):
            for region in op.regions:
                for inner in region.blocks:
                    self.block(inner)
            if isinstance(op, OnnxOp) and op.parent is not None and op.qualified_name in roots:
                self._at(op)

    def _at(self, root: OnnxOp) -> None:
        best: Failure | None = None
        for pattern in self.patterns:
            if pattern.root.qualified_name != root.qualified_name:
                continue
            attempt = Attempt(pattern, root)
            match = attempt.run()
            if match is None:
                reason = attempt.failure
            else:
                reason = best = self._replace(match, root)
                if reason is None:
                    return
            if reason is not None and (best is None or reason.matched > best.matched):
                best = reason
        # A matching root op alone means little, except for patterns of two nodes.
        least = 2 if all(len(p.nodes) > 2 for p in self.patterns) else 1
        if best is not None and best.matched >= least:
            self.failures[root] = best

    def tell(self) -> None:
        """Reports the number of replacements, and the nearest failed attempts."""
        name = self.patterns[0].name
        done = f"{self.count} instance{'s' * (self.count != 1)} of {name} replaced"
        remark(self.ctx, "fuse-pattern", "", "note", done)
        # An erased node became part of an instance later.
        left = [f for op, f in self.failures.items() if op.parent is not None]
        nearest = sorted(left, key=lambda f: -f.matched)
        for failure in nearest[:NEAREST]:
            details = {"matched": failure.matched, "pattern_node": failure.node}
            count = f"{failure.matched} nodes match" if failure.matched > 1 else "1 node matches"
            text = f"{count} {name}, then {failure.node} does not: {failure.reason}"
            remark(self.ctx, "fuse-pattern", failure.root, "missed", text, **details)

    # -- replacing ----------------------------------------------------------------------------------------------------

    def _replace(self, match: Match, root: OnnxOp) -> Failure | None:
        pattern = match.pattern
        outputs = [match.values[v] for v in pattern.function.terminator.operands]
        inputs = [match.values[v] for v in pattern.function.body.args]
        nodes = _in_order(match.inside)
        if len(outputs) > 1 and _depends_on(inputs, set(nodes)):
            return Failure(len(nodes), root.node_name, "the pattern", "an input depends on an output of the instance")
        target = pattern.target if self.by_default else self.target
        if target is None and self.by_default:
            return Failure(len(nodes), root.node_name, "the pattern", "it names no op to fuse to (a line `as OP`)")
        if not self.rewrites.take(root.node_name, f"an instance of {pattern.name} is replaced"):
            return None
        if target is None:
            call = self._call(match, inputs, outputs, nodes, root)
            results: Mapping[SSAValue, SSAValue] = dict(zip(outputs, call.results, strict=True))
        else:
            self._import(target.op.rpartition(".")[0])
            call, results = _custom(match, target, root)
        block = root.parent
        assert block is not None
        block.insert_op_before(call, root)
        if call.domain == "" and call.schema is None:
            raise IgniterError(f"opset {call.opset} has no {call.op_type}: convert the model to a later one first")
        for old, new in results.items():
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        constants = [v for op in nodes for v in op.operands if v not in inputs]
        for op in reversed(nodes):
            block.erase_op(op)
        erase_dead([v for v in constants if not isinstance(v.owner, Block) and v.owner.parent is not None])
        if len(outputs) > 1:
            _sort(block)
        self.count += 1
        told = f"{len(nodes)} nodes are {call.qualified_name}"
        remark(self.ctx, "fuse-pattern", call.node_name, "applied", told)
        return None

    def _call(
        self,
        match: Match,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        nodes: Sequence[OnnxOp],
        root: OnnxOp,
    ) -> OnnxOp:
        function = self._function(match, inputs, outputs, nodes)
        domain, name, _ = function.key
        return make_op(
            name,
            list(inputs),
            [v.type for v in outputs],
            dict(match.parameters),
            domain=domain,
            node_name=root.node_name or name,
            output_names=_names(outputs),
        )

    def _function(
        self, match: Match, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], nodes: Sequence[OnnxOp]
    ) -> FunctionOp:
        pattern = match.pattern
        region = _body(match, inputs, outputs, nodes)
        key = f"{pattern.name} {sorted(match.parameters)} {_text(region)}"
        if key in self._made:
            return self._made[key]
        name, taken = pattern.name, {k[:2] for k in functions(self.module)}
        number = 1
        while (pattern.domain, name) in taken:
            number += 1
            name = f"{pattern.name}_{number}"
        attributes: dict[str, Attribute] = {
            "domain": text_attr(pattern.domain),
            "function_name": text_attr(name),
            "input_names": texts_attr(pattern.function.input_names),
            "output_names": texts_attr(pattern.function.output_names),
            "opset_import": DictionaryAttr(self._imports(nodes)),
        }
        if match.parameters:
            attributes["attribute_names"] = texts_attr(sorted(match.parameters))
        made = FunctionOp.make(self._symbol(name), region, attributes)
        first = self.module.body.block.first_op
        assert first is not None
        self.module.body.block.insert_op_before(made, first)
        self._import(pattern.domain)
        self._made[key] = made
        return made

    def _symbol(self, name: str) -> str:
        taken = {op.sym_name for op in self.module.ops if isinstance(op, (FunctionOp, GraphOp))}
        return next(s for s in (name, *(f"{name}_{k}" for k in range(1, len(taken) + 2))) if s not in taken)

    def _imports(self, nodes: Sequence[OnnxOp]) -> dict[str, Attribute]:
        header = entries_of(self.module.attributes.get("onnx.model"))
        imports = dict(entries_of(header.get("opset_import")))
        domains = {op.domain for op in nodes} | {""}
        return {d: v for d, v in imports.items() if (d if d != "ai.onnx" else "") in domains}

    def _import(self, domain: str) -> None:
        header = dict(entries_of(self.module.attributes.get("onnx.model")))
        imports = dict(entries_of(header.get("opset_import")))
        if domain not in ("", "ai.onnx"):
            imports.setdefault(domain, to_attr(1))
        header["opset_import"] = DictionaryAttr(imports)
        if self.target is None and not self.by_default and int(to_python(header["ir_version"])) < FUNCTION_IR_VERSION:
            header["ir_version"] = to_attr(FUNCTION_IR_VERSION)
        self.module.attributes["onnx.model"] = DictionaryAttr(header)


def _body(match: Match, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], nodes: Sequence[OnnxOp]) -> Region:
    """Returns the matched nodes as the body of a function, without types, because these belong to one instance."""
    block = Block(arg_types=[UNKNOWN for _ in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    names = {match.values[v]: n for n, v in match.pattern.names.items() if v in match.values}
    for op in nodes:
        for value in op.operands:
            if value not in values:
                copy = value.owner.clone() if isinstance(value.owner, Operation) else None
                if copy is None or not (isinstance(copy, NoValueOp) or copy.name == "onnx.Constant"):
                    raise IgniterError(f"node '{op.node_name}' reads a value that is no input of its pattern")
                copy.properties.clear()
                block.add_op(copy)
                values[value] = copy.results[0]
        made = op.clone(values)
        told = {k: v for k, v in made.properties.items() if k in ("op_type", "domain", "overload")}
        made.properties.clear()
        made.properties.update(told)
        for name in [n for n in made.attributes if n.startswith("igniter.")]:
            del made.attributes[name]
        made.properties["output_names"] = texts_attr(
            [names.get(r, f"value_{len(values)}_{r.index}") for r in op.results]
        )
        for old, new in zip(op.results, made.results, strict=True):
            if new.type != NONE:
                new._type = UNKNOWN
            values[old] = new
        block.add_op(made)
    block.add_op(ReturnOp.make([values[v] for v in outputs]))
    return Region(block)


def _text(region: Region) -> str:
    """Returns a text that is equal for equal bodies, whatever the names of their values; constants in them are few and
    small."""
    numbers: dict[SSAValue, int] = {arg: i for i, arg in enumerate(region.block.args)}
    parts: list[str] = []
    for op in region.block.ops:
        value = constant_value(op.results[0]) if op.name == "onnx.Constant" else None
        said = sorted((k, str(v)) for k, v in op.attributes.items()) if value is None else value.tobytes().hex()
        kind = op.qualified_name if isinstance(op, OnnxOp) else op.name
        parts.append(f"{kind} {said} {[numbers[v] for v in op.operands]} {value.dtype if value is not None else ''}")
        if value is not None:
            parts.append(f"{value.shape}")
        numbers.update((r, len(numbers) + k) for k, r in enumerate(op.results))
    return "\n".join(parts)


def _custom(match: Match, target: Target, root: OnnxOp) -> tuple[OnnxOp, dict[SSAValue, SSAValue]]:
    """Returns the op, and a map from matched values to its results."""
    pattern = match.pattern
    values = {name: match.values[v] for name, v in pattern.names.items() if v in match.values}
    function = pattern.function
    wanted = [(n, values[n]) for n in function.output_names]
    if target.outputs is not None:
        missing = [n for n, _ in wanted if n not in target.outputs]
        if missing:
            raise IgniterError(f"{target.op} gives no '{missing[0]}', which is an output of pattern {pattern.name}")
    inputs = [_named(n, values, pattern) for n in target.inputs or function.input_names]
    outputs = target.outputs or function.output_names
    results = [None if n == "_" else _named(n, values, pattern) for n in outputs]
    attributes = {name: _argument(value, match, target) for name, value in target.attributes}
    made = make_op(
        target.op,
        inputs,
        [NONE if r is None else r.type for r in results],
        attributes,
        node_name=root.node_name,
        output_names=["" if r is None else _names([r])[0] for r in results],
    )
    return made, {old: new for old, new in zip(results, made.results, strict=True) if old is not None}


def _named(name: str, values: Mapping[str, SSAValue], pattern: Pattern) -> SSAValue:
    if name in ("", "_"):
        return no_value_near(next(iter(values.values())))
    if name not in values:
        raise IgniterError(f"pattern {pattern.name} has no value '{name}': there are {', '.join(values)}")
    return values[name]


def _argument(value: object, match: Match, target: Target) -> object:
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    dim = match.dims.get(value[1:])
    if dim is not None and dim.constant is not None:
        return dim.constant
    if value[1:] not in match.parameters:
        known = ", ".join(match.parameters) or "none"
        raise IgniterError(f"{target.op} is to get {value}, and the parameters of {match.pattern.name} are {known}")
    return match.parameters[value[1:]]


def _names(values: Sequence[SSAValue]) -> list[str]:
    found: list[str] = []
    for value in values:
        names = value.owner.output_names if isinstance(value.owner, OnnxOp) else []
        index = getattr(value, "index", 0)
        found.append(names[index] if index < len(names) else "")
    return found


def _in_order(nodes: Iterable[OnnxOp]) -> list[OnnxOp]:
    """Returns nodes of one block in its order."""
    wanted = set(nodes)
    block = next(iter(wanted)).parent
    return [op for op in (block.ops if block is not None else ()) if isinstance(op, OnnxOp) and op in wanted]


def _depends_on(values: Sequence[SSAValue], nodes: set[OnnxOp]) -> bool:
    """True if some of the values depend on results of the nodes."""
    block = next(iter(nodes)).parent
    pending: list[SSAValue] = list(values)
    seen: set[Operation] = set()
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation) or op in seen or op.parent is not block:
            continue
        if op in nodes:
            return True
        seen.add(op)
        pending += op.operands
        pending += [v for inner in op.walk() if inner is not op for v in inner.operands]
    return False


def _sort(block: Block) -> None:
    """Moves nodes after their operands; otherwise the order is kept."""
    done: set[Operation] = set()
    order: list[Operation] = []

    def visit(first: Operation) -> None:
        stack = [first]
        while stack:
            op = stack[-1]
            needs = [v.owner for inner in op.walk() for v in inner.operands]
            missing = [
                n for n in needs if isinstance(n, Operation) and n.parent is block and n not in done and n is not op
            ]
            if missing:
                stack += missing
                continue
            stack.pop()
            if op not in done:
                done.add(op)
                order.append(op)

    for op in list(block.ops):
        visit(op)
    for op in order:
        op.detach()
    block.add_ops(order)
