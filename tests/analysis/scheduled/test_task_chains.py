"""How far threads can share kernels and models, on paper."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from xdsl.parser import Parser

import igniter
from igniter.analysis.machine import MachineModel
from igniter.compiler.compilation import CompileOptions
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp
from igniter.schedules.task_chains import KernelTasks, TaskWork, kernel_tasks
from igniter.toolbox.plan.compiled import compiled_programs
from igniter.toolbox.plan.threads import THREADS, ThreadPlan, thread_plan

TEXT = """
loop.func @k symbols [n] (%x : memref<?xf32, #sym.dims<n>>, %y : memref<?xf32, #sym.dims<n>>) outputs 1 {
  loop.for a = 0 to 3 {
    %u = loop.load %x[a] : f32
    loop.store %u, %y[a]
  }
  loop.for r = 0 to 2 sequential {
    loop.for i = 0 to n threads(4) {
      %v = loop.load %x[i] : f32
      loop.store %v, %y[i]
    }
  }
}
"""


def tasks_of(text: str) -> KernelTasks:
    module = Parser(IgniterContext(), text).parse_module()
    (func,) = (op for op in module.ops if isinstance(op, FuncOp))
    found = kernel_tasks(func, MachineModel())
    assert found is not None
    return found


def test_loops_of_tasks_and_the_rest() -> None:
    tasks = tasks_of(TEXT)
    machine = MachineModel()
    body = 2 * machine.access_cycles
    work = tasks.at({"n": 10})
    assert work.alone == 3 * body + machine.loop_cycles
    assert work.loops == ((2, 10, 4, body),)
    assert work.total == work.alone + 2 * 10 * body
    # Tasks of 4, 4 and 2 iterations.
    assert [work.on(n) - work.alone for n in (2, 3, 8)] == [2 * 6 * body, 2 * 4 * body, 2 * 4 * body]
    assert work.chain == work.alone + 2 * 4 * body
    assert tasks.at({"n": 0}).total == work.alone
    assert tasks.at({"n": 3}).on(8) == work.alone + 2 * 3 * body


def test_tasks_are_json() -> None:
    tasks = tasks_of(TEXT)
    assert KernelTasks.from_dict(tasks.to_dict()) == tasks


def test_no_number_of_threads_beats_the_chain_or_the_work() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        loops = tuple(tuple(int(n) for n in rng.integers(1, 70, 4)) for _ in range(3))
        work = TaskWork(int(rng.integers(0, 1000)), loops)  # type: ignore[arg-type]
        times = [work.on(n) for n in range(1, 130)]
        assert times == sorted(times, reverse=True)
        assert times[-1] == work.chain
        assert all(n * time >= work.total for n, time in enumerate(times, 1))


def planned(model: bytes, sizes: dict[str, int], **options: object) -> ThreadPlan | None:
    c, programs = compiled_programs(igniter.load(model), CompileOptions(**options))  # type: ignore[arg-type]
    return thread_plan(c, programs, sizes)


def products(count: int) -> bytes:
    """A chain of products with a symbolic number of rows."""
    nodes, weights, value = [], [], "x"
    for k in range(count):
        weights.append(helper.make_tensor(f"w{k}", TensorProto.FLOAT, [96, 96], np.full(96 * 96, 0.01, np.float32)))
        nodes += [
            helper.make_node("MatMul", [value, f"w{k}"], [f"m{k}"]),
            helper.make_node("Softmax", [f"m{k}"], [f"s{k}"]),
        ]
        value = f"s{k}"
    port = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "products",
        [port("x", TensorProto.FLOAT, ["n", 96])],
        [port(value, TensorProto.FLOAT, ["n", 96])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return model.SerializeToString()


@pytest.mark.parametrize("target", ["x86-64-v3", "aarch64"])
def test_a_model_is_the_sum_of_its_calls(target: str) -> None:
    few, many = (planned(products(2), {"n": n}, target=target) for n in (1, 4096))
    assert few is not None and many is not None
    assert [k.kernel for k in few.kernels] == [k.kernel for k in many.kernels]
    gains = [many.gain(n) for n in THREADS]
    assert gains == sorted(gains) and gains[0] > 1.9 and gains[-1] <= 1 / many.chain + 1e-9
    assert many.chain < few.chain and few.gain(32) < gains[-1]


@pytest.mark.slow
def test_a_gpu_has_no_plan_of_threads() -> None:
    assert planned(products(1), {"n": 8}, target="cuda:sm_80") is None
