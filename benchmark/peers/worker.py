"""The process of one peer: `python -m benchmark.peers.worker PEER`.

Reads pickled requests (`protocol.py`) from standard input and answers on what was standard output, which is turned to
standard error, so that nothing a library prints can get between the answers. A model that is loaded replaces the one
before.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from benchmark.peers.protocol import Failed, Load, Loaded, Prepared, Run, Task, Unavailable
from benchmark.peers.systems import SYSTEMS, reason_of


def main() -> None:
    name = sys.argv[1]
    requests: IO[bytes] = sys.stdin.buffer
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # With the task, on whose arrays peers run without keeping them.
    current: tuple[Task, Prepared] | None = None
    with tempfile.TemporaryDirectory(prefix=f"igniter-peer-{name}-") as folder:
        count = 0
        while True:
            try:
                request: Load | Run = pickle.load(requests)
            except EOFError:
                return
            answer: object
            try:
                if isinstance(request, Load):
                    current = None
                    gc.collect()
                    count += 1
                    prepared, answer = _load(name, request.task, Path(folder) / str(count))
                    current = request.task, prepared
                else:
                    assert current is not None
                    answer = _time(current[1], request.times)
            except Unavailable as error:
                answer = Failed(str(error))
            except Exception as error:
                answer = Failed(reason_of(error))
            pickle.dump(answer, answers)
            answers.flush()


def _load(name: str, task: Task, folder: Path) -> tuple[Prepared, Loaded]:
    system = SYSTEMS[name]
    version = system.version()
    if task.precision not in system.precisions:
        raise Unavailable(f"no {task.precision} in this comparison")
    folder.mkdir()
    start = time.perf_counter()
    prepared = system.prepare(task, folder)
    prepared.run()
    seconds = time.perf_counter() - start
    # Copies: the next run writes where the outputs are.
    return prepared, Loaded([o.copy() for o in prepared.outputs()], seconds, version, prepared.note)


def _time(prepared: Prepared, times: int) -> list[float]:
    run = prepared.run
    run()
    seconds: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds


if __name__ == "__main__":
    main()
