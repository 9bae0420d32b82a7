"""Greedy tokens of compiled decoders equal ONNX Runtime's, over 256 steps, in a shared buffer and in growing ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import pytest

import igniter
from tests.language_models.decoders import LONGEST, WORDS, greedy, llama

STEPS = 256


@cache
def artifact(bits: int) -> igniter.Artifact:
    return igniter.load(llama(bits)).compile(verify=False)


@pytest.mark.slow
@pytest.mark.parametrize("bits", [32, 4])
def test_a_decoder_is_one_op(bits: int) -> None:
    assert artifact(bits).report["nodes_after"] == 1


@pytest.mark.parametrize(
    ("bits", "batch", "length", "capacity", "threads"),
    [
        (32, 1, 12, LONGEST, 2),
        (4, 1, 12, LONGEST, 1),
        pytest.param(32, 2, 5, 0, 1, marks=pytest.mark.full),
        pytest.param(4, 3, 9, LONGEST, 2, marks=pytest.mark.full),
        pytest.param(32, 1, 60, LONGEST - 4, 1, marks=pytest.mark.full),
    ],
)
def test_tokens_equal_the_runtimes(bits: int, batch: int, length: int, capacity: int, threads: int) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    theirs: Any = onnxruntime.InferenceSession(llama(bits).SerializeToString(), options)
    ours: Any = artifact(bits).session(intra_op_num_threads=threads)
    prompt = np.random.default_rng(length).integers(0, WORDS, (batch, length))
    wanted = greedy(theirs, prompt, STEPS, capacity)
    assert len(np.unique(wanted)) > 8
    np.testing.assert_array_equal(greedy(ours, prompt, STEPS, capacity), wanted)


def test_the_last_logits_alone_give_the_same_tokens() -> None:
    """`igniter edit --keep-last`: the head and the last layer behind its attention compute one row of a prompt."""
    edited = igniter.load(llama()).keep_last("logits:1")
    theirs: Any = onnxruntime.InferenceSession(llama().SerializeToString())
    model = edited.to_onnx()
    ours: Any = onnxruntime.InferenceSession(model.SerializeToString())
    prompt = np.random.default_rng(7).integers(0, WORDS, (2, 9))
    np.testing.assert_array_equal(greedy(ours, prompt, 12, LONGEST), greedy(theirs, prompt, 12, LONGEST))
    rows = {node.input[0] for node in model.graph.node if node.op_type == "Gather"} - {"embedding", "dims"}
    assert rows == {"attention1", "sum0"}
