"""Graphs of Dynamo that this machine has compiled before, without another trace by AOTAutograd.

AOTAutograd traces Dynamo's graph twice, which takes longer than Dynamo itself. If a graph becomes one part, changes no
input and returns no view of an input, its ONNX model and the treatment of its inputs and outputs are kept on disk. The
key has everything that the trace reads:

* each node of the graph: its op, arguments and type; the ops are functions of PyTorch and Python's operators;
* the symbols, and the guards on them that Dynamo has made before;
* PyTorch's global state (autocast, the default type) and the versions of all packages.

The trace also adds guards on sizes. They are kept as text and made again, so Dynamo traces anew for other sizes as it
would have. A graph found like this is verified in its first call like all others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from igniter.runtime.cache import cache_key, default_cache
from igniter.torch.compare import tolerances
from igniter.torch.exporter import OPSET, output_nodes
from igniter.torch.graphs import Input, Output, Prepared
from igniter.torch.names import GraphModule, Node, fx, is_symbolic, is_tensor, torch
from igniter.torch.versions import versions

_NUMBERS = {kind.__name__: kind for kind in (bool, int, float)}
_PACKAGES = ("torch", "_operator", "math", "builtins")
"""Packages whose functions depend on nothing but their arguments, PyTorch's state and its version."""
_NAMESPACES = ("aten", "prims")
_PLAIN = (bool, int, float, str, type(None), type(...), torch.dtype, torch.device, torch.layout, torch.memory_format)


class _NotKept(Exception):
    """Raised for a graph with something that its key could not describe."""


@dataclass(frozen=True)
class Recipe:
    """A key, and what is needed to keep the graph under it: guards as text and the number of ops."""

    key: str
    guards: Sequence[str]
    nodes: int
    rtol: Sequence[float]

    def keep(self, prepared: Prepared, model: bytes) -> None:
        """Stores the model of a part. A part with something that cannot be stored is not kept."""
        if prepared.constants or prepared.rest is not None or not all(map(_is_plain, prepared.outputs)):
            return
        facts = {
            "guards": list(self.guards),
            "nodes": self.nodes,
            "rtol": list(self.rtol),
            "single": prepared.single,
            "inputs": [asdict(each) | {"number": _name(each.number)} for each in prepared.inputs],
            "outputs": [asdict(each) | {"number": _name(each.number)} for each in prepared.outputs],
        }
        default_cache().put(self.key, json.dumps(facts).encode() + b"\n" + model)


@dataclass(frozen=True)
class Found:
    """A graph from the cache, and its number of ops."""

    prepared: Prepared
    nodes: int


def key_of(graph: GraphModule) -> str:
    """Returns the key of Dynamo's graph; empty for a graph that cannot be kept."""
    try:
        lines = [*_state(), *_symbols(graph)]
        lines += [_line(node) for node in graph.graph.nodes]
    except _NotKept:
        return ""
    return cache_key("torch recipe", "\n".join(lines), str(OPSET), *versions())


def find(key: str, graph: GraphModule) -> Found | None:
    """Returns the graph kept under a key, and makes its guards again; `None` if there is none for these sizes."""
    data = default_cache().get(key)
    if data is None:
        return None
    head, _, model = data.partition(b"\n")
    facts = json.loads(head)
    environment = _environment(graph)
    # A guard that does not hold must not become the opposite guard: so its value comes first.
    for guards in (_value, _guard):
        if not all(guards(text, environment) for text in facts["guards"]):
            return None
    prepared = Prepared(
        None,
        inputs=[Input(**each | {"number": _NUMBERS.get(each["number"])}) for each in facts["inputs"]],
        outputs=[_output(each) for each in facts["outputs"]],
        rtol=facts["rtol"],
        single=facts["single"],
        model=model,
    )
    return Found(prepared, facts["nodes"])


def watch(key: str, graph: GraphModule) -> Callable[[GraphModule, int], Recipe | None]:
    """Returns a function that makes the recipe of the functional graph, once AOTAutograd has returned."""
    environment = _environment(graph)
    before = len(environment.guards) if environment is not None else 0

    def recipe(functional: GraphModule, nodes: int) -> Recipe | None:
        if len(output_nodes(functional)) != len(output_nodes(graph)):
            return None
        new = [str(guard.expr) for guard in environment.guards[before:]] if environment is not None else []
        if not all(_value(text, environment) for text in new):
            return None
        return Recipe(key, new, nodes, tolerances(functional, 0.0))

    return recipe


def _value(text: str, environment: Any) -> bool:
    """True if a condition holds for the sizes of this trace."""
    try:
        return bool(environment.evaluate_symexpr(text))
    except Exception:
        # The printed form of a condition need not be Python. Then the graph is traced as if it were not kept.
        return False


def _guard(text: str, environment: Any) -> bool:
    """True if a condition holds, which is a guard of this trace from then on."""
    return bool(environment.deserialize_symexpr(text))


def _output(facts: dict[str, Any]) -> Output:
    permuted = facts["permuted"]
    facts = facts | {"number": _NUMBERS.get(facts["number"]), "permuted": permuted and tuple(permuted)}
    return Output(**facts)


def _is_plain(output: Output) -> bool:
    return isinstance(output.constant, (bool, int, float, type(None)))


def _name(number: type | None) -> str:
    return "" if number is None else number.__name__


# -- the key ----------------------------------------------------------------------------------------------------------


def _state() -> list[str]:
    """Returns PyTorch's global state, as far as a trace on CPUs reads it."""
    cuda = import_module("torch.backends.cuda")
    values = (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"),
        torch.backends.mkldnn.enabled,
        cuda.flash_sdp_enabled(),
        cuda.math_sdp_enabled(),
    )
    return [str(value) for value in values]


def _environment(graph: GraphModule) -> Any:
    """Returns the `ShapeEnv` of a trace; `None` without symbols."""
    for node in graph.graph.nodes:
        value = node.meta.get("example_value")
        for size in value.shape if is_tensor(value) else (value,):
            if is_symbolic(size):
                return size.node.shape_env
    return None


def _symbols(graph: GraphModule) -> list[str]:
    environment = _environment(graph)
    if environment is None:
        return []
    if environment.deferred_runtime_asserts:
        raise _NotKept
    lines = [f"guard {guard.expr}" for guard in environment.guards]
    for table in (environment.replacements, environment.var_to_range):
        lines += sorted(f"{symbol}: {value}" for symbol, value in table.items())
    return lines


def _line(node: Node) -> str:
    """Returns a node as text: its name, op, arguments and type."""
    if node.op not in ("placeholder", "call_function", "call_method", "output"):
        raise _NotKept
    target = _function(node.target) if node.op == "call_function" else str(node.target)
    return f"{node.name} = {node.op} {target} {_argument(node.args)} {_argument(node.kwargs)}: {_type(node)}"


def _function(target: Any) -> str:
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        if str(target).split(".")[0] not in _NAMESPACES:
            raise _NotKept
        return str(target)
    if isinstance(target, torch._ops.OperatorBase):
        # Operators of higher order have graphs as arguments.
        raise _NotKept
    name = import_module("torch.fx.node")._get_qualified_name(target)
    if name.split(".")[0] not in _PACKAGES:
        raise _NotKept
    return str(name)


def _argument(value: Any) -> str:
    """Returns an argument as text that tells apart all values of the types known here."""
    if isinstance(value, fx.Node):
        return f"%{value.name}"
    if isinstance(value, slice):
        return f"slice{_argument((value.start, value.stop, value.step))}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(_argument, value))})"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, dict):
        return ", ".join(f"{key}={_argument(each)}" for key, each in value.items())  # pyright: ignore[reportUnknownVariableType]
    if type(value) not in _PLAIN:
        raise _NotKept
    return repr(value)


def _type(node: Node) -> str:
    value = node.meta.get("example_value")
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        raise _NotKept
    if not is_tensor(value):
        return f"{type(value).__name__} {value if is_symbolic(value) else ''}"
    if (
        type(value) is not import_module("torch._subclasses.fake_tensor").FakeTensor
        or value.layout is not torch.strided
    ):
        raise _NotKept
    sizes = [*value.shape, *value.stride(), value.storage_offset()]
    flags = value.requires_grad, value.is_conj(), value.is_neg(), value.is_inference(), value.device
    return f"{value.dtype} {[str(size) for size in sizes]} {flags}"
