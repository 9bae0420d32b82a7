"""MLIR text as functions on NumPy arrays: stock MLIR lowers it, llvmlite compiles it, ctypes calls it.

An array is passed as MLIR's strided memref descriptor: the allocated and the aligned pointer, an offset, and sizes and
strides in elements. An `int` is passed as `index` or `i64`, a NumPy scalar by its type. Functions are called by their
C interface, `_mlir_ciface_NAME`, that the pass `--llvm-request-c-wrappers` adds.

Code in this process can end it: `cf.assert` calls `abort`, and a wrong pass can produce any access. `call_isolated`
runs a call in a process of its own and raises `MlirError` instead.
"""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from igniter.runtime.mlir_tools import LINALG_PASSES, TIMEOUT, MlirError, MlirTools, to_llvm_ir
from igniter.runtime.small_floats import conversions

Array = NDArray[Any]

Result = tuple[Any, int | None]
"""The dtype and the rank of a result; the rank is None for a scalar."""

ADDRESS = ctypes.c_void_p
COPY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ADDRESS, ADDRESS)


class MlirLibrary:
    """Functions of MLIR, compiled into this process."""

    def __init__(self, ir: str):
        """`ir` is LLVM IR by `mlir-translate`."""
        self.ir = ir
        llvm = _llvm()
        context = llvm.create_context()
        try:
            module = llvm.parse_assembly(ir, context)
        except RuntimeError as error:
            version = ".".join(map(str, llvm.llvm_version_info))
            raise MlirError(f"llvmlite (LLVM {version}) cannot read the LLVM IR of mlir-translate: {error}")
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=1,
            reloc="pic",
            codemodel="jitdefault",
            jit=True,
        )
        self._engine = llvm.create_mcjit_compiler(module, machine)
        weakref.finalize(self, _release, self._engine, context).atexit = False
        helpers = conversions(ir)
        if helpers:
            self._engine.add_module(llvm.parse_assembly(helpers, context))
        self._engine.finalize_object()

    def call(
        self, name: str, arguments: Sequence[Any], results: Sequence[Result] = (), strided: bool = False
    ) -> list[Array]:
        """Returns the results of `@name` for `arguments`, as arrays of their own (rank 0 for a scalar).

        Memref arguments are written in place. Arrays must be C-contiguous unless `strided`: a memref without a layout
        ignores the strides of its descriptor. Buffers that the function allocated for its results are freed.
        """
        address = self._engine.get_function_address(f"_mlir_ciface_{name}")
        if not address:
            raise MlirError(f"the library has no function @{name} with a C interface (llvm.emit_c_interface)")
        passed = [_passed(a, k, name, strided) for k, a in enumerate(arguments)]
        fields = [_field(dtype, rank) for dtype, rank in results]
        if len(results) == 1 and results[0][1] is None:
            return [np.asarray(_invoke(address, fields[0], passed), results[0][0])]
        holder = _structure(tuple(fields))() if fields else None
        _invoke(address, None, passed if holder is None else [holder, *passed])
        return _unpacked(holder, results, [cast("Array", a) for a in arguments if isinstance(a, np.ndarray)])


def compile_mlir(text: str, passes: Sequence[str] = LINALG_PASSES, tools: MlirTools | None = None) -> MlirLibrary:
    """Compiles a text that `passes` lower to the LLVM dialect."""
    return MlirLibrary(to_llvm_ir(text, passes, tools))


def call_isolated(
    ir: str, name: str, arguments: Sequence[Any], results: Sequence[Result] = (), timeout: float = TIMEOUT
) -> list[Array]:
    """Returns the results of a call of LLVM IR in a process of its own. Raises `MlirError` if the process ends
    otherwise: a failed assertion, a signal, the timeout. Arrays written in place are not returned."""
    with tempfile.TemporaryDirectory(prefix="igniter-mlir-") as folder:
        given, made = Path(folder, "given"), Path(folder, "made")
        given.write_bytes(pickle.dumps((ir, name, list(arguments), list(results))))
        command = [sys.executable, "-u", "-m", "igniter.runtime.mlir_library", str(given), str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise MlirError(f"@{name} did not end within {timeout:.0f} s")
        if done.returncode or not made.exists():
            how = f"status {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
            message = (done.stdout + done.stderr).strip()[-2000:]
            raise MlirError(f"the process of @{name} ended with {how}{': ' + message if message else ''}")
        return pickle.loads(made.read_bytes())


def _release(engine: Any, context: Any) -> None:
    """Disposes of an engine before the context of its module, which this argument keeps until then."""
    engine.close()
    del context


@cache
def _llvm() -> Any:
    """Returns llvmlite, with the native target and the functions that MLIR's code calls."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol("memrefCopy", ctypes.cast(_COPY, ADDRESS).value)
    return llvm


# Descriptors.


@cache
def _descriptor(rank: int) -> type[ctypes.Structure]:
    fields: list[Any] = [("allocated", ADDRESS), ("aligned", ADDRESS), ("offset", ctypes.c_int64)]
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"Memref{rank}", (ctypes.Structure,), {"_fields_": fields})


@cache
def _structure(fields: tuple[Any, ...]) -> type[ctypes.Structure]:
    return type("Results", (ctypes.Structure,), {"_fields_": [(f"r{k}", t) for k, t in enumerate(fields)]})


def _field(dtype: Any, rank: int | None) -> Any:
    return _scalar_type(np.dtype(dtype)) if rank is None else _descriptor(rank)


def _scalar_type(dtype: np.dtype[Any]) -> Any:
    try:
        return np.ctypeslib.as_ctypes_type(dtype)
    except NotImplementedError:
        raise MlirError(f"a scalar of {dtype} cannot be passed by value; pass an array of rank 0")


def _invoke(address: int, result: Any, values: Sequence[Any]) -> Any:
    """Calls a function; structures are passed by reference."""
    by_reference = [isinstance(v, ctypes.Structure) for v in values]
    types: list[Any] = [ADDRESS if b else type(v) for v, b in zip(values, by_reference, strict=True)]
    passed: list[Any] = [ctypes.addressof(v) if b else v for v, b in zip(values, by_reference, strict=True)]
    return ctypes.CFUNCTYPE(result, *types)(address)(*passed)


def _passed(value: Any, place: int, name: str, strided: bool) -> Any:
    """Returns one argument as a ctypes value."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        if not strided and not array.flags.c_contiguous:
            raise MlirError(f"argument {place} of @{name} must be C-contiguous; its memref has no strides")
        return _described(array)
    if isinstance(value, np.generic):
        scalar = cast("np.generic[Any]", value)
        return _scalar_type(scalar.dtype)(scalar.item())
    if isinstance(value, int):
        return ctypes.c_int64(value)
    raise MlirError(f"argument {place} of @{name} is a {type(value).__name__}, not an array, a NumPy scalar or an int")


def _described(array: Array) -> ctypes.Structure:
    """Returns the descriptor of an array."""
    descriptor: Any = _descriptor(array.ndim)()
    descriptor.allocated = descriptor.aligned = array.ctypes.data
    descriptor.offset = 0
    for axis in range(array.ndim):
        stride, left = divmod(array.strides[axis], array.itemsize)
        if left:
            raise MlirError(
                f"the stride {array.strides[axis]} is no multiple of the {array.itemsize} bytes of an element"
            )
        descriptor.sizes[axis] = array.shape[axis]
        descriptor.strides[axis] = stride
    return descriptor


def _view(descriptor: Any, dtype: np.dtype[Any], rank: int) -> Array:
    """Returns the memory of a descriptor as an array, without a copy."""
    shape = tuple(descriptor.sizes[k] for k in range(rank))
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = tuple(descriptor.strides[k] * dtype.itemsize for k in range(rank))
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
    first = descriptor.aligned + descriptor.offset * dtype.itemsize
    memory: Any = (ctypes.c_uint8 * (high - low)).from_address(first + low)
    return np.ndarray(shape, dtype, memory, -low, strides)


def _unpacked(holder: Any, results: Sequence[Result], inputs: Sequence[Array]) -> list[Array]:
    """Returns copies of the results, and frees their buffers, except those of inputs."""
    arrays: list[Array] = []
    owned: set[int] = set()
    given = {a.ctypes.data for a in inputs}
    for k, (dtype, rank) in enumerate(results):
        field = getattr(holder, f"r{k}")
        if rank is None:
            arrays.append(np.asarray(field, dtype))
            continue
        arrays.append(_view(field, np.dtype(dtype), rank).copy())
        if field.allocated and field.allocated not in given:
            owned.add(field.allocated)
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ADDRESS], None
    for address in owned:
        free(address)
    return arrays


class _Unranked(ctypes.Structure):
    _fields_ = (("rank", ctypes.c_int64), ("descriptor", ADDRESS))


def _copy_memref(size: int, source: int, target: int) -> None:
    """Copies between two memrefs with strides: the function `memrefCopy` of MLIR's run time."""
    views: list[Array] = []
    for address in (source, target):
        unranked = _Unranked.from_address(address)
        descriptor = _descriptor(unranked.rank).from_address(unranked.descriptor)
        views.append(_view(descriptor, np.dtype(f"V{size}"), unranked.rank))
    views[1][...] = views[0]


_COPY = COPY(_copy_memref)


def _serve(given: str, made: str) -> None:
    """Runs one call that `call_isolated` wrote."""
    ir, name, arguments, results = pickle.loads(Path(given).read_bytes())
    Path(made).write_bytes(pickle.dumps(MlirLibrary(ir).call(name, arguments, results)))


if __name__ == "__main__":
    _serve(*sys.argv[1:])
