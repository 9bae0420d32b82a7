"""`igniter.jit`: a function of `linalg`, or a kernel, as a Python callable on NumPy arrays.

    scale = igniter.jit("scale.mlir")
    y = scale(x, s)

The function is lowered (`lower-linalg-to-loop`), scheduled by the target's author and compiled in memory. A call checks
the arguments against the function's types and requirements before it runs. `Function.address` is the machine code for
callers by ctypes, with the kernel's own signature:

    void f(void **buffers, const int64_t *symbols, void *scratch, void *parallel_for, void *context)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import func
from xdsl.utils.exceptions import VerifyException

from igniter.analysis.structured.kernel_signature import Argument, KernelSignature, signature_of
from igniter.compiler.arguments import WrongArgument
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.requirements import FINE
from igniter.errors import IgniterError
from igniter.module import Module, parse
from igniter.targets import backend_for
from igniter.toolbox.kernel.workbench import schedule
from igniter.verification.interp.arithmetic import InterpreterError
from igniter.verification.interp.structured import bind

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]


def jit(source: str | PathLike[str] | Module, name: str = "", *, target: str = "native") -> Function:
    """Returns a function of `source`, compiled for `target`.

    `source` is the text of a module, the path of a `.mlir` file, or a module. `name` selects one of several public
    functions, or kernels. Raises `IgniterError` for an op without a lowering, with its line.
    """
    kernel = kernel_of(source, name)
    return Function(kernel, target)


def kernel_of(source: str | PathLike[str] | Module, name: str = "") -> KernelOp:
    """Returns the structured kernel of a function, with its signature; `IgniterError` lists the functions if `name`
    does not select one."""
    module = source.clone() if isinstance(source, Module) else _parsed(source)
    try:
        module.ir.verify()
    except VerifyException as error:
        raise IgniterError(f"the module is invalid: {error}") from error
    if any(isinstance(op, func.FuncOp) for op in module.ir.walk()):
        module.run_passes(f"lower-linalg-to-loop{{function={name}}}" if name else "lower-linalg-to-loop")
    kernels = {op.sym_name.data: op for op in module.ir.ops if isinstance(op, KernelOp)}
    found = kernels.get(name)
    if found is None and not name and len(kernels) == 1:
        (found,) = kernels.values()
    if found is None:
        listed = ", ".join(f"'{n}'" for n in kernels) or "none"
        raise IgniterError(f"{f'there is no function {name!r}' if name else 'name one of the functions'}: {listed}")
    found.detach()
    return found


def _parsed(source: str | PathLike[str]) -> Module:
    if isinstance(source, str) and ("\n" in source or "func.func" in source or "loop.kernel" in source):
        return parse(source)
    if not isinstance(cast("object", source), (str, PathLike)):
        raise WrongArgument("jit", "source", "the path of a .mlir file, the text of a module, or a Module", source)
    path = Path(fspath(source))
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise IgniterError(
            f"{path} is no text: jit takes MLIR (a .mlir file, the text of a module, or a Module); "
            "igniter.compile takes an ONNX model"
        ) from error
    except OSError as error:
        raise IgniterError(
            f"cannot read {path}: {error.strerror}; give a .mlir file, or the text of a module"
        ) from error


class Function:
    """A compiled function. Call it with NumPy arrays, and integers for `index` arguments."""

    def __init__(self, kernel: KernelOp, target: str = "native"):
        backend = backend_for(target)
        self.name = kernel.sym_name.data
        self.kernel = kernel
        self.signature = signature_of(kernel) or _plain_signature(kernel)
        self.target = backend.target_of(target)
        self.func: FuncOp = schedule(self.name, kernel, self.target).func
        self._compiled = backend.compile_func(self.func, self.target)
        self._weights = [
            np.ascontiguousarray(a.weight.array()) for a in self.signature.arguments if a.weight is not None
        ]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of a call, without the weights."""
        return tuple(a for a in self.signature.arguments if a.weight is None)

    @property
    def address(self) -> int:
        """The address of the machine code. The buffers of a call are the tensors of the arguments, the weights, the
        results, and one i64 per check; the symbols are those of `func`, in order."""
        found = getattr(self._compiled, "address", 0)
        if not found:
            raise IgniterError(f"'{self.name}' has no address in this process: it is compiled for {self.target.name}")
        return found

    @property
    def weights(self) -> tuple[Array, ...]:
        """The constants of the function, which a call by address passes after its arguments."""
        return tuple(self._weights)

    def scratch_bytes(self, **symbols: int) -> int:
        """Returns the bytes of scratch memory of a call, aligned to 64, at sizes of the symbols."""
        found = self.func.scratch_bytes
        return 0 if found is None else found.evaluate(symbols)

    def __call__(self, *args: Any, threads: int = 1) -> Any:
        """Returns the result for these arguments, or a tuple of the results.

        Raises `IgniterError` for arguments of another number, type or size, for sizes that a requirement forbids, and
        for data that a check forbids.
        """
        tensors, sizes = self._given(args)
        try:
            env = bind(self.kernel, tensors, sizes)
        except InterpreterError as error:
            raise IgniterError(f"{self.name}: {self._named(error.message)}") from error
        for requirement in self.kernel.requires:
            if not requirement.holds(env):
                where = f"{requirement.node}: " if requirement.node is not None else ""
                raise IgniterError(f"{self.name}: {where}{requirement.text} ({requirement} does not hold)")
        results = [self._result(v.type, env) for v in self.func.block.args[len(tensors) :]]
        symbols = {n: env[n] for n in self.func.symbol_names}
        self._compiled(*tensors, *results, threads=threads, **symbols)
        count = len(results) - len(self.func.checks)
        for check, found in zip(self.func.checks, results[count:], strict=True):
            if found != FINE:
                where = f"{check.node}: " if check.node is not None else ""
                raise IgniterError(f"{self.name}: {where}{check.text}: {int(found)}")
        return results[0] if count == 1 else tuple(results[:count])

    def _named(self, message: str) -> str:
        """Returns a message with the names of arguments in the place of their numbers."""
        names = [a.name for a in self.signature.tensors]
        return re.sub(r"input (\d+)", lambda m: f"argument '{names[int(m[1])]}'", message)

    @staticmethod
    def _result(kind: Any, env: Mapping[str, int]) -> Array:
        shape = [d.evaluate(dict(env)) for d in dims_of(kind)]
        return np.empty(shape, BY_ATTR[element_of(kind)].dtype)

    def _given(self, args: Sequence[Any]) -> tuple[list[Array], dict[str, int]]:
        """Returns the tensors of a call, with the weights, and the values of its `index` arguments."""
        wanted = self.arguments
        if len(args) != len(wanted):
            names = ", ".join(a.name for a in wanted)
            raise IgniterError(f"{self.name} takes {len(wanted)} arguments ({names}), not {len(args)}")
        kinds = iter(a.type for a in self.kernel.block.args)
        tensors: list[Array] = []
        sizes: dict[str, int] = {}
        for argument, value in zip(wanted, args, strict=True):
            if argument.index:
                sizes[argument.name] = self._index(argument.name, value)
                continue
            tensors.append(self._tensor(argument.name, next(kinds), value))
        return [*tensors, *self._weights], sizes

    def _index(self, name: str, value: Any) -> int:
        if not isinstance(value, bool) and hasattr(value, "__index__") and operator.index(value) >= 0:
            return operator.index(value)
        raise IgniterError(f"{self.name}: argument '{name}' is an index: give an integer of at least 0, not {value!r}")

    def _tensor(self, name: str, kind: Any, value: Any) -> Array:
        dtype = BY_ATTR[element_of(kind)].dtype
        # A Python number or list has no type of its own.
        array: Array = np.asarray(value, None if hasattr(value, "dtype") else dtype)
        if array.dtype != dtype:
            raise IgniterError(f"{self.name}: argument '{name}' has type {array.dtype}, not {dtype}; convert it first")
        return np.ascontiguousarray(array).reshape(array.shape)

    def __repr__(self) -> str:
        names = ", ".join(a.name for a in self.arguments)
        return f"<igniter.Function {self.name}({names}) for {self.target.name}>"


def _plain_signature(kernel: KernelOp) -> KernelSignature:
    """Returns the signature of a kernel that was written as one: its arguments by their names in the text."""
    args = [Argument(a.name_hint or f"arg{k}") for k, a in enumerate(kernel.block.args)]
    results = len(kernel.declared_types) - len(kernel.checks)
    return KernelSignature(tuple(args), tuple(f"result{k}" for k in range(results)))


__all__ = ["Function", "jit", "kernel_of"]
