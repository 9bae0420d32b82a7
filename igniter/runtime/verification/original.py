"""The original model: its sessions, its random values, and how far its outputs move by themselves.

The sessions are made when they are first needed: the one that gives the reference, one without graph optimisations,
one that nudges what it computes, one whose integer sums do not saturate, and ones with values of the inside as outputs
or inputs (`igniter.frontend.surgery`). In all of them integers are exact (`igniter.frontend.exact_integers`), where
ONNX Runtime makes sums and powers of integers in f64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from igniter.activity import doing
from igniter.errors import IgniterError
from igniter.runtime.session import SessionError, make_session
from igniter.runtime.verification.guard import guarded_run
from igniter.runtime.verification.judgement import SOURCE_ULPS
from igniter.runtime.verification.specs import InputSpec, element_dims, specs_of

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from igniter.frontend.exact_integers import ExactModel
    from igniter.runtime.verification.stand_in import StandIn

MODEL_LIMIT = 1 << 30
"""In a file bigger than this the values of the inside are not nudged: it would be in memory three times."""
NUDGES = 2
MORE_NUDGES = 4
"""Once an output has failed."""
NUDGEABLE = frozenset(("float16", "float32", "float64"))
SIGMOID_SOURCE = 0.5 * 4 / SOURCE_ULPS
"""ONNX Runtime computes a sigmoid as one half and a fraction (MlasComputeLogistic), so that it knows a small one to
units in the last place of one half and not to its own: it was off by 1.05e-7 around 5e-5. This allows four of them,
which are 2.4e-7."""
WITHOUT = "--no-verify compiles the model without running the original"
"""What a user can do where ONNX Runtime crashes on the original model."""


class Original:
    """`model` is a path or the bytes of a model; without it (`session` alone) nothing of the inside is seen.

    With `stand_in`, that makes the sessions, and not ONNX Runtime, which does not load the model. `exact=False` keeps
    ONNX Runtime's own sums of integers: for models that are to run in ONNX Runtime as they are.
    """

    def __init__(
        self,
        model: str | bytes | None = None,
        *,
        session: Any = None,
        options: Mapping[str, Any] | None = None,
        stand_in: StandIn | None = None,
        exact: bool = True,
    ):
        self.model = model
        self.stand_in = stand_in
        self.exact = exact
        self.options = dict(options or {})
        self._session = session
        self._cut: dict[tuple[str, ...], Any] = {}
        self.threads = 0
        """The threads that all runs have; 0 where a run may have others (`on_threads`)."""
        self._on_threads: dict[int, Original] = {}

    # -- sessions -----------------------------------------------------------------------------------------------------

    @property
    def session(self) -> Any:
        """The session that the references come from."""
        if self._session is None:
            self._session = self._make(self._source)
        return self._session

    @cached_property
    def _source(self) -> str | bytes:
        """The model that sessions are made of: with exact integers, where ONNX Runtime's are not."""
        assert self.model is not None
        return self.model if self.exact_model is None else self.exact_model.proto.SerializeToString()

    @cached_property
    def exact_model(self) -> ExactModel | None:
        """The model with exact integers; `None` where ONNX Runtime's are exact."""
        from igniter.frontend.exact_integers import with_exact_integers

        if self.model is None or not self.exact:
            return None
        try:
            proto = self._read[0]
            return None if proto is None else with_exact_integers(proto, unsigned=self.stand_in is not None)
        except IgniterError:  # it cannot be read, as the session will say
            return None

    @cached_property
    def _as_it_is(self) -> Any:
        """A session with ONNX Runtime's own integers."""
        assert self.model is not None
        return self._make(self.model)

    def inexact(self, feed: Mapping[str, Any], expected: Sequence[Any]) -> bool:
        """True if ONNX Runtime's own run gives something else than `expected`, because its integers are not exact."""
        import numpy as np

        if self.exact_model is None or self.stand_in is not None:
            return False
        try:
            found = _run_original(self._as_it_is, self.output_names, feed)
        except Exception:
            # A sum that saturates is an index or a size further down.
            return True
        for e, a in zip(expected, found, strict=True):
            wanted: np.ndarray[Any, Any] = np.asarray(e)
            if wanted.dtype.kind in "biuf" and not np.array_equal(wanted, a, equal_nan=wanted.dtype.kind == "f"):
                return True
        return False

    @cached_property
    def specs(self) -> list[InputSpec]:
        """Its inputs; `IgniterError` for one of which no values can be made up."""
        sequences = any("seq(" in value.type for value in self.session.get_inputs())
        graph = self.proto.graph if sequences and self.proto is not None else None
        return specs_of(self.session, elements=None if graph is None else element_dims(graph))

    @cached_property
    def unoptimised(self) -> Any:
        """A session without graph optimisations; `None` without the model, and where ONNX Runtime has no kernel for a
        node that its optimisations take away."""
        if self.model is None or self.stand_in is not None:
            return None
        try:
            return self._make(self._source, graph_optimization_level=unoptimised())
        except SessionError:
            return None

    @cached_property
    def unsigned(self) -> Any:
        """A session of the same model with i8 weights as u8, whose sums are exact; `None` where there are none."""
        from igniter.frontend.unsigned_weights import with_unsigned_weights

        made = None if self.proto is None or self.stand_in is not None else with_unsigned_weights(self.proto)
        try:
            return None if made is None else self._make(made.SerializeToString())
        except SessionError:  # an op that takes no u8
            return None

    @cached_property
    def nudged(self) -> Any:
        """A session in which all that is rounded is nudged; `None` where that is not possible."""
        from igniter.frontend import surgery
        from igniter.frontend.reading import byte_size

        if self.proto is None or self.stand_in is not None or byte_size(self.proto) > MODEL_LIMIT:
            return None
        return self._make(surgery.with_nudged_values(self.proto, 0).SerializeToString())

    @cached_property
    def _read(self) -> tuple[onnx.ModelProto | None, str]:
        from igniter.frontend import surgery

        return (None, "") if self.model is None else surgery.read_proto(self.model)

    @property
    def proto(self) -> onnx.ModelProto | None:
        """The model's message, for surgery, with exact integers."""
        return self._read[0] if self.exact_model is None else self.exact_model.proto

    @property
    def folder(self) -> str:
        """Where the external data of `proto` is."""
        return self._read[1]

    def exposing(self, names: Sequence[str], cut: Mapping[str, np.ndarray[Any, Any]] | None = None) -> Any:
        """A session with the values `names` as outputs besides its own, and those of `cut` as inputs."""
        from igniter.frontend import surgery

        key = (*names, "|", *(cut or {}))
        if key not in self._cut:
            if self.proto is None:
                raise IgniterError("the original model is not there to look into")
            made = surgery.with_outputs(self.proto, names)
            if cut:
                made = surgery.with_inputs(made, cut)
            # Fused nodes have no values inside them to show.
            self._cut[key] = self._make(made.SerializeToString())
        return self._cut[key]

    # -- threads ------------------------------------------------------------------------------------------------------

    @cached_property
    def by_threads(self) -> bool:
        """True if outputs depend on the number of threads, by more than the order of sums."""
        from igniter.frontend import surgery

        return self.stand_in is None and self.proto is not None and surgery.thread_dependent(self.proto) > 0

    def on_threads(self, threads: int) -> Original:
        """The original in sessions of so many threads (0: as it is); itself where outputs do not depend on them."""
        if not threads or self.threads or not self.by_threads:
            return self
        if threads not in self._on_threads:
            options = {**self.options, "intra_op_num_threads": threads}
            config: dict[str, Any] = dict(self.options.get("config") or {})
            options["config"] = {**config, "session.intra_op.allow_spinning": "0"}
            self._on_threads[threads] = Original(self.model, options=options, exact=self.exact)
        return self._on_threads[threads]

    def on_one_thread(self) -> Original:
        """The original in sessions of one thread, which `on_threads` keeps."""
        made = self.on_threads(1)
        made.threads = 1
        return made

    def _make(self, model: str | bytes, **more: Any) -> Any:
        if self.stand_in is not None:
            from igniter.frontend import surgery

            proto, folder = surgery.read_proto(model)
            with doing("the original was loaded", hint=WITHOUT):
                return self.stand_in(proto, folder or self.folder)
        options: dict[str, Any] = {"log_severity_level": 4, **self.options, **more}
        if isinstance(model, bytes) and not isinstance(self.model, bytes) and self.folder:
            config: dict[str, Any] = dict(options.get("config") or {})
            config.setdefault("session.model_external_initializers_file_folder_path", self.folder)
            options["config"] = config
        with doing("the original was loaded", runs="onnxruntime", hint=WITHOUT):
            return make_session(model, **options)

    # -- running ------------------------------------------------------------------------------------------------------

    @property
    def output_names(self) -> list[str]:
        return [value.name for value in self.session.get_outputs()]

    @cached_property
    def random_values(self) -> list[str] | None:
        """The values that random nodes compute; `None` where they cannot be cut out."""
        from igniter.frontend import surgery

        return [] if self.proto is None else surgery.random_values(self.proto)

    def run(
        self, feed: Mapping[str, Any], seconds: float | None = None, memory: int | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """The outputs, and what the random nodes drew for them."""
        if not self.random_values:
            return _run_original(self.session, self.output_names, feed, seconds, memory), {}
        session = self.exposing(self.random_values)
        names = [*self.output_names, *(n for n in self.random_values if n not in self.output_names)]
        values = _run_original(session, names, feed, seconds, memory)
        found = dict(zip(names, values, strict=True))
        return [found[n] for n in self.output_names], {n: found[n] for n in self.random_values}

    def run_again(self, feed: Mapping[str, Any], drawn: Mapping[str, Any], seconds: float | None = None) -> list[Any]:
        """The outputs for other inputs, with the same random values."""
        session = self.exposing([], drawn) if drawn else self.session
        return _run_original(session, self.output_names, {**feed, **drawn}, seconds)

    # -- noise --------------------------------------------------------------------------------------------------------

    def others(
        self, feed: Mapping[str, Any], drawn: Mapping[str, Any], seed: int, *, thorough: bool, seconds: float | None
    ) -> list[list[Any]]:
        """The outputs of runs that are as good as the first: without optimisations, with inputs nudged; `thorough`
        adds more nudges, weights of i8 as u8, and every value of the inside nudged."""
        runs: list[list[Any]] = []
        if not drawn and self.unoptimised is not None:
            runs += _attempt(self.unoptimised, self.output_names, feed, seconds)
        for i in range(MORE_NUDGES if thorough else NUDGES):
            nudged = nudged_feed(feed, seed + i)
            if nudged is None:
                break
            runs += _attempt(self, self.output_names, {**nudged, **drawn}, seconds, drawn)
        if thorough and not drawn and self.unsigned is not None:
            runs += _attempt(self.unsigned, self.output_names, feed, seconds)
        if thorough and not drawn and self.nudged is not None:
            for _ in range(NUDGES):
                runs += _attempt(self.nudged, self.output_names, feed, seconds)
        return runs

    def sources(self, names: Sequence[str], feed: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, float]:
        """For every output the largest magnitude among the values that it was made from: the operands of the sum,
        difference or reduction that it comes from, however it was moved since; of a sigmoid `SIGMOID_SOURCE`."""
        import numpy as np

        from igniter.frontend import surgery

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
            # A value that cannot be an output (a sequence); then the noise alone decides.
            return {}
        found = self.sigmoids(names)
        for name, values in operands.items():
            arrays = [np.asarray(known[v], np.float64) for v in values if getattr(known[v], "dtype", None) is not None]
            sizes = [float(np.max(np.abs(np.where(np.isfinite(a), a, 0.0)), initial=0.0)) for a in arrays]
            found[name] = max(sizes, default=found.get(name, 0.0))
        return found

    def sigmoids(self, names: Sequence[str]) -> dict[str, float]:
        """`SIGMOID_SOURCE` for each output that is a sigmoid: what `sources` knows without a run."""
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
    """The operands of the sum that a value is, through what only moves it; none where it is no sum."""
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
    hint = f"--shape and --inputs give others to verify on, {WITHOUT}"
    with doing(f"the original ran, with inputs of the dims {dims}", runs="onnxruntime", hint=hint):
        return guarded_run(session, names, feed, seconds, memory)


def _attempt(
    runner: Any,
    names: Sequence[str],
    feed: Mapping[str, Any],
    seconds: float | None,
    drawn: Mapping[str, Any] | None = None,
) -> list[list[Any]]:
    """One more run, or none where it is refused or takes too long: it is only there to learn from."""
    from igniter.runtime.verification.guard import TooMuch

    try:
        if isinstance(runner, Original):
            return [runner.run_again({k: v for k, v in feed.items() if k not in (drawn or {})}, drawn or {}, seconds)]
        return [_run_original(runner, names, feed, seconds)]
    except TooMuch:
        return []
    except Exception:
        # Inputs at the edge of what the model takes: an index that a nudge moves over it, say.
        return []


def nudged_feed(feed: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    """Every float input one unit in the last place up or down, zeros as they are; `None` where there are no floats."""
    import numpy as np

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
    """ORT's level without graph optimisations."""
    import onnxruntime

    ort: Any = onnxruntime
    return ort.GraphOptimizationLevel.ORT_DISABLE_ALL


_MEANS = frozenset(("Mean", "ReduceMean"))


def _is_sigmoid(name: str, graphs: Sequence[onnx.GraphProto]) -> bool:
    """Whether a value is a sigmoid, through what moves it, means, and branches; `graphs` are those whose values can be
    seen, outermost first."""
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
