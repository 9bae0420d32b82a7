"""Times by the roofline of a device, by hand and from files, and which models are decoders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import igniter
from igniter.analysis.devices import DEVICES, Device, device_of, read_device
from igniter.toolbox.profile.decoder import Decoder, find_decoder, generation
from igniter.toolbox.profile.roofline import estimate

from .networks import F32, bert, decoder, grouped_decoder, model_of

TOY = Device("toy", {"float": 1e9, "float16": 4e9}, bandwidth=1e8)


def test_a_node_takes_its_arithmetic_or_its_bytes_whichever_is_longer():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    model = model_of(nodes, {"x": (F32, ["n", 64])}, {"y": (F32, None)}, {"w": np.zeros((64, 64), np.float32)})
    profile = igniter.load(model).profile({"n": 128})
    found = estimate(profile, TOY)
    product, relu = found.nodes
    moved = 4 * (128 * 64 * 2 + 64 * 64)
    assert (product.bound, relu.bound) == ("arithmetic", "memory")
    assert product.seconds == pytest.approx(2 * 128 * 64 * 64 / 1e9)
    assert moved / 1e8 < 2 * 128 * 64 * 64 / 1e9
    assert relu.seconds == pytest.approx(4 * 2 * 128 * 64 / 1e8)
    assert found.seconds == pytest.approx(product.seconds + relu.seconds)
    one = estimate(igniter.load(model).profile({"n": 1}), TOY)
    assert one.nodes[0].bound == "memory"


def test_a_time_needs_all_sizes():
    profile = igniter.load(bert(1)).profile({"batch": 1})
    with pytest.raises(igniter.IgniterError, match=r"there is none of seq \(dim 1 of input x\)"):
        estimate(profile, TOY)


def test_peaks_depend_on_the_element_type():
    assert TOY.peak("float16") == 4e9
    assert TOY.peak("int8") == 4e9  # computed in f16, where there is no instruction for bytes
    assert TOY.peak("double") == 5e8
    assert DEVICES["h100"].peak("int8") == pytest.approx(1978.9e12)


def test_the_gpu_backend_has_the_same_data_sheets():
    pytest.importorskip("xdsl")
    from igniter.backends.triton.devices import DEVICES as GPUS

    for name, gpu in GPUS.items():
        assert (gpu.bandwidth, gpu.flops) == (DEVICES[name].bandwidth, DEVICES[name].peaks["float"])


# -- files ------------------------------------------------------------------------------------------------------------


def test_a_device_from_a_file(tmp_path: Path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"peaks": {"float": 2e12}, "bandwidth": 5e10, "launch": 1e-6}))
    device = device_of(str(path))
    assert (device.name, device.peak("float16"), device.bandwidth, device.launch) == ("mine", 2e12, 5e10, 1e-6)


def test_a_device_from_the_file_of_igniter_machine(tmp_path: Path):
    from igniter.analysis.machine import TYPICAL

    path = tmp_path / "m.json"
    path.write_text(json.dumps(TYPICAL.to_dict()))
    device = device_of(str(path))
    # Two multiply-adds of 16 elements a cycle, at 2.5 GHz.
    assert device.peak("float") == 2 * 2 * 16 * 2.5e9
    assert device.bandwidth == 8e9


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "does not describe a device"),
        ({"peaks": {"float": 1}}, "'bandwidth' (bytes per second) is missing"),
        ({"peaks": {"float16": 1}, "bandwidth": 1}, "at least 'float'"),
        ({"peaks": {"float": 1}, "bandwith": 1}, "did you mean 'bandwidth'"),
        ({"peaks": {"float": 1, "f16": 1}, "bandwidth": 1}, "no peak of 'f16'"),
        ({"peaks": {"float": 0}, "bandwidth": 1}, "it must be positive"),
        ({"peaks": {"float": "fast"}, "bandwidth": 1}, "must be a non-negative number"),
    ],
)
def test_a_file_that_is_no_device_is_an_error(data: Any, message: str):
    with pytest.raises(igniter.IgniterError, match=message):
        read_device(data, "mine.json")


def test_a_device_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(igniter.IgniterError, match="did you mean 'h100'"):
        device_of("h10")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(igniter.IgniterError, match="is not a JSON file"):
        device_of(str(tmp_path / "bad.json"))


# -- decoders ---------------------------------------------------------------------------------------------------------


def found_decoder(new: int | str = "new") -> tuple[Any, Decoder]:
    profile = igniter.load(decoder(new=new)).profile()
    found = find_decoder(profile)
    assert isinstance(found, Decoder), found
    return profile, found


def test_a_decoder_is_known_by_its_cache():
    _, found = found_decoder()
    assert (found.past, str(found.new), len(found.cache)) == ("past", "new", 4)
    # Two layers, keys and values, 64 floats a token.
    assert found.cache_bytes({"batch": 1, "past": 10}).constant == 2 * 2 * 64 * 4 * 10


def test_prefill_and_decode_by_context_and_precision():
    profile, found = found_decoder()
    table = generation(profile, found, TOY, {}, contexts=(16, 64), precisions=("float", "int4"))
    assert [(g.context, g.precision) for g in table] == [(16, "float"), (16, "int4"), (64, "float"), (64, "int4")]
    by_hand = estimate(profile.at({"batch": 1, "past": 64, "new": 1}), TOY).seconds
    assert table[2].decode == pytest.approx(by_hand)
    assert table[2].prefill == pytest.approx(estimate(profile.at({"batch": 1, "past": 0, "new": 64}), TOY).seconds)
    # A token is bound by reading the weights, which are fewer bytes at int4.
    assert table[3].decode is not None and table[2].decode is not None and table[3].decode < table[2].decode
    products = 2 * 4 * 64 * 64 + 64 * 100
    assert table[2].weight_bytes - table[3].weight_bytes == round(products * (4 - 4.5 / 8))


def test_a_decoder_of_one_token_has_no_prefill():
    profile, found = found_decoder(1)
    (one,) = generation(profile, found, TOY, {}, contexts=(8,), precisions=("float",))
    assert one.prefill is None and one.decode is not None
    with pytest.raises(igniter.IgniterError, match="takes 1 new tokens in a run, and not 4"):
        found.sizes(0, 4)


def test_a_decoder_whose_cache_has_a_length_of_its_own_is_known_by_names():
    profile = igniter.load(grouped_decoder()).profile()
    found = find_decoder(profile)
    assert isinstance(found, Decoder), found
    assert (found.past, str(found.new), found.total) == (
        "past_sequence_length",
        "sequence_length",
        "total_sequence_length",
    )
    (one,) = generation(profile, found, TOY, {}, contexts=(32,), precisions=("float",))
    sizes = {"batch_size": 1, "past_sequence_length": 32, "sequence_length": 1, "total_sequence_length": 33}
    assert one.decode == pytest.approx(estimate(profile.at(sizes), TOY).seconds)
    assert one.cache_bytes == 2 * 2 * 16 * 4 * 32
    # Scores and their mixture: four heads of 16, each with the 33 keys.
    attention = next(n for n in profile.at(sizes).nodes if n.name == "attention")
    assert attention.cost.macs == 4 * 33 * 2 * 16


def test_what_is_no_decoder_says_so():
    why = find_decoder(igniter.load(bert(1)).profile())
    assert isinstance(why, str) and "no output is an input with more of one dim" in why


def test_memory_that_is_too_small_is_said():
    profile, found = found_decoder()
    small = Device("small", {"float": 1e9}, 1e9, memory=1000.0)
    assert not generation(profile, found, small, {}, contexts=(8,), precisions=("float",))[0].fits
