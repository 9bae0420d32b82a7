"""What the tests of deployment share: one compiled folder, never written to."""

from __future__ import annotations

import pytest

from igniter.compiler.artifact import Artifact

from .models import compiled


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """The small model, compiled for this machine."""
    return compiled(tmp_path_factory.mktemp("small"))
