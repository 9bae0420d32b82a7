"""CUDA's driver, as far as the run time calls it (`gpu.c` in `igniter/backends/c_runtime/src`; a test compares)."""

from __future__ import annotations

DRIVER = "libcuda.so.1"

DRIVER_FUNCTIONS = (
    "cuInit",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncSetAttribute",
    "cuLaunchKernel",
    "cuTensorMapEncodeTiled",
)
"""The driver functions called here; drivers have all of them since CUDA 11, the last one since CUDA 12. It may be
missing if no kernel has tensor maps."""
