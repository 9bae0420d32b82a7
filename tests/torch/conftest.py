"""Tests of `igniter.torch` need PyTorch and its exporter; without them they are skipped."""

from __future__ import annotations

import importlib.util

import pytest


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Dynamo and the statistics know of no earlier test, and no test depends on which of two ways is faster."""
    if importlib.util.find_spec("torch") is None:
        yield
        return
    import torch

    import igniter.torch
    import igniter.torch.faster

    monkeypatch.setattr(igniter.torch.faster, "CALLS", 0)
    torch._dynamo.reset()
    igniter.torch.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def uncompiled(monkeypatch):
    """Graphs run in ONNX Runtime as they were exported, which takes a tenth of the time."""
    import igniter.torch.sessions
    from tests.torch.uncompiled import uncompiled

    monkeypatch.setattr(igniter.torch.sessions, "compiled", uncompiled)
