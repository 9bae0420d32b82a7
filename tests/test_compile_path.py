"""The way of a model through a compilation is short, and docs/explanation/compile-path.md describes it."""

from __future__ import annotations

import inspect
import sys
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import igniter

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "compile-path.md"
WAY = (
    "api.py",
    "module.py",
    *(f"compiler/{name}.py" for name in ("compile_model", "driver", "artifact", "loading")),
)
"""The files of the way. The files that they call do one thing each: a pass, a code generator, a comparison."""
FORMS = ("Module", "ModuleOp", "Compilation", "KernelOp", "FuncOp", "Library", "Artifact")
"""The forms of a model on the way, as types of arguments."""
LAYERS = ("api", "module", "compiler", "verification", "runtime", "backends", "transforms", "targets", "analysis")
LAYERS = (*LAYERS, "frontend", "dialects", "passes", "isolation")

STEPS = ("load", "import_model", "build_library", "write_artifact")
"""Steps of the way with other arguments."""

Call = tuple[str, str, str, str]


def place(frame: FrameType | None) -> str:
    """The file of a frame, relative to the package; "" outside of it."""
    return "" if frame is None else place_of_file(frame.f_code.co_filename)


@cache
def place_of_file(file: str) -> str:
    path, package = Path(file), Path(igniter.__file__).parent
    return path.relative_to(package).as_posix() if path.is_relative_to(package) else ""


def carries(frame: FrameType) -> bool:
    """True if an argument is a form of the model; for methods of `Compilation`, another one than the object."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    kinds = [
        type(frame.f_locals.get(n)).__name__ for n in names if n != "self" or "Compilation." not in code.co_qualname
    ]
    return code.co_name in STEPS or not set(kinds).isdisjoint(FORMS)


def is_read(frame: FrameType) -> bool:
    """True for a property, and for the text of an op."""
    name = frame.f_code.co_name
    kind = type(frame.f_locals.get("self"))
    return name.startswith("_") or name == "print" or isinstance(inspect.getattr_static(kind, name, None), property)


def traced(model: Path, folder: Path) -> list[Call]:
    """The different calls that hand on the model: from a file of the way to another file, or up to one of the way."""
    found: dict[Call, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        called, caller = place(frame) if event == "call" else "", frame.f_back
        if not called or is_read(frame):
            return
        while caller is not None and not place(caller):
            caller = caller.f_back
        here = place(caller)
        if caller is None or not here or here == called or not carries(frame):
            return
        # Calls back into the way count if they climb.
        if here in WAY or (called in WAY and rank(called) < rank(here)):
            found[here, caller.f_code.co_qualname, called, frame.f_code.co_qualname] = None

    sys.setprofile(note)
    try:
        igniter.compile(model, folder, cache=False)
    finally:
        sys.setprofile(None)
    return list(found)


def rank(path: str) -> int:
    head = path.partition("/")[0].removesuffix(".py")
    return LAYERS.index(head) if head in LAYERS else len(LAYERS)


@pytest.mark.slow
def test_the_way_is_short_and_goes_down(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", "x"], ["y"]), helper.make_node("Softmax", ["y"], ["z"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8]) for name in "xz"]
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])), path)
    igniter.compile(path, tmp_path / "first", cache=False)
    calls = traced(path, tmp_path / "second")
    page = PAGE.read_text(encoding="utf-8")
    # Two of them are a reproducer of a crash, and the reference of a function of linalg.
    assert len(calls) <= 27, "\n".join(map(str, calls))
    assert sum(rank(called) < rank(caller) for caller, _, called, _ in calls) <= 1
    names = {name for *_, name in calls if "lambda" not in name}
    assert not [name for name in names if f"`{name}`" not in page and f"`{name.rpartition('.')[2]}`" not in page]
    assert f"takes {len(calls)} calls" in page, "\n".join(map(str, calls))
