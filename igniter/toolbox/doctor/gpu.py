"""GPUs: the driver of CUDA, its devices, and the software to compile and run kernels for them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from importlib.util import find_spec

from igniter.distribution import install_command
from igniter.toolbox.doctor import Finding

GROUP = "gpu"
DRIVERS = ("libcuda.so.1", "libcuda.so")
LEAST_ARCHITECTURE = 80
"""The least compute capability, times ten, for code of `--target=cuda`."""

_MAJOR, _MINOR = 75, 76
"""`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR` of the driver's API."""


def gpus() -> Iterator[Finding]:
    """Checks the driver and its devices; a missing driver is no problem."""
    driver = _driver()
    if driver is None:
        says = "no driver of CUDA, so models for GPUs can be compiled here, and not run"
        yield Finding(GROUP, "driver", "optional", says)
        return
    status = int(driver.cuInit(0))
    if status != 0:
        says = f"the driver of CUDA is there, and does not start (error {status})"
        yield Finding(GROUP, "driver", "warning", says, "see what nvidia-smi says; in a container, give it the GPU")
        return
    number = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(number))
    yield Finding(GROUP, "driver", "ok", f"CUDA {number.value // 1000}.{number.value % 1000 // 10}")
    yield from _devices(driver)
    yield from _software()


def _driver() -> ctypes.CDLL | None:
    for name in DRIVERS:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _devices(driver: ctypes.CDLL) -> Iterator[Finding]:
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    if not count.value:
        yield Finding(GROUP, "devices", "warning", "the driver has no device", "see what CUDA_VISIBLE_DEVICES says")
    for index in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        driver.cuDeviceGet(ctypes.byref(device), index)
        driver.cuDeviceGetName(name, len(name), device)
        major, minor = (_attribute(driver, which, device) for which in (_MAJOR, _MINOR))
        says = f"{name.value.decode(errors='replace')}, sm_{major}{minor}"
        if 10 * major + minor < LEAST_ARCHITECTURE:
            says += f": kernels are for sm_{LEAST_ARCHITECTURE} and later"
            yield Finding(GROUP, f"device {index}", "warning", says)
        else:
            yield Finding(GROUP, f"device {index}", "ok", says)


def _attribute(driver: ctypes.CDLL, which: int, device: ctypes.c_int) -> int:
    value = ctypes.c_int()
    driver.cuDeviceGetAttribute(ctypes.byref(value), which, device)
    return value.value


def _software() -> Iterator[Finding]:
    """Checks, for a machine with a GPU, the software to compile and run kernels."""
    if find_spec("triton") is None:
        do = install_command("triton")
        yield Finding(GROUP, "triton", "warning", "there is a GPU, and no Triton to compile for it", do)
    from igniter.toolbox.doctor.building import installed_providers

    if "CUDAExecutionProvider" not in installed_providers():
        says = "there is a GPU, and this ONNX Runtime has no CUDAExecutionProvider"
        do = "to run models on it: pip uninstall onnxruntime; pip install onnxruntime-gpu"
        yield Finding(GROUP, "provider", "warning", says, do)
