"""Calls of CUDA's driver in LLVM IR: two shorthands beside those of `igniter.backends.ort.api.expand_calls`.

driver F(args) else label    calls a function of the driver; on failure, records the code and the name and branches to
                             the label
drop driver F(args)          calls it and ignores the result
"""

from __future__ import annotations

import re

from igniter.backends.ort.messages import StringPool

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
)
"""The driver functions called here; drivers have all of them since CUDA 11."""

_DRIVER = re.compile(r"^(?P<indent>\s*)(?P<drop>drop )?driver (?P<name>\w+)\((?P<args>.*)\)(?: else (?P<label>\S+))?$")


def expand_driver_calls(text: str, strings: StringPool) -> str:
    """Expands the shorthands for calls of the driver, and returns LLVM IR."""
    lines: list[str] = []
    for number, line in enumerate(text.splitlines()):
        match = _DRIVER.match(line)
        if match is None:
            lines.append(line)
            continue
        u, name, label = f"d{number}", match["name"], match["label"]
        place = DRIVER_FUNCTIONS.index(name)
        made = [
            f"%{u}.at = getelementptr ptr, ptr @igniter_driver, i64 {place}",
            f"%{u}.f = load ptr, ptr %{u}.at",
            f"%{u}.code = call i32 %{u}.f({match['args']})",
        ]
        if not match["drop"]:
            made += [
                f"%{u}.fine = icmp eq i32 %{u}.code, 0",
                f"br i1 %{u}.fine, label %{u}.ok, label %{u}.bad",
                f"{u}.bad:",
                f"store i32 %{u}.code, ptr %code.at",
                f"store ptr {strings(name)}, ptr %what.at",
                f"br label %{label}",
                f"{u}.ok:",
            ]
        lines += [match["indent"] + part for part in made]
    return "\n".join(lines)
