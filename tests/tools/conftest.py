"""Fixtures of the tools' tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import tools_kit

from igniter import registry


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small model in a file."""
    return tools_kit.save_tiny_model(tmp_path)


@pytest.fixture
def bad_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes that go wrong in different ways, under their names."""
    for name, where in tools_kit.PASSES.items():
        monkeypatch.setitem(registry.PASSES, name, where)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees what another compiled."""
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))
