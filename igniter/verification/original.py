"""The original model: its sessions, its random values, and the noise of its outputs.

The sessions are made on first use: the reference, one without graph optimisations, one with perturbed intermediate
values, one without saturation of integer sums, and ones with internal values as outputs or inputs
(`igniter.frontend.surgery`). All have exact integers (`igniter.frontend.exact_integers`), although ONNX Runtime
computes sums and powers of integers in f64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.activity import doing
from igniter.errors import IgniterError
from igniter.frontend import surgery
from igniter.frontend.exact_integers import with_exact_integers
from igniter.frontend.reading import byte_size
from igniter.frontend.unsigned_weights import with_unsigned_weights
from igniter.runtime.session import SessionError, make_session, onnxruntime_package
from igniter.verification.guard import TooMuch, guarded_run
from igniter.verification.judgement import SOURCE_ULPS
from igniter.verification.mapped import mapped, needs_packing
from igniter.verification.specs import InputSpec, element_dims, specs_of

if TYPE_CHECKING:
    import onnx

    from igniter.frontend.exact_integers import ExactModel
    from igniter.verification.kept_results import KeptResults
    from igniter.verification.stand_in import StandIn

MODEL_LIMIT = 1 << 30
"""The maximum size of a model for a run with perturbed internal values: it would be in memory three times."""
NUDGES = 2
MORE_NUDGES = 4
"""The number of runs with perturbed inputs after a failed output."""
REFERENCE, UNOPTIMISED = "reference", "unoptimised"
"""The kinds of sessions whose results can be kept."""
NUDGEABLE = frozenset(("float16", "float32", "float64"))
SIGMOID_SOURCE = 0.5 * 4 / SOURCE_ULPS
"""The source magnitude of a sigmoid. ONNX Runtime computes it as one half plus a fraction (MlasComputeLogistic), so the
error of a small sigmoid is in units in the last place of one half: 1.05e-7 was measured around 5e-5. This value allows
four such units, 2.4e-7."""
WITHOUT = "--no-verify compiles the model without running the original"
"""The advice to a user if ONNX Runtime crashes on the original model."""


class Original:
    """The original model. `model` is its path or its bytes; with `session` alone, internal values are not available.

    If ONNX Runtime does not load the model, `stand_in` makes the sessions instead. `exact=False` keeps ONNX Runtime's
    own sums of integers, for models that must run in ONNX Runtime unchanged. `is_shared` saves memory: the sessions
    share the weights of a large model in a file (`igniter.verification.mapped`), do not pack them, and keep no memory
    between runs.
    """

    def __init__(
        self,
        model: str | bytes | None = None,
        *,
        session: Any = None,
        options: Mapping[str, Any] | None = None,
        stand_in: StandIn | None = None,
        exact: bool = True,
        is_shared: bool = False,
    ):
        self._given = "the model" if model is None or isinstance(model, bytes) else model
        self._is_shared = is_shared and stand_in is None
        self._mapped = mapped(model) if self._is_shared and model is not None else None
        self.model = model if self._mapped is None else str(self._mapped.path)
        self.stand_in = stand_in
        self.exact = exact
        self.options = dict(options or {})
        self._session = session
        self._cut: dict[tuple[str, ...], Any] = {}
        self.threads = 0
        """The number of threads of all runs; 0 if it may differ between runs (`on_threads`)."""
        self._on_threads: dict[int, Original] = {}
        self.results: KeptResults | None = None
        """Results of earlier runs, which are taken instead of running again; or where the results of this object go."""

    # -- sessions -----------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Any:
        """The session of the reference outputs."""
        if self._session is None:
            self._session = self._make(self._source)
        return self._session

    @cached_property
    def _source(self) -> str | bytes:
        """The model for the sessions: the one with exact integers, if ONNX Runtime's are not exact."""
        assert self.model is not None
        return self.model if self.exact_model is None else self.exact_model.proto.SerializeToString()

    @cached_property
    def exact_model(self) -> ExactModel | None:
        """The model with exact integers; `None` if ONNX Runtime's are exact."""
        if self.model is None or not self.exact:
            return None
        try:
            proto = self._read[0]
            return None if proto is None else with_exact_integers(proto, unsigned=self.stand_in is not None)
        except IgniterError:  # the model cannot be read; the session will report it
            return None

    @cached_property
    def _as_it_is(self) -> Any:
        """A session with ONNX Runtime's own integers."""
        assert self.model is not None
        return self._make(self.model)

    def inexact(self, feed: Mapping[str, Any], expected: Sequence[Any]) -> bool:
        """True if ONNX Runtime's own run differs from `expected`, because its integers are not exact."""
        if self.exact_model is None or self.stand_in is not None:
            return False
        try:
            found = _run_original(self._as_it_is, self.output_names, feed)
        except Exception:
            # A saturated sum may be an invalid index or size later.
            return True
        for e, a in zip(expected, found, strict=True):
            wanted: np.ndarray[Any, Any] = np.asarray(e)
            if wanted.dtype.kind in "biuf" and not np.array_equal(wanted, a, equal_nan=wanted.dtype.kind == "f"):
                return True
        return False

    @cached_property
    def specs(self) -> list[InputSpec]:
        """The model's inputs. Raises `IgniterError` if values of an input cannot be generated."""
        sequences = any("seq(" in value.type for value in self.session.get_inputs())
        graph = self.proto.graph if sequences and self.proto is not None else None
        return specs_of(self.session, elements=None if graph is None else element_dims(graph))

    @cached_property
    def unoptimised(self) -> Any:
        """A session without graph optimisations; `None` without the model, or if ONNX Runtime has no kernel for a node
        usually removed by its optimisations."""
        if self.model is None or self.stand_in is not None:
            return None
        try:
            return self._make(self._source, graph_optimization_level=unoptimised())
        except SessionError:
            return None

    @cached_property
    def unsigned(self) -> Any:
        """A session of the same model with i8 weights as u8, so that sums are exact; `None` without such weights."""
        made = None if self.proto is None or self.stand_in is not None else with_unsigned_weights(self.proto)
        try:
            return None if made is None else self._make(made.SerializeToString())
        except SessionError:  # an op does not support u8
            return None

    @cached_property
    def nudged(self) -> Any:
        """A session with perturbed rounded values; `None` if that is not possible."""
        if self.proto is None or self.stand_in is not None or byte_size(self.proto) > MODEL_LIMIT:
            return None
        made = surgery.with_nudged_values(self.proto, 0)
        for model in (made, surgery.at_opset(made, surgery.RANDOM_OPSET)):
            try:
                return self._make(model.SerializeToString())
            except SessionError:  # ONNX Runtime lacks an op: a random one of a newer opset, or another at the older one
                continue
        return None

    @cached_property
    def _read(self) -> tuple[onnx.ModelProto | None, str]:
        return (None, "") if self.model is None else surgery.read_proto(self.model)

    @cached_property
    def _packs(self) -> bool:
        """True if sessions pack weights as usual."""
        if not self._is_shared:
            return True
        try:
            proto = self._read[0]
        except IgniterError:  # the session will report it
            return True
        return proto is None or needs_packing(proto)

    @property
    def proto(self) -> onnx.ModelProto | None:
        """The model's message with exact integers, for surgery."""
        return self._read[0] if self.exact_model is None else self.exact_model.proto

    @property
    def folder(self) -> str:
        """The folder of the external data of `proto`."""
        return self._read[1]

    def exposing(self, names: Sequence[str], cut: Mapping[str, np.ndarray[Any, Any]] | None = None) -> Any:
        """Returns a session with the values `names` as additional outputs, and the values in `cut` as inputs."""
        key = (*names, "|", *(cut or {}))
        if key not in self._cut:
            if self.proto is None:
                raise IgniterError("the original model cannot be inspected")
            made = surgery.with_outputs(self.proto, names)
            if cut:
                made = surgery.with_inputs(made, cut)
            # The values inside fused nodes are not available.
            self._cut[key] = self._make(made.SerializeToString())
        return self._cut[key]

    # -- threads ------------------------------------------------------------------------------------------------------

    @cached_property
    def by_threads(self) -> bool:
        """True if outputs depend on the number of threads, other than by the order of sums."""
        return self.stand_in is None and self.proto is not None and surgery.thread_dependent(self.proto) > 0

    def on_threads(self, threads: int) -> Original:
        """Returns the original with `threads` threads; unchanged for 0, or if outputs do not depend on the number."""
        if not threads or self.threads or not self.by_threads:
            return self
        if threads not in self._on_threads:
            options = {**self.options, "intra_op_num_threads": threads}
            config: dict[str, Any] = dict(self.options.get("config") or {})
            options["config"] = {**config, "session.intra_op.allow_spinning": "0"}
            self._on_threads[threads] = Original(
                self.model, options=options, exact=self.exact, is_shared=self._is_shared
            )
        return self._on_threads[threads]

    def on_one_thread(self) -> Original:
        """Returns the original with one thread, regardless of later calls of `on_threads`."""
        made = self.on_threads(1)
        made.threads = 1
        return made

    def _make(self, model: str | bytes, **more: Any) -> Any:
        if self.stand_in is not None:
            proto, folder = surgery.read_proto(model)
            with doing("the original was loaded", hint=WITHOUT):
                return self.stand_in(proto, folder or self.folder)
        options: dict[str, Any] = {"log_severity_level": 4, **self.options, **more}
        if self._is_shared:
            options.setdefault("enable_cpu_mem_arena", False)
        config: dict[str, Any] = dict(options.get("config") or {})
        if isinstance(model, bytes) and not isinstance(self.model, bytes) and self.folder:
            config.setdefault("session.model_external_initializers_file_folder_path", self.folder)
        if not self._packs:
            config.setdefault("session.disable_prepacking", "1")
        options["config"] = config
        with doing("the original was loaded", runs="onnxruntime", hint=WITHOUT):
            try:
                return make_session(model, **options)
            except SessionError as error:
                if self._mapped is None:
                    raise
                # The reader knows the model by its own name, not by that of the copy.
                raise SessionError(error.message.replace(str(self._mapped.path), self._given)) from error

    # -- running ------------------------------------------------------------------------------------------------------

    @property
    def output_names(self) -> list[str]:
        return [value.name for value in self.session.get_outputs()]

    @cached_property
    def random_values(self) -> list[str] | None:
        """The values computed by random nodes; `None` if they cannot be cut."""
        return [] if self.proto is None else surgery.random_values(self.proto)

    def run(
        self, feed: Mapping[str, Any], seconds: float | None = None, memory: int | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Returns the outputs, and the draws of the random nodes."""
        if not self.random_values:
            return self._run(REFERENCE, feed, seconds, memory), {}
        session = self.exposing(self.random_values)
        names = [*self.output_names, *(n for n in self.random_values if n not in self.output_names)]
        values = _run_original(session, names, feed, seconds, memory)
        found = dict(zip(names, values, strict=True))
        return [found[n] for n in self.output_names], {n: found[n] for n in self.random_values}

    def run_again(self, feed: Mapping[str, Any], drawn: Mapping[str, Any], seconds: float | None = None) -> list[Any]:
        """Returns the outputs for other inputs with the same random values."""
        if not drawn:
            return self._run(REFERENCE, feed, seconds)
        return _run_original(self.exposing([], drawn), self.output_names, {**feed, **drawn}, seconds)

    def _run(
        self, kind: str, feed: Mapping[str, Any], seconds: float | None = None, memory: int | None = None
    ) -> list[Any]:
        """Runs the session of a kind, or takes the result of such a run."""
        found = self._taken(kind, feed)
        if found is not None:
            return found
        session = self.session if kind == REFERENCE else self.unoptimised
        outputs = _run_original(session, self.output_names, feed, seconds, memory)
        if self.results is not None:
            self.results.keep(kind, feed, outputs)
        return outputs

    def _taken(self, kind: str, feed: Mapping[str, Any]) -> list[Any] | None:
        return None if self.results is None else self.results.take(kind, feed, len(self.output_names))

    # -- noise --------------------------------------------------------------------------------------------------------

    def others(
        self, feed: Mapping[str, Any], drawn: Mapping[str, Any], seed: int, *, thorough: bool, seconds: float | None
    ) -> list[list[Any]]:
        """Returns the outputs of runs as good as the first: without optimisations, and with perturbed inputs.
        `thorough` adds more perturbed inputs, i8 weights as u8, and perturbed internal values."""
        runs: list[list[Any]] = []
        if not drawn:
            found = self._taken(UNOPTIMISED, feed)
            if found is not None:
                runs.append(found)
            elif self.unoptimised is not None:
                runs += _attempt(lambda: self._run(UNOPTIMISED, feed, seconds))
        for i in range(MORE_NUDGES if thorough else NUDGES):
            nudged = nudged_feed(feed, seed + i)
            if nudged is None:
                break
            runs += _attempt(lambda near=nudged: self.run_again(near, drawn, seconds))
        if thorough and not drawn and self.unsigned is not None:
            runs += _attempt(lambda: _run_original(self.unsigned, self.output_names, feed, seconds))
        if thorough and not drawn and self.nudged is not None:
            for _ in range(NUDGES):
                runs += _attempt(lambda: _run_original(self.nudged, self.output_names, feed, seconds))
        return runs

    def sources(self, names: Sequence[str], feed: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, float]:
        """Returns for every output the largest magnitude of the operands of its sum, difference or reduction, looking
        through data movement; `SIGMOID_SOURCE` for a sigmoid."""
        if self.proto is None:
            return {}
        made = surgery.producers(self.proto)
        operands = {name: _summed(name, made) for name in names}
        wanted = list(dict.fromkeys(v for found in operands.values() for v in found))
        known: dict[str, Any] = {**feed, **drawn}
        try:
            missing = [v for v in wanted if v not in known]
            if missing:
                session = self.exposing(missing, drawn or None)
                known.update(zip(missing, _run_original(session, missing, {**feed, **drawn}), strict=True))
        except Exception:
            # A value that cannot be an output (a sequence). Then only the noise decides.
            return {}
        found = self.sigmoids(names)
        for name, values in operands.items():
            arrays = [np.asarray(known[v], np.float64) for v in values if getattr(known[v], "dtype", None) is not None]
            sizes = [float(np.max(np.abs(np.where(np.isfinite(a), a, 0.0)), initial=0.0)) for a in arrays]
            found[name] = max(sizes, default=found.get(name, 0.0))
        return found

    def sigmoids(self, names: Sequence[str]) -> dict[str, float]:
        """Returns `SIGMOID_SOURCE` for each output that is a sigmoid: the part of `sources` that needs no run."""
        if self.proto is None:
            return {}
        return {name: SIGMOID_SOURCE for name in names if _is_sigmoid(name, [self.proto.graph])}


# fmt: off
_MOVES = frozenset((
    "Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Neg", "Abs", "Cast",
))
# fmt: on
_SUMS = frozenset(["Add", "Sub", "Sum", "Mean", "ReduceSum", "ReduceMean"])


def _summed(name: str, producers: Mapping[str, Any]) -> list[str]:
    """Returns the operands of the sum that computes a value, looking through `_MOVES`; none if it is not a sum."""
    node = producers.get(name)
    while node is not None and node.op_type in _MOVES:
        node = producers.get(node.input[0])
    if node is None or node.op_type not in _SUMS:
        return []
    return [v for v in (node.input if node.op_type in ("Add", "Sub", "Sum", "Mean") else node.input[:1]) if v]


def _run_original(
    session: Any, names: Sequence[str], feed: Mapping[str, Any], seconds: float | None = None, memory: int | None = None
) -> list[Any]:
    dims = ", ".join(f"{name} {'x'.join(map(str, getattr(v, 'shape', ())))}" for name, v in feed.items())
    hint = f"give other inputs with --shape or --inputs, or {WITHOUT}"
    with doing(f"the original ran, with inputs of the dims {dims}", runs="onnxruntime", hint=hint):
        return guarded_run(session, names, feed, seconds, memory)


def _attempt(run: Callable[[], list[Any]]) -> list[list[Any]]:
    """Returns the outputs of one more run; none if it fails or takes too long, because it is optional."""
    try:
        return [run()]
    except TooMuch:
        return []
    except Exception:
        # Inputs at a limit of the model: for example, a perturbed index may be out of range.
        return []


def nudged_feed(feed: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    """Returns the feed with every float moved up or down by one unit in the last place, except zeros; `None` without
    floats."""
    rng = np.random.default_rng(seed + 7919)
    made = dict(feed)
    changed = False
    for name, value in feed.items():
        if getattr(getattr(value, "dtype", None), "name", "") in NUDGEABLE and np.size(value):
            array: np.ndarray[Any, Any] = np.asarray(value)
            towards = rng.choice(np.array([-np.inf, np.inf], array.dtype), array.shape)
            made[name] = np.where(array == 0, array, np.nextafter(array, towards)).astype(array.dtype)
            changed = True
    return made if changed else None


def unoptimised() -> Any:
    """Returns ORT's level without graph optimisations."""
    return onnxruntime_package().GraphOptimizationLevel.ORT_DISABLE_ALL


_MEANS = frozenset(("Mean", "ReduceMean"))


def _is_sigmoid(name: str, graphs: Sequence[onnx.GraphProto]) -> bool:
    """True if a value is a sigmoid, looking through data movement, means and branches. `graphs` are the graphs in
    scope, outermost first."""
    for depth, graph in reversed(list(enumerate(graphs, start=1))):
        node = next((n for n in graph.node if name in n.output), None)
        if node is None:
            continue
        around = graphs[:depth]
        if node.op_type == "If":
            place = list(node.output).index(name)
            branches = [a.g for a in node.attribute if a.name in ("then_branch", "else_branch")]
            return any(_is_sigmoid(g.output[place].name, [*around, g]) for g in branches)
        moved = node.op_type in _MOVES or node.op_type in _MEANS
        return node.op_type == "Sigmoid" or (moved and any(_is_sigmoid(v, around) for v in node.input[:1]))
    return False
