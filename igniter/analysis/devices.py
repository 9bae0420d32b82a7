"""Devices by their data sheets: peaks of products by element type, the bandwidth of memory, and its size.

Peaks are dense ones. A CPU's is cores x base clock x operations a cycle of its widest multiply-add. Sheets do not state
it; an entry's `source` gives the factors. Programs reach only a share of a peak.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from igniter.analysis.machine import TYPICAL, given_of, override
from igniter.errors import IgniterError

ELEMENTS = ("double", "float", "float16", "bfloat16", "int8", "int4")
"""The element types with a peak, by ONNX's names."""

_INSTEAD = {
    "bfloat16": ("float16", "float"),
    "float16": ("bfloat16", "float"),
    "int4": ("int8", "float16", "bfloat16", "float"),
    "int8": ("float16", "bfloat16", "float"),
    "uint4": ("int4", "int8", "float16", "bfloat16", "float"),
    "uint8": ("int8", "float16", "bfloat16", "float"),
}
"""The substitutes for a type in products where a device has no instruction for it."""


@dataclass(frozen=True)
class Device:
    """The figures of a device for estimates."""

    name: str
    peaks: Mapping[str, float]
    """Operations of products a second, by element type; `float` is always present."""
    bandwidth: float
    """The memory bandwidth in bytes a second."""
    vector: float = 0.0
    """Operations a second of elementwise arithmetic; 0: the peak of `float`."""
    memory: float = 0.0
    """Bytes of memory; 0 if unknown."""
    launch: float = 0.0
    """The overhead of a node in seconds."""
    source: str = ""

    def peak(self, element: str) -> float:
        """Returns the operations a second of products of an element type."""
        for kind in (element, *_INSTEAD.get(element, ())):
            if kind in self.peaks:
                return self.peaks[kind]
        return self.peaks["float"] / 2 if element == "double" else self.peaks["float"]

    @property
    def elementwise(self) -> float:
        """Operations a second other than those of products."""
        return self.vector or self.peaks["float"]


def _gpu(
    name: str, f32: float, f16: float, i8: float, bandwidth: float, memory: float, source: str, **others: float
) -> Device:
    """Makes a GPU from teraoperations a second, GB/s and GiB."""
    peaks = {"float": f32, "float16": f16, "int8": i8, **others}
    return Device(
        name, {k: v * 1e12 for k, v in peaks.items() if v}, bandwidth * 1e9, f32 * 1e12, memory * 2**30, 0.0, source
    )


def _cpu(name: str, cores: int, clock: float, width: int, bandwidth: float, source: str, **factors: float) -> Device:
    """Makes a CPU from cores, base clock in GHz, f32 operations a cycle of a core, GB/s; `factors` are other peaks
    relative to f32's."""
    f32 = cores * clock * 1e9 * width
    peaks = {"double": f32 / 2, "float": f32, **{k: f32 * v for k, v in factors.items()}}
    what = f"{source}; {cores} cores x {clock:g} GHz x {width} operations a cycle"
    return Device(name, peaks, bandwidth * 1e9, f32, 0.0, 0.0, what)


DEVICES: dict[str, Device] = {
    d.name: d
    for d in (
        _gpu("t4", 8.1, 65, 130, 320, 16, "NVIDIA T4 data sheet", int4=260),
        _gpu("v100", 15.7, 125, 0, 900, 32, "NVIDIA V100 data sheet (SXM2)", double=7.8),
        _gpu("a10", 31.2, 125, 250, 600, 24, "NVIDIA A10 data sheet", bfloat16=125, int4=500),
        _gpu("a100", 19.5, 312, 624, 2039, 80, "NVIDIA A100 data sheet, 80 GB SXM", bfloat16=312, int4=1248),
        _gpu("l4", 30.3, 121, 242, 300, 24, "NVIDIA L4 data sheet, half of the sparse figures", bfloat16=121),
        _gpu("l40s", 91.6, 362, 733, 864, 48, "NVIDIA L40S data sheet", bfloat16=362, int4=733),
        _gpu("h100", 66.9, 989.4, 1978.9, 3350, 80, "NVIDIA H100 white paper (SXM5)", double=33.5, bfloat16=989.4),
        _gpu("h200", 66.9, 989.4, 1978.9, 4800, 141, "NVIDIA H200 data sheet (SXM)", double=33.5, bfloat16=989.4),
        _gpu("rtx3090", 35.6, 71, 284, 936, 24, "NVIDIA GA102 white paper, f32 sums", bfloat16=71, int4=568),
        _gpu("rtx4090", 82.6, 165.2, 660.6, 1008, 24, "NVIDIA Ada white paper, f32 sums", bfloat16=165.2, int4=1321.2),
        _gpu("mi250x", 47.9, 383, 383, 3277, 128, "AMD Instinct MI250X data sheet", double=47.9, bfloat16=383),
        _gpu("mi300x", 163.4, 1307.4, 2614.9, 5300, 192, "AMD MI300X data sheet", double=81.7, bfloat16=1307.4),
        _cpu("xeon-8380", 40, 2.3, 64, 204.8, "Intel ARK, 8 channels of DDR4-3200; AVX-512 with VNNI", int8=4),
        _cpu(
            "xeon-8480", 56, 2.0, 64, 307.2, "Intel ARK, 8 channels of DDR5-4800; AMX: 1,024 products of bf16 a cycle",
            bfloat16=32, int8=64,
        ),
        _cpu("epyc-7763", 64, 2.45, 32, 204.8, "AMD EPYC 7003 data sheet, 8 channels of DDR4-3200; AVX2"),
        _cpu(
            "epyc-9654", 96, 2.4, 32, 460.8, "AMD EPYC 9004 data sheet, 12 channels of DDR5-4800; AVX-512 by halves",
            bfloat16=2, int8=4,
        ),
        _cpu("ryzen-7950x", 16, 4.5, 32, 83.2, "AMD data sheet, 2 channels of DDR5-5200; AVX-512", bfloat16=2, int8=4),
        _cpu("graviton3", 64, 2.6, 32, 307.2, "AWS, Neoverse V1 guide, 8 channels of DDR5-4800", bfloat16=4, int8=8),
        _cpu("raspberry-pi-5", 4, 2.4, 16, 17.1, "Raspberry Pi, Arm Cortex-A76 guide, LPDDR4X-4267 of 32 bits", int8=4),
    )
}  # fmt: skip
"""The table of docs/how-to/profile.md."""


# -- files ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Keys:
    known: tuple[str, ...] = ("name", "peaks", "bandwidth", "vector", "memory", "launch", "source")
    numbers: tuple[str, ...] = field(default=("bandwidth", "vector", "memory", "launch"))


def device_of(given: str) -> Device:
    """Returns the device of a name in the table, or of a JSON file. Raises `IgniterError` if either is invalid."""
    if given in DEVICES:
        return DEVICES[given]
    path = Path(given)
    if path.suffix == ".json" or path.is_file():
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise IgniterError(f"{given} is not a JSON file: {error}") from error
        return read_device(data, given)
    close = difflib.get_close_matches(given.lower(), [*DEVICES, "native"], n=1)
    hint = f"did you mean '{close[0]}'?" if close else "a device file must end in .json"
    raise IgniterError(f"unknown device '{given}'; {hint} Known: native, {', '.join(DEVICES)}")


def read_device(data: object, where: str) -> Device:
    """Returns a device from JSON values: `{"name": .., "peaks": {"float": .., "float16": ..}, "bandwidth": ..}`,
    operations and bytes a second, and if known `vector`, `memory` (bytes), `launch` (seconds) and `source`."""
    keys = _Keys()
    if not isinstance(data, dict):
        raise IgniterError(f"{where} does not describe a device: write an object with {', '.join(keys.known[:3])}")
    values = cast("dict[str, Any]", data)
    if "vector_bytes" in values:
        return _of_machine(values, where)
    _only(values, keys.known, where, "device")
    peaks = values.get("peaks")
    if not isinstance(peaks, dict) or "float" not in peaks:
        raise IgniterError(
            f"{where}: 'peaks' must be an object of operations per second by element type, with at least 'float'"
        )
    given = cast("dict[str, Any]", peaks)
    _only(given, ELEMENTS, where, "peak of")
    numbers = {k: _positive(values[k], f"{where}: '{k}'") for k in keys.numbers if k in values}
    if "bandwidth" not in numbers:
        raise IgniterError(f"{where}: 'bandwidth' (bytes per second) is missing")
    return Device(
        str(values.get("name", Path(where).stem)),
        {k: _positive(v, f"{where}: the peak of {k}") for k, v in given.items()},
        source=str(values.get("source", where)),
        **numbers,
    )


def _of_machine(values: Mapping[str, Any], where: str) -> Device:
    """Returns one thread of the machine in a file by `igniter machine -o`."""
    known = {k: v for k, v in values.items() if k not in ("name", "cpu", "arch", "microarchitecture", "features")}
    machine = override(TYPICAL, given_of(known))
    cycle = machine.clock_ghz * 1e9
    f32 = machine.fma_ports * 2 * machine.vector_bytes / 4 * cycle
    peaks = {"double": f32 / 2, "float": f32, **({"int8": 4 * f32} if machine.byte_products else {})}
    return Device(
        f"one thread of {Path(where).name}", peaks, machine.memory_bytes_us * 1e6, launch=machine.launch_us * 1e-6
    )


def _only(values: Mapping[str, Any], known: tuple[str, ...], where: str, what: str) -> None:
    for key in values:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}"
            raise IgniterError(f"{where}: a device has no {what.replace('device', '').strip()} '{key}'; {hint}")


def _positive(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise IgniterError(f"{what} is {value!r}; it must be a non-negative number")
    if not value and "launch" not in what and "vector" not in what and "memory" not in what:
        raise IgniterError(f"{what} is 0; it must be positive")
    return float(value)
