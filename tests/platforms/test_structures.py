"""Libraries for systems without an emulator here: what is in the file, read by the checks of the linker."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from igniter.backends.cpu.target import UnknownTarget, target_of
from igniter.runtime import macho
from igniter.runtime.coff import read_dll
from igniter.runtime.elf import read_elf
from igniter.runtime.library import Library, compile_object, other_system
from igniter.runtime.linker import LinkError, link_shared
from igniter.runtime.macho import read_dylib
from igniter.systems import SYSTEMS, system_of
from tests.runtime.library_kit import build, scale_kernel, scale_op

pytest.importorskip("ziglang", reason="no linker for other systems: pip install ziglang")

EXPORTS = ("RegisterCustomOps", "igniter_library_info")


def library(name: str) -> Library:
    return build([scale_op()], [scale_kernel()], target_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x86-64-windows", "x86-64-v3-windows"])
def test_windows(name: str) -> None:
    made = library(name)
    facts = read_dll(made.data)
    assert facts.machine == "x86_64" and facts.exported == EXPORTS
    assert {dll for dll, _ in facts.imported} <= {"kernel32.dll", "msvcrt.dll"}
    assert made.file_name == f"{made.domain}.dll"
    assert made.data == library(name).data


@pytest.mark.parametrize(
    ("name", "machine", "oldest", "signature"),
    [
        ("aarch64-macos", "aarch64", (11, 0), "ad hoc"),
        ("x86-64-v3-macos", "x86_64", (10, 15), ""),
        ("aarch64-ios", "aarch64", (13, 0), "ad hoc"),
    ],
)
def test_apple(name: str, machine: str, oldest: tuple[int, int], signature: str) -> None:
    made = library(name)
    facts = read_dylib(made.data)
    assert (facts.machine, facts.system, facts.oldest) == (machine, name.rpartition("-")[2], oldest)
    assert facts.signature == signature
    assert facts.name == f"@rpath/{made.file_name}" == f"@rpath/{made.domain}.dylib"
    assert facts.needed == ("/usr/lib/libSystem.B.dylib",)
    assert set(EXPORTS) <= set(facts.exported) <= {*EXPORTS, "_mh_dylib_header", "__dso_handle"}
    assert set(facts.undefined) <= {*SYSTEMS["macos"].functions, "dyld_stub_binder"}
    page = 16384 if machine == "aarch64" else 4096
    assert all(address % page == 0 and offset % page == 0 for _, address, offset in facts.segments)


def test_another_content_does_not_fit_the_signature() -> None:
    data = bytearray(library("aarch64-macos").data)
    data[data.index(b'{"igniter_library_info"') + 1] ^= 1
    with pytest.raises(ValueError, match="signature of another content"):
        read_dylib(bytes(data))


@pytest.mark.parametrize("name", ["aarch64-android", "x86-64-v3-android"])
def test_android(name: str) -> None:
    made = library(name)
    facts = read_elf(made.data)
    assert facts.exported == EXPORTS
    assert set(facts.needed) <= {"libc.so", "libm.so"} and "libc.so" in facts.needed
    # Versions of symbols are glibc's.
    assert not any(section.startswith(".gnu.version") for section in facts.sections)
    assert b"GLIBC" not in made.data
    # Android 15 has pages of 16 KiB.
    start, count = struct.unpack_from("<Q", made.data, 32)[0], struct.unpack_from("<H", made.data, 56)[0]
    segments = [struct.unpack_from("<IIQQQQQQ", made.data, start + 56 * k) for k in range(count)]
    loaded = [(offset, address, align) for kind, _, offset, address, _, _, _, align in segments if kind == 1]
    assert loaded and all(align >= 16384 and offset % align == address % align for offset, address, align in loaded)
    assert made.file_name == f"{made.domain}.so"


def test_names_of_targets() -> None:
    assert target_of("x86_64-windows").triple == target_of("x86-64-windows").triple == "x86_64-pc-windows-gnu"
    assert target_of("aarch64-macos").cpu == "apple-m1"
    assert target_of("arm64-android+dotprod").has_feature("dotprod")
    assert target_of("neoverse-n1-android").cpu == "neoverse-n1"
    with pytest.raises(UnknownTarget, match="libraries for ios are made for aarch64 only"):
        target_of("x86-64-ios")
    with pytest.raises(UnknownTarget, match="name a CPU for another system"):
        target_of("native-windows")
    assert all(system_of(t) is system for system in SYSTEMS.values() for t in system.triples.values())


@pytest.mark.slow
def test_a_library_of_another_system_is_named(tmp_path: Path) -> None:
    path = library("x86-64-windows").write(tmp_path)
    assert "is for x86_64-pc-windows-gnu, and this machine is" in (other_system(path) or "")
    path = library("aarch64-android").write(tmp_path)
    assert "is for aarch64-unknown-linux-android24" in (other_system(path) or "")


@pytest.mark.parametrize("name", ["x86-64-windows", "aarch64-macos", "aarch64-android"])
def test_what_no_library_provides_is_an_error(name: str) -> None:
    target = target_of(name)
    text = f"""target triple = "{target.triple}"
    declare float @expf(float)
    define float @igniter_probe(float %x) {{
      %y = call float @expf(float %x)
      ret float %y
    }}"""
    with pytest.raises(LinkError, match="expf"):
        link_shared([compile_object(text, target)], target.triple, ["igniter_probe"])


@pytest.mark.parametrize("name", ["x86-64-windows", "aarch64-macos", "aarch64-ios", "aarch64-android"])
def test_llvms_own_calls_come_from_the_system(name: str) -> None:
    target = target_of(name)
    text = f"""target triple = "{target.triple}"
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define double @igniter_probe(ptr %x, ptr %y, i64 %n, double %a, double %b) {{
      call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %y, i64 %n, i1 false)
      %r = frem double %a, %b
      ret double %r
    }}"""
    data = link_shared([compile_object(text, target)], target.triple, ["igniter_probe"])
    if target.system.format == "coff":
        assert set(read_dll(data).imported) == {("msvcrt.dll", "memcpy"), ("msvcrt.dll", "fmod")}
    elif target.system.format == "macho":
        assert {"memcpy", "fmod"} <= set(read_dylib(data).undefined)
    else:
        assert set(read_elf(data).needed) == {"libc.so", "libm.so"}


def test_damaged_files() -> None:
    for name, read in (("x86-64-windows", read_dll), ("aarch64-macos", read_dylib)):
        data = library(name).data
        for end in (0, 1, 60, 200, 1000):
            with pytest.raises(ValueError, match=r"not a|damaged"):
                read(data[:end])


def test_the_mark_of_a_system() -> None:
    data = library("aarch64-macos").data
    other = macho.marked(data, "ios", (15, 1))
    facts = read_dylib(other)
    assert (facts.system, facts.oldest, facts.signature) == ("ios", (15, 1), "ad hoc")
