"""`debug_info`: the ONNX nodes of each kernel in the DWARF of a compiled library."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import igniter
from igniter.errors import IgniterError
from igniter.runtime.linker import Linker, link_arguments
from igniter.tools.main import app

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
DUMP = next((found for name in ("llvm-dwarfdump", "llvm-dwarfdump-19") if (found := shutil.which(name))), None)
NODES = b"scale_scores, add_mask, softmax"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))


def library(name: str, **options: object) -> tuple[igniter.Artifact, bytes]:
    artifact = igniter.load(EXAMPLES / name).compile(**options)  # type: ignore[arg-type]
    return artifact, artifact.libraries[0].read_bytes()


def code_of(data: bytes) -> bytes:
    """Returns the section `.text` of an ELF file."""
    table, size, count, names = (*struct.unpack_from("<Q", data, 40), *struct.unpack_from("<3H", data, 58))
    rows = [struct.unpack_from("<2I4Q", data, table + k * size) for k in range(count)]
    start = rows[names][4]
    return next(data[r[4] : r[4] + r[5]] for r in rows if data[start + r[0] :].startswith(b".text\0"))


@pytest.mark.slow
def test_the_nodes_of_a_kernel_are_in_the_library() -> None:
    plain_artifact, plain = library("mask_softmax.mlir", verify=False)
    artifact, data = library("mask_softmax.mlir", debug_info=True)
    # Verified; and neither result is the other one's from the cache.
    assert artifact.report["verification"]["status"] == "passed"
    assert NODES not in plain and b".debug_info" not in plain
    assert NODES in data and b".debug_info" in data and b".debug_line" in data
    assert artifact.libraries[0].name != plain_artifact.libraries[0].name
    assert (artifact.report["options"]["debug_info"], plain_artifact.report["options"]["debug_info"]) == (True, False)
    assert code_of(data) == code_of(plain) != b""
    assert library("mask_softmax.mlir", verify=False)[1] == plain
    assert library("mask_softmax.mlir", debug_info=True, verify=False)[1] == data


@pytest.mark.skipif(DUMP is None, reason="llvm-dwarfdump is not installed")
def test_a_debugger_reads_the_functions_of_every_target() -> None:
    assert DUMP is not None
    artifact, _ = library("two_regions.mlir", target="x86-64-v2,x86-64-v3", debug_info=True, verify=False, load=False)
    done = subprocess.run(
        [DUMP, "--debug-info", str(artifact.libraries[0])], capture_output=True, text=True, check=True
    )
    named = dict(re.findall(r'DW_AT_linkage_name\s+\("(\S+)"\)\n\s+DW_AT_name\s+\("(.*?)"\)', done.stdout))
    graph = igniter.load(EXAMPLES / "two_regions.mlir")
    nodes = {
        op.node_name or op.op_type for op in graph.ir.walk() if hasattr(op, "op_type") and op.op_type != "Constant"
    }
    # ONNX Runtime draws the random numbers.
    assert {each for text in named.values() for each in text.split(", ")} == nodes - {"draw"} != nodes
    kernels = {re.sub(r"\.(body|task\d+)", "", name) for name in named}
    assert len(kernels) > 2  # Each kernel has a function for each target.


def test_the_linker_strips_without_it() -> None:
    for linker in (Linker(("ld.lld",)), Linker(("cc",), driver=True)):
        assert "-s" in link_arguments(linker, "x86_64", ["f"])
        assert "-s" not in link_arguments(linker, "x86_64", ["f"], debug_info=True)


def test_what_has_no_code_has_no_debug_information(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    igniter.load(EXAMPLES / "mask_softmax.mlir").save(model)
    refused = CliRunner().invoke(app, ["compile", str(model), "--emit=loop", "--debug-info"])
    assert refused.exit_code == 1 and "--debug-info is for code, and --emit=loop writes none" in refused.stderr
    shown = CliRunner().invoke(app, ["compile", str(model), "--emit=llvm", "--debug-info"])
    assert shown.exit_code == 0 and 'DISubprogram(name: "scale_scores, add_mask, softmax"' in shown.stdout
    with pytest.raises(IgniterError, match="the backend 'cuda' has no debug_info"):
        igniter.load(model).compile(target="cuda", debug_info=True, verify=False, load=False)
