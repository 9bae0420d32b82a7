"""Libraries for several CPUs, and for one that is not here."""

from __future__ import annotations

import dataclasses
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from library_kit import TARGET, model, node, scale_kernel, scale_op, session, value

import igniter
from igniter.backends.cpu.codegen import compile_object
from igniter.backends.cpu.instructions import instructions
from igniter.backends.cpu.jit import compile_ir
from igniter.backends.cpu.target import UnknownTarget, known_cpus, known_features, target_of, targets_of
from igniter.backends.ort.cpu_choice import LEVELS, Variant, emit_choice, machine_code
from igniter.backends.ort.messages import StringPool
from igniter.cpu_features import FEATURES, UNUSED, WORDS
from igniter.dialects.ort import LibraryOp
from igniter.errors import IgniterError
from igniter.runtime.library import Library, LibraryPart, build_library, library_info
from igniter.runtime.linker import link_shared

X86 = pytest.mark.skipif(TARGET.arch != "x86_64", reason="the CPU is asked on x86-64 only")
BASE = target_of("x86-64")
ASKED = f"""target triple = "{BASE.triple}"
{machine_code("x86_64-unknown-linux-gnu")}
declare void @igniter_cpu_words(ptr)
declare i32 @igniter_cpu_level(ptr)
define void @k(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context) {{
  %y = load ptr, ptr %buffers
  %words = getelementptr i32, ptr %y, i64 1
  call void @igniter_cpu_words(ptr %words)
  %level = call i32 @igniter_cpu_level(ptr %words)
  store i32 %level, ptr %y
  ret void
}}
"""


@X86
def test_the_level_of_this_machine() -> None:
    found = np.zeros(1 + len(WORDS), np.int32)
    compile_ir("k", ASKED, "x86-64")(found)
    assert found[0] == TARGET.level


@X86
def test_the_features_of_this_machine() -> None:
    """LLVM asks the CPU too."""
    import llvmlite.binding as llvm

    found = np.zeros(1 + len(WORDS), np.uint32)
    compile_ir("k", ASKED, "x86-64")(found.view(np.int32))
    words, xcr0 = [int(word) for word in found[1:]], int(found[1 + WORDS.index("xcr0")])
    known = dict(llvm.get_host_cpu_features())
    for name, place in FEATURES["x86_64"].items():
        if name in known:
            has = words[place.word] & place.bits == place.bits and xcr0 & place.saved == place.saved
            assert has == known[name], name


@pytest.mark.parametrize(("cpu", "level"), [("CORE2DUO", 1), ("NEHALEM", 2), ("HASWELL", 2)])
def test_the_level_of_other_machines(cpu: str, level: int) -> None:
    """Emulated. The emulator has no AVX, so that its Haswell is not quite one."""
    import unicorn
    from unicorn import x86_const as x86

    code, stack, end = 1 << 32, 1 << 36, 1 << 40
    library = link_shared([compile_object(ASKED, BASE)], BASE.triple, ["k"])
    machine = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
    machine.ctl_set_cpu_model(getattr(x86, f"UC_CPU_X86_{cpu}"))
    for place in (code, stack, end):
        machine.mem_map(place, 1 << 20)
    segments, count = struct.unpack_from("<Q", library, 32)[0], struct.unpack_from("<H", library, 56)[0]
    for i in range(count):
        kind, _, offset, address, _, size, _, _ = struct.unpack_from("<IIQQQQQQ", library, segments + 56 * i)
        if kind == 1:
            machine.mem_write(code + address, library[offset : offset + size])
    output, buffers, top = stack + 64, stack + 128, stack + (1 << 19)
    machine.mem_write(buffers, struct.pack("<Q", output))
    machine.mem_write(top - 8, struct.pack("<Q", end + 64))
    machine.reg_write(x86.UC_X86_REG_RDI, buffers)
    machine.reg_write(x86.UC_X86_REG_RSP, top - 8)
    machine.emu_start(code + _address_of(library, b"k"), end + 64)
    assert struct.unpack("<i", machine.mem_read(output, 4)) == (level,)


def _address_of(library: bytes, name: bytes) -> int:
    start, (size, count) = struct.unpack_from("<Q", library, 40)[0], struct.unpack_from("<HH", library, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", library, start + i * size) for i in range(count)]
    for section in sections:
        if section[1] == 11:
            for at in range(section[4], section[4] + section[5], 24):
                text, _, _, _, value_, _ = struct.unpack_from("<IBBHQQ", library, at)
                begin = sections[section[6]][4] + text
                if library[begin : library.index(b"\0", begin)] == name:
                    return value_
    raise KeyError(name)


def scaled(library: Library, folder: Path) -> float:
    """The result of the library's op for 1."""
    proto = model(
        [node(library, "Scale_k", ["x"], ["y"])],
        [value("x", 1, ["n", "m"])],
        [value("y", 1, None)],
        [library.domain],
    )
    return float(session(proto, [library], folder).run(None, {"x": np.ones((1, 1), np.float32)})[0][0, 0])


@X86
@pytest.mark.parametrize("backwards", [False, True])
def test_the_best_variant_runs(tmp_path: Path, backwards: bool) -> None:
    """Variant k multiplies by the level that it is for."""
    levels = [level for level in LEVELS if level != 3][:: -1 if backwards else 1]
    code = {target_of(LEVELS[level]): [scale_kernel(f"scale.v{k}", float(level))] for k, level in enumerate(levels)}
    suffixes = [f".v{k}" for k in range(len(code))]
    library = build_library(LibraryPart(LibraryOp("test", [scale_op()]), code, suffixes=suffixes))
    assert scaled(library, tmp_path) == max(level for level in levels if level <= TARGET.level)
    assert [t["cpu"] for t in library_info(library.data)["targets"]] == [t.cpu for t in code]


@X86
def test_a_cpu_that_is_too_old_is_refused(tmp_path: Path) -> None:
    future = dataclasses.replace(target_of("x86-64"), name="x86-64-v9", level=9)
    library = build_library(LibraryPart(LibraryOp("test", [scale_op()]), {future: [scale_kernel()]}))
    wanted = (
        f"compiled for x86-64-v9.*, and this CPU is {LEVELS[TARGET.level]}: compile.*--target={LEVELS[TARGET.level]}"
    )
    with pytest.raises(Exception, match=wanted):
        scaled(library, tmp_path)


UNLIKELY = dataclasses.replace(target_of("x86-64"), name="x86-64+fma4+avxvnniint8", features="+fma4,+avxvnniint8")
"""No CPU has the one of AMD's Bulldozer and the other of Intel's Sierra Forest."""


@X86
def test_a_cpu_without_a_feature_is_refused(tmp_path: Path) -> None:
    library = build_library(LibraryPart(LibraryOp("test", [scale_op()]), {UNLIKELY: [scale_kernel()]}))
    needed = instructions(UNLIKELY.identity)
    assert {"fma4", "avxvnniint8", "avx2", "sse4a"} <= set(needed)
    missing = [name for name in needed if name not in instructions(TARGET.identity)]
    level = LEVELS[TARGET.level]
    said = f"for x86-64.fma4.avxvnniint8 .x86-64., and this CPU is {level} without {', '.join(missing)}: compile the "
    with pytest.raises(Exception, match=rf"{said}model with --target={level}"):
        scaled(library, tmp_path)


@X86
@pytest.mark.parametrize("backwards", [False, True])
def test_a_variant_whose_features_are_missing_is_not_chosen(backwards: bool, tmp_path: Path) -> None:
    """Both are of one level, and the one with more features would be the better one."""
    targets = [UNLIKELY, target_of("x86-64")][:: -1 if backwards else 1]
    code = {t: [scale_kernel(f"scale.v{k}", 2.0 if t is UNLIKELY else 3.0)] for k, t in enumerate(targets)}
    library = build_library(LibraryPart(LibraryOp("test", [scale_op()]), code, suffixes=[".v0", ".v1"]))
    assert scaled(library, tmp_path) == 3


def test_the_order_of_variants() -> None:
    variants = [Variant("a", 3), Variant("b", 4, "", ("avx512f",)), Variant("c", 4, "", ("avx512f", "avx512vnni"))]
    text = emit_choice(variants, [], StringPool(), "x86_64-unknown-linux-gnu")
    rows = re.search(r"@igniter_variants = .*", text)
    assert rows is not None
    found = re.findall(r"i32 (\d), i32 (\d), i64 (\d)", rows[0])
    assert found == [("2", "4", "3"), ("1", "4", "1"), ("0", "3", "0")]


def test_the_remedy_names_the_system() -> None:
    strings = StringPool()
    emit_choice([Variant("x86-64-v3-windows", 3, "", ("avx2",))], [], strings, "x86_64-pc-windows-gnu")
    assert ": compile the model with --target=x86-64-v2-windows" in strings.emit()
    emit_choice([Variant("neoverse-v2", 0, "", ("i8mm",))], [], strings, "aarch64-unknown-linux-gnu")
    assert "is compiled for neoverse-v2, and this CPU is aarch64" in strings.emit()


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("x86-64", "", "sse3 avx"),
        ("x86-64-v3", "avx2 fma f16c bmi2 movbe", "avx512f avxvnni sse4a gfni"),
        ("x86-64-v4", "avx512f avx512vl avx512bw avx512dq", "avx512vnni gfni"),
        ("cascadelake", "avx512vnni", "avx512bf16 avx512vbmi gfni"),
        ("icelake-server", "avx512vnni avx512vbmi2 gfni", "avx512bf16 avxvnni"),
        ("znver4", "avx512vnni avx512bf16 sse4a", "avx512fp16 avxvnni fma4"),
        ("sapphirerapids", "avx512fp16 avx512bf16 avxvnni", "sse4a egpr avxifma"),
        ("diamondrapids", "avx10.2 egpr avxvnniint16", "sse4a"),
        ("x86-64-v3+avxvnni", "avxvnni avx2", "avx512f"),
        ("aarch64", "", "dotprod lse"),
        ("aarch64+dotprod", "dotprod", "i8mm"),
        ("neoverse-n1", "dotprod fullfp16 lse", "i8mm bf16 sve"),
        ("neoverse-v2", "dotprod i8mm bf16 fullfp16", "sve sve2"),
        ("aarch64-macos", "dotprod fullfp16", "i8mm bf16"),
    ],
)
def test_the_features_of_a_target(name: str, has: str, lacks: str) -> None:
    found = set(instructions(target_of(name).identity))
    assert set(has.split()) <= found and found.isdisjoint(lacks.split())


def test_every_feature_has_its_place() -> None:
    """Every name of LLVM and of options is in the table, or is known to be in no code."""
    import llvmlite.binding as llvm

    for arch, names in (("x86_64", known_features("x86-64")), ("aarch64", known_features("aarch64"))):
        asked = FEATURES[arch].keys() | UNUSED[arch]
        host = set(llvm.get_host_cpu_features()) if arch == TARGET.arch else set[str]()
        # The versions of Arm's architecture are made of others.
        assert {n for n in host | names if not re.fullmatch(r"v8\.\da", n)} <= asked
        assert not FEATURES[arch].keys() & UNUSED[arch]


@pytest.mark.full
def test_every_cpu_is_known_to_llvm() -> None:
    """A CPU has what its level has, so LLVM knows it; the tables have room for all features."""
    levels = {level: set(instructions(target_of(name).identity)) for level, name in LEVELS.items()}
    for name in sorted(known_cpus()):
        target = target_of(name)
        found = set(instructions(target.identity))
        assert len(found) <= 64 and levels.get(target.level, set()) - {"lzcnt", "movbe"} <= found, name


@X86
def test_a_model_for_several_cpus(tmp_path: Path) -> None:
    source = """
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x?xf32, #sym.dims<n, m>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %a = onnx.Exp(%x) : (tensor<?x?xf32, #sym.dims<n, m>>) -> tensor<?x?xf32, #sym.dims<n, m>>
    %y = onnx.Softmax(%a) {axis = -1 : i64} : (tensor<?x?xf32, #sym.dims<n, m>>) -> tensor<?x?xf32, #sym.dims<n, m>>
    onnx.return %y : tensor<?x?xf32, #sym.dims<n, m>>
  }
}"""
    names = "x86-64,x86-64-v2,x86-64-v3,x86-64-v4"
    module = igniter.parse(source)
    artifact = module.compile(tmp_path / "out", target=names, strict=True)
    assert artifact.report["target"] == names and artifact.report["regions"] == 1
    assert artifact.report["verification"]["ok"]
    with pytest.raises(IgniterError, match="only a library can have several targets"):
        from igniter.compiler.compilation import Compilation, CompileOptions
        from igniter.compiler.driver import make_assembly, make_llvm, make_loop

        c = Compilation(module.clone().ir, CompileOptions(target=names), module.ctx)
        make_loop(c)
        make_llvm(c)
        make_assembly(c)


def test_names_of_several_targets() -> None:
    assert [t.name for t in targets_of("x86-64-v3, x86-64-v2,x86-64-v3")] == ["x86-64-v3", "x86-64-v2"]
    with pytest.raises(UnknownTarget, match="different machines"):
        targets_of("x86-64,aarch64")
    with pytest.raises(UnknownTarget, match="x86-64 CPUs only"):
        targets_of("aarch64,neoverse-n1")
    with pytest.raises(UnknownTarget, match="there is no target"):
        targets_of("x86-64,")
