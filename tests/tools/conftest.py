"""Fixtures of the tools' tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tools_kit

from igniter import registry
from igniter.dialects.onnx import ops


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


@pytest.fixture
def plugins_apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules, folders and ops of plug-ins that the test loads are in no other test."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(ops, "_registered", dict(ops._registered))
    ops._load_external.cache_clear()
    yield
    for name in set(sys.modules) - before:
        if not name.startswith(("igniter", "xdsl")):
            del sys.modules[name]
    registry.forget_packages()
    ops._load_external.cache_clear()
