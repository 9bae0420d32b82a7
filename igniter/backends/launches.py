"""The interface between host code, GPU kernels and the library around them.

A kernel's name is a hash of its code. The kernel's object describes it in a global (`kernel_symbol`, of `KERNEL_TYPE`),
with its code for each kind of GPU of the library. The library numbers its kernels and gives each number a global
(`slot_symbol`). Host code calls

    void igniter_launch(ptr context, i64 number, i64 programs, ptr parameters)

with its own context argument, and the addresses of the kernel's parameters, in the format of `cuLaunchKernel`. A
descriptor is several parameters: 128 bytes for a tensor map, then the sizes of the tensor (i32) and its strides in
elements (i64). Host code stores the address of the tensor in the first bytes of the map, and `igniter_launch` encodes
the map there, with the blocks that the kernel's description names (`MAP_TYPE`).
"""

from __future__ import annotations

LAUNCH = "igniter_launch"

KERNEL_TYPE = "{ ptr, ptr, ptr, i32, i32, i64, i32, i32, ptr, i64, ptr }"
"""A kernel's name in messages, its code, the name of the function in the code, threads, bytes of shared memory, the
number of addresses at the start of its parameters, the least and the greatest compute capability of the code, times
ten, the same kernel's code for other capabilities, or null, the number of its tensor maps, and the array of these
(`MAP_TYPE`). If several codes fit a GPU, the first one is the best."""

MAP_TYPE = "{ i32, i32, i32, i32, i32, [5 x i32] }"
"""A tensor map of a kernel: its parameter, its dims, CUDA's numbers of the type of elements and of the swizzle, the
bytes of an element, and the sizes of the box that one copy loads, the last dim first."""

MAP_BYTES, MAP_ALIGNMENT = 128, 64
"""The size and the alignment of a tensor map."""

ANY_LATER = (1 << 31) - 1
"""The greatest compute capability of code for every later GPU."""

NULL_PARAMETERS = 2
"""The number of pointers after the parameters of Triton's kernels, to memory not used by our kernels."""


def kernel_symbol(kernel: str) -> str:
    """Returns the global with the description of a kernel."""
    return f'@"igniter.kernel.{kernel}"'


def slot_symbol(kernel: str) -> str:
    """Returns the global, an i64, with a kernel's number in its library."""
    return f'@"igniter.slot.{kernel}"'
