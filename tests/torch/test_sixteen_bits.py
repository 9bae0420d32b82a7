"""Models in bfloat16, and in `torch.autocast`. ONNX Runtime has few kernels for the type."""

from __future__ import annotations

import contextlib

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")

import igniter.torch  # noqa: E402

F = torch.nn.functional
WAYS = ("torch.compile", "igniter.torch.compile")
MODES = ("autocast", "bfloat16")
ROUNDING = 2**-7
"""Of the largest value: two units in the last place of a bfloat16."""


class Layer(torch.nn.Module):
    """Attention under a mask that is made of `arange`s, as `transformers` makes it, a norm and a residual."""

    def __init__(self, width=16):
        super().__init__()
        self.words = torch.nn.Embedding(30, width)
        self.mixed = torch.nn.Linear(width, 3 * width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, words):
        x = self.norm(self.words(words))
        batch, length, width = x.shape
        heads = [h.view(batch, length, 2, width // 2).transpose(1, 2) for h in self.mixed(x).chunk(3, -1)]
        rows, columns = torch.arange(length), torch.arange(length)
        mask = (rows[None, None, :, None] >= columns[None, None, None, :]).expand(batch, -1, length, length)
        y = F.scaled_dot_product_attention(*heads, attn_mask=mask)
        return F.gelu(y.transpose(1, 2).reshape(batch, length, -1)) + x


def compiled(model, way):
    if way == "torch.compile":
        return torch.compile(model, backend="igniter", dynamic=True)
    return igniter.torch.compile(model)


def check(model, mode, way, vocabulary, sizes, outputs=lambda result: [result]):
    if mode == "bfloat16":
        model = model.bfloat16()
    fast = compiled(model, way)
    for size in sizes:
        words = torch.randint(0, vocabulary, size)
        under = torch.autocast("cpu", dtype=torch.bfloat16) if mode == "autocast" else contextlib.nullcontext()
        with torch.inference_mode(), under:
            got, expected = outputs(fast(words)), outputs(model(words))
        for one, other in zip(got, expected, strict=True):
            assert one.dtype is other.dtype and one.shape == other.shape
            assert float((one.double() - other.double()).abs().max()) <= ROUNDING * float(other.abs().max())
    told = igniter.torch.explain()
    pieces = [piece for graph in told.graphs for piece in graph.pieces]
    assert not told.reasons and all(piece.compiled for piece in pieces)
    assert sum(piece.calls for piece in pieces) == len(sizes) and not sum(piece.eager_calls for piece in pieces)


@pytest.mark.parametrize(("mode", "way"), zip(MODES, reversed(WAYS), strict=True))
def test_a_layer_is_compiled_whole(mode, way):
    check(Layer().eval(), mode, way, 30, [(2, 5), (2, 5), (3, 8), (4, 13)])


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_a_bert_is_compiled_whole(mode, way):
    transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")
    config = transformers.BertConfig(
        vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128
    )
    model = transformers.BertModel(config).eval()
    sizes = [(2, 16), (2, 16), (3, 29), (4, 33), (2, 100)]
    check(model, mode, way, 100, sizes, lambda result: [result.last_hidden_state, result.pooler_output])
