"""One system under measurement, in a process of its own: `python -m igniter.runtime.timing_worker`.

Reads pickled requests from standard input and answers on the original standard output: the first is a `System`, each
further one a number of runs to time, or a request for the peak memory or the outputs. Standard output is redirected to
standard error, so that output of a library cannot mix with the answers.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from igniter.frontend.ort_values import run as run_session
from igniter.frontend.ort_values import runner, typed
from igniter.memory import peak_memory
from igniter.registry import load
from igniter.runtime.session import make_session, onnxruntime_package
from igniter.runtime.timing import PEAK_MEMORY, Runnable, System


def main() -> None:
    requests: IO[bytes] = sys.stdin.buffer
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        system: System = pickle.load(requests)
        loaded = _prepare(system)
        _answer(answers, "ready")
        while True:
            try:
                asked: int | str = pickle.load(requests)
            except EOFError:
                return
            if isinstance(asked, int):
                _answer(answers, _time(loaded.run, asked))
            else:
                _answer(answers, peak_memory() if asked == PEAK_MEMORY else loaded.outputs())
    except Exception as error:  # the parent process raises any error
        _answer(answers, error if isinstance(error, RuntimeError) else RuntimeError(f"{type(error).__name__}: {error}"))


@dataclass(frozen=True)
class _Session:
    """A model in ONNX Runtime."""

    run: Callable[[], object]
    outputs: Callable[[], list[Any]]


def _prepare(system: System) -> Runnable:
    if system.entry:
        loaded: Runnable = load(system.entry)(system)
    else:
        loaded = _in_ort(system)
    loaded.run()
    return loaded


def session_of(system: System, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns a session of ONNX Runtime for a system, and its inputs."""
    session = make_session(
        system.model,
        system.libraries,
        intra_op_num_threads=system.threads,
        inter_op_num_threads=1,
        # A warning in each run would take time.
        log_severity_level=3,
        # Spinning threads slow the next run, above all the other system's.
        config={"session.intra_op.allow_spinning": "1" if system.spinning else "0"},
        **options,
    )
    with np.load(system.inputs) as stored:
        return session, typed(session, {name: stored[name] for name in stored.files})


def _in_ort(system: System) -> Runnable:
    session, inputs = session_of(system, _typed(system.settings))
    return _Session(runner(session, inputs), lambda: run_session(session, inputs))


def _typed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options of a session; levels and modes may be given by name, `ORT_ENABLE_BASIC`."""
    kinds = {"graph_optimization_level": "GraphOptimizationLevel", "execution_mode": "ExecutionMode"}
    made = dict(settings)
    for name, kind in kinds.items():
        if isinstance(made.get(name), str):
            values = getattr(onnxruntime_package(), kind).__members__
            if made[name] not in values:
                raise RuntimeError(f"{name} is '{made[name]}'; it must be one of {', '.join(values)}")
            made[name] = values[made[name]]
    return made


def _time(run: Callable[[], object], runs: int) -> list[float]:
    run()
    seconds: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds


def _answer(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream)
    stream.flush()


if __name__ == "__main__":
    main()
