"""Every linker that this machine has, both targets, and what is said when there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from library_kit import build, function, scale_kernel, scale_op

from igniter.backends.cpu.target import target_of
from igniter.errors import IgniterError
from igniter.runtime import linker
from igniter.runtime.elf import read_elf
from igniter.runtime.library import compile_object, library_info
from igniter.runtime.linker import Linker, LinkError, find_linker, link_shared

EXPORTS = ("entry",)
X86, ARM = target_of("x86-64"), target_of("aarch64")
MODULE = """
declare void @helper(ptr)
@table = internal constant [1 x ptr] [ptr @helper]
define ptr @entry(ptr %x) {
  call void @helper(ptr %x)
  ret ptr @table
}
"""
HELPER = "define void @helper(ptr %x) { store i8 1, ptr %x\n ret void }\ndefine void @unused() { ret void }"


def linkers() -> list[Linker]:
    """Those that can be tried here, whatever would be preferred."""
    import shutil

    found = [Linker((path,)) for path in map(shutil.which, ("ld.lld", "ld")) if path]
    cc = shutil.which("cc")
    if cc:
        found.append(Linker((cc,), driver=True))
    zig = linker._zig()
    return [*found, *([Linker((zig, "ld.lld"))] if zig else [])]


@pytest.mark.parametrize("tool", linkers(), ids=lambda t: t.name)
def test_each_linker_writes_a_clean_library_twice_the_same(tool: Linker) -> None:
    objects = [compile_object(text, X86) for text in (MODULE, HELPER)]
    data = link_shared(objects, X86.triple, EXPORTS, tool)
    assert data == link_shared(objects, X86.triple, EXPORTS, tool)
    facts = read_elf(data)
    assert facts.machine == "x86_64"
    assert facts.exported == EXPORTS
    assert facts.undefined == facts.needed == facts.paths == ()
    assert facts.bind_now
    assert ".symtab" not in facts.sections
    assert b"igniter-link-" not in data and b"/tmp" not in data


def test_cross_link() -> None:
    objects = [compile_object(text, ARM) for text in (MODULE, HELPER)]
    facts = read_elf(link_shared(objects, ARM.triple, EXPORTS))
    assert facts.machine == "aarch64" and facts.exported == EXPORTS and not facts.undefined


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3", "x86-64-v4", "aarch64"])
def test_a_library_needs_nothing_of_the_process(name: str) -> None:
    target = target_of(name)
    library = build([scale_op()], [scale_kernel()], target)
    facts = read_elf(library.data)
    assert facts.machine == target.arch
    assert facts.exported == ("RegisterCustomOps", "igniter_library_info")
    assert set(facts.undefined) <= linker.PROCESS_SYMBOLS
    assert facts.needed == ()
    assert library_info(library.data)["targets"][0]["triple"] == target.triple


def test_what_nothing_provides_is_an_error_when_linking() -> None:
    text = (
        "declare float @expf(float)\ndefine float @entry(float %x) { %y = call float @expf(float %x)\n ret float %y }"
    )
    with pytest.raises(LinkError, match="call expf, which no library provides"):
        link_shared([compile_object(text, X86)], X86.triple, EXPORTS)


def test_memcpy_may_come_from_the_process() -> None:
    text = """
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define void @entry(ptr %x, ptr %y, i64 %n) {
      call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %y, i64 %n, i1 false)
      ret void
    }"""
    assert read_elf(link_shared([compile_object(text, X86)], X86.triple, EXPORTS)).undefined == ("memcpy",)


def test_the_linkers_own_words_are_passed_on() -> None:
    with pytest.raises(LinkError, match=r"failed: .*0\.o"):
        link_shared([b"not an object"], X86.triple, EXPORTS)
    with pytest.raises(LinkError, match=r"does not export|undefined|entry"):
        link_shared([compile_object(HELPER, X86)], X86.triple, EXPORTS)


def test_no_linker_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("IGNITER_LINKER", raising=False)
    monkeypatch.setattr(linker, "_zig", lambda: None)
    linker._find.cache_clear()
    try:
        with pytest.raises(LinkError, match=r"no linker for x86_64.*pip install 'onnx-igniter\[link\]'"):
            find_linker(X86.triple)
    finally:
        linker._find.cache_clear()


def test_without_a_system_linker_the_packaged_one_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("IGNITER_LINKER", raising=False)
    tool = find_linker(X86.triple)
    assert tool.name == "zig ld.lld"
    assert (
        read_elf(link_shared([compile_object(t, X86) for t in (MODULE, HELPER)], X86.triple, EXPORTS, tool)).exported
        == EXPORTS
    )


def test_the_linker_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNITER_LINKER", "no-such-linker")
    with pytest.raises(LinkError, match="'no-such-linker', which is not a program"):
        find_linker(X86.triple)
    monkeypatch.setenv("IGNITER_LINKER", f"{sys.executable} -m ziglang ld.lld")
    tool = find_linker(X86.triple)
    assert tool.command == (sys.executable, "-m", "ziglang", "ld.lld") and not tool.driver


def test_other_systems_are_refused() -> None:
    with pytest.raises(LinkError, match="cannot link for riscv64-unknown-linux-gnu"):
        find_linker("riscv64-unknown-linux-gnu")


def test_code_that_llvm_does_not_accept() -> None:
    with pytest.raises(IgniterError, match="LLVM IR is invalid"):
        compile_object("define void @f() { ret i32 0 }", X86)


def test_the_library_is_described_in_the_file(tmp_path: Path) -> None:
    library = build([scale_op()], [scale_kernel()], pipeline="cpu", options={"level": 3})
    info = library_info(library.write(tmp_path))
    assert info["domain"] == library.domain
    assert info["pipeline"] == "cpu" and info["options"] == {"level": 3}
    assert info["versions"]["igniter"] and info["versions"]["llvm"]
    assert info["ops"]["Scale_k"]["inputs"] == ["x: f32 [a, b]"]
    assert library.file_name == f"{library.domain}.so"


def test_what_is_no_library_says_so(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match="not a library that Igniter made"):
        library_info(b"\x7fELF")
    with pytest.raises(IgniterError, match=r"cannot read .*nothing\.so: No such file"):
        library_info(tmp_path / "nothing.so")
    with pytest.raises(ValueError, match="not a 64-bit"):
        read_elf(b"MZ")
    with pytest.raises(ValueError, match="damaged"):
        read_elf(b"\x7fELF\2\1" + b"\xff" * 100)


@pytest.mark.slow
def test_the_domain_depends_on_everything() -> None:
    one = build([scale_op()], [scale_kernel()])
    assert one.domain == build([scale_op()], [scale_kernel()]).domain
    assert one.data == build([scale_op()], [scale_kernel()]).data
    others = [
        build([scale_op()], [scale_kernel(factor=3.0)]),
        build([scale_op("Other_k")], [scale_kernel()]),
        build([scale_op()], [scale_kernel()], note="x"),
        build([scale_op()], [scale_kernel()], X86),
    ]
    assert len({one.domain, *(o.domain for o in others)}) == 5


CRASH = """
import sys
sys.path.insert(0, {kit!r})
from pathlib import Path
import numpy as np
from library_kit import build, one_node, scale_kernel, scale_op, session
library = build([scale_op()], [scale_kernel()])
s = session(one_node(library, scale_op()), [library], Path({folder!r}), threads=2)
for shape in [(2, 3), (), (1,), (0, 0), (2, 3, 4), (1000, 1000)]:
    try:
        s.run(None, {{"x": np.ones(shape, np.float32)}})
        print("ran", shape)
    except Exception as error:
        print("refused", shape)
"""


@pytest.mark.slow
def test_misuse_never_ends_the_process(tmp_path: Path) -> None:
    code = CRASH.format(kit=str(Path(__file__).parent), folder=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ran (2, 3)", "refused ()", "refused (1,)", "ran (0, 0)", "refused (2, 3, 4)", "ran (1000, 1000)",
    ]  # fmt: skip


def test_two_kernels_of_one_name_do_not_link() -> None:
    with pytest.raises(LinkError, match=r"(?i)multiple definition|duplicate symbol"):
        build([scale_op()], [scale_kernel(), function("scale", "")])
