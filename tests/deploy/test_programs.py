"""The programs of the pages about languages: each is built, runs two compiled models, and gives ONNX Runtime's results.

`$ONNXRUNTIME_INCLUDE` names the folder of ONNX Runtime's own headers, `$ONNXRUNTIME_NODE_MODULES` a folder
`node_modules` with the package onnxruntime-node; without them the tests that need them are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .programs_kit import (
    PROGRAMS,
    ROOT,
    Case,
    build,
    c_compiler,
    cpp_compiler,
    make_case,
    onnxruntime_library,
    tool,
)

PAGES = {
    "c": ("run.c", "ort.h"),
    "cpp": ("run.cpp", "run_official.cpp"),
    "python": ("run.py",),
    "node": ("run.mjs", "node_libraries.c"),
    "rust": ("run.rs",),
    "java": ("Run.java",),
    "csharp": ("Run.cs",),
}
WARNINGS = ("-O1", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(tmp_path_factory.mktemp("programs"))


def linked(case: Case) -> list[str | Path]:
    """The arguments that link ONNX Runtime's library of the wheel."""
    library = onnxruntime_library(case.folder)
    return [library, f"-Wl,-rpath,{library.parent}"]


def test_c(case: Case) -> None:
    program = case.folder / "run_c"
    build([*c_compiler(), "-std=c11", *WARNINGS, "-D_GNU_SOURCE", PROGRAMS / "run.c", *linked(case), "-o", program])
    case.check([program])
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage: ")


def test_c_reports_a_missing_model(case: Case, tmp_path: Path) -> None:
    program = case.folder / "run_c"
    if not program.exists():
        build([*c_compiler(), "-O1", PROGRAMS / "run.c", *linked(case), "-o", program])
    arguments = [program, tmp_path, case.second, case.given, tmp_path / "output"]
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 1 and "ONNX Runtime: " in done.stderr and "model.onnx" in done.stderr


@pytest.mark.slow
def test_cpp(case: Case) -> None:
    program = case.folder / "run_cpp"
    build([*cpp_compiler(), "-std=c++17", "-Wall", "-Wextra", PROGRAMS / "run.cpp", *linked(case), "-o", program])
    case.check([program])


def headers() -> Path:
    if "ONNXRUNTIME_INCLUDE" not in os.environ:
        pytest.skip("$ONNXRUNTIME_INCLUDE does not name a folder with ONNX Runtime's headers")
    return Path(os.environ["ONNXRUNTIME_INCLUDE"])


def test_cpp_with_the_official_header(case: Case) -> None:
    program, source = case.folder / "run_official", PROGRAMS / "run_official.cpp"
    build([*cpp_compiler(), "-std=c++17", "-I", headers(), source, *linked(case), "-o", program])
    case.check([program])


def test_c_with_the_official_header(case: Case) -> None:
    """The declarations of `ort.h` are compatible with the official ones."""
    program, source = case.folder / "run_c_official", PROGRAMS / "run.c"
    build([*c_compiler(), "-DOFFICIAL_HEADER", "-I", headers(), source, *linked(case), "-o", program])
    case.check([program])


ALONE = """
import runpy, sys
sys.modules["igniter"] = None
try:
    import igniter
except ImportError:
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_python_without_igniter(case: Case) -> None:
    case.check([sys.executable, "-I", "-c", ALONE, PROGRAMS / "run.py"])


def test_rust(case: Case) -> None:
    program, library = case.folder / "run_rs", onnxruntime_library(case.folder)
    options = ["--edition", "2021", "-O", "-D", "warnings", "-L", library.parent, "-l", "onnxruntime"]
    rpath = ["-C", f"link-arg=-Wl,-rpath,{library.parent}"]
    build([tool("rustc"), *options, *rpath, PROGRAMS / "run.rs", "-o", program])
    case.check([program])


def run_node(case: Case, modules: Path) -> None:
    folder = modules.parent
    shutil.copy(PROGRAMS / "run.mjs", folder)
    addon = folder / "node_libraries.node"
    build([*c_compiler(), "-shared", "-fPIC", *WARNINGS, PROGRAMS / "node_libraries.c", "-o", addon])
    case.check([tool("node"), folder / "run.mjs"])


def test_node(case: Case, tmp_path: Path) -> None:
    tool("node")
    if "ONNXRUNTIME_NODE_MODULES" not in os.environ:
        pytest.skip("$ONNXRUNTIME_NODE_MODULES does not name a folder with onnxruntime-node")
    modules = tmp_path / "node_modules"
    modules.symlink_to(os.environ["ONNXRUNTIME_NODE_MODULES"])
    run_node(case, modules)


@pytest.mark.full
def test_node_with_the_package_of_the_registry(case: Case, tmp_path: Path) -> None:
    npm = tool("npm")
    # Its script for installation only fetches the libraries for GPUs.
    command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "onnxruntime-node"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"npm cannot install onnxruntime-node: {done.stderr.strip().splitlines()[-1:]}")
    run_node(case, tmp_path / "node_modules")


def test_the_addon_says_that_onnxruntime_is_missing(tmp_path: Path) -> None:
    node, addon = tool("node"), tmp_path / "node_libraries.node"
    build([*c_compiler(), "-shared", "-fPIC", PROGRAMS / "node_libraries.c", "-o", addon])
    call = "try { a.register(...x) } catch (e) { console.log(e.message) }"
    code = f"const a = require(process.argv[1]); for (const x of [[], [1], ['lib.so']]) {call}"
    done = subprocess.run([node, "-e", code, addon], capture_output=True, text=True, timeout=60)
    wrong = "register(path) takes the path of a library"
    missing = "onnxruntime-node is not loaded: require it before the first register()"
    assert done.stdout.splitlines() == [wrong, wrong, missing], done.stderr


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def test_the_pages_show_their_programs() -> None:
    """An excerpt on a page is in a program of the page, but for its indentation."""
    for page, names in PAGES.items():
        text = (ROOT / "docs" / "deploy" / f"{page}.md").read_text(encoding="utf-8")
        sources = [squeezed((PROGRAMS / name).read_text(encoding="utf-8")) for name in names]
        assert all(f"programs/{name}" in text for name in names), page
        excerpts = re.findall(r"```(?:c|cpp|python|js|rust|java|csharp)\n(.*?)```", text, re.DOTALL)
        assert excerpts, page
        for excerpt in excerpts:
            assert any(squeezed(excerpt) in source for source in sources), f"{page}: {excerpt}"


def test_programs_without_a_test_say_so() -> None:
    for path in PROGRAMS.iterdir():
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        assert path.name in {name for names in PAGES.values() for name in names}, f"{path.name} has no page"
        assert ("Not run by a test" in first) == (path.suffix in (".java", ".cs")), path.name
