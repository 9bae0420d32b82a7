"""`torch.compile(model, backend="igniter")`.

Dynamo traces the Python code, breaks graphs where it must and guards what it took for granted. AOTAutograd makes the
graph functional: in-place ops on inputs become outputs that are copied back, outputs that are views are made anew.
What is left is a graph of ATen ops, which `igniter.torch.program` compiles. Where gradients are wanted the graph stays
as Dynamo made it, so autograd sees what it would see in eager.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from igniter.errors import IgniterError
from igniter.torch.exporter import decompositions
from igniter.torch.names import GraphModule, is_tensor, torch
from igniter.torch.options import TorchOptions, options_of
from igniter.torch.program import make_program
from igniter.torch.statistics import GraphReport, forget, note

NAME = "igniter"
GROUP = "torch_dynamo_backends"


def igniter(
    graph: GraphModule,
    example_inputs: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """The backend: what computes Dynamo's `graph`. `options` are those of `TorchOptions`.

    `IgniterError` for an option that there is not, and for a `mode`, of which there are none.
    """
    if mode not in (None, "default"):
        raise IgniterError(f"the backend 'igniter' has no mode '{mode}': give options={{...}} instead")
    chosen = options_of(options)
    report = note("torch.compile", sum(node.op.startswith("call_") for node in graph.graph.nodes))
    why = why_eager(example_inputs)
    if why:
        report.leave(why)
        return graph.forward
    try:
        return _compiled(graph, example_inputs, chosen, report)
    except Exception as error:
        # Those are how Dynamo starts over, or says what a user has to change.
        if type(error).__module__.startswith(("torch._dynamo", "torch.fx.experimental")):
            forget(report)
            raise
        report.leave(f"AOTAutograd failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return graph.forward


def why_eager(inputs: Sequence[Any]) -> str:
    """Why a graph with these inputs stays eager; empty where it does not."""
    tensors = [value for value in inputs if is_tensor(value)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return "gradients are recorded: kernels have none, so call it under torch.no_grad() or torch.inference_mode()"
    elsewhere = next((tensor for tensor in tensors if tensor.device.type != "cpu"), None)
    return "" if elsewhere is None else f"an input is on {elsewhere.device}, and kernels are for CPUs"


def _compiled(
    graph: GraphModule, example_inputs: Sequence[Any], options: TorchOptions, report: GraphReport
) -> Callable[..., Any]:
    common = import_module("torch._dynamo.backends.common")
    boxed = import_module("torch._functorch.aot_autograd").make_boxed_func
    is_weight = module_tensors(graph, example_inputs)

    def compile_functional(functional: GraphModule, inputs: Sequence[Any]) -> Any:
        return boxed(make_program(functional, options, report, is_weight, _changed_inputs(len(inputs))))

    made = common.aot_autograd(fw_compiler=compile_functional, decompositions=decompositions())
    return made(graph, example_inputs)


def module_tensors(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[[Any], bool]:
    """What says of a tensor whether it is a parameter, or a buffer or attribute of a module that was traced."""
    known: dict[int, Any] = {}
    places = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node, value in zip(places, example_inputs, strict=True):
        source = getattr(node.meta.get("grapharg"), "source", None)
        guard = getattr(source, "guard_source", None)
        if is_tensor(value) and guard is not None and guard.is_unspecialized_nn_module():
            known[id(value)] = weakref.ref(value)

    def is_weight(value: Any) -> bool:
        if isinstance(value, torch.nn.Parameter):
            return True
        found = known.get(id(value))
        return found is not None and found() is value

    return is_weight


def _changed_inputs(count: int) -> list[int]:
    """The inputs that the graph changes in place, by what AOTAutograd found out."""
    context = import_module("torch._guards").TracingContext.try_get()
    facts = getattr(context, "fw_metadata", None)
    inputs = list(getattr(facts, "input_info", ()))
    if len(inputs) != count:
        return []
    return [place for place, info in enumerate(inputs) if info.mutates_data or info.mutates_metadata]


def register() -> None:
    """Make the backend known by its name, where the installed package's entry point does not."""
    if any(point.name == NAME for point in entry_points(group=GROUP)):
        # Dynamo loads it from there, and takes no second one of the name.
        return
    backends = import_module("torch._dynamo.backends.registry")
    if NAME not in backends._COMPILER_FNS:
        backends.register_backend(igniter, name=NAME)
