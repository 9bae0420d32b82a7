"""Emitted LLVM IR for LLVM of another version than llvmlite's.

The emitter writes for llvmlite's LLVM (`NEWEST`). LLVM reads the text of older versions, not that of newer ones. These
constructs of the emitter differ:

| construct | before | as |
| --- | --- | --- |
| masked loads, stores, gathers, scatters | 22 | the alignment is an i32 after the address, not its attribute |
| `vpdpbusd`, `vpdpwssd`, `vpdpbssd` | 22 | the factors have the type of the sums |
| a constant `splat (T c)` | 19 | all elements |
| `llvm.maximum`, `llvm.minimum` on x86 | 17 | functions of this module: the code generator lacks them |
| `vdpbf16ps` | 17 | the factors are vectors of i32 |
| `ptr` | 15 | the same; LLVM 14's tools need `-opaque-pointers` |

The data layouts are those of LLVM's targets in each version. A test compares them with `llc`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import cast

import llvmlite.binding as llvm

from igniter.backends.cpu import codegen
from igniter.backends.cpu.llvm_tokens import Callee, callee_of, spell_splats, tokens_of, type_of
from igniter.backends.cpu.target import Target
from igniter.errors import IgniterError

VERSIONS = (14, 17, 19)
"""The older versions with a text of their own."""

_BITS = {"float": "i32", "double": "i64"}


def llvm_version() -> tuple[int, ...]:
    """Returns the version of llvmlite's LLVM."""
    return cast("tuple[int, ...]", llvm.llvm_version_info)


@lru_cache(maxsize=16)
def data_layout(target: Target, version: int | None = None) -> str:
    """Returns the data layout of a target in LLVM `version`, by default llvmlite's."""
    if version is None:
        return codegen.data_layout(target)
    if target.arch == "x86_64":
        wide = "" if version < 18 else "-i128:128"
        return f"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64{wide}-f80:128-n8:16:32:64-S128"
    functions = "" if version < 19 else "-Fn32"
    return f"e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128{functions}"


def header(target: Target, version: int | None = None) -> str:
    """Returns the first lines of a module: the LLVM that it is for, and the data layout."""
    if version is None:
        name = ".".join(str(part) for part in llvm_version())
        text = f"; For LLVM {name} and later; --llvm={'|'.join(map(str, VERSIONS))} writes for an older version."
    else:
        text = f"; For LLVM {version} and later."
        if version < 15:
            text += " The tools of LLVM 14 need -opaque-pointers."
    return f'{text}\ntarget datalayout = "{data_layout(target, version)}"\n'


def text_for(ir: str, version: int, target: Target) -> str:
    """Returns the emitted text `ir` for LLVM `version`, one of `VERSIONS`."""
    if version not in VERSIONS:
        raise IgniterError(f"no text for LLVM {version}: --llvm takes {', '.join(map(str, VERSIONS))} or 'newest'")
    return _Rewriter(version, target).text(ir)


class _Rewriter:
    """The rewriting of one module."""

    def __init__(self, version: int, target: Target):
        self._version = version
        self._names = 0
        self._definitions: list[str] = []
        self._rules: list[tuple[str, Callable[[Callee], str]]] = [("llvm.masked.", _aligned)]
        self._rules += [(f"llvm.x86.{s}.vpdp", self._sums) for s in ("avx512", "avx2")]
        if version < 17:
            self._rules.append(("llvm.x86.avx512bf16.dpbf16ps.", self._sums))
            if target.arch == "x86_64":
                self._rules += [(f"llvm.{name}.", self._own) for name in ("maximum", "minimum")]

    def text(self, ir: str) -> str:
        lines = [self._line(line) for line in ir.split("\n")]
        return "\n".join([*lines, *self._definitions])

    def _line(self, line: str) -> str:
        if "@llvm." in line:
            for prefix, rule in self._rules:
                found = callee_of(line, prefix) if prefix in line else None
                if found is not None:
                    line = rule(found)
                    break
        if self._version < 19:
            line = "\n".join(spell_splats(part) for part in line.split("\n"))
        return line

    def _sums(self, use: Callee) -> str:
        """Gives the factors of a product of small numbers the type i32, as many lanes as sums."""
        lanes = use.result.strip("<>").partition(" x ")[0]
        wanted = f"<{lanes} x i32>"
        lines: list[str] = []
        for k in (1, 2):
            arg = use.args[k]
            if use.is_declaration or type_of(arg) == wanted:
                use.args[k] = [wanted] if use.is_declaration else arg
                continue
            self._names += 1
            name = f"%llvm{self._version}.{self._names}"
            lines.append(f"  {name} = bitcast {''.join(arg)} to {wanted}")
            use.args[k] = [wanted, " ", name]
        return "\n".join([*lines, use.text()])

    def _own(self, use: Callee) -> str:
        """Replaces `maximum` or `minimum` by a function of the module."""
        least = use.name.startswith("llvm.minimum")
        use.name = use.name.replace("llvm.", "igniter.", 1)
        if not use.is_declaration:
            return use.text()
        self._definitions.append(_extreme(use.name, use.result, least))
        return ""


def _aligned(use: Callee) -> str:
    """Makes the alignment of a masked access an operand after the address."""
    at = 1 if use.name.startswith(("llvm.masked.store", "llvm.masked.scatter")) else 0
    alignment = "1"
    arg = use.args[at]
    if "align" in arg:
        k = arg.index("align")
        alignment = arg[k + 2]
        use.args[at] = arg[:k] + arg[k + 4 :]
    use.args.insert(at + 1, tokens_of("i32" if use.is_declaration else f"i32 {alignment}"))
    return use.text()


def _extreme(name: str, result: str, least: bool) -> str:
    """Returns the definition of `maximum` or `minimum`: NaN if one operand is NaN, and -0 below +0."""
    element = tokens_of(result)[5] if result.startswith("<") else result
    bits = result.replace(element, _BITS[element])
    order, merge = ("olt", "or") if least else ("ogt", "and")
    return f"""
define internal {result} @{name}({result} %a, {result} %b) alwaysinline #0 {{
  %first = fcmp {order} {result} %a, %b
  %apart = select {_bools(result)} %first, {result} %a, {result} %b
  %x = bitcast {result} %a to {bits}
  %y = bitcast {result} %b to {bits}
  %both = {merge} {bits} %x, %y
  %zero = bitcast {bits} %both to {result}
  %equal = fcmp oeq {result} %a, %b
  %ordered = select {_bools(result)} %equal, {result} %zero, {result} %apart
  %sum = fadd {result} %a, %b
  %nan = fcmp uno {result} %a, %b
  %value = select {_bools(result)} %nan, {result} %sum, {result} %ordered
  ret {result} %value
}}
"""


def _bools(result: str) -> str:
    return f"{result.rpartition(' ')[0]} i1>" if result.startswith("<") else "i1"
