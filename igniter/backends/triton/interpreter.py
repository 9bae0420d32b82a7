"""Kernels on numpy arrays, by Triton's interpreter: without a GPU, and without torch.

It runs the same text as the compiler takes, program by program, in a few milliseconds for a block of a thousand
elements. Calls of CUDA's device library become calls of numpy here, in f64, rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from igniter.backends.triton.compiler import load_source, part_of_triton, signature_of
from igniter.backends.triton.python_source import print_kernel
from igniter.dialects import triton as tt
from igniter.dialects.loop import AllocOp, FuncOp, IfOp, IfSharedOp, LaunchOp
from igniter.dialects.onnx.types import element_type as onnx_element_type
from igniter.dialects.sym import dims_of, element_of
from igniter.errors import IgniterError

Array = np.ndarray[Any, Any]
_INTERPRETER = "triton.runtime.interpreter"


def _round(x: Array) -> Array:
    """Rounds to nearest, ties away from 0."""
    return np.trunc(x + np.copysign(0.5, x))


_NUMPY: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "copysign": np.copysign,
    "cosh": np.cosh,
    "expm1": np.expm1,
    "fmod": np.fmod,
    "log10": np.log10,
    "log1p": np.log1p,
    "pow": np.power,
    "rint": np.rint,
    "round": _round,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}


class _DeviceLibrary:
    """`libdevice` implemented in numpy."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = _NUMPY.get(name)
        if function is None:
            raise IgniterError(f"the interpreter has no function '{name}' of CUDA's device library")

        def call(*args: Any) -> Any:
            first = args[0]
            with np.errstate(all="ignore"):
                made = function(*(np.asarray(a.handle.data, np.float64) for a in args))
            return _tensor(made.astype(first.handle.data.dtype), first.handle.dtype, first.type)

        return call


def run_source(text: str, signature: Sequence[str], grid: Sequence[int], arguments: Sequence[Any]) -> None:
    """Runs a launch of a kernel's text. Arguments are numbers and arrays, or addresses of arrays; arrays change in
    place. A descriptor is given as an array, or an address, and the sizes of its tensor."""
    _mend()
    # `triton` in the module of the kernel: its decorated functions are interpreted.
    decorator = SimpleNamespace(jit=part_of_triton(_INTERPRETER).InterpretedFunction)
    kernel = load_source(text, triton=decorator, libdevice=_DeviceLibrary(), range=_range)
    if min(grid, default=1) == 0:
        return
    given = [_argument(value, kind) for value, kind in zip(arguments, signature, strict=True)]
    with np.errstate(all="ignore"):
        kernel[tuple(grid)](*given)


@cache
def _mend() -> None:
    """Patches two errors of Triton 3.9: a comparison of scalars splats to a block of integers, which no load accepts as
    a mask, and products of bf16 multiply the bits as integers. Products in TF32 truncate their factors, as tensor cores
    do. Triton's reductions and scans combine single numbers, which takes half of the time of an attention; here they
    combine blocks."""
    interpreter, tl = part_of_triton(_INTERPRETER), part_of_triton("triton.language")
    multiply = interpreter.InterpreterBuilder.create_dot

    def create_splat(builder: Any, result: Any, value: Any) -> Any:
        element = result.scalar
        dtype = interpreter._get_np_dtype(element)
        return interpreter.TensorHandle(np.full(result.shape, value.data.reshape(-1)[0], dtype), element)

    def create_dot(builder: Any, a: Any, b: Any, *rest: Any) -> Any:
        if a.dtype.scalar == tl.float32 and str(rest[1]).endswith(".TF32"):
            a, b = (interpreter.TensorHandle(truncated(v.data), tl.float32) for v in (a, b))
        if a.dtype.scalar == tl.bfloat16:
            a, b = (
                interpreter.TensorHandle((v.data.astype(np.uint32) << 16).view(np.float32), tl.float32) for v in (a, b)
            )
        return multiply(builder, a, b, *rest)

    interpreter.InterpreterBuilder.create_splat = create_splat
    interpreter.InterpreterBuilder.create_dot = create_dot
    interpreter.ReduceOps.generic_reduce = _reduce
    interpreter.ScanOps.generic_scan = _scan


def truncated(values: Array) -> Array:
    """Returns f32 numbers with 10 bits of their mantissas, as tensor cores read them in TF32."""
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _reduce(reduction: Any, blocks: Sequence[Any]) -> list[Any]:
    """Folds blocks along the axis of a reduction: neighbours first, then their results, as a GPU does."""
    axis: int = reduction.axis
    kinds = [block.dtype for block in blocks]
    folded = [np.moveaxis(block.handle.data, axis, 0) for block in blocks]
    while (count := len(folded[0])) > 1:
        pairs = count // 2 * 2
        given = [*(data[0:pairs:2] for data in folded), *(data[1:pairs:2] for data in folded)]
        made: Any = reduction.combine_fn.fn(*map(reduction.to_tensor, given, kinds * 2))
        parts: Sequence[Any] = made if len(blocks) > 1 else (made,)
        folded = [np.concatenate((p.handle.data, d[pairs:])) for p, d in zip(parts, folded, strict=True)]
    kept = [np.moveaxis(data, 0, axis) if reduction.keep_dims else data[0] for data in folded]
    return list(map(reduction.to_tensor, kept, kinds))


def _scan(scan: Any, blocks: Sequence[Any]) -> list[Any]:
    """Scans blocks along the axis of a scan: each element is combined with the one before it, then with the sum of two
    at a distance of two, and so on, as a GPU does."""
    axis: int = scan.axis
    (block,) = blocks
    data = np.moveaxis(block.handle.data, axis, 0).copy()
    distance = 1
    while distance < len(data):
        before = np.concatenate((data[:distance], data[:-distance]))
        made = scan.combine_fn.fn(*(scan.to_tensor(d, block.dtype) for d in (before, data)))
        data = np.concatenate((data[:distance], made.handle.data[distance:]))
        distance *= 2
    return [scan.to_tensor(np.ascontiguousarray(np.moveaxis(data, 0, axis)), block.dtype)]


def _range(first: Any, end: Any, step: Any) -> Iterator[Any]:
    """Yields the indices of a loop, of the type of its bounds: Triton's interpreter would yield Python's numbers."""
    for k in range(*(int(v.handle.data.item()) for v in (first, end, step))):
        yield _tensor(np.array([k], first.handle.data.dtype), first.dtype, first.dtype)


def _argument(value: Any, kind: str) -> Any:
    """Returns an array's address, or a number, with its type: the interpreter would infer one from the value."""
    named = part_of_triton("triton.language").str_to_ty(kind, None)
    if kind.startswith("tensordesc"):
        base, sizes = value
        return _descriptor(base, sizes, named)
    if kind.startswith("*"):
        address = value
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous, "kernels read arrays as they lie"
            address = value.ctypes.data
        return _tensor(np.array([address], np.uint64), named, named)
    return _tensor(np.array([value], np.dtype(f"i{named.primitive_bitwidth // 8}")), named, named)


def _descriptor(base: Any, sizes: Sequence[int], named: Any) -> Any:
    """Returns the descriptor of a tensor whose elements lie row after row."""
    interpreter, tl = part_of_triton(_INTERPRETER), part_of_triton("triton.language")
    block = named.block_type
    pointer = tl.pointer_type(block.element_ty)
    address = base.ctypes.data if isinstance(base, np.ndarray) else base
    handle = interpreter.TensorHandle(np.array([address], np.uint64), pointer)
    strides = [prod(sizes[k + 1 :]) for k in range(len(sizes))]
    shape_handles = [interpreter.TensorHandle(np.array([n], np.int32), tl.int32) for n in sizes]
    stride_handles = [interpreter.TensorHandle(np.array([n], np.int64), tl.int64) for n in strides]
    padding = part_of_triton("triton._C.libtriton").ir.PADDING_OPTION.PAD_ZERO
    made = interpreter.TensorDescHandle(handle, shape_handles, stride_handles, [int(d) for d in block.shape], padding)
    made.validate()
    return tl.core.tensor_descriptor_base(made, block)


def _tensor(data: Array, element: Any, named: Any) -> Any:
    handle = part_of_triton(_INTERPRETER).TensorHandle(data, element)
    return part_of_triton("triton.language").tensor(handle, named)


def run_func(
    module: ModuleOp,
    func: FuncOp,
    inputs: Sequence[Array],
    symbols: Mapping[str, int],
    shared: Mapping[int, int] | None = None,
) -> list[Array]:
    """Runs a func of launches on arrays, with the kernels of its module. Unwritten memory is NaN, a large number, or a
    bool of 255. `shared` maps outputs to inputs with the same memory, which the func then changes."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, tt.FuncOp)}
    args = func.block.args
    arrays: dict[SSAValue, Array] = dict(zip(args, map(np.ascontiguousarray, inputs), strict=False))
    given = shared or {}
    outputs = [
        inputs[given[k]] if k in given else _unwritten(a.type, symbols) for k, a in enumerate(args[len(inputs) :])
    ]
    arrays.update(zip(args[len(inputs) :], outputs, strict=True))
    texts: dict[str, str] = {}
    for op in _statements(func.block, symbols, arrays):
        if isinstance(op, AllocOp):
            arrays[op.results[0]] = _unwritten(op.results[0].type, symbols)
        elif isinstance(op, LaunchOp):
            kernel = kernels[op.kernel]
            text = texts.setdefault(op.kernel, print_kernel(kernel))
            parameters: list[Any] = [*(arrays[b] for b in op.addressed), *(e.evaluate(symbols) for e in op.symbols)]
            sizes = [[e.evaluate(symbols) for e in each] for each in op.maps]
            parameters += [(arrays[b], each) for b, each in zip(op.mapped, sizes, strict=True)]
            run_source(text, signature_of(kernel), (op.grid.evaluate(symbols),), parameters)
    return outputs


def _statements(block: Block, symbols: Mapping[str, int], arrays: Mapping[SSAValue, Array]) -> Iterator[Operation]:
    """Returns the statements that run at the given sizes, with the given arrays."""
    for op in block.ops:
        if isinstance(op, IfSharedOp):
            one = arrays[op.first].ctypes.data == arrays[op.second].ctypes.data
            same = one and not any(d.evaluate(symbols) for d in op.differences)
            yield from _statements((op.shared if same else op.apart).block, symbols, arrays)
        elif not isinstance(op, IfOp):
            yield op
        elif all(guard.evaluate(symbols) >= 0 for guard in op.guards):
            yield from _statements(op.block, symbols, arrays)


def _unwritten(memref: Attribute, symbols: Mapping[str, int]) -> Array:
    dtype = onnx_element_type(element_of(memref)).dtype
    shape = [d.evaluate(symbols) for d in dims_of(memref)]
    made = np.zeros(shape, dtype)
    made.reshape(-1).view(np.uint8).fill(0xFF)
    return made
