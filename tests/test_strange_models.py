"""The verbs of the toolbox on what models of other makers have: maps, functions, dims without names, 8 bits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from typer.testing import CliRunner

import igniter
from igniter.analysis.devices import device_of
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.toolbox.options import InputRequest
from igniter.toolbox.profile.amounts import Amounts, folded
from igniter.toolbox.profile.decoder import CONTEXTS, Decoder, find_decoder, generation
from igniter.tools.main import app
from tests.analysis.model.networks import grouped_decoder

HEAD = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml": 2, "my": 1]> '


def weight(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / 4


def model(text: str, **weights: Any) -> onnx.ModelProto:
    """A model of its text and its weights."""
    found = onnx.parser.parse_model(HEAD + text)
    found.graph.initializer.extend(numpy_helper.from_array(np.asarray(w), n) for n, w in weights.items())
    return found


def saved(folder: Path, made: onnx.ModelProto) -> str:
    onnx.save(made, folder / "model.onnx")
    return str(folder / "model.onnx")


def output(*arguments: Any, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == code, done.output
    return done.output


def classifier() -> onnx.ModelProto:
    text = """g (float[n, 8] x) => (seq(map(string, float)) z, float[n, 3] p) {
        a = MatMul (x, w)
        p = Softmax (a)
        z = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b", "c"]> (p)
    }"""
    return model(text, w=weight(8, 3))


def convolutions() -> onnx.ModelProto:
    """Two convolutions of stride 2, of a picture of which the model says no dim."""
    text = """g (float[N, C, H, W] x) => (float[N, 4] y) {
        a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, c1)
        b = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (a, c2)
        m = GlobalAveragePool (b)
        y = Flatten (m)
    }"""
    made = model(text, c1=weight(4, 3, 3, 3), c2=weight(4, 4, 3, 3))
    for value in (*made.graph.input, *made.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    return made


def eight_bits() -> onnx.ModelProto:
    """A weight of 8 bits that two products read, of sums that ONNX Runtime's products of bytes may saturate."""
    text = """g (float[n, 64] x) => (float[n, 64] y) {
        xq = QuantizeLinear (x, s, z)
        xd = DequantizeLinear (xq, s, z)
        wd = DequantizeLinear (w, ws, wz)
        a = MatMul (xd, wd)
        r = Relu (a)
        rq = QuantizeLinear (r, s2, z)
        rd = DequantizeLinear (rq, s2, z)
        b = MatMul (rd, wd)
        bq = QuantizeLinear (b, s2, z)
        bd = DequantizeLinear (bq, s2, z)
        c = MatMul (bd, wd)
        y = Add (c, xd)
    }"""
    codes = np.random.default_rng(0).integers(-128, 127, (64, 64)).astype(np.int8)
    scales = {"s": np.float32(0.02), "s2": np.float32(0.03), "z": np.uint8(128)}
    return model(text, w=codes, ws=np.float32(0.003), wz=np.int8(0), **scales)


# -- types ------------------------------------------------------------------------------------------------------------


def test_maps_pass_the_verifier():
    """Schemas write `map(string, float)` and `map(string,tensor(float))`, by the version of `onnx`."""
    module = igniter.load(classifier()).expose("a")
    assert module.rename({"x": "features"}).check_edits().status == "passed"


def test_types_are_told_as_onnx_does_and_tokens_have_a_shape(tmp_path: Path):
    assert "seq(map(string, float))" in output("shapes", saved(tmp_path, classifier()))
    text = """g (string[n] x) => (float[n, 2] y) {
        t = com.microsoft.Tokenizer <mark = 0, separators = [" "], pad_value = "#", mincharnum = 1> (x)
        y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0,
            ngram_counts = [0], ngram_indexes = [0, 1], pool_strings = ["a", "b"]> (t)
    }"""
    made = model(text)
    made.opset_import.add(domain="com.microsoft", version=1)
    shapes = {v.name: v for v in igniter.load(made).shapes().values}
    assert (shapes["t"].type, str(shapes["t"].dims)) == ("string", "(Expr(n), Expr(tokens))")
    _, check = igniter.load(made).split(tmp_path / "stages", 2)
    assert check is not None and check.status == "passed", check


def test_a_constant_of_a_function_may_be_an_attribute_of_its_call():
    text = """g (float[n, 4] x) => (float[n, 4] y) { y = my.scaled <by = 0.5> (x) }
    <domain: "my", opset_import: ["" : 17]> scaled <by: float = 1.0> (x) => (y) {
        c = Constant <value_float: float = @by> ()
        y = Mul (x, c)
    }"""
    module = igniter.load(model(text))
    assert not module.diff(module)


def test_a_model_of_trees_alone_gets_the_domain_of_what_is_added():
    text = """<ir_version: 6, opset_import: ["ai.onnx.ml" : 2]> g (float[n, 2] x) => (float[n, 2] y) {
        y = ai.onnx.ml.Normalizer <norm = "L2"> (x)
    }"""
    module = igniter.load(onnx.parser.parse_model(text)).change_types(y="double")
    assert {i.domain: i.version for i in module.to_onnx().opset_import} == {"": 11, "ai.onnx.ml": 2}
    assert module.check_edits().status == "passed"


def test_values_of_unknown_types_are_no_outputs(tmp_path: Path):
    text = "g (float[n, 4] x) => (float[n, 4] y) { a = my.nobody (x)\n b = Relu (x)\n y = my.other (a, b) }"
    path = saved(tmp_path, model(text))
    assert "the type of 'a' is not known" in output(
        "edit", path, "-o", tmp_path / "e.onnx", "--no-verify", "--expose", "a", code=1
    )
    output("edit", path, "-o", tmp_path / "e.onnx", "--no-verify", "--expose-all")
    assert [o.name for o in onnx.load(tmp_path / "e.onnx").graph.output] == ["y", "b"]


def test_what_onnx_runtime_does_not_run_is_written_unchecked(tmp_path: Path):
    path = saved(tmp_path, model("g (float[n, 4] x) => (float[n, 4] y) { a = Relu (x)\n y = my.nobody (a) }"))
    shown = output("edit", path, "-o", tmp_path / "e.onnx", "--rename", "x=in")
    assert "not run: the original does not run" in shown and (tmp_path / "e.onnx").is_file()
    shown = output("shapes", path, "--compute-graph", tmp_path / "g.onnx")
    assert "not verified: the original does not run" in shown and (tmp_path / "g.onnx").is_file()
    assert "not run" in output("split", path, "-o", tmp_path / "stages", "--stages", 2)


def test_why_nothing_can_be_compressed():
    text = "g (double[n, 4] x) => (double[n, 4] y) { y = MatMul (x, w) }"
    with pytest.raises(IgniterError, match="'w' holds float64"):
        igniter.load(model(text, w=np.ones((4, 4)))).compress("int8", min_elements=1)
    with pytest.raises(IgniterError, match="'w' is read by MatMul of constants alone"):
        folded_product = "g (float[4, 4] x) => (float[4, 4] y) { a = MatMul (w, w)\n y = Add (a, x) }"
        igniter.load(model(folded_product, w=weight(4, 4))).compress("int8", min_elements=1)


def test_random_models_are_not_compared(tmp_path: Path):
    text = "g (float[n, 8] x) => (float[n, 8] y) { r = RandomNormalLike (x)\n a = Add (x, r)\n y = MatMul (a, w) }"
    path = saved(tmp_path, model(text, w=weight(8, 8)))
    shown = output("compress", path, "-o", tmp_path / "c.onnx", "--weights", "int8", "--min-elements", 1)
    assert "not compared: random nodes are in the model" in shown
    output("split", path, "-o", tmp_path / "stages", "--stages", 2)
    shown = output("run-stages", tmp_path / "stages", "--here", "--items", 1, "--reference", path, code=1)
    assert "random nodes are in" in shown


# -- dims without names -----------------------------------------------------------------------------------------------


def test_dims_without_names_are_called_by_their_places(tmp_path: Path):
    path = saved(tmp_path, convolutions())
    profile = igniter.load(path).profile()
    assert profile.symbols == {f"x.{axis}": f"dim {axis} of input x" for axis in (0, 2, 3)}
    whole = profile.at({"x.0": 1, "x.2": 32, "x.3": 32}).total
    for sizes in ("x.0=1,x.2=32,x.3=32", "x:0=1,x:2=32,x:3=32", "unk__0=1,unk__2=32,unk__3=32"):
        assert json.loads(output("profile", path, "--json", "--sizes", sizes))["total"]["flops"] == plain(whole)
    with pytest.raises(IgniterError, match="x:1 is 3 in the model, not 4"):
        igniter.load(path).profile({"x:1": 4})
    assert igniter.load(path).plan({"x.0": 1, "x.2": 32, "x.3": 32}).total.constant is not None
    # The verification calls dims as a session of ONNX Runtime does.
    sizes = ["--sizes", "x:0=1,x:2=32,x:3=32"]
    assert "verified" in output("shapes", path, "--compute-graph", tmp_path / "graph.onnx", *sizes)


def plain(row: Any) -> Any:
    return row.cost.flops.constant


def test_a_dim_that_the_model_calls_as_what_is_made_up(tmp_path: Path):
    path = saved(tmp_path, model("g (float[unk__1, 4] x) => (float[unk__1, 4] y) { y = Relu (x) }"))
    assert "verified" in output("shapes", path, "--compute-graph", tmp_path / "g.onnx", "--sizes", "unk__1=3")


def test_long_amounts_are_short_in_the_table():
    half = (Expr.of("h") + 1) // Expr.of(2)
    quarter = (half + 1) // Expr.of(2)
    assert str(folded(quarter)) == "((h + 3) floordiv 4)"
    for h in range(40):
        assert folded(quarter).evaluate({"h": h}) == quarter.evaluate({"h": h})
    amounts = Amounts(("h", "a"), most=30)
    assert amounts.text(Expr.of(1234)) == "1,234"
    long = half * quarter * Expr.of("an_input_with_a_long_name")
    assert amounts.text(long) == "b*c*d" and not amounts.cut
    meant = ["an_input_with_a_long_name", "(h + 1) floordiv 2", "(h + 3) floordiv 4"]
    assert sorted(amounts.legend.values()) == sorted(meant)
    terms = sum((Expr.of(f"s{k}") * Expr.of(1000) for k in range(9)), Expr.of(0))
    assert amounts.text(terms).endswith("terms") and amounts.cut


def test_fixing_a_dim_compares_no_weights(monkeypatch: pytest.MonkeyPatch):
    text = "g (float[n, 4] x) => (float[n, 4] y) { a = MatMul (x, w)\n y = MatMul (a, v) }"
    module = igniter.load(model(text, w=np.zeros((4, 4), np.float32), v=np.zeros((4, 4), np.float32)))

    def compared(one: Any, other: Any) -> bool:
        raise AssertionError("weights were compared")

    monkeypatch.setattr(Weight, "__eq__", compared)
    module.fix_dims(n=2)


# -- parts ------------------------------------------------------------------------------------------------------------


def test_the_inside_ends_at_the_outputs_that_its_begin_leads_to():
    text = "g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z) { a = Relu (x)\n y = Tanh (a)\n z = Abs (x) }"
    module = igniter.load(model(text)).extract(["a"])
    proto = module.to_onnx()
    assert [v.name for v in proto.graph.input] == ["a"] and [v.name for v in proto.graph.output] == ["y"]


@pytest.mark.parametrize("arguments", [("split", "--stages", 3), ("extract", "--part", "all", "--from", "r")])
def test_products_of_8_bits_are_compared_where_nothing_saturates(tmp_path: Path, arguments: tuple[Any, ...]):
    verb, *options = arguments
    shown = output(verb, saved(tmp_path, eight_bits()), "-o", tmp_path / "parts", *options)
    assert "largest relative error 0.0e+00" in shown


def test_stages_run_at_sizes_that_they_take_and_without_inputs_that_none_reads(tmp_path: Path):
    text = """g (float[n, c, 8, 8] x, float[k] unused) => (float[n, 4, 8, 8] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, c1)
        y = Relu (a)
    }"""
    path = saved(tmp_path, model(text, c1=weight(4, 3, 3, 3)))
    output("split", path, "-o", tmp_path / "stages", "--stages", 2)
    shown = output("run-stages", tmp_path / "stages", "--here", "--items", 1, "--reference", path)
    assert "the outputs are those of" in shown


def test_ranks_share_a_product_of_a_value_whose_type_the_model_does_not_say(tmp_path: Path):
    text = "g (float[n, 8] x) => (float[n, 8] y) { a = SimplifiedLayerNormalization (x, s)\n y = MatMul (a, w) }"
    made = model(text, s=np.ones(8, np.float32), w=weight(8, 8))
    assert "largest relative error" in output("split", saved(tmp_path, made), "-o", tmp_path / "ranks", "--tensor", 2)


def test_shape_arithmetic_that_was_erased_is_made_anew():
    """The last reader of what was computed for one Reshape went away with what it was for."""
    text = """g (float[b, s, 8] x) => (float[s, b, 8] y, float[s, b, 8] z) {
        shape = Shape (x)
        b0 = Gather <axis = 0> (shape, zero)
        s0 = Gather <axis = 0> (shape, one)
        b1 = Unsqueeze (b0, axis)
        s1 = Unsqueeze (s0, axis)
        target = Concat <axis = 0> (s1, b1, eight)
        ones = ConstantOfShape <value = float[1] {1.0}> (target)
        sizes = Shape (ones)
        y = Reshape (x, sizes)
        z = Reshape (x, target)
    }"""
    ints = {"zero": np.int64(0), "one": np.int64(1), "axis": np.array([0]), "eight": np.array([8])}
    module = igniter.load(model(text, **ints))
    before = module.to_onnx().SerializeToString()
    feed = {"x": weight(2, 3, 8)}
    after = module.compute_graph().to_onnx().SerializeToString()
    import onnxruntime

    found: list[Any] = [onnxruntime.InferenceSession(m).run(None, feed) for m in (before, after)]
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


# -- what is asked for twice ------------------------------------------------------------------------------------------


def test_sizes_beside_inputs_that_have_theirs_are_an_error(tmp_path: Path):
    with pytest.raises(IgniterError, match="give --shape or --inputs"):
        InputRequest(("n=3",), "x.npz")
    for verb in ("bench", "verify", "report"):
        shown = output(verb, tmp_path / "none", "--shape", "n=3", "--inputs", "x.npz", code=1)
        assert "--shape gives sizes, and the inputs of x.npz have theirs" in shown
    assert "give --shape or --inputs" in output("run-stages", *split_folder(tmp_path), code=1)


def split_folder(folder: Path) -> list[Any]:
    text = "g (float[n, 4] x) => (float[n, 4] y) { a = Relu (x)\n y = Tanh (a) }"
    output("split", saved(folder, model(text)), "-o", folder / "stages", "--stages", 2, "--no-verify")
    return [folder / "stages", "--here", "--shape", "n=3", "--inputs", "x.npz"]


# -- decoders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [64, "max_sequence_length"])
def test_a_cache_in_a_buffer_of_fixed_length(length: int | str):
    """ONNX Runtime's `past_present_share_buffer`: past and present are one buffer, longer than what is in use."""
    made = grouped_decoder()
    for value in made.graph.input[2:]:
        dim = value.type.tensor_type.shape.dim[2]
        dim.Clear()
        setattr(dim, "dim_value" if isinstance(length, int) else "dim_param", length)
    sizes = {} if isinstance(length, int) else {length: 64}
    profile = igniter.load(made).profile(sizes)
    found = find_decoder(profile)
    assert isinstance(found, Decoder), found
    assert (found.past, found.capacity, found.total) == ("", 64, "total_sequence_length")
    device = device_of("a100")
    table = generation(profile, found, device, {}, (16, 32), ("float",))
    assert [g.context for g in table] == [16, 32] and all(g.prefill and g.decode for g in table)
    assert table[0].cache_bytes == table[1].cache_bytes == 2 * 2 * 16 * 4 * 64
    assert [g.context for g in generation(profile, found, device, {}, CONTEXTS, ("float",))] == [63]
    with pytest.raises(IgniterError, match="room for 64 tokens, and a context of 64 with one more needs 65"):
        generation(profile, found, device, {}, (64,), ("float",))
