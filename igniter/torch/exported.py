"""One compiled export of a module by `torch.export`: for one structure of arguments, and for all sizes that it allows.

Every dim is dynamic unless the module's code fixes it. `torch.export` records the other assumptions of the code (a dim
of at most 512, two equal dims). They are checked before each call, like the attributes of the module
(`igniter.torch.state`). Code with changes to attributes or to its argument containers is not traced here: the changes
would happen only once, in the trace.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from types import CodeType
from typing import Any

from igniter.errors import IgniterError
from igniter.torch.compare import differences, tolerances
from igniter.torch.exporter import decompositions, quiet
from igniter.torch.first_call import begin, call_difference, copied
from igniter.torch.known_sizes import known_sizes
from igniter.torch.names import Tensor, is_symbolic, is_tensor, pytree, torch
from igniter.torch.nesting import unflattener
from igniter.torch.options import TorchOptions
from igniter.torch.program import make_program
from igniter.torch.state import ModuleState
from igniter.torch.statistics import GraphReport
from igniter.torch.views import Aliases, regrown

NAMES = {"min": min, "max": max, "math": math, "abs": abs, "int": int, "float": float, "round": round}
"""The names available to the conditions of `torch.export`."""


class Exported:
    """A module's export, called with the leaves of the module's arguments. If `torch.export` cannot trace the module,
    its error is passed on. A module with side effects raises `IgniterError`."""

    def __init__(
        self,
        module: Any,
        leaves: Sequence[Any],
        spec: Any,
        options: TorchOptions,
        report: GraphReport,
        state: ModuleState,
    ):
        self.report = report
        self.failed = False
        """True if the first call differed from eager."""
        self._state = state
        self._module = module
        self._arguments = leaves, unflattener(spec)
        self._tensors = [place for place, leaf in enumerate(leaves) if is_tensor(leaf)]
        flat = _Flat(module, leaves, spec)
        try:
            program = _export(flat, _apart(module, [leaves[place] for place in self._tensors]))
        finally:
            state.restore()
        report.nodes = sum(node.op == "call_function" for node in program.graph.nodes)
        self._result = unflattener(program.call_spec.out_spec)
        self._sources = [_source(flat, program, spec) for spec in program.graph_signature.input_specs]
        self._targets = [_target(program, spec, self._sources) for spec in program.graph_signature.output_specs]
        self._dims = _fixed_dims(program)
        self._guards = _guards(program)
        places = {id(target) for target in self._targets if target is not None}
        never = [place for place, source in enumerate(self._sources) if id(source) in places]
        known = {id(source.value(())): source for source in self._sources if source.leaf < 0}

        def is_weight(value: Any) -> bool:
            source = known.get(id(value))
            return source is not None and source.value(()) is value

        self._owned = [source for source in self._sources if source.leaf < 0]
        self._types = [_type(source.value(())) for source in self._owned]
        self._written = [target for target in self._targets if target is not None]
        graph, self._views, self._regrown = program.graph_module, None, list[int]()
        aliases = _aliases(flat.noted.memories, program, self._sources, self._targets)
        if aliases.views:
            graph, self._views = regrown(graph, aliases)
            self._regrown = list(aliases.views)
        self._rtol = max(tolerances(program.graph_module, options.rtol), default=options.rtol)
        # A copy in the trace may be a view in eager: with symbolic sizes the trace cannot decide if a view exists.
        self._checked = not options.verify
        self._background, self._begun = options.background, False
        self._run = make_program(graph, options, report, is_weight, never)
        if not self.holds_for(leaves):
            raise IgniterError("an assumption of torch.export does not hold for the traced inputs")

    def holds_for(self, leaves: Sequence[Any]) -> bool:
        """True if the trace is valid for these arguments. Their structure and types must be those of the trace."""
        if not self._state.unchanged() or [_type(source.value(())) for source in self._owned] != self._types:
            return False
        tensors = [leaves[place] for place in self._tensors]
        for place, axis, size in self._dims:
            if tensors[place].shape[axis] != size:
                return False
        names = {"L": {"tensors": tensors}}
        return self._guards is None or bool(eval(self._guards, {"__builtins__": {}, **NAMES}, names))

    def writes_shared(self, leaves: Sequence[Any]) -> bool:
        """True if a tensor changed in place shares memory with another argument."""
        if not self._written:
            return False
        tensors = [leaves[place] for place in self._tensors]
        written = [target.value(tensors) for target in self._written]
        places = [_memory(tensor) for tensor in tensors]
        places += [_memory(each) for target, each in zip(self._written, written, strict=True) if target.leaf < 0]
        return any(places.count(_memory(each)) > 1 for each in written)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Returns the result of the module for the arguments with these leaves."""
        if self._checked:
            return self._compute(leaves)
        if self._background and self._is_pending(leaves):
            others, nested = self._arguments
            own = list(others)
            for place in self._tensors:
                own[place] = leaves[place]
            args, kwargs = nested(own)
            return self._module(*args, **kwargs)
        return self._first(leaves)

    def _is_pending(self, leaves: Sequence[Any]) -> bool:
        """True while parts are compiled in the background, which the first of these calls begins."""
        if not self._begun:
            self._begun = True
            tensors = [leaves[place] for place in self._tensors]
            values = [source.value(tensors) for source in self._sources]
            begin(self._run, values, [source.leaf < 0 for source in self._sources])
        return self.report.pending

    def _compute(self, leaves: Sequence[Any]) -> Any:
        tensors = [leaves[place] for place in self._tensors]
        values = [source.value(tensors) for source in self._sources]
        given: list[Any] = list(self._run(*values))
        for target, value in zip(self._targets, given, strict=True):
            if target is not None:
                target.value(tensors).copy_(value)
        if self._views is not None:
            for place, view in zip(self._regrown, self._views(*values), strict=True):
                given[place] = view
        return self._result([value for target, value in zip(self._targets, given, strict=True) if target is None])

    def _first(self, leaves: Sequence[Any]) -> Any:
        """Compares a call with eager. Eager gets copies of the arguments; buffers are reset between the two runs."""
        self._checked = True
        others, nested = self._arguments
        tensors = [leaves[place] for place in self._tensors]
        owned = [target.value(tensors) for target in self._written if target.leaf < 0]
        before, state = [each.clone() for each in owned], torch.get_rng_state()
        copies = copied(tensors, [False] * len(tensors))
        theirs = list(others)
        for place, copy in zip(self._tensors, copies, strict=True):
            theirs[place] = copy
        args, kwargs = nested(theirs)
        expected = self._module(*args, **kwargs)
        after, drawn = [each.clone() for each in owned], torch.get_rng_state()
        _assign(owned, before)
        torch.set_rng_state(state)
        try:
            got = self._compute(leaves)
        finally:
            torch.set_rng_state(drawn)
        wrong = call_difference([*tensors, *owned], got, [*copies, *owned], expected, self._rtol)
        wrong = wrong or differences(owned, after, self._rtol)[1]
        if not wrong:
            return got
        self.failed = True
        self.report.leave(f"its results differ from eager: {wrong}: compiled in parts")
        _assign([*tensors, *owned], [*copies, *after])
        return _moved(expected, copies, tensors)


def _moved(result: Any, copies: Sequence[Any], tensors: Sequence[Any]) -> Any:
    """Returns a result with views of `copies` replaced by the same views of `tensors`."""
    same = {id(copy): tensor for copy, tensor in zip(copies, tensors, strict=True)}
    storages = {_memory(copy): tensor.untyped_storage() for copy, tensor in zip(copies, tensors, strict=True)}

    def moved(leaf: Any) -> Any:
        if id(leaf) in same or not is_tensor(leaf) or leaf.layout is not torch.strided:
            return same.get(id(leaf), leaf)
        storage = storages.get(_memory(leaf)) if leaf.numel() else None
        if storage is None:
            return leaf
        return torch.empty(0, dtype=leaf.dtype).set_(storage, leaf.storage_offset(), leaf.shape, leaf.stride())

    return pytree.tree_map(moved, result)


def _assign(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    for tensor, value in zip(tensors, values, strict=True):
        if not torch.equal(tensor, value):
            tensor.copy_(value)


class _Noted:
    """Facts of a trace, in an object of their own, because `torch.export` restores the module's attributes.

    `memories` has an entry for each leaf of the result: the tensor (by number) or attribute (by name) with the same
    memory, or `None`.
    """

    def __init__(self):
        self.memories: list[int | str | None] = []


class _Flat(torch.nn.Module):
    """A wrapper of a module. It takes the tensors among the module's arguments, in order; other arguments are fixed.

    `torch.export` does not support all signatures, and its conditions name arguments by the signature.
    """

    def __init__(self, module: Any, leaves: Sequence[Any], spec: Any):
        super().__init__()
        self.module = module
        self._others = [None if is_tensor(leaf) else leaf for leaf in leaves]
        self._places = [place for place, leaf in enumerate(leaves) if is_tensor(leaf)]
        self._spec = spec
        self._nested = unflattener(spec)
        self.noted = _Noted()

    def forward(self, *tensors: Any) -> Any:
        leaves = list(self._others)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = self._nested(leaves)
        # torch.export has replaced parameters by its own tensors, and would silently undo a change of an attribute.
        before = ModuleState(self.module)
        result = self.module(*args, **kwargs)
        if not before.unchanged():
            raise IgniterError("its code changes attributes of a module")
        after, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._spec or any(one is not other for one, other in zip(leaves, after, strict=True)):
            raise IgniterError("its code changes a list, dict or other container that it receives")
        self.noted.memories = self._shared(pytree.tree_leaves(result), tensors)
        return result

    def _shared(self, results: Sequence[Any], tensors: Sequence[Any]) -> list[int | str | None]:
        known: dict[int, int | str] = {}
        own = (*self.named_parameters(remove_duplicate=False), *self.named_buffers(remove_duplicate=False))
        for name, value in (*enumerate(tensors), *own):
            known.setdefault(value.untyped_storage()._cdata, name)
        return [known.get(each.untyped_storage()._cdata) if is_tensor(each) else None for each in results]


class _Source:
    """The source of a graph input: argument number `leaf`, an attribute of a module, or a constant."""

    def __init__(self, leaf: int = -1, owner: Any = None, name: str = "", constant: Tensor | None = None):
        self.leaf = leaf
        self.owner = owner
        self.name = name
        self.constant = constant
        # The module's own attribute look-up takes longer than all other work for a weight before a call.
        self._table: Any = owner._parameters if owner is not None and name in owner._parameters else None
        if owner is not None and self._table is None:
            self._table = owner._buffers

    def value(self, leaves: Sequence[Any]) -> Any:
        if self._table is not None:
            return self._table[self.name]
        return leaves[self.leaf] if self.leaf >= 0 else self.constant


def _apart(module: Any, tensors: Sequence[Any]) -> list[Any]:
    """Returns the tensors with the module's own ones detached, because these would be treated as weights."""
    own = {id(each) for each in (*module.parameters(), *module.buffers())}
    return [tensor.detach() if id(tensor) in own else tensor for tensor in tensors]


def _type(tensor: Any) -> Any:
    return (tensor.dtype, tensor.shape, tensor.device) if is_tensor(tensor) else None


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _export(module: _Flat, tensors: Sequence[Any]) -> Any:
    """Returns the functional program of a module, with ops decomposed for the exporter."""
    config = import_module("torch.fx.experimental._config")
    shapes = {"tensors": tuple(dict.fromkeys(range(t.dim()), torch.export.Dim.AUTO) for t in tensors)}
    # Without this, a dim of size 1 in the first call would be specialised to 1.
    with torch.no_grad(), quiet(), config.patch(backed_size_oblivious=True):
        program = torch.export.export(module, tuple(tensors), dynamic_shapes=shapes, strict=False)
        return program.run_decompositions(decompositions())


def _source(module: Any, program: Any, spec: Any) -> _Source:
    kind = spec.kind.name
    if kind == "USER_INPUT":
        inputs = [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        return _Source(leaf=inputs.index(spec))
    if kind == "CONSTANT_TENSOR":
        return _Source(constant=program.constants[spec.target])
    if kind in ("PARAMETER", "BUFFER"):
        path, _, name = spec.target.rpartition(".")
        return _Source(owner=module.get_submodule(path), name=name)
    raise IgniterError(f"torch.export gave the graph an input of kind {kind}")


def _target(program: Any, spec: Any, sources: Sequence[_Source]) -> _Source | None:
    """Returns the destination of an output of the graph; `None` for a returned output."""
    kind = spec.kind.name
    if kind == "USER_OUTPUT":
        return None
    inputs = program.graph_signature.input_specs
    if kind == "USER_INPUT_MUTATION":
        return next(source for source, s in zip(sources, inputs, strict=True) if s.arg.name == spec.target)
    if kind == "BUFFER_MUTATION":
        return next(source for source, s in zip(sources, inputs, strict=True) if s.target == spec.target)
    raise IgniterError(f"torch.export gave the graph an output of kind {kind}")


def _aliases(
    memories: Sequence[int | str | None], program: Any, sources: Sequence[_Source], targets: Sequence[_Source | None]
) -> Aliases:
    """Returns the results that are views of tensors changed by the module, from the facts of the trace."""
    numbers: dict[int | str, int] = {}
    for number, (source, spec) in enumerate(zip(sources, program.graph_signature.input_specs, strict=True)):
        numbers[source.leaf if source.leaf >= 0 else spec.target] = number
    news = {sources.index(target): place for place, target in enumerate(targets) if target is not None}
    results = [place for place, target in enumerate(targets) if target is None]
    views: dict[int, int] = {}
    for place, memory in zip(results, memories, strict=True):
        number = None if memory is None else numbers.get(memory)
        if number in news:
            views[place] = number
    return Aliases(views, news)


def _fixed_dims(program: Any) -> list[tuple[int, int, int]]:
    """Returns the argument, axis and size of each dim fixed by the trace or its conditions."""
    sizes = known_sizes(program.graph_module)
    places = {
        spec.arg.name: place
        for place, spec in enumerate(s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT")
    }
    found: list[tuple[int, int, int]] = []
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and node.name in places and is_tensor(value):
            dims = [sizes.get(str(d)) if is_symbolic(d) else d for d in value.shape]
            found += [(places[node.name], axis, d) for axis, d in enumerate(dims) if d is not None]
    return found


def _guards(program: Any) -> CodeType | None:
    """Returns the conditions of the trace on sizes, as one expression; `None` for an unconditional trace."""
    conditions: Sequence[str] = getattr(program, "_guards_code", None) or ()
    text = " and ".join(f"({condition})" for condition in conditions)
    return compile(text, "<torch.export>", "eval") if text else None
