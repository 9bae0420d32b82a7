"""What code on the host, GPU kernels and the library around them agree on.

A kernel has a name that stands for its code. The object that it is in describes it in a global (`kernel_symbol`, of
`KERNEL_TYPE`), with its code for each kind of GPU that the library is for. The library numbers its kernels and gives
each number a global (`slot_symbol`). Code on the host calls

    void igniter_launch(ptr context, i64 number, i64 programs, ptr parameters)

with the context that it was called with, and the addresses of the kernel's parameters, as `cuLaunchKernel` wants them.
"""

from __future__ import annotations

LAUNCH = "igniter_launch"

KERNEL_TYPE = "{ ptr, ptr, ptr, i32, i32, i64, i32, i32, ptr }"
"""A kernel's name in messages, its code, the name of the function in that, threads, bytes of shared memory, how many
addresses its parameters begin with, the least and the greatest compute capability, by ten, that the code is for, and
the same kernel's code for others, or null. What comes first is the better code, where several are."""

ANY_LATER = (1 << 31) - 1
"""The greatest compute capability of code that every later GPU takes."""

NULL_PARAMETERS = 2
"""Triton's kernels have so many pointers behind their own parameters, to memory that ours need none of."""


def kernel_symbol(kernel: str) -> str:
    """The global that describes a kernel."""
    return f'@"igniter.kernel.{kernel}"'


def slot_symbol(kernel: str) -> str:
    """The global, an i64, that has a kernel's number in its library."""
    return f'@"igniter.slot.{kernel}"'
