"""A small model, compiled, loaded and compared, in a process of its own: `python -m igniter.toolbox.doctor.trial`.

It prints each step before it begins, and then its result, as lines of JSON. If native code crashes it, the last line
names the step.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from igniter.toolbox.doctor import Finding

GROUP = "end to end"
SECONDS = 180.0
"""The time limit in seconds, well above the time to compile two small kernels on any machine."""

MODEL = """
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<rows, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x2xf32, [WEIGHTS]>} : () -> tensor<4x2xf32>
    %0 = onnx.Relu(%x) : (tensor<?x4xf32, #sym.dims<rows, 4>>) -> tensor<*xf32>
    %1 = onnx.MatMul(%0, %w) : (tensor<*xf32>, tensor<4x2xf32>) -> tensor<*xf32>
    %y = onnx.Softmax(%1) {axis = -1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
"""
WEIGHTS = (1.0, 2.0, -0.5, 0.25, 3.0, 0.5, -1.0, 1.5)
"""The weights of the model, by rows."""


def end_to_end(seconds: float = SECONDS) -> Iterator[Finding]:
    """Runs the steps of `igniter compile` and of a deployed model in another process."""
    start = time.perf_counter()
    done = in_another_process(["-m", "igniter.toolbox.doctor.trial"], seconds)
    took = time.perf_counter() - start
    if done is None:
        yield Finding(GROUP, "a model", "problem", f"compiling a small model did not end within {seconds:g} seconds")
        return
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    last: dict[str, str] = lines[-1] if lines else {}
    if last.get("step") == "done":
        yield Finding(GROUP, "a model", "ok", f"{last['says']}, in {took:.1f} s")
        return
    why = last.get("error") or ended(done)
    do = "see the lines above; if all of them are ok, please report it with what `igniter doctor --json` prints"
    yield Finding(GROUP, "a model", "problem", f"failed at {last.get('step', 'starting Python')}: {why}", do)


def in_another_process(arguments: list[str], seconds: float) -> subprocess.CompletedProcess[str] | None:
    """Runs this Python with other arguments; returns None on a timeout."""
    try:
        return subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return None


def ended(done: subprocess.CompletedProcess[str] | None) -> str:
    """Describes the end of a process that failed."""
    if done is None:
        return "it does not end"
    if done.returncode < 0:
        return f"the process ended by {signal.Signals(-done.returncode).name}"
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def main() -> None:
    """Runs the steps, and prints each before it begins."""
    step = ""

    def begin(name: str) -> None:
        nonlocal step
        step = name
        print(json.dumps({"step": name}), flush=True)

    try:
        says = _try(begin)
    except Exception as error:  # the parent process reports any error, with the step
        print(json.dumps({"step": step, "error": f"{type(error).__name__}: {error}"}), flush=True)
        raise SystemExit(1) from None
    print(json.dumps({"step": "done", "says": says}), flush=True)


def _try(begin: Callable[[str], None]) -> str:
    begin("importing numpy")
    import numpy as np

    begin("importing onnx")
    import onnx  # noqa: F401  # pyright: ignore[reportUnusedImport]

    begin("importing onnxruntime")
    import onnxruntime  # noqa: F401  # pyright: ignore[reportUnusedImport]

    begin("importing igniter")
    import igniter

    with tempfile.TemporaryDirectory(prefix="igniter-doctor-") as folder:
        begin("compiling a model")
        module = igniter.parse(MODEL.replace("WEIGHTS", ", ".join(map(str, WEIGHTS))), "the model of the doctor")
        artifact = module.compile(Path(folder) / "model.igniter", verify=False, cache=False)
        regions = int(artifact.report["regions"])
        if not regions or not artifact.libraries:
            raise RuntimeError("no node of it was compiled")
        begin("loading it in ONNX Runtime")
        session = artifact.session(intra_op_num_threads=1)
        begin("running it")
        x = np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32)
        outputs = cast("list[Any]", session.run(None, {"x": x}))
        begin("comparing it with ONNX Runtime")
        verification = artifact.verify(reference=module.to_onnx().SerializeToString())
        if verification.status != "passed":
            raise RuntimeError("; ".join(verification.failures) or verification.status)
        powers = np.exp(np.maximum(x, 0) @ np.reshape(WEIGHTS, (4, 2)))
        if not np.allclose(outputs[0], powers / powers.sum(-1, keepdims=True), atol=1e-6):
            raise RuntimeError("it agrees with ONNX Runtime, and both are wrong")
    cases = len(verification.cases)
    return f"compiled ({regions} region{'s' * (regions != 1)}), loaded, and equal to ONNX Runtime at {cases} sizes"


if __name__ == "__main__":
    main()
