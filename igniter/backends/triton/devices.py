"""GPUs by their data sheets, for estimates: NVIDIA's white papers and data sheets of the A100, the H100 and the GeForce
RTX 4090, and the CUDA C++ programming guide's table of compute capabilities. Peaks are dense ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from igniter.errors import IgniterError


@dataclass(frozen=True)
class Device:
    """What an estimate counts with."""

    name: str
    arch: int
    multiprocessors: int
    clock: float
    """In Hz, boosted."""
    bandwidth: float
    """Of its memory, in bytes per second."""
    cache: int
    """Bytes of the second-level cache."""
    flops: float
    """Of f32, by multiply-adds of threads, per second."""
    products: Mapping[str, float]
    """Operations of tensor cores per second, by the type of what is multiplied."""
    shared: int
    """Bytes of shared memory of a multiprocessor."""
    warps: int
    """That a multiprocessor holds at most."""
    registers: int = 65536
    """Of a multiprocessor."""


DEVICES = {
    d.name: d
    for d in (
        Device(
            "a100", 80, 108, 1.41e9, 2039e9, 40 << 20, 19.5e12,
            {"f16": 312e12, "bf16": 312e12, "tf32": 156e12, "tf32x3": 52e12, "i8": 624e12}, 164 << 10, 64,
        ),
        Device(
            "h100", 90, 132, 1.98e9, 3350e9, 50 << 20, 66.9e12,
            {"f16": 989.4e12, "bf16": 989.4e12, "tf32": 494.7e12, "tf32x3": 164.9e12, "i8": 1978.9e12}, 228 << 10, 64,
        ),
        Device(
            "rtx4090", 89, 128, 2.52e9, 1008e9, 72 << 20, 82.6e12,
            {"f16": 165.2e12, "bf16": 165.2e12, "tf32": 82.6e12, "tf32x3": 27.5e12, "i8": 660.6e12}, 100 << 10, 48,
        ),
    )
}  # fmt: skip


def device_of(name: str) -> Device:
    """The device called `name`; `IgniterError` lists those that are known."""
    if name not in DEVICES:
        raise IgniterError(f"there is no data sheet of '{name}': known are {', '.join(DEVICES)}")
    return DEVICES[name]
