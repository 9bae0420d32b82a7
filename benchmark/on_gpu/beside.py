"""What torch computes beside a case, on the same inputs: eager, by `torch.compile`, and in f32 for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.nn import functional as F

Tensor = torch.Tensor


@dataclass(frozen=True)
class Peer:
    """A function of the case's inputs."""

    eager: Callable[..., Any]
    exact: Callable[..., Tensor] | None = None
    """The same in f32; None where nothing is compared."""

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """By `torch.compile`."""
        return torch.compile(self.eager, dynamic=False)


def _peer(function: Callable[..., Tensor]) -> Peer:
    return Peer(function, lambda *tensors: function(*(t.float() if t.is_floating_point() else t for t in tensors)))


def chain(count: int, sizes: Mapping[str, int]) -> Peer:
    def of(x: Tensor) -> Tensor:
        for k in range(count):
            x = x * 1.01 if k % 3 == 0 else x + 0.01 if k % 3 == 1 else torch.tanh(x)
        return x

    return _peer(of)


def bias_gelu(sizes: Mapping[str, int]) -> Peer:
    return _peer(lambda x, b: F.gelu(x + b))


def residual_norm(sizes: Mapping[str, int]) -> Peer:
    return _peer(lambda x, r, w, b: F.layer_norm(x + r, (x.shape[-1],), w, b, 1e-5))


def mask_softmax(sizes: Mapping[str, int]) -> Peer:
    return _peer(lambda x, m: torch.softmax(x + m, -1))


def norm_swiglu(sizes: Mapping[str, int]) -> Peer:
    return _peer(lambda x, w, u: F.silu(F.rms_norm(x, (x.shape[-1],), w, 1e-5)) * u)


def transposed(sizes: Mapping[str, int]) -> Peer:
    return _peer(lambda x: (x.t() + 1.0).contiguous())


def column_sum(sizes: Mapping[str, int]) -> Peer:
    return _peer(lambda x: x.sum(0))


def product(epilogue: bool = False, *, sizes: Mapping[str, int]) -> Peer:
    if epilogue:
        return _peer(lambda x, w, b: F.gelu(x @ w + b))
    return _peer(lambda x, w: x @ w)


def depth_last(sizes: Mapping[str, int]) -> Peer:
    return _peer(lambda x, w: x @ w.T)


def attention(causal: bool = False, *, sizes: Mapping[str, int]) -> Peer:
    def of(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

    return Peer(of, of)


def bert(kind: str, sizes: Mapping[str, int]) -> Peer:
    from transformers import BertConfig, BertModel

    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    config = BertConfig(vocab_size=2048, attn_implementation="sdpa")
    model = BertModel(config, add_pooling_layer=False).eval().cuda()
    model = model.half() if kind == "f16" else model

    @torch.no_grad()
    def of(ids: Tensor, mask: Tensor) -> Tensor:
        return model(input_ids=ids, attention_mask=mask).last_hidden_state

    return Peer(of)


def resnet50(sizes: Mapping[str, int]) -> Peer:
    from torchvision.models import resnet50 as make

    model = make().eval().cuda()

    @torch.no_grad()
    def of(x: Tensor) -> Tensor:
        return model(x)

    return Peer(of)


FUNCTIONS: dict[str, Callable[..., Peer]] = {
    each.__name__: each
    for each in (
        chain,
        bias_gelu,
        residual_norm,
        mask_softmax,
        norm_swiglu,
        transposed,
        column_sum,
        product,
        depth_last,
        attention,
        bert,
        resnet50,
    )
}
