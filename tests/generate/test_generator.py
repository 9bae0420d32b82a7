"""Generation gives the model's tokens in every form of cache, and computes no more than it has to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import igniter
from benchmark.models.decoders import Decoder, Form
from igniter.errors import IgniterError
from igniter.toolbox.generate.caches import SharedPast, numbers

from .conftest import TINY, Bytes

Models = Callable[[Form], Path]
FORMS: tuple[Form, ...] = ("shared", "growing", "merged", "whole")
CACHED: tuple[Form, ...] = ("shared", "growing", "merged")
PROMPT = [3, 9, 27, 5, 1]
OTHERS = [PROMPT, [7, 8], [1, 2, 3, 4, 5, 6, 7, 8, 9]]


def greedy(path: Path, prompt: list[int], count: int) -> list[int]:
    """The most likely tokens by ONNX Runtime alone, each from a run of all tokens."""
    session = onnxruntime.InferenceSession(str(path))
    tokens = list(prompt)
    for _ in range(count):
        ids = np.array([tokens], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(ids.size)[None]}
        logits: Any = session.run(["logits"], feed)[0]
        tokens.append(int(logits[0, -1].argmax()))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("form", FORMS)
def test_greedy_tokens_are_those_of_whole_runs(form: Form, model: Models):
    generator = igniter.Generator(model(form))
    assert generator.cache == {"shared": "shared", "whole": "no"}.get(form, "growing")
    expected = greedy(model("whole"), PROMPT, 100)
    found = generator.generate(PROMPT, max_new_tokens=100)
    # Past the first buffer of 64 rows.
    assert found.tokens == expected and found.finish_reason == "length"
    assert found.times.new_tokens == 100 and found.times.decode_rate > 0 and found.times.first >= found.times.prefill


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunk", (1, 2, 3))
def test_prompts_in_chunks(form: Form, chunk: int, model: Models):
    generator = igniter.Generator(model(form))
    assert generator.generate(PROMPT, max_new_tokens=9, chunk=chunk).tokens == greedy(model("whole"), PROMPT, 9)


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_of_prompts_of_different_lengths(form: Form, model: Models):
    generator = igniter.Generator(model(form))
    found = generator.generate_batch(OTHERS, max_new_tokens=12)
    assert [each.tokens for each in found] == [greedy(model("whole"), prompt, 12) for prompt in OTHERS]


@pytest.mark.parametrize("form", FORMS)
def test_sequences_of_a_batch_end_each_on_its_own(form: Form, model: Models):
    alone = [greedy(model("whole"), prompt, 12) for prompt in OTHERS]
    eos = alone[1][4]
    found = igniter.Generator(model(form)).generate_batch(OTHERS, max_new_tokens=12, eos=eos)
    for each, tokens in zip(found, alone, strict=True):
        end = tokens.index(eos) if eos in tokens else 12
        assert each.tokens == tokens[:end] and each.finish_reason == ("eos" if eos in tokens else "length")


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_computes_new_tokens_alone(form: Form, model: Models):
    generator = igniter.Generator(model(form))
    conversation = generator.conversation()
    first = conversation.send(PROMPT, max_new_tokens=6)
    second = conversation.send([4, 5], max_new_tokens=6)
    assert second.prompt == [*PROMPT, *first.tokens, 4, 5]
    # The last token of the first turn had not been computed.
    assert second.times.reused_tokens == len(PROMPT) + 5
    assert second.tokens == greedy(model("whole"), second.prompt, 6)


@pytest.mark.parametrize("form", FORMS)
def test_the_common_beginning_of_prompts_is_reused(form: Form, model: Models):
    generator = igniter.Generator(model(form))
    generator.generate([*PROMPT, 10, 11], max_new_tokens=5)
    found = generator.generate([*PROMPT, 12], max_new_tokens=5)
    assert found.times.reused_tokens == len(PROMPT)
    assert found.tokens == greedy(model("whole"), [*PROMPT, 12], 5)
    again = generator.generate([*PROMPT, 12], max_new_tokens=5)
    assert again.tokens == found.tokens and again.times.reused_tokens == len(PROMPT)


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_goes_back(form: Form, model: Models):
    conversation = igniter.Generator(model(form)).conversation()
    first = conversation.send(PROMPT, max_new_tokens=8)
    conversation.rewind(len(PROMPT) + 3)
    assert conversation.tokens == [*PROMPT, *first.tokens[:3]]
    found = conversation.send([20], max_new_tokens=4)
    assert found.tokens == greedy(model("whole"), [*PROMPT, *first.tokens[:3], 20], 4)
    with pytest.raises(IgniterError, match="cannot go back to 99"):
        conversation.rewind(99)


class Watched:
    """A session that notes the addresses of caches in each run."""

    def __init__(self, session: Any):
        self._session = session
        self.bound: list[tuple[str, int]] = []
        self.runs = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run_with_iobinding(self, binding: Any, options: Any = None) -> None:
        self.runs += 1
        self._session.run_with_iobinding(binding, options)

    def io_binding(self) -> Any:
        binding, bound = self._session.io_binding(), self.bound

        class Binding:
            def __getattr__(self, name: str) -> Any:
                return getattr(binding, name)

            def bind_ortvalue_input(self, name: str, value: Any) -> None:
                bound.append((name, value.data_ptr()))
                binding.bind_ortvalue_input(name, value)

            def bind_ortvalue_output(self, name: str, value: Any) -> None:
                bound.append((name, value.data_ptr()))
                binding.bind_ortvalue_output(name, value)

            @property
            def _iobinding(self) -> Any:
                return binding._iobinding

        return Binding()


def test_a_shared_cache_is_bound_once_as_input_and_output(model: Models):
    graph = igniter.Generator(model("shared")).model.graph
    session = Watched(onnxruntime.InferenceSession(str(model("shared"))))
    past = SharedPast(session, graph, 1)
    past.reserve(60)
    past.prefill([PROMPT])
    for token in range(50):
        past.step([token])
    names = {pair.past: pair.present for pair in graph.caches}
    bound = [(name, at) for name, at in session.bound if name in names or name in names.values()]
    # Fifty-one runs, and two bindings of each cache: one of a sequence, one of the step of all.
    assert session.runs == 51 and len(bound) == 2 * 2 * len(names)
    addresses = {name: {at for n, at in bound if n == name} for name, _ in bound}
    for name, present in names.items():
        assert addresses[name] == addresses[present] == {past.buffers[name].ctypes.data}
    assert past.moves == 0 and past.lengths == [55]
    # The rows are in the buffer, and nothing behind them.
    for buffer in past.buffers.values():
        assert np.abs(buffer[:, :, :55]).min(axis=(0, 1, 3)).all() and not buffer[:, :, 55:].any()


def test_the_past_of_a_growing_cache_is_the_present_before_it(model: Models):
    generator = igniter.Generator(model("growing"))
    session = Watched(generator.model.session)
    conversation = generator.conversation()
    past: Any = conversation._past
    past.session = session
    past.prefill([PROMPT])
    for token in range(5):
        before = {name: value.data_ptr() for name, value in past.values.items()}
        session.bound.clear()
        past.step([token])
        assert {n: at for n, at in session.bound if n in before} == before


def test_buffers_move_seldom(model: Models):
    past = SharedPast(
        onnxruntime.InferenceSession(str(model("shared"))), igniter.Generator(model("shared")).model.graph, 1, most=200
    )
    past.prefill([PROMPT])
    for token in range(190):
        past.step([token])
    assert past.moves == 2 and past.capacity == 200
    with pytest.raises(IgniterError, match="has 201 tokens, and the model takes 200 at most"):
        for token in range(9):
            past.step([token])


# -- text ------------------------------------------------------------------------------------------------------------


def test_streams_have_the_text_and_the_tokens(model: Models):
    generator = igniter.Generator(model("shared"), Bytes())
    stream = generator.stream("Hello, ", max_new_tokens=40, temperature=1.0, seed=3)
    pieces = list(stream)
    found = stream.result()
    assert "".join(pieces) == found.text == bytes(found.tokens).decode(errors="replace")
    assert found == generator.generate("Hello, ", max_new_tokens=40, temperature=1.0, seed=3) or found.times
    assert generator.generate("Hello, ", max_new_tokens=40, temperature=1.0, seed=3).tokens == found.tokens
    assert generator.generate("Hello, ", max_new_tokens=40, temperature=1.0, seed=4).tokens != found.tokens


def test_a_stop_word_that_spans_tokens(model: Models):
    generator = igniter.Generator(model("shared"), Bytes())
    settings: Any = {"max_new_tokens": 60, "temperature": 3.0, "seed": 5}
    whole = generator.generate("a", **settings).text
    ascii_pair = next(whole[k : k + 2] for k in range(5, 50) if whole[k : k + 2].isascii())
    stream = generator.stream("a", stop=ascii_pair, **settings)
    shown = "".join(stream)
    found = stream.result()
    assert shown == found.text == whole[: whole.index(ascii_pair)]
    assert found.finish_reason == "stop" and found.stop == ascii_pair


def test_a_stream_that_another_generation_overtook_is_an_error(model: Models):
    generator = igniter.Generator(model("shared"))
    first = generator.stream(PROMPT, max_new_tokens=5).pieces()
    next(first)
    generator.generate([1, 2], max_new_tokens=2)
    with pytest.raises(IgniterError, match="another generation has begun"):
        next(first)


def test_an_abandoned_stream_leaves_a_conversation_that_goes_on(model: Models):
    conversation = igniter.Generator(model("shared")).conversation()
    stream = conversation.stream(PROMPT, max_new_tokens=50).pieces()
    tokens = [next(stream).token for _ in range(4)]
    assert conversation.tokens == [*PROMPT, *tokens]
    found = conversation.send([30], max_new_tokens=5)
    assert found.tokens == greedy(model("whole"), [*PROMPT, *tokens, 30], 5)


# -- models and folders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ("shared", *(pytest.param(form, marks=pytest.mark.full) for form in FORMS[1:])))
def test_compiled_folders_give_the_same_tokens(form: Form, model: Models, tmp_path: Path):
    igniter.compile(model(form), tmp_path / "model.igniter", verify=False)
    generator = igniter.Generator(tmp_path / "model.igniter")
    assert generator.cache == igniter.Generator(model(form)).cache
    assert generator.generate(PROMPT, max_new_tokens=80).tokens == greedy(model("whole"), PROMPT, 80)
    found = generator.generate_batch(OTHERS, max_new_tokens=6)
    assert [each.tokens for each in found] == [greedy(model("whole"), prompt, 6) for prompt in OTHERS]


def test_the_context_of_a_folder_ends_a_text(model: Models, tmp_path: Path):
    onnx.save(TINY.model("shared"), tmp_path / "model.onnx")
    config = {"model": {"context_length": 12, "eos_token_id": [500, 501], "decoder": {"filename": "model.onnx"}}}
    (tmp_path / "genai_config.json").write_text(json.dumps(config))
    generator = igniter.Generator(tmp_path)
    assert generator.model.eos == {500, 501}
    found = generator.generate(PROMPT, max_new_tokens=50)
    # The last token needs no row of the cache.
    assert found.finish_reason == "context" and len(found.tokens) == 12 - len(PROMPT) + 1
    with pytest.raises(IgniterError, match="takes 12 at most"):
        generator.generate(list(range(20)))


def test_a_graph_of_last_logits(tmp_path: Path, model: Models):
    onnx.save(Decoder(vocabulary=256, sharpness=2.0, last_only=True).model("shared"), tmp_path / "last.onnx")
    generator = igniter.Generator(tmp_path / "last.onnx")
    found = generator.generate_batch(OTHERS, max_new_tokens=6)
    assert [each.tokens for each in found] == [greedy(model("whole"), prompt, 6) for prompt in OTHERS]
    speculative = igniter.Generator(tmp_path / "last.onnx", draft=model("shared"))
    with pytest.raises(IgniterError, match="build it without prune_lm_head"):
        speculative.generate(PROMPT)


def test_what_is_no_decoder_is_named(tmp_path: Path):
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "g", [info("x", 1, [2])], [info("y", TensorProto.FLOAT, [2])])
    onnx.save(helper.make_model(graph, ir_version=8), tmp_path / "relu.onnx")
    with pytest.raises(IgniterError, match="has no output 'logits': its outputs are y"):
        igniter.Generator(tmp_path / "relu.onnx")
    with pytest.raises(IgniterError, match="there is no model"):
        igniter.Generator(tmp_path / "nothing")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"top_p": 0.0}, "top_p is 0.0: it is above 0 and at most 1"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0: it is above 0"),
        ({"max_tokens": 3}, "generation has no option 'max_tokens'"),
        ({"stop": "x"}, "no tokenizer.json is beside"),
    ],
)
def test_settings_that_do_not_fit(settings: Any, message: str, model: Models):
    with pytest.raises(IgniterError, match=message):
        igniter.Generator(model("shared")).generate(PROMPT, **settings)


def test_tokens_that_the_model_lacks(model: Models):
    with pytest.raises(IgniterError, match="999 is no token: the model has 256"):
        igniter.Generator(model("shared")).generate([1, 999])
    with pytest.raises(IgniterError, match="the prompt has no tokens"):
        igniter.Generator(model("shared")).generate([])


def test_logits_of_bf16_are_read_as_numbers():
    value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80, 0xC000], np.uint16), 16)
    assert numbers(value).tolist() == [1.0, -2.0]
