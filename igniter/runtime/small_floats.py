"""Conversions to 16-bit floats that LLVM calls where a CPU has no instruction, as LLVM IR.

No library of a Python process has them for certain. A conversion from f64 first rounds to odd in f32, so that the
second rounding sees whether the first one was exact. A result is in the first lane of a vector register, where 16-bit
floats are returned. The code has no constants in memory and no calls, whose relocations MCJIT gets wrong.
"""

from __future__ import annotations

TO_BF16 = """
  %bits = bitcast float %f to i32
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %upper, 64
  %nan = fcmp uno float %f, %f
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %number = trunc i32 %chosen to i16
"""

TO_F16 = """
  %half = fptrunc float %f to half
  %number = bitcast half %half to i16
"""

TO_ODD = """
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %x.bits = bitcast double %x to i64
  %back.bits = bitcast double %back to i64
  %x.size = shl i64 %x.bits, 1
  %back.size = shl i64 %back.bits, 1
  %larger = icmp ugt i64 %back.size, %x.size
  %above = and i1 %larger, %inexact
  %near.bits = bitcast float %near to i32
  %less = zext i1 %above to i32
  %towards = sub i32 %near.bits, %less
  %last = zext i1 %inexact to i32
  %odd.bits = or i32 %towards, %last
  %f = bitcast i32 %odd.bits to float
"""


def conversions(ir: str) -> str:
    """Returns the functions that the code of a module may call, as a module; "" if it has no 16-bit floats."""
    if "bfloat" not in ir and "half" not in ir:
        return ""
    return "".join(
        (
            _function("__truncsfbf2", "float %f", TO_BF16),
            _function("__truncdfbf2", "double %x", TO_ODD + TO_BF16),
            _function("__truncdfhf2", "double %x", TO_ODD + TO_F16),
        )
    )


def _function(name: str, parameter: str, body: str) -> str:
    return f"""
define <8 x i16> @{name}({parameter}) {{{body}
  %result = insertelement <8 x i16> zeroinitializer, i16 %number, i64 0
  ret <8 x i16> %result
}}
"""
