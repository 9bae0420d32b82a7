"""The text for another LLVM: what is rewritten, and that the tools of that LLVM verify, compile and run it."""

from __future__ import annotations

import ctypes
import io
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.parser import Parser

from benchmark.models.networks import NETWORKS
from igniter.backends.cpu import codegen
from igniter.backends.cpu.emit_llvm import emit_whole
from igniter.backends.cpu.llvm_tokens import callee_of, spell_splats, split_list, tokens_of
from igniter.backends.cpu.llvm_versions import VERSIONS, data_layout, text_for
from igniter.backends.cpu.target import target_of
from igniter.context import IgniterContext
from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.passes import parse_passes, run_passes
from igniter.tools.igniter_opt import run
from tests import quantized_models
from tests.examples import examples

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SAMPLE = ("mask_softmax", "quantized_attention", "linear")
UNCOMPILED = {
    *("distances_by_f32", "distances_by_mine", "linear_racing", "linear_uneven", "misspelt_schedule"),
    *("unbound_symbol", "undefined_value", "wrong_nest", "wrong_node"),
    "masked_row",
}
"""Examples of errors, of a missing package, and of the syntax of MLIR where it differs from that of xDSL."""

MODELS = ("squeezenet1_1", "shufflenet_v2", "encoder, quantized")

TARGETS = ("x86-64-v4", "sapphirerapids", "x86-64", "aarch64+dotprod+i8mm+bf16")


def tool(name: str, version: int) -> str:
    """The path of a tool of an LLVM version; skips the test without it."""
    path = shutil.which(f"{name}-{version}")
    if path is None:
        pytest.skip(f"{name}-{version} is not installed (Debian: llvm-{version})")
    return path


def flags(version: int) -> list[str]:
    return ["-opaque-pointers"] if version < 15 else []


def emitted(file: Path, target: str, version: str, *options: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    args = [str(file), "-p", "cpu", "--isolate", "--emit=llvm", f"--llvm={version}", f"--target={target}", *options]
    assert run(args, io.BytesIO(), out, err) == 0, err.getvalue()
    return out.getvalue()


def compiled(text: str, version: int, folder: Path) -> Path:
    """The object that `llc` makes of a text, after `opt` verified and optimised it."""
    source, better, built = folder / "k.ll", folder / "k.opt.ll", folder / "k.o"
    source.write_text(text)
    # LLVM 14's loop-load-elim, part of its O1, ends in a segmentation fault with opaque pointers.
    passes = "verify,default<O1>" if version > 14 else "verify,function(sroa,early-cse<memssa>,simplifycfg)"
    opt, llc = tool("opt", version), tool("llc", version)
    steps = (
        [opt, *flags(version), f"-passes={passes}", "-S", str(source), "-o", str(better)],
        [llc, *flags(version), "-filetype=obj", "-relocation-model=pic", str(better), "-o", str(built)],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[:2000]
    return built


# -- tokens -----------------------------------------------------------------------------------------------------------


@examples(200)
@given(st.text(alphabet='%@!"<>()[]{},=;.abc019 \n\t-_:*#'))
def test_tokens_are_the_text(text: str):
    if text.count('"') % 2 == 0:
        assert "".join(tokens_of(text)) == text


def test_commas_in_brackets_and_strings_separate_nothing():
    parts = split_list(tokens_of('<2 x i8> <i8 1, i8 2>, [2 x i8] c"a,b", ptr @"f, g"'))
    assert ["".join(p) for p in parts] == ["<2 x i8> <i8 1, i8 2>", '[2 x i8] c"a,b"', 'ptr @"f, g"']


def test_a_call_is_taken_apart_and_put_together():
    line = (
        "  %v = call <4 x float> @llvm.fma.v4f32(<4 x float> %a, <4 x float> splat (float 1.0), <4 x float> %c), !a !3"
    )
    use = callee_of(line, "llvm.fma.")
    assert use is not None and (use.result, len(use.args)) == ("<4 x float>", 3)
    assert use.text() == line
    assert callee_of(line, "llvm.masked.") is None


@pytest.mark.parametrize(
    ("line", "spelled"),
    [
        ("fadd <2 x float> %a, splat (float 1.0)", "fadd <2 x float> %a, <float 1.0, float 1.0>"),
        (
            "select <2 x i1> %c, <3 x i8> %a, <3 x i8> splat (i8 7)",
            "select <2 x i1> %c, <3 x i8> %a, <3 x i8> <i8 7, i8 7, i8 7>",
        ),
        ("phi <2 x i8> [ splat (i8 0), %a ], [ %v, %b ]", "phi <2 x i8> [ <i8 0, i8 0>, %a ], [ %v, %b ]"),
        ("ret void ; splat (i8 0)", "ret void ; splat (i8 0)"),
    ],
)
def test_splats_are_spelled_out(line: str, spelled: str):
    assert spell_splats(line) == spelled


# -- constructs -------------------------------------------------------------------------------------------------------

TAIL = """
loop.func @tail symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
  loop.for i = 0 to n step 8 {
    %a = loop.load %x[i + v] lane v if [n - 1 - i - v] : vector<8xf32>
    %z = arith.constant dense<-0.0> : vector<8xf32>
    %b = arith.maximumf %a, %z : vector<8xf32>
    %c = arith.minimumf %b, %a : vector<8xf32>
    loop.store %b, %y[i + v] lane v if [n - 1 - i - v]
  }
}"""


def tail() -> str:
    return emit_whole(Parser(IgniterContext(), TAIL).parse_module(), target_of("x86-64-v3"))


def test_the_alignment_of_a_masked_access_is_an_operand():
    text = text_for(tail(), 19, target_of("x86-64-v3"))
    assert "@llvm.masked.load.v8f32.p0(ptr %" in text and ", i32 4, <8 x i1> " in text
    assert "declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)" in text
    assert "declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)" in text
    assert "splat" in text and "splat" not in text_for(tail(), 17, target_of("x86-64-v3"))


def test_an_unknown_version_is_refused():
    with pytest.raises(IgniterError, match="no text for LLVM 15: --llvm takes 14, 17, 19 or 'newest'"):
        text_for("", 15, target_of("x86-64"))


def test_llvmlite_reads_the_older_texts_as_the_same_module():
    """LLVM upgrades the text of older versions: the result has the functions of the newest text."""

    def functions(text: str) -> list[str]:
        return [str(f) for f in codegen.parse(text).functions if not f.is_declaration]

    for version in (17, 19):
        assert functions(text_for(tail(), version, target_of("x86-64-v3"))) == functions(tail())


@pytest.mark.parametrize("version", [14, 19])
@pytest.mark.parametrize("target", ["x86-64", "aarch64"])
def test_the_data_layout_is_that_of_llc(target: str, version: int, tmp_path: Path):
    empty = tmp_path / "k.ll"
    empty.write_text("define void @f() {\n  ret void\n}\n")
    command = [tool("llc", version), f"-mtriple={target_of(target).triple}", "-print-after-all", "-print-module-scope"]
    done = subprocess.run([*command, str(empty), "-o", "/dev/null"], capture_output=True, text=True, check=True)
    assert f'target datalayout = "{data_layout(target_of(target), version)}"' in done.stderr


@pytest.mark.parametrize("version", [14, 19])
def test_what_llc_makes_computes_the_same(version: int, tmp_path: Path):
    if target_of("native").arch != "x86_64" or not target_of("native").has_feature("avx2"):
        pytest.skip("this machine has no AVX2")
    built = compiled(text_for(tail(), version, target_of("x86-64-v3")), version, tmp_path)
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("there is no cc to link the object with")
    library = tmp_path / "k.so"
    subprocess.run([cc, "-shared", str(built), "-o", str(library)], check=True)
    x = np.array([1, -1, 0.0, -0.0, np.nan, np.inf, -np.inf, 3, -5, 2, -0.0], np.float32)
    y = np.full_like(x, 9)
    buffers = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
    symbols = (ctypes.c_int64 * 1)(len(x))
    ctypes.CDLL(str(library)).tail(buffers, symbols, None, None, None)
    np.testing.assert_array_equal(y, np.maximum(x, np.float32(-0.0)))
    assert not np.signbit(y[2]) and np.signbit(y[3])


# -- examples and models ----------------------------------------------------------------------------------------------


def pairs() -> list[tuple[str, str, int]]:
    names = sorted(p.stem for p in EXAMPLES.glob("*.mlir") if p.stem not in UNCOMPILED)
    return [(name, target, version) for name in names for target in TARGETS for version in (14, 19)]


def is_sampled(name: str, target: str, version: int) -> bool:
    return (name, target, version) in {(n, "x86-64-v4", 19) for n in SAMPLE} | {("two_products", "sapphirerapids", 14)}


@pytest.mark.parametrize(
    ("name", "target", "version"),
    [pytest.param(*c, marks=() if is_sampled(*c) else pytest.mark.full) for c in pairs()],
)
def test_tools_of_another_llvm_compile_the_examples(name: str, target: str, version: int, tmp_path: Path):
    tool("llc", version)
    text = emitted(EXAMPLES / f"{name}.mlir", target, str(version))
    assert text.startswith(f"; For LLVM {version} and later.")
    assert "target datalayout" in text and "target triple" in text
    assert "declare hidden void @igniter.tile" not in text
    compiled(text, version, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("version", [14, 19])
@pytest.mark.parametrize("name", MODELS)
def test_tools_of_another_llvm_compile_the_kernels_of_models(name: str, version: int, tmp_path: Path):
    tool("llc", version)
    if name in NETWORKS:
        model = NETWORKS[name]()
    else:
        model = quantized_models.quantize_dynamic(quantized_models.encoder(), tmp_path)
    module, ctx = import_model(model), IgniterContext()
    ctx.isolation.enabled = True
    run_passes(ctx, module, parse_passes("cpu"))
    for target in TARGETS:
        compiled(text_for(emit_whole(module, target_of(target)), version, target_of(target)), version, tmp_path)


@pytest.mark.slow
def test_the_newest_text_has_the_kernels_alone_unless_asked():
    file = EXAMPLES / "two_products.mlir"
    whole = emitted(file, "x86-64-v4", "newest")
    out = io.StringIO()
    assert run([str(file), "-p", "cpu", "--emit=llvm", "--target=x86-64-v4"], io.BytesIO(), out, io.StringIO()) == 0
    assert "declare hidden void @igniter.tile" in out.getvalue()
    assert "declare hidden void @igniter.tile" not in whole and "@igniter.tile" in whole
    codegen.parse(whole).verify()
    assert set(VERSIONS) == {14, 17, 19}


@pytest.mark.parametrize("version", [14, 19])
def test_objects_name_the_nodes_of_a_kernel(version: int, tmp_path: Path):
    text = emitted(EXAMPLES / "mask_softmax.mlir", "x86-64-v4", str(version), "--debug-info")
    codegen.parse(text).verify()
    assert b"scale_scores, add_mask, softmax" in compiled(text, version, tmp_path).read_bytes()
    # A line of the graph is a node: `scale_scores` is the first of three.
    assert {f"!DILocation(line: {k}, " in text for k in (1, 2, 3)} == {True}
