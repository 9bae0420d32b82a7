"""One system under measurement, in a process of its own: `python -m igniter.runtime.timing_worker`.

Reads pickled requests from standard input and answers on the original standard output: the first is a `System`, each
further one a number of runs to time. Standard output is redirected to standard error, so that output of a library
cannot mix with the answers.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from typing import IO

import numpy as np

from igniter.frontend.ort_values import runner, typed
from igniter.runtime.session import make_session
from igniter.runtime.timing import System


def main() -> None:
    requests: IO[bytes] = sys.stdin.buffer
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        system: System = pickle.load(requests)
        run = _prepare(system)
        _answer(answers, "ready")
        while True:
            try:
                runs: int = pickle.load(requests)
            except EOFError:
                return
            _answer(answers, _time(run, runs))
    except Exception as error:
        _answer(answers, error if isinstance(error, RuntimeError) else RuntimeError(f"{type(error).__name__}: {error}"))


def _prepare(system: System) -> Callable[[], object]:
    session = make_session(
        system.model,
        system.libraries,
        intra_op_num_threads=system.threads,
        inter_op_num_threads=1,
        # A warning in each run would take time.
        log_severity_level=3,
        # Spinning threads slow the next run, above all the other system's.
        config={"session.intra_op.allow_spinning": "1" if system.spinning else "0"},
    )
    with np.load(system.inputs) as stored:
        inputs = typed(session, {name: stored[name] for name in stored.files})
    run = runner(session, inputs)
    run()
    return run


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
