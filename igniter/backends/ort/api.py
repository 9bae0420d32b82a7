"""The parts of ONNX Runtime's C ABI used by the library, and the shorthand for calls of it in LLVM IR text.

`OrtApi` is a table of function pointers that only grows at its end, so an index holds for every version of ORT with the
function. Every function called by CPU kernels is in API version 17 (ORT 1.17); `MayInplace` is read from version 18 on;
version 18 also has the functions for GPUs.
"""

from __future__ import annotations

import re

API_VERSION = 17
API_VERSION_INPLACE = 18
OLDEST_ORT = {API_VERSION: "1.17", API_VERSION_INPLACE: "1.18"}

INVALID_ARGUMENT = 2
RUNTIME_EXCEPTION = 6
NOT_IMPLEMENTED = 9

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

_CALL = re.compile(
    r"^(?P<indent>\s*)(?:(?P<result>%\S+) = )?(?P<kind>api|try|drop) (?P<name>\w+)\((?P<args>.*)\)"
    r"(?: else (?P<label>\S+))?$"
)


def expand_calls(text: str) -> str:
    """Expands three shorthands for calls through the table at `%api`, and returns LLVM IR.

    * `%s = api F(args)`: the call; without a result, of a function of type void
    * `try F(args) else label`: stores the OrtStatus in `%status` and branches to the label when it is an error
    * `drop F(args) else label`: releases the OrtStatus and branches to the label when it is an error
    """
    lines: list[str] = []
    for number, line in enumerate(text.splitlines()):
        match = _CALL.match(line)
        if match is None:
            lines.append(line)
        else:
            lines.extend(match["indent"] + part for part in _expand(match, f"c{number}"))
    return "\n".join(lines) + "\n"


def _expand(match: re.Match[str], unique: str) -> list[str]:
    args = match["args"]
    lines = [
        f"%{unique}.at = getelementptr ptr, ptr %api, i64 {FUNCTIONS[match['name']]}",
        f"%{unique}.f = load ptr, ptr %{unique}.at",
    ]
    if match["kind"] == "api":
        call = f"call ptr %{unique}.f({args})"
        lines.append(f"{match['result']} = {call}" if match["result"] else call.replace("call ptr", "call void", 1))
        return lines
    lines += [f"%{unique}.s = call ptr %{unique}.f({args})", f"%{unique}.bad = icmp ne ptr %{unique}.s, null"]
    branch = f"br i1 %{unique}.bad, label %"
    if match["kind"] == "try":
        lines += [f"store ptr %{unique}.s, ptr %status", f"{branch}{match['label']}, label %{unique}.ok"]
    else:
        release = FUNCTIONS["ReleaseStatus"]
        lines += [
            f"{branch}{unique}.drop, label %{unique}.ok",
            f"{unique}.drop:",
            f"%{unique}.r = getelementptr ptr, ptr %api, i64 {release}",
            f"%{unique}.g = load ptr, ptr %{unique}.r",
            f"call void %{unique}.g(ptr %{unique}.s)",
            f"br label %{match['label']}",
        ]
    return [*lines, f"{unique}.ok:"]
