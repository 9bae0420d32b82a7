"""`--check-each=prove`: a proof for every pass and kernel of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.loop import FuncOp, KernelOp
from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.verification.prove.integers import MAX_OPERATIONS, MAX_SECONDS, Limits, isl
from igniter.verification.prove.prove import Verdict, prove
from igniter.verification.prove.report import Proof, at_sizes, table, to_json


class ProofFailed(IgniterError):
    """Raised after a pass that is refuted, or has a certain counterexample that was too large to run."""

    code = "IGN0608"
    exit_status = 3


@dataclass
class Prover:
    """A `PassObserver` with a proof per pass and kernel.

    A structured kernel is compared with the one before the pass. A scheduled kernel is compared with the structured
    kernel before `lower-to-loops`, because it is small; the passes between have been proven against the same kernel.
    """

    log: IO[str] = field(default_factory=lambda: sys.stderr)
    seconds: float = MAX_SECONDS
    """The limit of processor time for one pass and kernel."""
    kernel_seconds: float = float("inf")
    """The limit of processor time for all passes of a kernel."""
    keep_going: bool = False
    """Does not raise after a refutation."""
    proofs: list[Proof] = field(default_factory=list[Proof])
    output: str = ""
    """The file for the proofs as JSON; empty for none."""
    _texts: dict[str, str] = field(default_factory=dict[str, str])
    _references: dict[str, KernelOp | FuncOp] = field(default_factory=dict[str, KernelOp | FuncOp])
    _known: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    _used: dict[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        isl()

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        """Keeps the kernels."""
        if not self._texts:
            self._keep(module)

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        """Proves the pass for every kernel; raises `ProofFailed` at a refutation."""
        for name, kernel in _kernels(module):
            reference = self._references.get(name)
            if reference is None:
                continue
            if reference.symbol_names != kernel.symbol_names:
                print(f"prove: {this.name}: @{name}: skipped, because its symbols have other names", file=self.log)
                del self._references[name]
                continue
            verdict = self._verdict(this.name, name, kernel)
            proof = Proof(this.name, name, verdict)
            self.proofs.append(proof)
            print(f"prove: {proof}", file=self.log)
            if verdict.unrun == "possible":
                print(f"warning: {this.name}: @{name} may be wrong{at_sizes(verdict.sizes)}: check it", file=self.log)
            if (verdict.status == "refuted" or verdict.unrun == "certain") and not self.keep_going:
                raise ProofFailed(f"pass '{this.name}' changed @{name}{at_sizes(verdict.sizes)}: {verdict.reason}")
        self._keep(module)

    def finish(self) -> None:
        """Prints the table of all proofs."""
        if self.output:
            write_whole(self.output, to_json(self.proofs))
        print(table(self.proofs), file=self.log)

    def _verdict(self, pass_name: str, name: str, kernel: KernelOp | FuncOp) -> Verdict:
        if str(kernel) == self._texts[name]:
            return Verdict("unchanged", (self._known[name].reason if name in self._known else ""))
        left = self.kernel_seconds - self._used.get(name, 0.0)
        if left <= 0:
            return Verdict("not decided", f"the kernel takes more than {self.kernel_seconds:.0f} s of processor time")
        start = time.process_time()
        limits = Limits(MAX_OPERATIONS, min(self.seconds, left))
        verdict = prove(self._references[name], kernel, limits, pass_name)
        self._used[name] = self._used.get(name, 0.0) + time.process_time() - start
        self._known[name] = verdict
        return verdict

    def _keep(self, module: ModuleOp) -> None:
        for name, kernel in _kernels(module):
            text = str(kernel)
            if self._texts.get(name) == text:
                continue
            self._texts[name] = text
            if isinstance(kernel, KernelOp) or name not in self._references:
                self._references[name] = kernel.clone()


def _kernels(module: ModuleOp) -> Iterator[tuple[str, KernelOp | FuncOp]]:
    for op in module.ops:
        if isinstance(op, (KernelOp, FuncOp)):
            yield op.sym_name.data, op
