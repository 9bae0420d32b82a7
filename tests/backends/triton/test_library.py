"""Libraries of GPU kernels in stock ONNX Runtime, with a driver that computes in Triton's interpreter: what is loaded,
launched and given back, and what is said where the driver refuses."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from benchmark.models.half import bert
from igniter.backends.triton.texts import kernels_of
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import lower_to_kernels, make_object
from igniter.errors import IgniterError
from igniter.runtime.session import ProviderMissing
from tests.backends.triton.recording_driver import RecordingDriver, activate, knowing

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

CPU = "CPUExecutionProvider"


@pytest.fixture(scope="module")
def installed() -> RecordingDriver:
    driver = RecordingDriver()
    activate(driver)
    return driver


@pytest.fixture(scope="module")
def artifact(installed: RecordingDriver) -> igniter.Artifact:
    return compiled(rows(), installed)


@pytest.fixture
def driver(installed: RecordingDriver) -> RecordingDriver:
    gc.collect()
    activate(installed)
    installed.reset()
    return installed


def rows(name: str = "y", width: int = 48) -> onnx.ModelProto:
    """A product, a softmax and a LayerNorm that reads what was before: several launches, and memory between them."""
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.normal(0, 1, (width, width)),
        "s": rng.normal(1, 0.1, width),
        "b": rng.normal(0, 1, width),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "w"], ["q"]),
        helper.make_node("Add", ["q", "x"], ["r"]),
        helper.make_node("LayerNormalization", ["r", "s", "b"], [name], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", width])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def compiled(
    model: onnx.ModelProto,
    driver: RecordingDriver,
    provider: str = CPU,
    target: str = "cuda",
    verify: bool = False,
    **options: Any,
) -> igniter.Artifact:
    with knowing(driver):
        chosen = CompileOptions(target=target, provider=provider, **options)
        return igniter.load(model).compile(options=chosen, cache=False, verify=verify)


def of_ort(model: onnx.ModelProto, feed: dict[str, Any]) -> Any:
    import onnxruntime

    ort: Any = onnxruntime
    return ort.InferenceSession(model.SerializeToString(), providers=[CPU]).run(None, feed)[0]


def feed(n: int, width: int = 48) -> dict[str, Any]:
    return {"x": np.random.default_rng(n).normal(0, 1, (n, width)).astype(np.float32)}


@pytest.mark.slow
def test_a_run_asks_the_driver_for_launches_and_their_context_alone(
    driver: RecordingDriver, artifact: igniter.Artifact
) -> None:
    """What a launch costs on the host is what the driver takes for it: all else is done with the kernel object."""
    session: Any = artifact.session()
    for n in (7, 2):
        driver.calls.clear()
        driver.launches.clear()
        session.run(None, feed(n))
        launches = ["cuLaunchKernel"] * len(driver.launches)
        assert len(launches) > 1
        assert driver.calls == ["cuCtxPushCurrent_v2", *launches, "cuCtxPopCurrent_v2"]


@pytest.mark.slow
def test_what_is_launched_and_given_back(driver: RecordingDriver, artifact: igniter.Artifact) -> None:
    """One op, its launches in order on the stream of the run, in the context of the device; nothing stays loaded."""
    model = rows()
    assert artifact.report["nodes_after"] == 1
    session: Any = artifact.session()
    assert driver.contexts == []
    loaded = len(driver.modules)
    assert loaded > 1
    for n in (5, 1, 18):
        driver.launches.clear()
        np.testing.assert_allclose(session.run(None, feed(n))[0], of_ort(model, feed(n)), rtol=1e-4, atol=1e-5)
        assert len(driver.launches) > 1
        assert {launch.context for launch in driver.launches} == {500}
        assert all(launch.threads % 32 == 0 for launch in driver.launches)
    assert driver.contexts == []
    assert driver.retained == {0: 1}
    del session
    gc.collect()
    assert not driver.modules
    assert driver.retained == {0: 0}
    assert not [call for call in driver.calls if ":" in call]


def test_nothing_is_launched_for_no_elements(driver: RecordingDriver, artifact: igniter.Artifact) -> None:
    session: Any = artifact.session()
    driver.launches.clear()
    assert session.run(None, feed(0))[0].shape == (0, 48)
    assert not driver.launches


@pytest.mark.slow
def test_a_verified_model_is_compared_with_the_original(driver: RecordingDriver) -> None:
    found = compiled(rows("verified", 8), driver, verify=True)
    assert found.report["verification"]["status"] == "passed"


@pytest.mark.slow
def test_sessions_have_modules_of_their_own(driver: RecordingDriver, artifact: igniter.Artifact) -> None:
    first: Any = artifact.session()
    count = len(driver.modules)
    second: Any = artifact.session()
    assert len(driver.modules) == 2 * count
    del first
    gc.collect()
    assert len(driver.modules) == count
    np.testing.assert_allclose(second.run(None, feed(3))[0], of_ort(rows(), feed(3)), rtol=1e-4, atol=1e-5)


def test_the_context_that_is_current_is_used_where_it_is_the_devices(
    driver: RecordingDriver, artifact: igniter.Artifact
) -> None:
    driver.contexts.append(500)
    session: Any = artifact.session()
    assert driver.contexts == [500]
    assert driver.retained == {}
    del session
    gc.collect()
    driver.contexts[:] = [501]
    other: Any = artifact.session()
    assert other is not None
    assert driver.contexts == [501]
    assert driver.retained == {0: 1}


@pytest.mark.slow
def test_one_thread_launches_a_program_of_large_weights(driver: RecordingDriver) -> None:
    """On a CPU threads would stay together for it."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Softmax", ["h"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 256])],
        [
            numpy_helper.from_array(np.random.default_rng(k).normal(0, 1, s).astype(np.float32), name)
            for k, (name, s) in enumerate({"w": (32, 2048), "v": (2048, 256)}.items())
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    artifact = compiled(model, driver)
    assert artifact.report["nodes_after"] == 1
    session: Any = artifact.session()
    np.testing.assert_allclose(session.run(None, feed(1, 32))[0], of_ort(model, feed(1, 32)), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_small_bert_is_one_op(driver: RecordingDriver) -> None:
    model = bert(1, 32, 2, 64, 50)
    artifact = compiled(model, driver)
    assert artifact.report["nodes_after"] == 1
    session: Any = artifact.session()
    names = [i.name for i in session.get_inputs()]
    rng = np.random.default_rng(0)
    given = {
        i.name: (np.ones((1, 7)) if "mask" in i.name else rng.integers(0, 2, (1, 7))).astype(np.int64)
        for i in session.get_inputs()
    }
    assert names
    np.testing.assert_allclose(session.run(None, given)[0], of_ort(model, given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "function, code, said",
    [
        ("cuInit", 100, "loading its kernels: cuInit gives CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"),
        ("cuDeviceGet", 1, "loading its kernels: cuDeviceGet gives CUDA_ERROR_INVALID_VALUE: invalid argument"),
        ("cuDevicePrimaryCtxRetain", 2, "cuDevicePrimaryCtxRetain gives CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
        ("cuCtxPushCurrent_v2", 1, "loading its kernels: cuCtxPushCurrent_v2 gives CUDA_ERROR_INVALID_VALUE"),
        ("cuModuleLoadData", 222, "0: cuModuleLoadData gives CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX"),
        ("cuModuleGetFunction", 4711, "0: cuModuleGetFunction gives an unknown error: an unknown error"),
    ],
)
def test_what_the_driver_refuses_when_kernels_are_loaded(
    driver: RecordingDriver, artifact: igniter.Artifact, function: str, code: int, said: str
) -> None:
    """The session is not made, its message names the op and the kernel, and nothing stays behind."""
    if function == "cuInit":  # once for a library
        artifact = compiled(rows("new", 8), driver)
    driver.fails[function] = code
    with pytest.raises(IgniterError) as error:
        artifact.session()
    assert "Igniter op igniter_" in error.value.message
    assert said in error.value.message
    assert not driver.modules
    assert set(driver.retained.values()) <= {0}
    assert driver.contexts == []


@pytest.mark.parametrize("function, code", [("cuLaunchKernel", 719), ("cuCtxPushCurrent_v2", 1)])
def test_a_run_that_the_driver_refuses_is_an_error_of_that_run(
    driver: RecordingDriver, artifact: igniter.Artifact, function: str, code: int
) -> None:
    session: Any = artifact.session()
    driver.fails[function] = code
    driver.calls.clear()
    with pytest.raises(Exception, match=f"{function} gives CUDA_ERROR"):
        session.run(None, feed(3))
    assert driver.calls.count("cuLaunchKernel") == (function == "cuLaunchKernel"), "nothing is launched behind it"
    driver.fails.clear()
    np.testing.assert_allclose(session.run(None, feed(3))[0], of_ort(rows(), feed(3)), rtol=1e-4, atol=1e-5)
    assert driver.contexts == []


def test_memory_that_kernels_cannot_load_from_is_an_error(driver: RecordingDriver, artifact: igniter.Artifact) -> None:
    """Blocks of 16 bytes are loaded at once, from addresses that are multiples of these."""
    session: Any = artifact.session()
    room = np.zeros(4 * 48 + 8, np.float32)
    first = (-(room.ctypes.data // 4) + 1) % 4
    x = room[first : first + 3 * 48].reshape(3, 48)
    assert x.ctypes.data % 16 == 4
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu")
    driver.launches.clear()
    with pytest.raises(Exception, match="which is no multiple of 16: give ONNX Runtime memory that is"):
        session.run_with_iobinding(binding)
    assert not driver.launches


@pytest.mark.slow
def test_without_the_provider_a_model_is_compiled_and_not_verified(driver: RecordingDriver) -> None:
    alone = compiled(rows("alone", 8), driver, "", verify=True)
    found = alone.report["verification"]
    assert found["status"] == "not verified"
    assert "is for ONNX Runtime's CUDAExecutionProvider" in found["reasons"][0]
    with pytest.raises(ProviderMissing, match="onnxruntime-gpu"):
        alone.session()


def test_without_a_driver_the_session_says_so(artifact: igniter.Artifact) -> None:
    """In a process of its own: in this one there is a driver."""
    text = f"import igniter; igniter.Artifact.load({str(artifact.folder)!r}).session()"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    if done.returncode == 0 or "cuInit gives" in done.stderr:
        pytest.skip("there is a driver of NVIDIA on this machine")
    assert "it runs on GPUs of NVIDIA, and their driver cannot be loaded: libcuda.so.1" in done.stderr


@pytest.mark.slow
def test_a_driver_that_lacks_a_function_is_too_old(artifact: igniter.Artifact) -> None:
    lines = (
        "from tests.backends.triton.recording_driver import RecordingDriver, activate",
        "activate(RecordingDriver(), without=['cuFuncSetAttribute'])",
        f"import igniter; igniter.Artifact.load({str(artifact.folder)!r}).session()",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert "the driver of NVIDIA is too old: it has no cuFuncSetAttribute" in done.stderr


@pytest.mark.slow
def test_equal_models_have_equal_libraries(driver: RecordingDriver, artifact: igniter.Artifact) -> None:
    again = compiled(rows(), driver)
    assert [p.read_bytes() for p in again.libraries] == [p.read_bytes() for p in artifact.libraries]


@pytest.mark.slow
def test_an_object_has_all_funcs_of_a_model_and_each_kernel_once() -> None:
    module = igniter.load(bert(1, 32, 2, 64, 50))
    c = Compilation(module.ir, CompileOptions(target="cuda"), module.ctx)
    lower_to_kernels(c)
    assert len(c.kernels) > 1
    made = make_object(c)
    assert made.startswith(b"\x7fELF")
    names = {kernel.name for each in c.kernels for kernel in kernels_of(each.variants[0])}
    assert all(made.count(f"igniter.kernel.{name}\0".encode()) == 1 for name in names)


@pytest.mark.parametrize("option", [{"precision": "bf16"}, {"winograd": "on"}, {"sanitize": True}, {"profile": True}])
def test_options_that_gpus_do_not_have_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(IgniterError, match=f"the backend 'cuda' has no {next(iter(option))}"):
        igniter.load(rows()).compile(options=CompileOptions(target="cuda", **option), cache=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "capability, code, image",
    [(80, 80, "cubin"), (86, 80, "ptx"), (90, 90, "cubin"), (103, 80, "ptx"), (120, 120, "cubin")],
)
def test_a_library_for_several_gpus_loads_the_code_of_the_one_there_is(
    driver: RecordingDriver,
    monkeypatch: pytest.MonkeyPatch,
    several: igniter.Artifact,
    capability: int,
    code: int,
    image: str,
) -> None:
    """The latest that the GPU takes; code since sm_90 is for one GPU alone. Machine code is for exactly one."""
    monkeypatch.setattr(driver, "capability", capability)
    session: Any = several.session()
    assert {arch for _, arch in driver.modules.values()} == {code}
    assert set(driver.images) == {image}
    np.testing.assert_allclose(session.run(None, feed(3))[0], of_ort(rows(), feed(3)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("capability, code", [(80, 80), (90, 90)])
def test_a_driver_that_refuses_machine_code_compiles_the_ptx(
    driver: RecordingDriver, monkeypatch: pytest.MonkeyPatch, several: igniter.Artifact, capability: int, code: int
) -> None:
    monkeypatch.setattr(driver, "capability", capability)
    driver.refuses_machine_code = True
    session: Any = several.session()
    assert {arch for _, arch in driver.modules.values()} == {code}
    assert set(driver.images) == {"ptx"}
    assert driver.calls.count("cuModuleLoadData") == 2 * len(driver.images)
    np.testing.assert_allclose(session.run(None, feed(3))[0], of_ort(rows(), feed(3)), rtol=1e-4, atol=1e-5)
    # A GPU without code of its own tries no machine code.
    driver.reset()
    monkeypatch.setattr(driver, "capability", 86)
    del session
    assert several.session() is not None
    assert driver.calls.count("cuModuleLoadData") == len(driver.images)


def test_a_gpu_that_no_code_is_for_is_named(
    driver: RecordingDriver, monkeypatch: pytest.MonkeyPatch, several: igniter.Artifact
) -> None:
    monkeypatch.setattr(driver, "capability", 75)
    with pytest.raises(
        IgniterError, match=r"r0\.to_\d+\.0: the library has no code for a GPU of compute capability 75"
    ):
        several.session()
    assert not driver.modules and driver.contexts == [] and set(driver.retained.values()) <= {0}


@pytest.fixture(scope="module")
def several(installed: RecordingDriver) -> igniter.Artifact:
    """A library with three codes of each kernel."""
    return compiled(rows(), installed, target="cuda:sm_120,cuda,cuda:sm_90")


def test_one_library_multiplies_in_one_way() -> None:
    with pytest.raises(IgniterError, match="are computed in one way for all GPUs of a library"):
        igniter.load(rows()).compile(target="cuda,cuda:sm_90+tf32", cache=False)


def test_cpus_have_no_other_provider() -> None:
    with pytest.raises(IgniterError, match="run in the execution provider for CPUs"):
        igniter.load(rows()).compile(options=CompileOptions(provider="CUDAExecutionProvider"), cache=False)


AZURE = "AzureExecutionProvider"
"""A second execution provider of the host's memory, which comes with ONNX Runtime's package for CPUs."""


def for_both(model: onnx.ModelProto, driver: RecordingDriver, **options: Any) -> igniter.Artifact:
    with knowing(driver):
        chosen = CompileOptions(target="native,cuda", provider=AZURE)
        return igniter.load(model).compile(options=chosen, cache=False, **{"verify": False, **options})


@pytest.mark.slow
def test_one_folder_runs_in_both_providers(driver: RecordingDriver) -> None:
    model = rows("both")
    artifact = for_both(model, driver, verify=True)
    assert artifact.report["nodes_after"] == 1
    (info,) = artifact.library_infos()
    assert info["providers"] == [AZURE, ""]
    assert artifact.providers() == ([AZURE, CPU], [])
    found = artifact.report["verification"]
    assert found["status"] == "passed" and found["without"] == []
    assert driver.launches
    for providers, launches in (None, True), ([AZURE, CPU], True), ([CPU], False):
        driver.launches.clear()
        session: Any = artifact.session(**({} if providers is None else {"providers": providers}))
        np.testing.assert_allclose(session.run(None, feed(6))[0], of_ort(model, feed(6)), rtol=1e-4, atol=1e-5)
        assert bool(driver.launches) == launches


@pytest.mark.slow
def test_a_provider_that_is_not_there_is_said_of_a_folder_for_both(driver: RecordingDriver) -> None:
    with knowing(driver):
        artifact = igniter.load(rows("absent", 8)).compile(target="native,cuda", cache=False)
    assert artifact.providers() == ([CPU], ["CUDAExecutionProvider"])
    found = artifact.report["verification"]
    assert found["status"] == "passed" and found["without"] == ["CUDAExecutionProvider"]
    assert not driver.launches


@pytest.mark.slow
def test_a_region_that_one_backend_cannot_compile_is_left_in_both(
    driver: RecordingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from igniter.backends.cpu.backend import CpuBackend

    original = CpuBackend.emit_func

    def emit(self: Any, func: Any, target: Any, sanitize: bool = False) -> str:
        if target.name == "native" and any("softmax" in str(op).lower() for op in func.walk()):
            raise IgniterError("this one has no softmax")
        return original(self, func, target, sanitize)

    monkeypatch.setattr(CpuBackend, "emit_func", emit)
    model = rows("left")
    artifact = for_both(model, driver)
    session: Any = artifact.session()
    np.testing.assert_allclose(session.run(None, feed(4))[0], of_ort(model, feed(4)), rtol=1e-4, atol=1e-5)
    assert any("this one has no softmax" in str(node) for node in artifact.report["left_to_onnxruntime"])


@pytest.mark.slow
def test_a_model_of_several_levels_of_cpus_and_a_gpu(driver: RecordingDriver) -> None:
    with knowing(driver):
        artifact = igniter.load(rows("levels", 8)).compile(target="x86-64-v2,cuda,x86-64-v3", cache=False, verify=False)
    given = feed(3, 8)
    session: Any = artifact.session()
    np.testing.assert_allclose(session.run(None, given)[0], of_ort(rows("levels", 8), given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"target": "cuda,aarch64"}, "the machines are aarch64.* and x86_64"),
        ({"target": "native,cuda", "schedule_passes": "cpu-schedule"}, "targets of two backends"),
        ({"target": "native,cuda", "machine": {"cores": 2}}, "a machine is given with targets of two backends"),
        ({"target": "native,cuda", "precision": "bf16"}, "the backend 'cuda' has no precision other than f32"),
    ],
)
def test_what_a_library_for_both_cannot_be_is_said_before_the_work(options: dict[str, Any], said: str) -> None:
    with pytest.raises(IgniterError, match=said):
        igniter.load(rows()).compile(options=CompileOptions(**options), cache=False, verify=False)
