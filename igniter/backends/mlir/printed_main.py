"""A function `main` for MLIR's runner: it calls a kernel on constants, and prints the results exactly.

Every result is printed as integers, one a line: its sizes, then the bits of its elements in row-major order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from igniter.backends.mlir.kernels import free_symbols, kernel_module
from igniter.backends.mlir.loops import for_loop
from igniter.backends.mlir.text import Writer, element_text, parts, results_text, symbol_name, tensor_text
from igniter.dialects.loop import KernelOp
from igniter.dialects.sym import dims_of


def with_main(kernel: KernelOp, inputs: Sequence[NDArray[Any]], symbols: Mapping[str, int]) -> str:
    """Returns a module with a kernel and a `main` that calls it on `inputs`; `symbols` are those that no input has."""
    writer = Writer(kernel.sym_name.data)
    given: list[str] = []
    for array, argument in zip(inputs, kernel.block.args, strict=True):
        element, kind = element_text(argument.type), tensor_text(argument.type)
        constant = f"tensor<{'x'.join((*map(str, array.shape), element))}>"
        name = writer.let("a", f"arith.constant dense<{_elements(array)}> : {constant}")
        given.append(name if constant == kind else writer.let("a", f"tensor.cast {name} : {constant} to {kind}"))
    given += [writer.index(symbols[s]) for s in free_symbols(kernel)]
    types = [tensor_text(a.type) for a in kernel.block.args] + ["index"] * len(free_symbols(kernel))
    results = [tensor_text(t) for t in kernel.declared_types]
    call = f"func.call {symbol_name(kernel.sym_name.data)}({', '.join(given)}) : ({', '.join(types)})"
    name = writer.fresh("r")
    count = f":{len(results)}" if len(results) > 1 else ""
    writer.line(f"{name}{count} = {call} -> {results_text(results)}")
    for value, kind in zip(parts(name, len(results)), kernel.declared_types, strict=True):
        sizes = [
            writer.let("n", f"tensor.dim {value}, {writer.index(k)} : {tensor_text(kind)}")
            for k in range(len(dims_of(kind)))
        ]
        for size in sizes:
            writer.line(f"vector.print {size} : index")
        _print_elements(writer, value, tensor_text(kind), element_text(kind), sizes, [])
    writer.line("return")
    module = kernel_module([kernel])
    return module.removesuffix("}\n") + "\n".join(("  func.func @main() {", *writer.lines, "  }", "}", ""))


def _elements(array: NDArray[Any]) -> str:
    """Returns the elements of a constant: their bytes in hexadecimal, but for booleans."""
    if array.size == 0:
        return ""
    if array.dtype == np.bool_:
        return str(array.tolist()).lower()
    return f'"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"'


def _print_elements(writer: Writer, value: str, kind: str, element: str, sizes: Sequence[str], at: list[str]) -> None:
    if len(at) < len(sizes):
        bounds = (writer.index(0), sizes[len(at)], writer.index(1))
        with for_loop(writer, "i", bounds, [], []) as counter:
            _print_elements(writer, value, kind, element, sizes, [*at, counter])
        return
    found = writer.let("v", f"tensor.extract {value}[{', '.join(at)}] : {kind}")
    width = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}.get(element)
    if width is not None:
        found = writer.let("v", f"arith.bitcast {found} : {element} to i{width}")
        element = f"i{width}"
    if element != "i64":
        found = writer.let("v", f"{'arith.extui' if element == 'i1' else 'arith.extsi'} {found} : {element} to i64")
    writer.line(f"vector.print {found} : i64")
