"""Igniter in PyTorch: a backend of `torch.compile`, and compiled modules.

import igniter.torch

fast = torch.compile(model, backend="igniter", dynamic=True)
with torch.inference_mode():
    fast(x)
print(igniter.torch.explain())

fast = igniter.torch.compile(model)  # or without torch.compile: one session for all sizes
"""

from __future__ import annotations

from igniter.torch.backend import register
from igniter.torch.background import wait
from igniter.torch.intercepting import Call, intercept, load_calls, replay
from igniter.torch.module import Igniter, SessionStatistics, compile
from igniter.torch.options import TorchOptions
from igniter.torch.statistics import Explanation, explain, reset
from igniter.torch.submodules import ModuleResult, ModuleResults, verify_every_module

__all__ = [
    "Call",
    "Explanation",
    "Igniter",
    "ModuleResult",
    "ModuleResults",
    "SessionStatistics",
    "TorchOptions",
    "compile",
    "explain",
    "intercept",
    "load_calls",
    "replay",
    "reset",
    "verify_every_module",
    "wait",
]

register()
