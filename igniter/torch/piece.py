"""One part of a graph that runs in ONNX Runtime, compiled at its first call from the arguments of this call.

With the option `background`, the session is made and verified in a thread, and calls are eager until then.

The first call shows the weights among the inputs, and their values. A piece has one session for each set of weights,
because Dynamo runs one graph for all modules of the same structure. Beyond `sets_of_weights` sets, weights are inputs.

* A parameter is frozen again after its first change (a loaded state dict), and an input after the second.
* A buffer or other tensor of a module is an input after its first change. A tensor changed by the graph is always one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from igniter.errors import IgniterError
from igniter.torch.background import later
from igniter.torch.binding import Runner
from igniter.torch.compare import differences
from igniter.torch.faster import Race
from igniter.torch.first_call import copied
from igniter.torch.graphs import Prepared, prepare
from igniter.torch.names import GraphModule, is_tensor, torch
from igniter.torch.options import TorchOptions
from igniter.torch.sessions import make_session
from igniter.torch.statistics import PieceReport, log
from igniter.torch.weights import WeightWatch

PATIENCE = 3
"""The number of calls in a row that must fail in ONNX Runtime before a part with an earlier success stays eager."""


@dataclass
class _Frozen:
    """A session with one set of weights as constants."""

    watch: WeightWatch
    runner: Runner


@dataclass(frozen=True)
class _Plan:
    """A session to make: the inputs that are constants, by name, and the places and names of the others."""

    key: tuple[int, ...]
    weights: tuple[int, ...]
    watch: WeightWatch
    constants: dict[str, Any]
    rest: list[int]
    names: list[str]
    numbers: list[type | None]


class Piece:
    """A functional graph, compiled. It has the same arguments (tensors and numbers) and results as the graph.

    `is_weight` is true for an input of the first call that belongs to a module. The inputs numbered in `never` are
    never frozen. `prepared` is the preparation of the graph, if it is known already.
    """

    def __init__(
        self,
        graph: GraphModule,
        options: TorchOptions,
        report: PieceReport,
        is_weight: Callable[[Any], bool],
        never: Collection[int] = (),
        prepared: Prepared | None = None,
    ):
        self.eager: Any = graph
        self.options = options
        self.report = report
        self._is_weight = is_weight
        self._never = set(never)
        self._lock = threading.RLock()
        self._prepared = prepared
        self._begun = False
        self.keep: Callable[[Prepared, bytes], None] | None = None
        """Receives the exported model, to keep it on disk."""
        self.in_place: dict[int, int] = {}
        """The outputs that update inputs, by number, which a session may write in place."""
        self._parameters: set[int] = set()
        self._weights: list[int] = []
        self._changes: dict[int, int] = {}
        self._frozen: OrderedDict[tuple[int, ...], _Frozen] = OrderedDict()
        self._pending: set[tuple[int, ...]] = set()
        self._checked = False
        self._gave_up = False
        self._failures = 0
        self._race = Race()

    def __call__(self, *args: Any) -> Any:
        if self._gave_up:
            self.report.eager_calls += 1
            return self.eager(*args)
        if self._race.eager_is_faster(args):
            self.report.eager_calls += 1
            return self.eager(*args)
        with self._lock:
            runner = self._runner(args)
        if runner is None:
            self.report.eager_calls += 1
            return self.eager(*args)
        # The first call of a session does extra work, so it is not timed.
        if self._race.settled or not self.options.keep_faster or runner.calls == 0:
            return self._run(runner, args)
        return self._measured(runner, args)

    def _measured(self, runner: Runner, args: Sequence[Any]) -> Any:
        """Times a call in both the compiled part and eager, and returns the result."""
        result = self._race.run(lambda: self._run(runner, args), lambda: self.eager(*args), args)
        if self._race.settled:
            self.report.reason = ""
        elif reason := self._race.reason:
            self.report.leave(reason)
        return result

    def _run(self, runner: Runner, args: Sequence[Any]) -> Any:
        assert self._prepared is not None
        before = runner.copied_inputs, runner.copied_outputs
        try:
            results = self._results(runner, args)
        except Exception as error:
            # ONNX Runtime's errors have no common base class. The graph is functional, so nothing has changed yet.
            return self._failed(error, args)
        self._failures = 0
        self.report.calls += 1
        self.report.compiled = True
        self.report.copied_inputs += runner.copied_inputs - before[0]
        self.report.copied_outputs += runner.copied_outputs - before[1]
        if not self._checked and self.options.verify:
            return self._check(results, args)
        return results

    def _results(self, runner: Runner, args: Sequence[Any]) -> Any:
        """Returns the results of a run on `args`."""
        assert self._prepared is not None
        everything = self._all(args)
        given = runner([everything[place] for place in runner.places])
        results: Any = tuple(_restored(output, given, everything) for output in self._prepared.outputs)
        if self._prepared.rest is not None:
            return self._prepared.rest(*args, *results)
        return results[0] if self._prepared.single else results

    def _failed(self, error: Exception, args: Sequence[Any]) -> Any:
        """Repeats a failed call in eager.

        The part stays eager if no call has succeeded yet, or after `PATIENCE` failures in a row.
        """
        self._failures += 1
        reason = f"ONNX Runtime failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        if self.report.calls == 0 or self._failures >= PATIENCE:
            return self._give_up(reason, args)
        log.warning("one call is eager: %s", reason)
        self.report.failed_calls += 1
        self.report.eager_calls += 1
        return self.eager(*args)

    def _check(self, results: Any, args: Sequence[Any]) -> Any:
        """Compares the first results with eager's, and returns them if they agree. Otherwise the part stays eager."""
        if wrong := self._difference(results, args):
            return self._give_up(wrong, args)
        self._checked = True
        return results

    def _difference(self, results: Any, args: Sequence[Any]) -> str:
        """Returns how results differ from eager's; empty if they agree. Updates in place are compared by the caller
        (`CheckedCalls`), who has the input before the call."""
        assert self._prepared is not None
        expected = self.eager(*args)
        ours, theirs = ([results], [expected]) if self._prepared.single else (results, expected)
        left = [place for place in range(len(ours)) if place not in self._prepared.in_place]
        rtol = [max(self._prepared.rtol[place], self.options.rtol) for place in left]
        _, wrong = differences([ours[place] for place in left], [theirs[place] for place in left], rtol)
        return f"its results differ from eager: {wrong}" if wrong else ""

    def _give_up(self, reason: str, args: Sequence[Any]) -> Any:
        self._gave_up = True
        self._frozen.clear()
        self.report.leave(reason)
        self.report.eager_calls += 1
        return self.eager(*args)

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _runner(self, args: Sequence[Any]) -> Runner | None:
        """Returns the session for these weights, made if necessary; `None` if it cannot be made."""
        try:
            if not self._begun:
                self._begin(args)
                self._begun = True
            weights = [args[place] for place in self._weights]
            key = tuple(map(id, weights))
            found = self._frozen.get(key)
            if found is not None and found.watch.are(weights):
                if found.watch.unchanged(weights):
                    self._frozen.move_to_end(key)
                    return found.runner
                self._note_changes(found.watch.changed(weights))
            elif self._living() >= self.options.sets_of_weights:
                log.warning("%d sets of weights for one graph: weights are inputs from now on", len(self._frozen))
                self._thaw(self._weights)
            return self._freeze(args)
        except Exception as error:
            # Any error of the exporter, the compiler or the runtime is reported, and the part stays eager.
            if isinstance(error, IgniterError) and "igniter.torch" in error.message:
                raise
            self._gave_up = True
            self.report.leave(_reason(error))
            return None

    def _living(self) -> int:
        """Drops the sessions of freed weights, and returns the number of the others."""
        for key in [key for key, frozen in self._frozen.items() if not frozen.watch.alive()]:
            del self._frozen[key]
        return len(self._frozen)

    def _begin(self, args: Sequence[Any]) -> None:
        self._prepared = self._prepared or prepare(self.eager, self.in_place)
        tensors = [place for place, value in enumerate(args) if is_tensor(value) and place not in self._never]
        if self.options.weights != "inputs":
            self._weights = [place for place in tensors if self._is_weight(args[place])]

    def _note_changes(self, changed: Sequence[int]) -> None:
        """Makes inputs of changed weights, except of parameters at their first change: these are frozen again."""
        again: list[int] = []
        for place in (self._weights[which] for which in changed):
            self._changes[place] = self._changes.get(place, 0) + 1
            again.append(place)
        self._frozen.clear()
        self._thaw([p for p in again if p not in self._parameters or self._changes[p] > 1])

    def _thaw(self, places: Collection[int]) -> None:
        left = set(places)
        self._weights = [place for place in self._weights if place not in left]
        self._frozen.clear()
        self.report.weight_inputs += len(left)

    def _freeze(self, args: Sequence[Any]) -> Runner | None:
        """Makes the session for the weights in `args`. In the background, returns `None` until it is there."""
        plan = self._plan(args)
        if not self.options.background:
            return self._publish(plan, self._make(plan))
        if plan.key not in self._pending:
            self._pending.add(plan.key)
            self.report.pending = True
            # The caller may change its tensors after the call. Weights are watched for changes instead.
            kept = [place in plan.weights for place in range(len(args))]
            copies = copied(args, kept)
            later(lambda: self._make_in_background(plan, copies))
        return None

    def _plan(self, args: Sequence[Any]) -> _Plan:
        assert self._prepared is not None
        inputs = self._prepared.inputs
        values = self._all(args)
        self._parameters = {p for p, value in enumerate(values) if isinstance(value, torch.nn.Parameter)}
        constants = range(len(args), len(values))
        frozen = {p: values[p] for p in (*self._weights, *constants)}
        rest = [p for p, node in enumerate(inputs) if node.used and p not in frozen]
        weights = [args[place] for place in self._weights]
        return _Plan(
            tuple(map(id, weights)),
            tuple(self._weights),
            WeightWatch(weights, self.options.weights == "checked"),
            {inputs[p].name: v for p, v in frozen.items()},
            rest,
            [inputs[p].name for p in rest],
            [inputs[p].number for p in rest],
        )

    def _make(self, plan: _Plan) -> Runner:
        assert self._prepared is not None
        session = make_session(self._prepared, plan.constants, self.options, self.report, self.keep)
        outputs = self._prepared.outputs
        shared = {outputs[place].place: plan.rest.index(k) for place, k in self._prepared.in_place.items()}
        return Runner(session, plan.rest, plan.names, plan.numbers, shared)

    def _publish(self, plan: _Plan, runner: Runner) -> Runner:
        self._frozen[plan.key] = _Frozen(plan.watch, runner)
        self.report.compiled = True
        self.report.sessions += 1
        return runner

    def _make_in_background(self, plan: _Plan, args: Sequence[Any]) -> None:
        """Makes a session, and verifies it on copies of the arguments of the call that needed it."""
        try:
            runner, wrong = self._make(plan), ""
            if self.options.verify and not self._checked:
                # This thread records gradients by default, and the caller does not.
                with torch.no_grad():
                    wrong = self._difference(self._results(runner, args), args)
        except Exception as error:
            # Any error of the exporter, the compiler or the runtime is reported, and the part stays eager.
            runner, wrong = None, _reason(error)
        with self._lock:
            self._pending.discard(plan.key)
            # Weights that became inputs meanwhile need another session, made at the next call.
            current = list(plan.weights) == self._weights
            if not current or self._gave_up:
                pass
            elif runner is None or wrong:
                self._gave_up = True
                self._frozen.clear()
                self.report.leave(wrong)
            else:
                self._checked = True
                self._publish(plan, runner)
            self.report.pending = bool(self._pending)

    def _all(self, args: Sequence[Any]) -> Sequence[Any]:
        assert self._prepared is not None
        return (*args, *self._prepared.constants) if self._prepared.constants else args


def _restored(output: Any, given: Sequence[Any], values: Sequence[Any]) -> Any:
    if output.passed >= 0:
        return values[output.passed]
    if output.place < 0:
        return output.constant
    value = given[output.place]
    if output.number is not None:
        return output.number(value.item())
    return value if output.permuted is None else value.permute(output.permuted)


def _reason(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}".removeprefix("IgniterError: ")
