"""`torch.compile(model, backend="igniter")`.

Dynamo traces the Python code, breaks graphs where necessary and guards its assumptions. AOTAutograd makes the graph
functional: in-place ops on inputs become outputs and are copied back; views among the outputs are rebuilt. The result
is a graph of ATen ops, compiled by `igniter.torch.program`. If gradients are needed, Dynamo's graph stays unchanged, so
autograd works as in eager.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from igniter.errors import IgniterError
from igniter.torch.compare import tolerances
from igniter.torch.exporter import decompositions, output_nodes
from igniter.torch.first_call import CheckedCalls
from igniter.torch.floats import constant_floats
from igniter.torch.names import GraphModule, is_tensor, torch
from igniter.torch.options import TorchOptions, options_of
from igniter.torch.piece import Piece
from igniter.torch.program import make_program
from igniter.torch.recipes import find, key_of, watch
from igniter.torch.statistics import GraphReport, PieceReport, forget, note
from igniter.torch.updates import split_updates, with_updates
from igniter.torch.views import Aliases, regrown

NAME = "igniter"
GROUP = "torch_dynamo_backends"


def igniter(
    graph: GraphModule,
    example_inputs: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compiles Dynamo's `graph` and returns a callable that computes it. `options` are fields of `TorchOptions`.

    An unknown option raises `IgniterError`, as does any `mode` other than "default".
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
        # Dynamo uses these exceptions to restart, or to tell the user to change the code.
        if type(error).__module__.startswith(("torch._dynamo", "torch.fx.experimental")):
            forget(report)
            raise
        if isinstance(error, IgniterError) and "igniter.torch" not in error.message:
            report.leave(error.message)
            return graph.forward
        report.leave(f"AOTAutograd failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return graph.forward


def why_eager(inputs: Sequence[Any]) -> str:
    """Returns the reason why a graph with these inputs stays eager; empty if it does not."""
    tensors = [value for value in inputs if is_tensor(value)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return (
            "gradients are recorded, and kernels have no gradients; call it under torch.no_grad() or "
            "torch.inference_mode()"
        )
    elsewhere = next((tensor for tensor in tensors if tensor.device.type != "cpu"), None)
    return "" if elsewhere is None else f"an input is on {elsewhere.device}, but kernels run on CPUs"


def _compiled(
    graph: GraphModule, example_inputs: Sequence[Any], options: TorchOptions, report: GraphReport
) -> Callable[..., Any]:
    common = import_module("torch._dynamo.backends.common")
    boxed = import_module("torch._functorch.aot_autograd").make_boxed_func
    config = import_module("torch._functorch.config")
    is_weight = module_tensors(graph, example_inputs)
    checked: list[int] | None = None
    rtol = options.rtol
    pieces: list[tuple[GraphModule, Piece]] = []

    def compile_functional(functional: GraphModule, inputs: Sequence[Any]) -> Any:
        nonlocal checked, rtol
        rtol = max(tolerances(functional, rtol), default=rtol)
        changed, aliases = _facts(len(inputs), len(output_nodes(functional)))
        if changed or aliases.views:
            # AOTAutograd has merged inputs with shared memory, so the mapping to the original inputs is lost.
            checked = changed if len(inputs) == len(example_inputs) else list(range(len(example_inputs)))
        rest, views = regrown(functional, aliases) if aliases.views else (functional, None)
        # With merged inputs, an update of one is an update of another at other places.
        apart = len(inputs) == len(example_inputs)
        core, updates = split_updates(rest, aliases.news if apart else {})
        program = make_program(core, options, report, is_weight, changed)
        if isinstance(program, Piece) and not changed and apart and views is None:
            pieces.append((functional, program))
        if updates:
            if isinstance(program, Piece):
                program.in_place = {update.place: update.number for update in updates if update.in_place}
            program = with_updates(program, updates, len(output_nodes(functional)))
        return boxed(program if views is None else _with_views(program, views, list(aliases.views)))

    # AOTAutograd makes a view of an input from the sizes, strides and offset of the returned tensor. The alternative,
    # replaying the view ops, does not support inputs with shared memory.
    with config.patch(view_replay_for_aliased_outputs=False), constant_floats(graph):
        key = key_of(graph) if options.cache else ""
        recipe = watch(key, graph)
        found = find(key, graph) if key else None
        if found is not None and found.nodes >= options.smallest:
            report.pieces.append(PieceReport(found.nodes))
            return Piece(graph, options, report.pieces[0], is_weight, prepared=found.prepared)
        made = common.aot_autograd(fw_compiler=compile_functional, decompositions=decompositions())(
            graph, example_inputs
        )
    if len(pieces) == 1:
        ((functional, piece),) = pieces
        kept = recipe(functional, piece.report.nodes)
        if kept is not None:
            piece.keep = kept.keep if key else None
            # AOTAutograd's wrapper would copy inputs and make views, which this graph has none of.
            return piece
    if checked is None or not options.verify:
        return made
    kept = [n not in checked and is_weight(value) for n, value in enumerate(example_inputs)]
    pending = (lambda: report.pending) if options.background else None
    return CheckedCalls(made, graph.forward, kept, rtol, report.leave, pending)


def _with_views(program: Callable[..., Any], views: GraphModule, places: Sequence[int]) -> Callable[..., Any]:
    """Returns `program` with the results at `places` replaced by the views of the inputs that `views` makes."""

    def run(*args: Any) -> Any:
        results: list[Any] = list(program(*args))
        for place, view in zip(places, views(*args), strict=True):
            results[place] = view
        return results

    return run


def module_tensors(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[[Any], bool]:
    """Returns a predicate: true for parameters, and for buffers and attributes of the traced modules."""
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


def _facts(inputs: int, outputs: int) -> tuple[list[int], Aliases]:
    """Returns AOTAutograd's findings: the inputs changed in place, and the outputs that are views of inputs.

    Raises `IgniterError` if these do not match the graph's number of inputs and outputs.
    """
    context = import_module("torch._guards").TracingContext.try_get()
    facts = getattr(context, "fw_metadata", None)
    if facts is None:
        raise IgniterError("AOTAutograd does not report the inputs that the graph changes")
    changed = [n for n, info in enumerate(facts.input_info) if info.mutates_data or info.mutates_metadata]
    news = list(facts.mutated_inp_runtime_indices)
    count = len(news) + len(facts.output_info)
    if len(facts.input_info) != inputs or not count <= outputs:
        raise IgniterError(f"AOTAutograd's report does not match {inputs} inputs and {outputs} outputs")
    kinds = import_module("torch._functorch._aot_autograd.schemas").OutputType
    views = {
        len(news) + place: info.base_idx
        for place, info in enumerate(facts.output_info)
        if info.output_type is kinds.alias_of_input
    }
    return changed, Aliases(views, {number: place for place, number in enumerate(news)})


def register() -> None:
    """Registers the backend's name with Dynamo, unless the installed package's entry point already does."""
    if any(point.name == NAME for point in entry_points(group=GROUP)):
        # Dynamo loads it from there, and rejects a second backend of the same name.
        return
    backends = import_module("torch._dynamo.backends.registry")
    if NAME not in backends._COMPILER_FNS:
        backends.register_backend(igniter, name=NAME)
