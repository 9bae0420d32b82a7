"""Runs every verb of the installed command line once, and `igniter-opt`; `python verbs.py` in a folder with the models.

`python verbs.py VERB...` runs some verbs alone, `python verbs.py --extra link` what needs an extra.

The verbs are those that the installed command says it has: one that is not here is a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

SCRIPTS = Path(sys.executable).parent


@dataclass(frozen=True)
class Run:
    """One command line, and what it has to print."""

    arguments: str
    prints: str = ""
    extra: str = ""
    """The extra without whose package (`package`) it says how to get it."""
    package: str = ""
    exit: int = 0


VERBS = {
    "compile": [Run("compile model.onnx -o out.igniter --profile", "verified")],
    "verify": [
        Run("verify out.igniter --shape rows=3", "error"),
        Run("verify out.igniter --every-value --inputs samples.npz", "region"),
    ],
    "inspect": [Run("inspect out.igniter", "igniter"), Run("inspect model.onnx", "rows")],
    "bench": [
        Run("bench out.igniter --rounds 2 --shape rows=4", "ms"),
        Run("bench out.igniter --profile --shape rows=4", "by kernel"),
    ],
    "kernel": [Run("kernel product.onnx --rounds 2 --asm", "GFLOP/s")],
    "view": [Run("view model.onnx -o view.html"), Run("view product.onnx -o view.dot")],
    "machine": [Run("machine -o machine.json")],
    "schedule": [Run("schedule cite")],
    "explain": [
        Run("explain out.igniter out.igniter --rounds 2 --shape rows=4 --reference model.onnx", "A from itself")
    ],
    "reduce": [
        Run("reduce model.onnx -o small.onnx --check-command 'igniter inspect {} | grep -q Softmax'", "candidates"),
    ],
    "experiment": [Run("experiment --list", "Ablation of fusion")],
    "tune": [Run("tune product.onnx --trials 2 --rounds 2", "", "tune", "optuna")],
    "demo": [Run("demo --layers 1 --rounds 2", "speedup")],
    "shapes": [Run("shapes model.onnx --verify", "rows")],
    "profile": [Run("profile model.onnx --sizes rows=8 --device native", "MatMul")],
    "plan": [Run("plan model.onnx --compiled --sizes rows=8 --chart plan.svg")],
    "diff": [
        Run("diff model.onnx changed.onnx", "probabilities", exit=1),
        Run("diff model.onnx model.onnx --run --shape rows=2"),
    ],
    "report": [Run("report model.onnx -o report.html --shape rows=4", "report.html")],
    "edit": [Run("edit model.onnx -o edited.onnx --rename x=tokens --opset 18", "edited.onnx")],
    "extract": [Run("extract model.onnx --from h --to g -o part.onnx", "part.onnx")],
    "fuse": [Run("fuse model.onnx --pattern gelu -o fused.onnx", "1 instance")],
    "compress": [Run("compress model.onnx -o int8.onnx --weights int8 --min-elements 16", "int8.onnx")],
    "quantize": [Run("quantize model.onnx -o q.onnx --data samples.npz", "q.onnx")],
    "split": [Run("split model.onnx -o stages --stages 2", "stages")],
    "run-stages": [Run("run-stages stages --shape rows=4 --items 2 --reference model.onnx")],
    "generate": [Run("generate model.onnx --ids 1,2", "it is no decoder", exit=1)],
    "serve": [
        Run("serve stages --ray local --shape rows=4 --items 2 --reference model.onnx", "", "ray", "ray"),
        Run("serve out.igniter --triton repository", "repository/out"),
    ],
    "torch": [Run("torch module.py:made", "", "torch", "torch")],
    "doctor": [Run("doctor", "end to end")],
    "completion": [Run("completion bash", "igniter"), Run("completion zsh"), Run("completion fish")],
}
"""Command lines by verb, in an order in which each finds what it works on."""

OTHERS = [
    Run("igniter-opt model.onnx -p cpu-onnx,cpu-fusion,cpu-loop --emit=mlir -o kernels.mlir"),
    Run("igniter-opt model.onnx -p cpu-onnx,cpu-fusion --check-each --emit=none"),
    Run("python -m igniter.tools.demo_model --layers 1 demo.onnx"),
]

EXTRAS = {
    # No linker is on the path, so that the one of the extra links, for this machine and for another.
    "link": [
        Run(f"PATH={SCRIPTS} igniter compile model.onnx -o linked.igniter --no-cache", "verified"),
        Run("igniter compile model.onnx -o arm.igniter --target=aarch64 --no-verify", "arm.igniter"),
        Run(f"PATH={SCRIPTS} igniter doctor", "ziglang"),
    ],
    "triton": [
        Run("igniter compile model.onnx -o gpu.igniter --target=cuda --no-verify", "gpu.igniter"),
        Run("igniter-opt model.onnx -p cuda --target=cuda --emit=asm", ".visible .entry"),
    ],
    "serve": [
        Run(
            "igniter serve model.onnx --port 8191 & server=$!; python -c 'import time, urllib.request\n"
            "for attempt in range(120):\n"
            "    try:\n"
            '        print(urllib.request.urlopen("http://127.0.0.1:8191/v2/models/model").read().decode())\n'
            "        break\n"
            "    except OSError:\n"
            "        time.sleep(0.5)'; kill -INT $server; wait $server",
            "onnxruntime_onnx",
        ),
    ],
    "prove": [
        Run(
            "igniter-opt model.onnx -p cpu-onnx,cpu-fusion,cpu-loop,choose-schedule,lower-to-loops --check-each=prove",
            "proven",
        ),
    ],
}
"""Command lines by the extra that they need."""


def offered() -> set[str]:
    """The verbs that the installed command has."""
    import typer

    from igniter.tools.main import app

    return set(typer.main.get_command(app).commands)


def failure(run: Run) -> str:
    """Why a command line did not do what it should; "" where it did."""
    missing = bool(run.package) and find_spec(run.package) is None
    line = f"igniter {run.arguments}" if any(run in runs for runs in VERBS.values()) else run.arguments
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    out = done.stdout + done.stderr
    wanted = f"onnx-igniter[{run.extra}]" if missing else run.prints
    code = 1 if missing else run.exit
    faults = [f"exit status {done.returncode}, not {code}"] if done.returncode != code else []
    faults += [f"it does not print {wanted!r}"] if wanted not in "".join(out.split("\n")) else []
    faults += ["it prints a traceback"] if "Traceback (most recent call last)" in out else []
    return f"{', '.join(faults)}\n{out[-3000:]}" if faults else ""


def chosen(asked: list[str]) -> list[Run]:
    """All command lines, those of the verbs that are named, or those of an extra."""
    if asked[:1] == ["--extra"]:
        return EXTRAS[asked[1]]
    if asked:
        return [run for verb in asked for run in VERBS[verb]]
    return [*(run for runs in VERBS.values() for run in runs), *OTHERS]


def main(asked: list[str]) -> int:
    # The scripts of this environment, under their own names, with nothing of another one.
    os.environ["PATH"] = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
    os.environ["COLUMNS"] = "200"
    unknown, missing = set(VERBS) - offered(), offered() - set(VERBS)
    faults = [f"there is no verb {name!r} any more" for name in sorted(unknown)]
    faults += [
        f"the verb {name!r} is not run here: add it to VERBS in {Path(__file__).name}" for name in sorted(missing)
    ]
    runs = chosen(asked)
    for run in runs:
        start = time.monotonic()
        why = failure(run)
        print(f"{'FAILED' if why else 'ok':6} {time.monotonic() - start:5.1f} s  {run.arguments}", flush=True)
        if why:
            faults.append(f"{run.arguments}: {why}")
    print(*faults, sep="\n")
    print(f"{len(runs)} command lines, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
