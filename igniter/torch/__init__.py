"""Igniter in PyTorch: a backend of `torch.compile`, and modules that run compiled.

    import igniter.torch

    fast = torch.compile(model, backend="igniter", dynamic=True)
    with torch.inference_mode():
        fast(x)
    print(igniter.torch.explain())
"""

from __future__ import annotations

from igniter.torch.backend import register
from igniter.torch.options import TorchOptions
from igniter.torch.statistics import Explanation, explain, reset

__all__ = ["Explanation", "TorchOptions", "explain", "reset"]

register()
