"""A function of `linalg` on tensors as a kernel: its arguments, its ops one by one, its results.

Arguments and results of the kernel are tensors; a scalar argument is a tensor of rank 0, and an `index` argument is a
symbol without a tensor. Large constants become further arguments, weights (`KernelSignature`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from xdsl.dialects import affine, arith, cf, func
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IndexType,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.analysis.structured.kernel_signature import Argument, KernelSignature
from igniter.dialects.linalg import SoftmaxOp, StructuredOp
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.attrs import is_float, is_storable
from igniter.dialects.onnx.lowering.builder import KernelBuilder, Nest
from igniter.dialects.onnx.lowering.constants import constant_tensor, is_inline
from igniter.dialects.onnx.lowering.scalar import int_bits
from igniter.dialects.onnx.types import element_type
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.source import blob_of
from igniter.dialects.sym import DimsAttr, dims_of, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import NO_RANGES
from igniter.dialects.sym.requirements import at_most
from igniter.transforms.conversion.linalg.bodies import BodyEmitter, Reads
from igniter.transforms.conversion.linalg.errors import refused
from igniter.transforms.conversion.linalg.facts import Facts, Unified
from igniter.transforms.conversion.linalg.known import Known, constant, decided, fold, of_constant
from igniter.transforms.conversion.linalg.scalars import SCALAR_OPS, body_type
from igniter.transforms.conversion.linalg.softmax import lower_softmax
from igniter.transforms.conversion.linalg.space import finish
from igniter.transforms.conversion.linalg.structured import lower_structured
from igniter.transforms.conversion.linalg.tensors import TENSOR_OPS, matched
from igniter.transforms.conversion.linalg.values import Scope, Sizes, Value, static_dims, stored_element

MOST_SIZES = 16
"""The most elements of an integer constant whose elements may be sizes."""
MOST_CALLS = 64
"""The depth of calls inlined: a deeper one is taken for a recursion."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class FunctionLowering:
    """The lowering of one function, from its arguments to its kernel."""

    def __init__(self, op: func.FuncOp, functions: Mapping[str, func.FuncOp]):
        self.op = op
        self.functions = functions
        self.facts = Facts()

    def run(self) -> tuple[KernelOp, KernelSignature]:
        """Returns the kernel and its signature; raises `LinalgError` for an op without a lowering."""
        while True:
            try:
                return self._run()
            except Unified:
                continue

    def _run(self) -> tuple[KernelOp, KernelSignature]:
        op, self.facts.requires = self.op, []
        if not op.body.blocks or len(op.body.blocks) > 1:
            raise refused(op, "it is not a function of one block; inline its branches or give its body")
        self.arguments: list[Argument] = []
        self.weights: dict[Attribute, SSAValue] = {}
        kinds = [self._argument(k, arg) for k, arg in enumerate(op.body.block.args)]
        tensors = [k for k in kinds if k is not None]
        self.scope = Scope(KernelBuilder(tensors, self.facts.order), self.facts)
        for arg, given in zip(self.scope.kernel.args, [a for a in self.arguments if not a.index], strict=True):
            arg.name_hint = given.name
        args = iter(self.scope.kernel.args)
        for arg, kind, given in zip(op.body.block.args, kinds, self.arguments, strict=True):
            self.scope.values[arg] = Known(expr=Expr.of(given.name)) if kind is None else next(args)
        results = self._block(op, 0)
        kernel = self.scope.kernel
        tensors = [self._result(op, v, t) for v, t in zip(results, op.function_type.outputs.data, strict=True)]
        kernel.requires += self.facts.requires
        made = kernel.finish(op.sym_name.data, tensors)
        names = [f"result{k}" for k in range(len(tensors))]
        return made, KernelSignature(tuple(self.arguments), tuple(names))

    # -- arguments and results -----------------------------------------------------------------------------------------

    def _argument(self, number: int, arg: SSAValue) -> Attribute | None:
        """Returns the tensor type of an argument in the kernel; None for an index, which is a symbol."""
        name = arg.name_hint if arg.name_hint and _NAME.fullmatch(arg.name_hint) else f"arg{number}"
        if any(a.name == name for a in self.arguments):
            name = f"{name}_{number}"
        kind: Attribute = arg.type
        if isinstance(kind, IndexType):
            self.arguments.append(Argument(name, index=True))
            return None
        self.arguments.append(Argument(name))
        if isinstance(kind, TensorType):
            return self._tensor_type(name, cast("TensorType[Attribute]", kind))
        if not is_float(kind) and not int_bits(kind):
            raise refused(self.op, f"argument {number} is {kind}; use ranked tensors, numbers or index")
        return tensor_of(self._element(kind), [])

    def _element(self, kind: Attribute) -> Attribute:
        element = stored_element(kind)
        if not is_storable(element):
            raise refused(
                self.op, f"there are no tensors of {kind} in kernels; use floats, or integers of 1 to 64 bits"
            )
        return element

    def _tensor_type(self, name: str, kind: TensorType[Attribute]) -> Attribute:
        """Returns a tensor type with a symbol for each dynamic dim, by its own name where it has `#sym.dims`."""
        element = self._element(kind.element_type)
        if isinstance(kind.encoding, DimsAttr):
            dims = [d.substitute({s: self.facts.symbol(s) for s in sorted(d.symbols)}) for d in kind.encoding.data]
            return tensor_of(element, dims)
        shape = static_dims(kind)
        return tensor_of(element, [self.facts.symbol(f"{name}_d{k}") if d is None else d for k, d in enumerate(shape)])

    def _result(self, op: Operation, value: SSAValue, kind: Attribute) -> SSAValue:
        """Returns a result of the function as a tensor of the kernel."""
        if isinstance(kind, TensorType):
            made = self.scope.tensor(value, op)
            matched(self.scope, op, value.type, dims_of(made.type), "a result differs from the function's type")
            return made
        known = self.scope.known(value, op)
        if known is None:
            return self.scope.tensor(value, op)
        nest = self.scope.kernel.nest("result")
        made = BodyEmitter(self.scope, Reads(nest), [], {}, op).scalar(value, op)
        return finish(nest, made, [], tensor_of(body_type(op, kind), []))

    # -- ops -----------------------------------------------------------------------------------------------------------

    def _block(self, op: func.FuncOp, depth: int) -> list[SSAValue]:
        """Lowers the ops of a function; returns the returned values."""
        for each in op.body.block.ops:
            if isinstance(each, func.ReturnOp):
                return list(each.operands)
            if isinstance(each, func.CallOp):
                self._call(each, depth)
            else:
                self._lower(each)
        raise refused(op, "it does not end with func.return")

    def _call(self, op: func.CallOp, depth: int) -> None:
        callee = self.functions.get(op.callee.root_reference.data)
        if callee is None or not callee.body.blocks:
            raise refused(op, f"there is no body of {op.callee}; give the function in the same module")
        if depth == MOST_CALLS:
            raise refused(op, f"{op.callee} is called recursively; write it without recursion")
        for arg, value in zip(callee.body.block.args, op.arguments, strict=True):
            self.scope.values[arg] = self.scope.of(value, op)
        for result, value in zip(op.res, self._block(callee, depth + 1), strict=True):
            self.scope.values[result] = self.scope.of(value, op)

    def _lower(self, op: Operation) -> None:
        rule = TENSOR_OPS.get(type(op))
        if rule is not None:
            self.scope.values[op.results[0]] = rule(self.scope, op)
        elif isinstance(op, SoftmaxOp):
            lower_softmax(self.scope, op)
        elif isinstance(op, StructuredOp):
            lower_structured(self.scope, op)
        elif isinstance(op, arith.ConstantOp):
            self.scope.values[op.result] = self._constant(op)
        elif isinstance(op, cf.AssertOp):
            self._assert(op)
        elif isinstance(op, (affine.ApplyOp, affine.MinOp)) or op.name == "index.constant":
            self._size(op)
        elif op.name in SCALAR_OPS:
            self.scope.values[op.results[0]] = self._arithmetic(op)
        else:
            raise refused(op, _advice(op))

    def _size(self, op: Operation) -> None:
        """Lowers an op on sizes that has no other form."""
        nest = Nest(self.scope.kernel, "size")
        emitter = BodyEmitter(self.scope, Reads(nest), [], {}, op)
        emitter.emit_op(op)
        self.scope.values[op.results[0]] = emitter.known[op.results[0]]

    def _assert(self, op: cf.AssertOp) -> None:
        known = self.scope.known(op.arg, op)
        if known is None or known.truth is None:
            raise refused(op, "its condition depends on data; assert it in the body of an op, or remove it")
        if decided(known, NO_RANGES) is True:
            return
        self.facts.require(op, *known.needs)
        if known.equal:
            for a, b in known.equal:
                self.facts.equal(op, a, b, op.msg.data)
        else:
            self.facts.require(op, at_most(-known.truth, 0, op.msg.data))

    def _arithmetic(self, op: Operation) -> Value:
        """Lowers an op of arith or math on scalars, or on tensors element by element."""
        kind = op.results[0].type
        if isinstance(kind, TensorType):
            return self._pointwise(op, cast("TensorType[Attribute]", kind))
        found = [self.scope.known(v, op) for v in op.operands]
        args = [k for k in found if k is not None]
        folded = fold(op, args, NO_RANGES) if len(args) == len(found) else None
        if folded is not None:
            return folded
        nest = self.scope.kernel.nest("scalar")
        emitter = BodyEmitter(self.scope, Reads(nest), [], {}, op)
        emitter.emit_op(op)
        return finish(nest, emitter.scalar(op.results[0], op), [], tensor_of(body_type(op, kind), []))

    def _pointwise(self, op: Operation, kind: TensorType[Attribute]) -> Value:
        scope = self.scope
        only = scope.of(op.operands[0], op)
        if len(op.operands) == 1 and isinstance(only, Sizes) and op.name.startswith(("arith.index_cast", "arith.ext")):
            return Sizes(only.elements, only.dims, stored_element(kind.element_type))
        shapes = [scope.dims(v, op) for v in op.operands if isinstance(v.type, TensorType)]
        for shape in shapes[1:]:
            for a, b in zip(shapes[0], shape, strict=True):
                scope.facts.equal(op, a, b, "the dims of the operands differ")
        nest = scope.kernel.nest(op.name.partition(".")[2])
        axes = nest.axes(shapes[0])
        extents = {e.symbol: d for e, d in zip(axes, shapes[0], strict=True) if e.symbol is not None}
        emitter = BodyEmitter(scope, Reads(nest), axes, extents, op)
        for value in op.operands:
            if isinstance(value.type, TensorType):
                emitter.scalars[value] = BodyEmitter.typed(nest.read(scope.tensor(value, op), axes))
        made = emitter.computed(op, body_type(op, kind.element_type))
        return finish(nest, made, axes, tensor_of(stored_element(kind.element_type), shapes[0]))

    # -- constants -----------------------------------------------------------------------------------------------------

    def _constant(self, op: arith.ConstantOp) -> Value:
        known = of_constant(op.value)
        if known is not None:
            return known
        kind = op.result.type
        if not isinstance(kind, TensorType):
            raise refused(op, f"there are no constants of type {kind} in kernels; use scalars and ranked tensors")
        tensor = cast("TensorType[Attribute]", kind)
        element = self._element(tensor.element_type)
        array = self._array(op, tensor, element)
        integers = int_bits(element) == 64
        if integers and array.ndim < 2 and array.size <= MOST_SIZES:
            return Sizes(
                tuple(constant(int(v)) for v in array.reshape(-1)), dims_of(tensor_of(element, array.shape)), element
            )
        if is_inline(array):
            return constant_tensor(self.scope.kernel, array, tensor_of(element, array.shape))
        if op.value not in self.weights:
            kernel = self.scope.kernel
            made = kernel.block.insert_arg(tensor_of(element, array.shape), len(kernel.block.args))
            made.name_hint = f"weight{len(self.weights)}"
            self.arguments.append(Argument(f"weight{len(self.weights)}", weight=Weight.of(array)))
            self.weights[op.value] = made
        return self.weights[op.value]

    def _array(self, op: arith.ConstantOp, kind: TensorType[Attribute], element: Attribute) -> np.ndarray[Any, Any]:
        """Returns the values of a constant tensor."""
        shape, dtype, value = kind.get_shape(), element_type(element).dtype, op.value
        if isinstance(value, DenseResourceAttr):
            raw = blob_of(value)
            if raw is None:
                raise refused(op, f"the text has no blob '{value.resource_handle.data}' in its dialect_resources")
            flat = np.frombuffer(raw, dtype)
        elif isinstance(value, DenseIntOrFPElementsAttr):
            values = cast("DenseIntOrFPElementsAttr[Any]", value)
            bits = int_bits(element) == 1
            flat = np.array(list(values.get_values())).astype(dtype) if bits else np.frombuffer(values.data.data, dtype)
        else:
            raise refused(op, "its value is no list of elements; write dense<...> or dense_resource<...>")
        size = int(np.prod(shape, dtype=np.int64))
        if flat.size not in (1, size):
            raise refused(op, f"it has {flat.size} elements, and its type {size}")
        return (
            np.broadcast_to(flat if flat.size == size else flat[:1], (size,)).reshape(shape)
            if size
            else np.zeros(shape, dtype)
        )


def _advice(op: Operation) -> str:
    """Returns the reason and the way out for an op outside of the subset."""
    dialect = op.name.partition(".")[0]
    if dialect in ("memref", "bufferization"):
        return "the function works on buffers; give it before bufferization, on tensors"
    if dialect in ("scf", "cf"):
        return "control flow outside of the bodies of linalg ops is not supported; unroll it, or write it as linalg"
    if dialect in ("stablehlo", "torch", "tosa", "mhlo", "onnx"):
        return f"it is of dialect {dialect}; convert it to linalg on tensors first"
    return "the lowering takes linalg, tensor, arith, math, index and func; rewrite it with these"
