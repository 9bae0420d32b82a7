"""The shipped IR: it is that of the sources, fits every module, and is linked into those that call it."""

from __future__ import annotations

import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from igniter.backends.c_runtime import units
from igniter.backends.c_runtime.build import HERE, SOURCES, TRIPLES, compile_unit
from igniter.backends.cpu.codegen import compile_object, optimized_ir, parse
from igniter.backends.cpu.target import target_of
from igniter.backends.ort import glue, launches, messages
from igniter.backends.ort.api import FUNCTIONS
from igniter.backends.ort.driver_calls import DRIVER, DRIVER_FUNCTIONS
from igniter.backends.ort.glue import STRUCTS, TYPES
from igniter.dialects.triton import ALIGNMENT
from igniter.errors import IgniterError

ROOT = Path(__file__).parents[3]
LAYOUTS = {
    "": "",
    "x86_64": "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
    "aarch64": "e-m:e-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32",
}
HEADER = (SOURCES / "library.h").read_text()
SHIPPED = [(name, arch) for name in (*units.UNITS, *units.SYSTEM_UNITS) for arch in TRIPLES]


@pytest.mark.parametrize(("name", "arch"), SHIPPED)
def test_the_shipped_ir_is_that_of_the_sources(name: str, arch: str) -> None:
    pinned = re.search(r'"ziglang==([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert pinned is not None
    if find_spec("ziglang") is None or version("ziglang") != pinned[1]:
        pytest.skip(f"ziglang {pinned[1]} is not installed, and another clang gives another text")
    assert compile_unit(name, arch) == units.unit_text(name, arch), "the sources have changed: run `make runtime`"


def test_every_source_is_a_unit() -> None:
    assert {path.stem for path in (HERE / "src").glob("*.c")} == {*units.UNITS, *units.SYSTEM_UNITS}
    assert {path.relative_to(HERE / "ir").as_posix() for path in (HERE / "ir").rglob("*.*")} == {
        f"{arch}/{name}.ll" for name, arch in SHIPPED
    }
    assert sum(len(units.unit_text(name, arch)) for name, arch in SHIPPED) < 1 << 20


@pytest.mark.parametrize(("name", "arch"), SHIPPED)
def test_types_have_one_size_in_every_layout(name: str, arch: str) -> None:
    """Modules of kernels have no layout until their code is generated, and LLVM's passes assume its default."""
    module = llvm.parse_assembly(units.unit_text(name, arch), llvm.create_context())
    default, own = (llvm.create_target_data(LAYOUTS[key]) for key in ("", arch))
    # A pair of a value and a flag, which an instruction gives, has no name and is never in memory.
    for kind in (k for k in module.struct_types if k.name):
        assert default.get_abi_size(kind) == own.get_abi_size(kind), kind.name


@pytest.mark.parametrize(("name", "arch"), SHIPPED)
def test_functions_can_be_inlined_for_any_cpu(name: str, arch: str) -> None:
    text = units.unit_text(name, arch)
    assert "target-cpu" not in text and "target-features" not in text and "inteldialect" not in text
    # llvmlite can assemble for the host's machine only.
    assert " asm " not in text


@pytest.mark.parametrize("name", sorted(STRUCTS))
def test_tables_have_the_layout_of_their_structs(name: str) -> None:
    """Of the generated types (`glue.TYPES`) and of those that clang made, as it lists their fields."""
    found: dict[str, list[str]] = {}
    for shipped, arch in SHIPPED:
        for kind in llvm.parse_assembly(units.unit_text(shipped, arch), llvm.create_context()).struct_types:
            found[kind.name.removeprefix("struct.")] = [str(e) for e in kind.elements]
    module = llvm.parse_assembly(TYPES + f"@used = external global %{name}", llvm.create_context())
    (kind,) = [k for k in module.struct_types if k.name == name]
    if STRUCTS[name] in found:
        assert [str(e) for e in kind.elements] == found[STRUCTS[name]]
    sizes = re.findall(rf"_Static_assert\(sizeof\(struct {STRUCTS[name]}\) == (\d+)", HEADER)
    assert sizes == [str(llvm.create_target_data(LAYOUTS["x86_64"]).get_abi_size(kind))]


def test_the_indices_of_the_api_are_those_of_the_header() -> None:
    header = (SOURCES / "ort.h").read_text()
    assert {name: int(index) for name, index in re.findall(r"^AT\((\w+), (\d+)\);", header, re.M)} == FUNCTIONS
    table = header[header.index("typedef struct OrtApi {") : header.index("} OrtApi;")]
    declared = re.findall(r"^  (?:OrtStatus \*|void )\(\*(\w+)\)\(", table, re.M)
    assert declared == list(FUNCTIONS), "each has its index checked by the compiler"


def test_the_numbers_of_failures_are_those_of_the_header() -> None:
    numbers = {name: int(n) for name, n in re.findall(r"^  ([A-Z_]+) = (\d+),", HEADER, re.M)}
    assert len(numbers) == 16 and len(set(numbers.values())) == 16
    for name in ("WRONG_SYMBOL", "BAD_OUTPUT", "BAD_SCRATCH", "UNSOLVABLE", "BROKEN_REQUIREMENT"):
        assert getattr(messages, name) == numbers[name]
    assert f"int64_t numbers[{messages.MESSAGE_NUMBERS}];" in HEADER


def test_the_functions_of_the_driver_are_those_of_the_source() -> None:
    source = (SOURCES / "gpu.c").read_text()
    assert tuple(re.findall(r"^  CALL\((\w+), \(", source, re.M)) == DRIVER_FUNCTIONS
    assert f'dlopen("{DRIVER}"' in source and f"  ALIGNMENT = {ALIGNMENT}," in source


def test_what_generated_code_declares_is_there() -> None:
    """A name that no unit defines would be an undefined symbol of every library."""
    declared = re.findall(r"^declare [\w ]+ @(\w+)\(", glue_functions(), re.M)
    for arch in TRIPLES:
        defined = {f for unit in units.units(arch).values() for f in unit.functions}
        assert len(declared) > 30 and set(declared) <= defined


def glue_functions() -> str:
    return glue.FUNCTIONS + glue.DECLARE_SANITIZED + launches._FUNCTIONS


CALL = """
target triple = "{triple}"
declare void @igniter_team_run(ptr, i64, i64, ptr, ptr, ptr, ptr, ptr)
define internal void @k.alone(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e) {{
  ret void
}}
define void @k(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e) {attributes} {{
  call void @igniter_team_run(ptr @k.alone, i64 8, i64 9, ptr %a, ptr %b, ptr %c, ptr %d, ptr %e)
  ret void
}}
"""


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v4", "aarch64"])
def test_a_unit_becomes_internal(name: str) -> None:
    target = target_of(name)
    kernel = CALL.format(triple=target.triple, attributes=target.function_attributes)
    text = optimized_ir(kernel, target)
    module = parse(text)
    defined = {f.name: f.linkage.name for f in module.functions if not f.is_declaration}
    assert defined.pop("k") == "external" and set(defined.values()) == {"internal"}
    assert "igniter_team_run" not in defined, "it has one caller"
    assert b"memset" not in compile_object(kernel, target)


@pytest.mark.parametrize("call", ["", "call void @igniter_launch(ptr null, i64 0, i64 0, ptr null)"])
def test_what_is_not_called_or_is_elsewhere_is_not_linked(call: str) -> None:
    """The library's module has the launches of its kernels."""
    declared = "declare void @igniter_launch(ptr, i64, i64, ptr)\n" if call else ""
    text = optimized_ir(f"{declared}define void @k() {{\n  {call}\n  ret void\n}}\n", target_of("x86-64"))
    assert [f.name for f in parse(text).functions if not f.is_declaration] == ["k"]


def test_a_name_of_the_run_time_with_another_meaning_is_an_error() -> None:
    text = (
        CALL.format(triple=target_of("x86-64").triple, attributes="")
        + "define void @igniter_team_for() {\n  ret void\n}\n"
    )
    with pytest.raises(IgniterError, match=r"the run time's unit 'team' cannot be linked: .*igniter_team_for"):
        optimized_ir(text, target_of("x86-64"))
