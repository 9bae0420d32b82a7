"""The peers: how each loads a model, with as many threads as it is told, and runs it with its buffers in place.

Each gets what its own users would give it for speed. Igniter and ORT take the model with its dynamic dims; OpenVINO,
IREE, TVM and Inductor take it with the sizes fixed, which suits them better. Where a peer has several ways that no rule
chooses between (`_best`), each is tried and the fastest taken.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.peers.protocol import Arrays, Precision, Prepared, Task, Unavailable
from igniter.distribution import DISTRIBUTION


@dataclass(frozen=True)
class System:
    """A peer: the packages that it needs, the first of which gives its version, and how it loads a model."""

    name: str
    packages: tuple[str, ...]
    prepare: Callable[[Task, Path], Prepared]
    precisions: tuple[Precision, ...] = ("f32",)

    def version(self) -> str:
        """The installed version; `Unavailable` names what is missing."""
        try:
            versions = [importlib.metadata.version(package) for package in self.packages]
        except importlib.metadata.PackageNotFoundError as error:
            raise Unavailable(f"{error.name} is not installed") from None
        return versions[0]


LEFT_TO_ORT = "all of it is left to ONNX Runtime"
"""The note of a model that Igniter compiles nothing of."""


# -- in ONNX Runtime --------------------------------------------------------------------------------------------------


def _igniter(task: Task, folder: Path) -> Prepared:
    import igniter
    from igniter.compiler.compilation import CompileOptions

    options = CompileOptions(precision=task.precision, **task.options)
    artifact = igniter.load(task.model).compile(folder / "model.igniter", options=options, verify=False)
    report = artifact.report
    if not report["regions"]:
        return _in_ort(artifact.session(**_settings(task)), task, LEFT_TO_ORT)
    note = f"{report['nodes_before']} nodes became {report['nodes_after']}, {report['regions']} of them regions"
    return _in_ort(artifact.session(**_settings(task)), task, note)


def _ort(task: Task, folder: Path) -> Prepared:
    from igniter.runtime.session import make_session

    model = task.model if task.precision == "f32" else str(quantised(task.model, folder))
    return _in_ort(make_session(model, **_settings(task)), task)


def _ort_transformers(task: Task, folder: Path) -> Prepared:
    import onnx
    from onnxruntime.transformers.optimizer import optimize_model

    from igniter.runtime.session import make_session

    if not task.family:
        raise Unavailable("it is no transformer")
    model = optimize_model(task.model, model_type=task.family, num_heads=0, hidden_size=0)
    fused = {name: count for name, count in model.get_fused_operator_statistics().items() if count}
    onnx.save_model(model.model, folder / "model.onnx", save_as_external_data=True, location="weights")
    note = ", ".join(f"{count} {name}" for name, count in fused.items()) or "nothing fused"
    return _in_ort(make_session(folder / "model.onnx", **_settings(task)), task, note)


def quantised(model: str, folder: Path) -> Path:
    """The model with its constant right operands in int8 and its activations quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    target = folder / "int8.onnx"
    # ORT's kernels take signed weights per column; fewer bits than 8 are not asked for, so nothing saturates on VNNI.
    quantize_dynamic(model, target, weight_type=QuantType.QInt8, per_channel=True)
    return target


def _settings(task: Task) -> dict[str, Any]:
    config = {"session.intra_op.allow_spinning": "1" if task.spinning else "0"}
    return {"intra_op_num_threads": task.threads, "inter_op_num_threads": 1, "config": config}


def _in_ort(session: Any, task: Task, note: str = "") -> Prepared:
    from onnxruntime import OrtValue

    taken = [i.name for i in session.get_inputs()]
    binding = session.io_binding()
    for name in taken:
        binding.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(task.inputs[name]))
    found = session.run(None, {name: task.inputs[name] for name in taken})
    # The binding does not keep the memory that it writes to; `outputs` does.
    results = [np.empty_like(value) for value in found]
    for output, value in zip(session.get_outputs(), results, strict=True):
        binding.bind_ortvalue_output(output.name, OrtValue.ortvalue_from_numpy(value))
    return Prepared(lambda: session.run_with_iobinding(binding), lambda: results, note)


# -- OpenVINO ---------------------------------------------------------------------------------------------------------


def _openvino(task: Task, folder: Path) -> Prepared:
    import openvino

    model = task.model if task.precision != "int8-dynamic" else str(quantised(task.model, folder))
    core = openvino.Core()
    read = core.read_model(model)
    taken = [port.any_name for port in read.inputs]
    read.reshape({name: list(task.inputs[name].shape) for name in taken})
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": task.threads,
        # On CPUs that have bf16 instructions it would otherwise use them for f32 models.
        "INFERENCE_PRECISION_HINT": "bf16" if task.precision == "bf16" else "f32",
    }
    request = core.compile_model(read, "CPU", settings).create_infer_request()
    for name in taken:
        request.set_tensor(name, openvino.Tensor(np.ascontiguousarray(task.inputs[name]), shared_memory=True))

    def outputs() -> list[np.ndarray]:
        return [request.get_output_tensor(k).data.copy() for k in range(len(read.outputs))]

    return Prepared(request.infer, outputs, "sizes fixed")


# -- IREE -------------------------------------------------------------------------------------------------------------

IREE_FLAGS: dict[str, tuple[str, ...]] = {
    "O3": ("--iree-opt-level=O3",),
    "O3, data tiling": ("--iree-opt-level=O3", "--iree-opt-data-tiling", "--iree-dispatch-creation-data-tiling"),
}


def _iree(task: Task, folder: Path) -> Prepared:
    fixed = fix_sizes(task.model, task.inputs, folder)
    mlir = folder / "model.mlir"
    _command([sys.executable, "-m", "iree.compiler.tools.import_onnx", str(fixed), "-o", str(mlir)])
    return _best((name, lambda f=flags, n=name: _iree_variant(task, mlir, f, n)) for name, flags in IREE_FLAGS.items())


def _iree_variant(task: Task, mlir: Path, flags: tuple[str, ...], name: str) -> Prepared:
    import iree.runtime as rt
    from iree.compiler.tools import compile_file

    target = mlir.with_suffix(f".{name.replace(', ', '-').replace(' ', '-')}.vmfb")
    compile_file(
        str(mlir),
        input_type="onnx",
        target_backends=["llvm-cpu"],
        output_file=str(target),
        # Its rows of 768 in a normalisation need more than the 32 KiB of stack that it allows itself.
        extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-llvmcpu-stack-allocation-limit=131072", *flags],
    )
    rt.flags.parse_flags(f"--task_topology_group_count={task.threads}")
    config = rt.Config("local-sync" if task.threads == 1 else "local-task")
    context = rt.SystemContext(config=config)
    context.add_vm_module(rt.VmModule.mmap(config.vm_instance, str(target)))
    function = _entry(context)
    arguments = [rt.asdevicearray(config.device, value) for value in _graph_inputs(task)]
    last: list[Any] = []

    def run() -> None:
        last[:] = [function(*arguments)]

    def outputs() -> list[np.ndarray]:
        found = last[0] if isinstance(last[0], tuple | list) else [last[0]]
        return [np.asarray(value.to_host()) for value in found]

    return Prepared(run, outputs, f"sizes fixed, {name}")


def _entry(context: Any) -> Any:
    """The one function of a model's module that can be called and waits for its results."""
    module = context.modules.module
    names = [n for n in module.vm_module.function_names if not n.startswith("__") and not n.endswith("$async")]
    return module[names[0]]


# -- TVM --------------------------------------------------------------------------------------------------------------


def _tvm(task: Task, folder: Path) -> Prepared:
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load(fix_sizes(task.model, task.inputs, folder))
    target = tvm.target.Target.from_device(tvm.cpu())
    module = from_onnx(model, {name: list(value.shape) for name, value in task.inputs.items()})
    with target:
        built = tvm.compile(relax.get_pipeline("zero")(module), target=target)
    machine = relax.VirtualMachine(built, tvm.cpu())
    arguments = [tvm.runtime.tensor(value) for value in _graph_inputs(task)]
    last: list[Any] = []

    def run() -> None:
        last[:] = [machine["main"](*arguments)]

    def outputs() -> list[np.ndarray]:
        found = last[0] if hasattr(last[0], "__len__") and not hasattr(last[0], "numpy") else [last[0]]
        return [value.numpy() for value in found]

    return Prepared(run, outputs, "sizes fixed, not tuned")


# -- torch ------------------------------------------------------------------------------------------------------------


def _inductor(task: Task, folder: Path) -> Prepared:
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
    # On x86 with sizes known, Inductor packs f32 weights for MKL, which is slow on some CPUs; for a dynamic number of
    # rows it takes oneDNN.
    variants = {"MKL": False, "oneDNN": True} if task.precision == "f32" else {"oneDNN": False}
    return _best((name, lambda d=dynamic, n=name: _inductor_variant(task, d, n)) for name, dynamic in variants.items())


def _inductor_variant(task: Task, dynamic: bool, name: str) -> Prepared:
    import torch
    import torch._inductor.config as config

    torch._dynamo.reset()
    config.freezing = True
    module, arguments = _torch_module(task)
    compiled = torch.compile(module, dynamic=dynamic)
    return _in_torch(compiled, arguments, f"sizes {'dynamic' if dynamic else 'fixed'}, {name}")


def _torch_eager(task: Task, folder: Path) -> Prepared:
    return _in_torch(*_torch_module(task), "")


def _torch_module(task: Task) -> tuple[Any, list[Any]]:
    import torch

    torch.set_num_threads(task.threads)
    if not task.torch:
        raise Unavailable("there is no torch module of this model")
    place, *arguments = task.torch
    file, _, function = place.partition(":")
    module = getattr(importlib.import_module(file), function)(*arguments)
    inputs = [torch.from_numpy(np.ascontiguousarray(value)) for value in task.inputs.values()]
    if task.precision == "bf16":
        return module.to(torch.bfloat16), [i.to(torch.bfloat16) if i.is_floating_point() else i for i in inputs]
    return module, inputs


def _in_torch(module: Any, arguments: list[Any], note: str) -> Prepared:
    import torch

    last: list[Any] = []

    def run() -> None:
        with torch.inference_mode():
            last[:] = [module(*arguments)]

    def outputs() -> list[np.ndarray]:
        found = last[0] if isinstance(last[0], tuple | list) else [last[0]]
        return [(v.float() if v.dtype == torch.bfloat16 else v).numpy() for v in found]

    return Prepared(run, outputs, note)


# -- what several share -----------------------------------------------------------------------------------------------


def _best(variants: Iterable[tuple[str, Callable[[], Prepared]]]) -> Prepared:
    """The fastest of several ways to build the same model; those that fail are left out unless all do."""
    found: list[tuple[float, str, Prepared]] = []
    failures: list[str] = []
    for name, prepare in variants:
        try:
            prepared = prepare()
            prepared.run()
            times: list[float] = []
            for _ in range(5):
                start = time.perf_counter()
                prepared.run()
                times.append(time.perf_counter() - start)
            found.append((min(times), name, prepared))
        except Exception as error:
            failures.append(f"{name}: {reason_of(error)}")
    if not found:
        raise Unavailable("; ".join(failures))
    _, _, best = min(found, key=lambda entry: entry[0])
    tried = ", ".join(f"{name} {1000 * seconds:.3g} ms" for seconds, name, _ in found)
    return Prepared(best.run, best.outputs, f"{best.note} (tried: {tried})")


def fix_sizes(model: str | Path, inputs: Arrays, folder: Path) -> Path:
    """The model with the sizes of the inputs in place of its symbolic dims, and what follows from them folded.

    ORT's basic level does that and stays within ONNX's own ops. Weights are in one file beside the model.
    """
    import onnx
    import onnxruntime

    made = onnx.load(model)
    for value in made.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in inputs:
            for dim, size in zip(dims, inputs[value.name].shape, strict=True):
                dim.dim_value = size
    # What is said of other values names the symbols that have just got values.
    del made.graph.value_info[:]
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    fixed, folded = folder / "fixed.onnx", folder / "folded.onnx"
    onnx.save_model(made, fixed, save_as_external_data=True, location="fixed.data")
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    settings.optimized_model_filepath = str(folded)
    settings.add_session_config_entry("session.optimized_model_external_initializers_file_name", "folded.data")
    onnxruntime.InferenceSession(str(fixed), settings, providers=["CPUExecutionProvider"])
    return folded


def _graph_inputs(task: Task) -> list[np.ndarray]:
    """The inputs in the order of the model's graph."""
    import onnx

    graph = onnx.load(task.model, load_external_data=False).graph
    weights = {w.name for w in graph.initializer}
    return [task.inputs[value.name] for value in graph.input if value.name not in weights]


def _command(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(reason_of(RuntimeError(done.stderr or done.stdout)))


def reason_of(error: Exception) -> str:
    """One line of what an error says: a compiler's first complaint, else the last line that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if "error:" in line), lines[-1] if lines else "")
    return f"{type(error).__name__}: {said[:300]}"


SYSTEMS: dict[str, System] = {
    s.name: s
    for s in (
        System("igniter", (DISTRIBUTION,), _igniter, ("f32", "bf16", "int8-dynamic")),
        System("ort", ("onnxruntime",), _ort, ("f32", "int8-dynamic")),
        System("ort-transformers", ("onnxruntime",), _ort_transformers),
        System("openvino", ("openvino",), _openvino, ("f32", "bf16", "int8-dynamic")),
        System("iree", ("iree-base-compiler", "iree-base-runtime"), _iree),
        System("tvm", ("apache-tvm",), _tvm),
        System("inductor", ("torch",), _inductor, ("f32", "bf16")),
        System("torch", ("torch",), _torch_eager, ("f32", "bf16")),
    )
}
"""By name, as the command line takes them; `torch` is the module as it is given, without Inductor."""
