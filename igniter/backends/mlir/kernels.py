"""Structured kernels as functions of `linalg` on tensors: `igniter-opt --emit=linalg`.

    loop.kernel @r0 symbols [n] (%x: tensor<?xf32>) -> ..    func.func @r0(%arg0: tensor<?xf32>) -> tensor<?xf32>
      loop.nest "relu" ...                                      linalg.generic ...

A symbol is the size of a dim of an argument (`tensor.dim`), or follows from one (`2*n + 1`); a symbol that follows from
none is an argument of type `index`, after the tensors and in the order of the kernel's symbols. Requirements are
`cf.assert`, variants `scf.if`, views `tensor.reshape`. The last results may be data checks, as in the kernel. What only
says how a kernel runs is no part of this level: schedules and typical sizes are comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp

from igniter.backends.mlir.expressions import Expressions
from igniter.backends.mlir.nests import write_nest
from igniter.backends.mlir.procedures import write_procedure
from igniter.backends.mlir.tensors import Tensors
from igniter.backends.mlir.text import (
    MlirRefusal,
    Writer,
    heading,
    parts,
    results_text,
    string,
    symbol_name,
    tensor_text,
)
from igniter.dialects.loop import KernelOp, NestOp, ProcedureOp, ViewOp
from igniter.dialects.loop.variants import guards_of
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.bind_symbols import Bind, Solve, bind_symbols
from igniter.dialects.sym.expr import Call, Expr, floordiv
from igniter.dialects.sym.requirements import Requirement


def emit_linalg(module: ModuleOp) -> str:
    """Returns the structured kernels of a module as text of MLIR; raises `MlirRefusal` if it has none."""
    kernels = [op for op in module.ops if isinstance(op, KernelOp)]
    if not kernels:
        raise MlirRefusal(
            "--emit=linalg writes structured kernels, and the module has none: lower it first, with 'cpu-onnx,"
            "cpu-fusion,cpu-loop' for instance"
        )
    return kernel_module(kernels)


def kernel_module(kernels: Iterable[KernelOp]) -> str:
    """Returns a module of kernels as text of MLIR."""
    return "\n".join(("module {", *(line for kernel in kernels for line in _Function(kernel).write()), "}", ""))


def free_symbols(kernel: KernelOp) -> list[str]:
    """Returns the symbols that no dim of an argument determines: the function's arguments after its tensors."""
    bound = bind_symbols([(dims_of(a.type), True) for a in kernel.block.args]).bound
    return [s for s in kernel.symbol_names if s not in bound]


class _Function:
    """The text of one kernel."""

    def __init__(self, kernel: KernelOp):
        self.kernel = kernel
        self.writer = Writer(kernel.sym_name.data)
        self.tensors = Tensors(self.writer)
        self.arguments = [self.writer.fresh("arg0" if k == 0 else f"arg{k}") for k in range(len(kernel.block.args))]

    def write(self) -> list[str]:
        kernel = self.kernel
        given = [f"{n}: {tensor_text(a.type)}" for n, a in zip(self.arguments, kernel.block.args, strict=True)]
        for name in free_symbols(kernel):
            self.tensors.symbols[name] = self.writer.fresh(name)
            given.append(f"{self.tensors.symbols[name]}: index")
        self._bind()
        for requirement in kernel.requires:
            self._require(requirement)
        names = self._version(guards_of(kernel))
        types = [tensor_text(t) for t in kernel.declared_types]
        self.writer.line(f"return {', '.join(names)} : {', '.join(types)}" if names else "return")
        results = f" -> {results_text(types)}" if types else ""
        head = f"  func.func {symbol_name(kernel.sym_name.data)}({', '.join(given)}){results}"
        return [f"{head} attributes {{llvm.emit_c_interface}} {{", *self.writer.lines, "  }"]

    def _bind(self) -> None:
        """Writes the sizes of symbols."""
        args = self.kernel.block.args
        for step in bind_symbols([(dims_of(a.type), True) for a in args], self.tensors.symbols).steps:
            if not isinstance(step, (Bind, Solve)) or step.symbol in self.tensors.symbols:
                continue
            axis = self.writer.index(step.axis)
            text = f"tensor.dim {self.arguments[step.input]}, {axis} : {tensor_text(args[step.input].type)}"
            if isinstance(step, Bind):
                self.tensors.symbols[step.symbol] = self.writer.let(step.symbol, text)
                continue
            size = "$size"
            local = Expressions(self.writer, {**self.tensors.symbols, size: self.writer.let("size", text)})
            value = floordiv(Expr.of(size) - step.rest, Expr.of(step.coefficient))
            self.tensors.symbols[step.symbol] = local.value(value)

    def _require(self, requirement: Requirement) -> None:
        """Writes an assertion of a requirement; a divisor that is not positive breaks it too."""
        local = Expressions(self.writer, self.tensors.symbols)
        text = string(f"{self.kernel.sym_name.data}: {requirement.text}")
        for divisor in dict.fromkeys((*_divisors(requirement.left), *_divisors(requirement.right))):
            self.writer.line(f"cf.assert {local.relation(Expr.of(1), '<=', divisor)}, {text}")
        self.writer.line(f"cf.assert {local.relation(*requirement.fact)}, {text}")

    def _version(self, versions: Sequence[tuple[KernelOp, tuple[Expr, ...]]]) -> list[str]:
        """Writes the first version whose condition holds; returns the names of its results."""
        version = versions[0][0]
        if len(versions) == 1:
            return self._body(version)
        assert version.when is not None
        left, right = version.when.data
        holds = Expressions(self.writer, self.tensors.symbols).relation(left, "<=", right)
        types = ", ".join(tensor_text(t) for t in version.declared_types)
        name, count = self.writer.fresh(version.sym_name.data), len(version.declared_types)
        self.writer.line(f"{heading(name, count)} = scf.if {holds} -> ({types}) {{")
        with self.writer.deeper():
            self.writer.line(f"scf.yield {', '.join(self._body(version))} : {types}")
        self.writer.line("} else {")
        with self.writer.deeper():
            self.writer.line(f"scf.yield {', '.join(self._version(versions[1:]))} : {types}")
        self.writer.line("}")
        return parts(name, count)

    def _body(self, version: KernelOp) -> list[str]:
        """Writes the ops of a kernel or of one of its variants; returns the names of the results."""
        self.tensors.names.update(zip(version.block.args, self.arguments, strict=True))
        for op in version.block.ops:
            if isinstance(op, NestOp):
                write_nest(self.tensors, op)
            elif isinstance(op, ProcedureOp):
                write_procedure(self.tensors, op)
            elif isinstance(op, ViewOp):
                dims = dims_of(op.result.type)
                source = self.tensors.names[op.source]
                self.tensors.names[op.result] = self.tensors.reshaped(source, op.source.type, dims, op.result.type)
            elif op is not version.block.last_op:
                raise self.writer.refuse(f"'{op.name}'", "it is no op of a structured kernel")
        return [self.tensors.names[v] for v in version.returned]


def _divisors(e: Expr) -> Iterator[Expr]:
    """Gives the divisors of an expression that are no constants."""
    for monomial, _ in e.terms:
        yield from (d for atom in monomial if isinstance(atom, Call) for d in _divisors_of(atom))


def _divisors_of(call: Call) -> Iterable[Expr]:
    if call.fn in ("floordiv", "mod") and call.args[1].constant is None:
        yield call.args[1]
    for arg in call.args:
        yield from _divisors(arg)
