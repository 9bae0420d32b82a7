"""`python -m benchmark.launch_cost`: the host's part of a launch, without a GPU and without its driver.

A `libcuda.so.1` whose functions do nothing is loaded in the place of CUDA's driver, and ONNX Runtime runs chains of
launches on the CPU's provider. The difference between long and short chains is what the library does for a launch: the
grid, the parameters, the checks, and a call that returns at once. The driver's own part is measured on a GPU
(`benchmark.on_gpu`: 100 launches).
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

import igniter
from igniter.backends.ort.driver_calls import DRIVER, DRIVER_FUNCTIONS
from igniter.runtime.linker import find_linker
from igniter.targets import backend_for

LENGTHS = (1, 31)
RUNS, ROUNDS = 200, 40

WRITES = {"cuDevicePrimaryCtxRetain", "cuCtxGetCurrent", "cuModuleLoadData", "cuModuleGetFunction"}
"""The functions that give an address, here always the same one."""


def silent_driver(folder: Path) -> Any:
    """Loads a driver that does nothing: the GPU that there seems to be is an sm_80."""
    lines: list[str] = []
    for name in DRIVER_FUNCTIONS:
        body = ["ret i32 0"]
        if name in WRITES:
            body = ["store ptr inttoptr (i64 4096 to ptr), ptr %a", *body]
        elif name == "cuDeviceGetAttribute":
            # The major number is attribute 75.
            body = ["%m = icmp eq i32 %b, 75", "%v = select i1 %m, i32 8, i32 0", "store i32 %v, ptr %a", *body]
        elif name in ("cuDeviceGet", "cuCtxGetDevice"):
            body = ["store i32 0, ptr %a", *body]
        lines += [f"define i32 @{name}(ptr %a, i32 %b) {{", *(f"  {line}" for line in body), "}"]
    cpu = backend_for("native")
    target = cpu.least(cpu.target_of("native"))
    (folder / "driver.o").write_bytes(
        cpu.object_code(f'target triple = "{target.triple}"\n' + "\n".join(lines), target)
    )
    linker = find_linker(target.triple)
    shared = ["-shared", "-nostdlib", f"-Wl,-soname,{DRIVER}"] if linker.driver else ["-shared", "-soname", DRIVER]
    subprocess.run([*linker.command, *shared, "-o", DRIVER, "driver.o"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / DRIVER))


def chain(count: int) -> onnx.ModelProto:
    """So many launches: rows and columns are normalised in turn."""
    names = ["x", *(f"v{k}" for k in range(count))]
    nodes = [helper.make_node("Softmax", [names[k]], [names[k + 1]], axis=k % 2) for k in range(count)]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [64, "n"]) for n in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "chain", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def seconds_a_run(count: int) -> float:
    """Returns the least mean time of a run, with its inputs and outputs bound."""
    options = igniter.CompileOptions(target="cuda", provider="CPUExecutionProvider")
    session: Any = igniter.load(chain(count)).compile(options=options, verify=False).session()
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.zeros((64, 64), np.float32))
    binding.bind_output(session.get_outputs()[0].name)
    rounds: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(RUNS):
            session.run_with_iobinding(binding)
        rounds.append((time.perf_counter() - start) / RUNS)
    return min(rounds)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        driver = silent_driver(Path(folder))
        short, long = (seconds_a_run(count) for count in LENGTHS)
        print(f"a run of {LENGTHS[0]} launch: {short * 1e6:.2f} us, ONNX Runtime's and Python's part included")
        a_launch = (long - short) / (LENGTHS[1] - LENGTHS[0])
        print(f"each further launch, with a driver that does nothing: {a_launch * 1e9:.0f} ns")
        del driver


if __name__ == "__main__":
    main()
