"""`python -m tests.backends.triton.transcript model.onnx [--shape n=5,m=3]`: what a driver is asked for by a model that
is compiled for GPUs: when a session is made, in a run, and when it ends. Launches are computed in Triton's interpreter,
and the results compared with ONNX Runtime's."""

from __future__ import annotations

import argparse
import gc
from pathlib import Path
from typing import Any

import numpy as np

import igniter
from igniter.compiler.compilation import CompileOptions
from igniter.runtime.session import make_session
from igniter.verification.graph_facts import model_facts
from igniter.verification.original import Original
from igniter.verification.verify import typical_inputs
from tests.backends.triton.recording_driver import RecordingDriver, knowing


class PrintingDriver(RecordingDriver):
    """Prints what it is asked for."""

    def answer(self, name: str, *args: Any) -> int:
        code = super().answer(name, *args)
        said = ""
        if name == "cuLaunchKernel" and self.launches:
            last = self.launches[-1]
            said = f"{last.kernel} grid {last.grid} threads {last.threads} shared {last.shared} stream {last.stream:#x}"
        elif name == "cuModuleLoadData" and self.modules:
            made = self.modules[max(self.modules)]
            said = f"{made.label} ({', '.join(made.signature)})"
        elif name == "cuFuncSetAttribute":
            said = f"shared memory of {args[2]} bytes"
        print(f"  {name:30}{said}" + (f" gives {code}" if code else ""))
        return code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--shape", default="", help="sizes of symbols")
    args = parser.parse_args()
    driver = PrintingDriver()
    fixed = {k: int(v) for k, v in (pair.split("=") for pair in args.shape.split(",") if pair)}
    with knowing(driver):
        options = CompileOptions(target="cuda", provider="CPUExecutionProvider")
        artifact = igniter.load(args.model).compile(options=options, cache=False, verify=False)
    report = artifact.report
    print(f"{report['nodes_before']} nodes became {report['nodes_after']}, {report['kernels']} kernels")
    original = Original(str(args.model))
    sizes, feed = typical_inputs(original, model_facts(args.model), fixed, small=True)
    print("a session is made:")
    session: Any = artifact.session()
    print(f"a run at {sizes}:")
    found = session.run(None, feed)
    wanted: Any = make_session(args.model).run(None, feed)
    print("the session ends:")
    del session
    gc.collect()
    errors = [float(np.max(np.abs(f - w), initial=0)) for f, w in zip(found, wanted, strict=True)]
    print(f"{len(driver.launches)} launches; largest differences {errors}; {len(driver.modules)} modules are left")


if __name__ == "__main__":
    main()
