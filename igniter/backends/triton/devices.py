"""GPUs by their data sheets, for estimates: NVIDIA's white papers and data sheets of the A100, the H100 and the GeForce
RTX 4090, and the CUDA C++ programming guide's table of compute capabilities. Peaks are for dense data;
`igniter.analysis.devices` has those also used by the profile of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from igniter.analysis.devices import DEVICES as SHEETS
from igniter.errors import IgniterError


@dataclass(frozen=True)
class Device:
    """The figures of a GPU for estimates."""

    name: str
    arch: int
    multiprocessors: int
    clock: float
    """The boost clock in Hz."""
    bandwidth: float
    """The bandwidth of its memory, in bytes per second."""
    cache: int
    """The size of the second-level cache, in bytes."""
    cache_bandwidth: float
    """The bandwidth of the second-level cache, in bytes per second."""
    flops: float
    """The f32 multiply-adds of threads, in operations per second."""
    products: Mapping[str, float]
    """The operations of tensor cores per second, by the type of their operands."""
    shared: int
    """The shared memory of a multiprocessor, in bytes."""
    warps: int
    """The most warps resident on a multiprocessor."""
    registers: int = 65536
    """The registers of a multiprocessor."""


SPLITTING = 5
"""The time of a product by three of TF32, relative to one: factors are split by other ops."""


def _device(
    name: str,
    arch: int,
    multiprocessors: int,
    clock: float,
    cache: int,
    tf32: float,
    shared: int,
    warps: int,
    cache_speed: float = 3.0,
) -> Device:
    sheet = SHEETS[name]
    half = {"f16": sheet.peaks["float16"], "bf16": sheet.peaks["bfloat16"], "i8": sheet.peaks["int8"]}
    products = {**half, "tf32": tf32, "tf32x3": tf32 / SPLITTING}
    flops = sheet.peaks["float"]
    speed = sheet.bandwidth * cache_speed
    return Device(name, arch, multiprocessors, clock, sheet.bandwidth, cache, speed, flops, products, shared, warps)


DEVICES = {
    d.name: d
    for d in (
        _device("a100", 80, 108, 1.41e9, 40 << 20, 156e12, 164 << 10, 64),
        _device("h100", 90, 132, 1.98e9, 50 << 20, 494.7e12, 228 << 10, 64, 5.5),
        _device("h200", 90, 132, 1.98e9, 50 << 20, 494.7e12, 228 << 10, 64, 3.85),
        _device("rtx4090", 89, 128, 2.52e9, 72 << 20, 82.6e12, 100 << 10, 48),
    )
}


def device_of(name: str) -> Device:
    """Returns the device called `name`; `IgniterError` lists the known ones."""
    if name not in DEVICES:
        raise IgniterError(f"there is no data sheet of '{name}': known are {', '.join(DEVICES)}")
    return DEVICES[name]
