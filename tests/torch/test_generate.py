"""`generate` of transformers with a compiled model: eager's tokens, and no graph for each token or prompt."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'onnx-igniter[torch]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'onnx-igniter[torch]'")
transformers = pytest.importorskip("transformers", reason="needs transformers: pip install transformers")

import igniter.torch  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("uncompiled")]

IDS = {"vocab_size": 100, "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}


def gpt2():
    config = transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, n_positions=128, **IDS)
    return transformers.GPT2LMHeadModel(config)


def llama():
    """Two heads of keys for four heads of queries."""
    config = transformers.LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        **IDS,
    )
    return transformers.LlamaForCausalLM(config)


def t5():
    config = transformers.T5Config(
        d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0, **IDS
    )
    return transformers.T5ForConditionalGeneration(config)


def whisper():
    config = transformers.WhisperConfig(
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        num_mel_bins=16,
        max_source_positions=50,
        max_target_positions=128,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **IDS,
    )
    return transformers.WhisperForConditionalGeneration(config)


def generated(model, size, cache):
    """Returns the tokens, and the logits of each step: a random model may repeat one token."""
    torch.manual_seed(size)
    if isinstance(model, transformers.WhisperForConditionalGeneration):
        given = {"input_features": torch.randn(1, 16, 100)}
    else:
        given = {"input_ids": torch.randint(3, 100, (1, size))}
    settings = {"do_sample": False, "max_new_tokens": 10, "cache_implementation": cache, "disable_compile": True}
    settings |= {"return_dict_in_generate": True, "output_logits": True}
    with torch.inference_mode():
        # Whisper's own `generate` cuts audio into segments and calls this one for each.
        made = transformers.GenerationMixin.generate(model, **given, **settings)
    return made.sequences.tolist(), torch.stack(made.logits)


MODELS = {"gpt2": gpt2, "llama": llama, "t5": t5, "whisper": whisper}


@pytest.mark.parametrize("cache", ["static", "dynamic"])
@pytest.mark.parametrize("name", MODELS)
def test_generate_compiles_for_prompts_and_for_tokens(name, cache):
    model = MODELS[name]().eval()
    expected = [generated(model, size, cache) for size in (7, 12)]
    model.compile(backend="igniter", dynamic=True)
    for size, (tokens, logits) in zip((7, 12), expected, strict=True):
        ours, given = generated(model, size, cache)
        assert ours == tokens
        torch.testing.assert_close(given, logits, rtol=1e-4, atol=1e-4)
    told = igniter.torch.explain()
    assert not told.reasons, str(told)
    # Prompts of decoders beside encoders are one token, and Dynamo makes a separate graph for a cache of one.
    assert told.sessions == (3 if cache == "dynamic" and model.config.is_encoder_decoder else 2), str(told)
    for graph in told.graphs:
        assert all(piece.eager_calls == 0 for piece in graph.pieces), str(told)
