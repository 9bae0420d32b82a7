"""Objects: complete in themselves, the same every time, for every architecture."""

from __future__ import annotations

import struct

import pytest

from igniter.backends.cpu import vmath
from igniter.backends.cpu.codegen import CodegenError, compile_assembly, compile_object
from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.backends.cpu.target import target_of

from .cpu_kit import function_ir, parse_func

TARGETS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "neoverse-v2")


def undefined_symbols(data: bytes) -> list[str]:
    """The undefined symbols of a 64-bit ELF object."""
    start, (size, count) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    names: list[str] = []
    for section in sections:
        if section[1] != 2:
            continue
        strings = sections[section[6]][4]
        for at in range(section[4] + 24, section[4] + section[5], 24):
            name, _, _, index = struct.unpack_from("<IBBH", data, at)
            if index == 0:
                names.append(data[strings + name : data.index(b"\0", strings + name)].decode())
    return names


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ["float", "double", "half", "bfloat"])
def test_elementary_functions_need_nothing_from_outside(element: str, target: str):
    for lanes in (0, target_of(target).lanes(4)):
        for name in sorted(vmath.FUNCTIONS.values()):
            ir = function_ir(name, element, lanes, target, 2 if name in ("pow", "atan2") else 1)
            assert undefined_symbols(compile_object(ir, target_of(target))) == [], f"{name} of {lanes} x {element}"


ROWS = """
loop.func @rows symbols [n, m] (%x: memref<?x?x{0}, #sym.dims<n, m>>, %y: memref<?x?x{0}, #sym.dims<n, m>>) outputs 1 {{
  loop.for i = 0 to n threads(4) {{
    %l = loop.alloc "row" : memref<64x{0}, "local">
    %z = arith.constant {1} : {0}
    loop.for c = 0 to 64 {{
      loop.store %z, %l[c]
    }}
    loop.for j = 0 to m step 8 {{
      %a = loop.load %x[i, j + v] lane v if [m - 1 - j - v] : vector<8x{0}>
      loop.accumulate add %a, %l[v] lane v
      %b = loop.load %l[7 - v] lane v : vector<8x{0}>
      loop.store %b, %y[i, j + v] lane v if [m - 1 - j - v]
    }}
  }}
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16", "i8", "i64"])
def test_kernels_need_nothing_from_outside(element: str, target: str):
    """A loop of zeros does not become memset, and no conversion a library call."""
    text = ROWS.format(element, "0.0" if "f" in element else "0")
    data = compile_object(emit_llvm(parse_func(text), target_of(target)), target_of(target))
    assert undefined_symbols(data) == []
    assert struct.unpack_from("<H", data, 18)[0] == (183 if target_of(target).arch == "aarch64" else 62)


def test_the_object_is_the_same_every_time():
    ir = emit_llvm(parse_func(ROWS.format("f32", "0.0")), target_of("x86-64-v3"))
    assert compile_object(ir, target_of("x86-64-v3")) == compile_object(ir, target_of("x86-64-v3"))


def test_invalid_ir_is_an_error():
    with pytest.raises(CodegenError, match="invalid"):
        compile_object("define void @f() { ret i32 0 }", target_of("x86-64"))


def test_a_gemm_tile_stays_in_registers():
    """The inner loop of a register tile holds FMAs and loads, and touches no stack."""
    rows, width = 6, 32
    body = [f"    %b{n} = loop.load %b[k, {16 * n} + v] lane v : vector<16xf32>" for n in range(2)]
    for m in range(rows):
        body.append(f"    %a{m} = loop.load %a[{m}, k] : f32")
        body.append(f"    %w{m} = vector.broadcast %a{m} : f32 to vector<16xf32>")
        for n in range(2):
            body.append(f"    %p{m}_{n} = arith.mulf %w{m}, %b{n} : vector<16xf32>")
            body.append(f"    loop.accumulate add %p{m}_{n}, %acc[{m}, {16 * n} + v] lane v")
    tiles = [f"%acc[{m}, {16 * n} + v] lane v" for m in range(rows) for n in range(2)]
    text = "\n".join(
        [
            f"loop.func @gemm symbols [] (%a: memref<{rows}x64xf32>, %b: memref<64x{width}xf32>, "
            f"%c: memref<{rows}x{width}xf32>) outputs 1 {{",
            f'  %acc = loop.alloc "acc" : memref<{rows}x{width}xf32, "register">',
            "  %z = arith.constant dense<0.0> : vector<16xf32>",
            *[f"  loop.store %z, {t}" for t in tiles],
            "  loop.for k = 0 to 64 reduction {",
            *body,
            "  }",
            *[
                line
                for i, t in enumerate(tiles)
                for line in (
                    f"  %r{i} = loop.load {t} : vector<16xf32>",
                    f"  loop.store %r{i}, {t.replace('%acc', '%c')}",
                )
            ],
            "}",
        ]
    )
    assembly = compile_assembly(emit_llvm(parse_func(text), target_of("x86-64-v4")), target_of("x86-64-v4"))
    loops = [block for block in assembly.split("\n.LBB") if "vfmadd" in block]
    assert len(loops) == 1
    assert loops[0].count("vfmadd") >= rows * 2 and "rsp" not in loops[0].split("jb")[0]
