"""The verification of a result while it is compiled: the outcome goes to the report, a difference is an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from igniter.runtime.folders import NotGood

if TYPE_CHECKING:
    from igniter.compiler.artifact import Artifact
    from igniter.verification.report import Verification


class VerificationFailed(NotGood):
    """Raised when the outputs of the compiled model differ from the original's; `verification` has the figures,
    `folder` the model."""

    def __init__(self, message: str, verification: Verification):
        super().__init__(message)
        self.verification = verification


def check(artifact: Artifact, verify: Mapping[str, Any]) -> None:
    """Verifies a compiled model and adds the outcome to its report; raises `VerificationFailed` if an output
    differs."""
    verification = artifact.verify(**verify)
    artifact.report["verification"] = verification.to_dict()
    if verification.status == "differs":
        failures = "; ".join(verification.failures[:3])
        raise VerificationFailed(
            f"the compiled model does not compute what the original computes: {failures}", verification
        )
