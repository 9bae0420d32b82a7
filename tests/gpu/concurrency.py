"""Concurrent runs in ONNX Runtime's CUDA provider: every run of a session must give the same bits, whatever else runs.

    python -m tests.gpu.concurrency FOLDER [FOLDER ...] [--original MODEL] [--threads 1,2,8] [--runs 100]

`FOLDER` is compiled with `--target=cuda`; the original is a control. The checks need numpy and ONNX Runtime alone, so
they also run on a machine where Igniter is not installed. Exit status: 0 when no run of a compiled folder differs, 1
when one does, 77 without the CUDA provider.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

ort: Any = onnxruntime
PROVIDER = "CUDAExecutionProvider"
NO_PROVIDER = 77

TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
INTEGERS_BELOW = 90
"""Random integers stay below this bound, which is inside of the vocabularies of the models of `benchmark`."""


def session_of(model: Path, **options: str) -> Any:
    """A session on the GPU of a compiled folder or of a model; `options` are the CUDA provider's."""
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    if model.is_dir():
        for library in sorted(model.glob("*.so")):
            settings.register_custom_ops_library(str(library))
        model = model / "model.onnx"
    providers = [(PROVIDER, options), "CPUExecutionProvider"]
    return ort.InferenceSession(str(model), settings, providers=providers)


def feed_of(session: Any, seed: int, size: int = 64) -> dict[str, np.ndarray]:
    """Random inputs; every symbolic dim has `size`, but for a batch, which is 2."""
    rng = np.random.default_rng(seed)
    feed: dict[str, np.ndarray] = {}
    for each in session.get_inputs():
        shape = [d if isinstance(d, int) else 2 if d in ("batch", "N", "n") else size for d in each.shape]
        if "int" in each.type:
            made: Any = rng.integers(0, INTEGERS_BELOW, shape)
        elif "bool" in each.type:
            made = np.ones(shape, bool)
        else:
            made = rng.standard_normal(shape)
        feed[each.name] = made.astype(TYPES[each.type])
    return feed


RUNS_BEFORE_GRAPH = 3
"""ONNX Runtime captures a graph in one of a thread's first runs, and replays it in the later ones of that thread."""


@dataclass(frozen=True)
class Work:
    """One caller of a session: what it runs, and what every run must give."""

    run: Callable[[], list[np.ndarray]]
    want: list[np.ndarray]
    first: int = 0
    """How many runs of its thread come before those of the others. CUDA refuses to capture a graph while another
    thread synchronises the device, whoever made the kernels."""


def plain(session: Any, feed: dict[str, np.ndarray]) -> Work:
    """Runs whose inputs and outputs are copied from and to the host."""
    run = lambda: session.run(None, feed)
    return Work(run, run())


def bound(session: Any, feed: dict[str, np.ndarray], want: list[np.ndarray]) -> Work:
    """Runs by IO binding: inputs and outputs stay on the GPU, and the outputs are read after each run.

    `want` comes from another session: with CUDA graphs, the first runs of a session fix the addresses that it uses.
    """
    binding = session.io_binding()
    inputs = {name: ort.OrtValue.ortvalue_from_numpy(value, "cuda", 0) for name, value in feed.items()}
    results = [ort.OrtValue.ortvalue_from_numpy(np.zeros_like(each), "cuda", 0) for each in want]
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    for each, value in zip(session.get_outputs(), results, strict=True):
        binding.bind_ortvalue_output(each.name, value)

    def run() -> list[np.ndarray]:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        assert inputs  # they live as long as the binding
        return [value.numpy() for value in results]

    return Work(run, want, RUNS_BEFORE_GRAPH)


def differing(works: Sequence[Work], runs: int) -> int:
    """The number of runs with wrong results, with one thread for each work, all at once."""
    bad: list[BaseException | None] = []
    start, alone = threading.Barrier(len(works)), threading.Lock()

    def go(work: Work) -> None:
        with alone:
            for _ in range(work.first):
                work.run()
        start.wait()
        for _ in range(runs):
            try:
                same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(work.run(), work.want, strict=True))
            except Exception as error:
                print(f"    {error}")
                bad.append(error)
            else:
                if not same:
                    bad.append(None)

    threads = [threading.Thread(target=go, args=(work,)) for work in works]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return len(bad)


def settings_of(folders: Sequence[Path], threads: Sequence[int]) -> list[tuple[str, list[Work]]]:
    """Every setting that is tried, with the works of its threads."""
    found: list[tuple[str, list[Work]]] = []
    sessions = {folder: session_of(folder) for folder in folders}
    for folder, session in sessions.items():
        feeds = [feed_of(session, seed) for seed in range(max(threads))]
        for count in threads:
            works = [plain(session, feeds[0]) for _ in range(count)]
            found.append((f"{folder.name}: one session, {count} threads, one input", works))
        most = max(threads)
        found.append((f"{folder.name}: one session, {most} threads, {most} inputs", [plain(session, f) for f in feeds]))
        wants = [session.run(None, feed) for feed in feeds]
        works = [bound(session, feed, want) for feed, want in zip(feeds, wants, strict=True)]
        found.append((f"{folder.name}: one session, {most} threads, IO binding", works))
        others = [session_of(folder) for _ in range(3)]
        works = [plain(each, feed) for each in others for feed in feeds[:2]]
        found.append((f"{folder.name}: 3 sessions, 2 threads each", works))
        graphs = [session_of(folder, enable_cuda_graph="1") for _ in range(2)]
        works = [bound(each, feeds[k], wants[k]) for k, each in enumerate(graphs)]
        found.append((f"{folder.name}: 2 sessions with CUDA graphs, a thread each", works))
    if len(sessions) > 1:
        works = [plain(session, feed_of(session, k)) for k in range(2) for session in sessions.values()]
        found.append(("all folders at once, 2 threads each", works))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--original", type=Path, action="append", default=[])
    parser.add_argument("--threads", default="1,2,8")
    parser.add_argument("--runs", type=int, default=100)
    args = parser.parse_args()
    if PROVIDER not in ort.get_available_providers():
        print(f"there is no {PROVIDER}")
        return NO_PROVIDER
    threads = [int(count) for count in args.threads.split(",")]
    wrong = 0
    for compiled, models in ((True, args.folders), (False, args.original)):
        for label, works in settings_of(models, threads):
            count = differing(works, args.runs)
            kind = "" if compiled else " (original)"
            print(f"{label}{kind}: {count} of {len(works) * args.runs} runs differ", flush=True)
            wrong += count * compiled
    return int(wrong > 0)


if __name__ == "__main__":
    # PyTorch brings CUDA's libraries, and loads them, where it is installed.
    if importlib.util.find_spec("torch"):
        importlib.import_module("torch")
    sys.exit(main())
