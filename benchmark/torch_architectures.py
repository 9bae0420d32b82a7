"""Small models of `transformers` and torch's own modules, with random weights from a seed: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SIZES = ((2, 16), (3, 29), (4, 64))
"""Batch and sequence; of images the batch."""

WIDTH, INNER, HEADS, LAYERS, WORDS = 256, 1024, 4, 2, 1000
VISION = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS}
PLAIN = {**VISION, "vocab_size": WORDS}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA = {**PLAIN, **SPECIAL, "num_key_value_heads": 2, "head_dim": 64}
SEQ2SEQ = {
    "d_model": WIDTH,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER,
    "vocab_size": WORDS,
    "decoder_start_token_id": 1,
    **SPECIAL,
}

OF_TRANSFORMERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "BERT": ("bert", PLAIN, "text"),
    "DistilBERT": (
        "distilbert",
        {"dim": WIDTH, "hidden_dim": INNER, "n_heads": HEADS, "n_layers": LAYERS, "vocab_size": WORDS},
        "text",
    ),
    "RoBERTa": ("roberta", PLAIN, "text"),
    "ELECTRA": ("electra", {**PLAIN, "embedding_size": 128}, "text"),
    "ALBERT": ("albert", {**PLAIN, "embedding_size": 128}, "text"),
    "MobileBERT": ("mobilebert", {"num_hidden_layers": 4, "vocab_size": WORDS}, "text"),
    "DeBERTa-v2": (
        "deberta-v2",
        {**PLAIN, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 32},
        "text",
    ),
    "MPNet": ("mpnet", PLAIN, "text"),
    "GPT-2": (
        "gpt2",
        {"n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "vocab_size": WORDS, **SPECIAL},
        "decoder",
    ),
    "Llama": ("llama", LLAMA, "decoder"),
    "Mistral": ("mistral", {**LLAMA, "sliding_window": 32}, "decoder"),
    "Qwen2": ("qwen2", LLAMA, "decoder"),
    "Gemma": ("gemma", LLAMA, "decoder"),
    "Phi": ("phi", {**PLAIN, **SPECIAL}, "decoder"),
    "OPT": (
        "opt",
        {
            "hidden_size": WIDTH,
            "ffn_dim": INNER,
            "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS,
            "vocab_size": WORDS,
            "word_embed_proj_dim": WIDTH,
        },
        "decoder",
    ),
    "BLOOM": ("bloom", {"hidden_size": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "vocab_size": WORDS}, "decoder"),
    "GPT-NeoX": ("gpt_neox", {**PLAIN, **SPECIAL}, "decoder"),
    "T5": (
        "t5",
        {"d_model": WIDTH, "d_ff": INNER, "d_kv": 64, "num_heads": HEADS, "num_layers": LAYERS, "vocab_size": WORDS},
        "translation",
    ),
    "BART": ("bart", {**SEQ2SEQ, "max_position_embeddings": 128}, "translation"),
    "Whisper": ("whisper", {**SEQ2SEQ, "max_source_positions": 50}, "speech"),
    "Wav2Vec2": (
        "wav2vec2",
        {
            **VISION,
            "vocab_size": 32,
            "conv_dim": [64, 64, 64],
            "conv_kernel": [10, 3, 3],
            "conv_stride": [5, 4, 4],
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 4,
        },
        "sound",
    ),
    "ViT": ("vit", {**VISION, "image_size": 64, "patch_size": 8}, "image"),
    "Swin": (
        "swin",
        {"image_size": 64, "patch_size": 2, "embed_dim": 48, "depths": [2, 2], "num_heads": [3, 6]},
        "image",
    ),
    "ConvNeXt": ("convnext", {"hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 2, 1]}, "image"),
    "ResNet": (
        "resnet",
        {"embedding_size": 32, "hidden_sizes": [64, 128, 256], "depths": [2, 2, 2], "layer_type": "basic"},
        "image",
    ),
    "CLIP": (
        "clip",
        {"text_config": {**PLAIN, **SPECIAL}, "vision_config": {**VISION, "image_size": 64, "patch_size": 8}},
        "both",
    ),
}


def _encoder() -> Any:
    from torch import nn

    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)


def _lstm() -> Any:
    from torch import nn

    return nn.LSTM(WIDTH, WIDTH, 1, batch_first=True)


def _mlp() -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH), nn.LayerNorm(WIDTH))


def _unet() -> Any:
    import torch
    from torch import nn

    def block(channels: int, out: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(channels, out, 3, padding=1),
            nn.GroupNorm(8, out),
            nn.SiLU(),
            nn.Conv2d(out, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
        )

    class UNet(nn.Module):
        """Two levels down and up again, with a connection across at each."""

        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([block(3, 16), block(16, 32)])
            self.middle = block(32, 64)
            self.up = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)])
            self.after = nn.ModuleList([block(64, 32), block(32, 16)])
            self.last = nn.Conv2d(16, 2, 1)

        def forward(self, x: Any) -> Any:
            across: list[Any] = []
            for down in self.down:
                x = down(x)
                across.append(x)
                x = nn.functional.max_pool2d(x, 2)
            x = self.middle(x)
            for up, after in zip(self.up, self.after, strict=True):
                x = after(torch.cat([up(x), across.pop()], 1))
            return self.last(x)

    return UNet()


OF_TORCH: dict[str, tuple[Callable[[], Any], str]] = {
    "nn.TransformerEncoder": (_encoder, "vectors"),
    "nn.LSTM": (_lstm, "vectors"),
    "UNet": (_unet, "pixels"),
    "MLP": (_mlp, "vectors"),
}
"""torch's own modules, and what they are given."""

NAMES = (*OF_TRANSFORMERS, *OF_TORCH)
SIZES_LATER = ("Swin",)
"""Models that Dynamo is not told to trace with symbols for all sizes at once: with height and width as symbols it takes
minutes over the windows. It makes symbols of those sizes that change."""


def model_and_inputs(name: str) -> tuple[Any, list[dict[str, Any] | tuple[Any, ...]]]:
    """A model in evaluation mode, and its arguments at each of `SIZES`."""
    import torch

    torch.manual_seed(0)
    if name in OF_TRANSFORMERS:
        from transformers import AutoConfig, AutoModel

        kind, settings, given = OF_TRANSFORMERS[name]
        model = AutoModel.from_config(AutoConfig.for_model(kind, **settings))
    else:
        make, given = OF_TORCH[name]
        model = make()
    return model.eval(), [inputs(given, batch, length) for batch, length in SIZES]


def inputs(given: str, batch: int, length: int) -> Any:
    """The arguments of a model: a dict of keywords, or a tuple."""
    import torch

    words = torch.randint(3, WORDS, (batch, length))
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, length - 3 :] = 0
    text = {"input_ids": words, "attention_mask": mask}
    pixels = torch.randn(batch, 3, 64, 64)
    return {
        "text": text,
        "decoder": {**text, "use_cache": False},
        "translation": {**text, "decoder_input_ids": words[:, :5], "use_cache": False},
        "speech": {
            "input_features": torch.randn(batch, 80, 100),
            "decoder_input_ids": words,
            "use_cache": False,
        },
        "sound": {"input_values": torch.randn(batch, length * 100)},
        "image": {"pixel_values": pixels},
        "both": {**text, "pixel_values": pixels},
        "pixels": (pixels,),
        "vectors": (torch.randn(batch, length, WIDTH),),
    }[given]


def call(system: Any, given: Any) -> list[Any]:
    """The tensors among what a system returns."""
    import torch
    from torch.utils import _pytree as pytree

    result = system(**given) if isinstance(given, dict) else system(*given)
    result = dict(result) if hasattr(result, "to_tuple") else result
    return [leaf for leaf in pytree.tree_leaves(result) if torch.is_tensor(leaf)]
