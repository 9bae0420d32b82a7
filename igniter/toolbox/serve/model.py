"""The model behind a server: a compiled folder or an ONNX file, in a session of ONNX Runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np

from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.frontend import ort_values
from igniter.runtime.session import make_session, said_by_onnxruntime
from igniter.toolbox.serve.batching import why_not_batched
from igniter.toolbox.serve.tensors import BadRequest, Tensor, check_feed, tensors_of
from igniter.verification.inputs import random_inputs
from igniter.verification.specs import specs_of, symbols_of

Arrays = dict[str, np.ndarray[Any, Any]]


class ServedModel:
    """A session with `threads` threads (0: ONNX Runtime's default), and up to `slots` runs at a time.

    `path` is a compiled folder or an ONNX file. Idle threads of the session do not spin: they would take the CPUs of
    the server's other work.
    """

    def __init__(self, path: str | Path, *, threads: int = 0, slots: int = 1):
        where = Path(path)
        options: dict[str, Any] = {
            "intra_op_num_threads": threads,
            "config": {"session.intra_op.allow_spinning": "0"},
            "log_severity_level": 3,
        }
        self.session: Any = (
            Artifact.load(where).session(**options) if where.is_dir() else make_session(where, **options)
        )
        self.inputs: list[Tensor] = tensors_of(self.session.get_inputs(), "input")
        self.outputs: list[Tensor] = tensors_of(self.session.get_outputs(), "output")
        self._pool = ThreadPoolExecutor(slots, "igniter-serve")

    def run(self, feed: Mapping[str, np.ndarray[Any, Any]]) -> Arrays:
        """Returns the outputs by name; raises `BadRequest` if ONNX Runtime refuses the inputs."""
        check_feed(self.inputs, feed)
        try:
            results = ort_values.run(self.session, feed)
        except Exception as error:  # onnxruntime's errors have no common base
            raise BadRequest(f"the model does not run on these inputs: {said_by_onnxruntime(error)}") from error
        return {t.name: np.asarray(a) for t, a in zip(self.outputs, results, strict=True)}

    async def run_soon(self, feed: Mapping[str, np.ndarray[Any, Any]]) -> Arrays:
        """Runs in a thread, while the event loop takes other requests."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self.run, feed)

    def check_batching(self, sizes: Mapping[str, int], seed: int = 0) -> None:
        """Raises `IgniterError` if requests cannot be joined: the dims forbid it, or a request in a batch has another
        result than alone.

        Two random requests run alone and joined. `sizes` are those of the other symbols, 4 by default.
        """
        why = why_not_batched(self.inputs, self.outputs)
        if why is not None:
            raise IgniterError(f"--batch joins requests along the first dim, but {why}; serve it without --batch")
        specs = specs_of(self.session)
        batch = cast("str", self.inputs[0].dims[0])
        at = {s: sizes.get(s, 4) for s in symbols_of(specs)} | {batch: 1}
        alone = [random_inputs(specs, at, seed=seed + i) for i in range(2)]
        joined = self.run({n: np.concatenate([np.asarray(each[n]) for each in alone]) for n in alone[0]})
        for i, feed in enumerate(alone):
            for name, value in self.run({n: np.asarray(a) for n, a in feed.items()}).items():
                if not _agree(value, joined[name][i : i + 1]):
                    raise IgniterError(
                        f"--batch: output '{name}' of a request in a batch differs from that of the request alone, so "
                        "the model mixes the elements of a batch; serve it without --batch"
                    )


def _agree(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """True if two results are those of one request: equal, or equal to the rounding of another order of sums."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fV" and one.dtype.name != "bfloat16":
        return bool(np.array_equal(one, other))
    bound = {"float16": 1e-2, "bfloat16": 3e-2}.get(one.dtype.name, 1e-4)
    a, b = one.astype(np.float64), other.astype(np.float64)
    scale = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
    return bool(np.allclose(a, b, rtol=0.0, atol=bound * scale, equal_nan=True))
