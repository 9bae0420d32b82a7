"""Libraries for several CPUs, and for one that is not here."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import numpy as np
import pytest
from library_kit import TARGET, model, node, scale_kernel, scale_op, session, value

import igniter
from igniter.backends.cpu.codegen import compile_object
from igniter.backends.cpu.jit import compile_ir
from igniter.backends.cpu.target import UnknownTarget, target_of, targets_of
from igniter.backends.ort.cpu_choice import LEVELS, machine_code
from igniter.dialects.ort import LibraryOp
from igniter.errors import IgniterError
from igniter.runtime.library import Library, LibraryPart, build_library, library_info
from igniter.runtime.linker import link_shared

X86 = pytest.mark.skipif(TARGET.arch != "x86_64", reason="the CPU is asked on x86-64 only")
BASE = target_of("x86-64")
ASKED = f"""target triple = "{BASE.triple}"
{machine_code("x86_64-unknown-linux-gnu")}
declare i32 @igniter_cpu_level()
define void @k(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context) {{
  %y = load ptr, ptr %buffers
  %level = call i32 @igniter_cpu_level()
  store i32 %level, ptr %y
  ret void
}}
"""


@X86
def test_the_level_of_this_machine() -> None:
    found = np.zeros(1, np.int32)
    compile_ir("k", ASKED, "x86-64")(found)
    assert found[0] == TARGET.level


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
