"""The parts of ONNX Runtime's C ABI used by the library.

`OrtApi` is a table of function pointers that only grows at its end, so an index holds for every version of ORT with the
function. Every function called by CPU kernels is in API version 17 (ORT 1.17); `MayInplace` is read from version 18 on;
version 18 also has the functions for GPUs. The run time declares the functions in C, by the same indices
(`igniter/backends/c_runtime/src/ort.h`); a test compares them.
"""

from __future__ import annotations

API_VERSION = 17
API_VERSION_INPLACE = 18
OLDEST_ORT = {API_VERSION: "1.17", API_VERSION_INPLACE: "1.18"}

FUNCTIONS: dict[str, int] = {
    "CreateStatus": 0,
    "CreateCustomOpDomain": 26,
    "CustomOpDomain_Add": 27,
    "AddCustomOpDomain": 28,
    "GetTensorMutableData": 51,
    "CreateTensorTypeAndShapeInfo": 57,
    "SetTensorElementType": 58,
    "SetDimensions": 59,
    "GetTensorElementType": 60,
    "GetDimensionsCount": 61,
    "GetDimensions": 62,
    "GetSymbolicDimensions": 63,
    "GetTensorTypeAndShape": 65,
    "MemoryInfoGetId": 72,
    "AllocatorAlloc": 75,
    "AllocatorFree": 76,
    "AllocatorGetInfo": 77,
    "GetAllocatorWithDefaultOptions": 78,
    "KernelContext_GetInputCount": 88,
    "KernelContext_GetOutputCount": 89,
    "KernelContext_GetInput": 90,
    "KernelContext_GetOutput": 91,
    "ReleaseStatus": 93,
    "ReleaseTensorTypeAndShapeInfo": 99,
    "ReleaseCustomOpDomain": 101,
    "AddSessionConfigEntry": 130,
    "ReleaseAllocator": 132,
    "KernelContext_GetGPUComputeStream": 193,
    "KernelInfo_GetInputCount": 230,
    "HasSessionConfigEntry": 237,
    "KernelInfoGetConstantInput_tensor": 249,
    "KernelContext_GetAllocator": 253,
    "ShapeInferContext_GetInputCount": 267,
    "ShapeInferContext_GetInputTypeShape": 268,
    "ShapeInferContext_SetOutputTypeShape": 270,
    "SetSymbolicDimensions": 271,
    "KernelContext_ParallelFor": 274,
    "KernelContext_GetScratchBuffer": 277,
    "KernelInfoGetAllocator": 278,
}

CUSTOM_OP_POINTERS = 25
"""The number of function pointers in `OrtCustomOp`, after a 32-bit version and 4 bytes of padding."""
