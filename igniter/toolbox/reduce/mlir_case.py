"""A module of MLIR's own dialects as a candidate, and the check of an external pass on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects import builtin
from xdsl.ir import Operation, SSAValue

from igniter.errors import IgniterError
from igniter.toolbox.reduce.case import UNKNOWN, Case, Size, values_of
from igniter.toolbox.reduce.outcome import CRASH, INVALID, PASSED, REFUSAL, TIMEOUT, WRONG, Outcome
from igniter.verification.external_passes import CheckOptions, Command, Finding, check_module
from igniter.verification.mlir.machine import TERMINATORS, attr_of, name_of
from igniter.verification.mlir.reading import print_module
from igniter.verification.mlir.values import DYNAMIC, is_shaped, shape_of

CONSTANTS = frozenset({"arith.constant", "index.constant", "index.bool.constant", "llvm.mlir.constant"})
BRANCHES = frozenset({"cf.br", "cf.cond_br", "cf.switch", "llvm.br", "llvm.cond_br"})
MOST = 1 << 16
"""The most that one constant counts."""

_NUMBER = re.compile(r"(?<![\w.])\d+")
_KINDS = {"wrong": WRONG, "crash": CRASH, "refusal": REFUSAL, "timeout": TIMEOUT}


def ends_block(op: Operation) -> bool:
    """True for terminators."""
    return name_of(op) in TERMINATORS or name_of(op) in BRANCHES


@dataclass(frozen=True)
class MlirCase(Case):
    """A module in MLIR's generic form, whose ops are unregistered."""

    @cached_property
    def data(self) -> bytes:
        """The text in the generic form."""
        return print_module(self.module).encode()

    @cached_property
    def size(self) -> Size:
        """The size; `weights` counts arguments, results and constants, `dims` also adds up the constants."""
        ops = [op for op in self.module.walk() if op is not self.module]
        constants = [op for op in ops if name_of(op) in CONSTANTS]
        ends = sum(len(op.operands) for op in ops if name_of(op) == "func.return")
        params = sum(len(b.args) for op in ops if name_of(op) == "func.func" for r in op.regions for b in r.blocks)
        numbers = sum(_magnitude(op) for op in ops)
        return Size(
            sum(not ends_block(op) and op not in constants for op in ops),
            len(constants) + ends + params,
            sum(_extent(value) for value in values_of(self.module)) + numbers,
            0,
            len(self.data),
        )

    def describe(self) -> str:
        """Returns the size in words."""
        functions = sum(name_of(op) == "func.func" for op in self.module.ops)
        ops = self.size.ops - functions
        counted = [(ops, "op"), (functions, "function")]
        return ", ".join([*(f"{n} {w}{'s' if n != 1 else ''}" for n, w in counted), f"{len(self.data):,} bytes"])


def _extent(value: SSAValue) -> int:
    if not is_shaped(value.type):
        return 0
    return sum(UNKNOWN if n == DYNAMIC else n for n in shape_of(value.type))


def _magnitude(op: Operation) -> int:
    """Returns the sum of the integers that an op mentions in its value or in the bounds of a loop."""
    value = attr_of(op, "value")
    if isinstance(value, builtin.IntegerAttr):
        return min(abs(value.value.data), MOST)
    maps = (attr_of(op, name) for name in ("lowerBoundMap", "upperBoundMap"))
    return sum(min(int(n), MOST) for m in maps if m is not None for n in _NUMBER.findall(str(m)))


@dataclass
class ExternalCheck:
    """The check of an external pass: does the command still have the same fault on a candidate?"""

    command: Command
    options: CheckOptions

    def run(self, case: Case, *, stop_after: int | None = None) -> Outcome:
        """Returns the outcome of a candidate."""
        try:
            finding = check_module(case.module, self.command, self.options).finding
        except IgniterError as error:
            return Outcome(INVALID, str(error))
        return Outcome(PASSED) if finding is None else outcome_of(finding)

    def like(self, finding: Finding) -> ExternalCheck:
        """Returns a cheaper check that still sees a finding: fewer arguments, the runner only if it was needed."""
        options = replace(self.options, cases=16, draws=150, seconds=3.0, runner=finding.executor == "runner")
        return replace(self, options=options)


def outcome_of(finding: Finding) -> Outcome:
    """Returns a finding as the outcome of a candidate."""
    manner = " ".join(part for part in (finding.executor, finding.how) if part)
    kind = _KINDS.get(finding.kind, finding.kind)
    text = str(finding).partition(": ")[2]
    return Outcome(kind, text, changed=finding.kind == "wrong", manner=manner)
