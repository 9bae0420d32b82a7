"""A verb is declared once: its request gives the command line, the help, the JSON schema and the method's defaults."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from typer.testing import CliRunner

import igniter
from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest
from igniter.toolbox.request import Argument, Option, Request, Some, build, entry_of, parameters, schema, summary
from igniter.tools.command import command_of
from igniter.tools.main import app
from igniter.tools.verbs import GROUPS, VERBS, request_of
from tests.docs.transcripts import ROOT


@dataclass(frozen=True)
class Greet(Request):
    """Greet a model.

    The greeting goes to standard output.
    """

    failure = 5

    model: Annotated[str, Argument("The model.")]
    names: Annotated[tuple[str, ...], Option("Whom.", "--name")] = ()
    times: Annotated[int, Option("How often.", min=1, max=9)] = 2
    tone: Annotated[Literal["warm", "cold"] | None, Option("How.", "-t", "--tone")] = None
    given: Annotated[InputRequest, Some("shapes", "seed")] = DEFAULT_INPUTS

    def run(self) -> int | None:
        if self.model == "bad":
            raise igniter.IgniterError("no such model")
        print(self)
        return 3 if self.model == "odd" else None


def test_a_command_builds_its_request(capsys: pytest.CaptureFixture[str]) -> None:
    command = command_of("greet", Greet)
    command(["m", "--name", "a", "--name", "b", "-t", "cold", "--shape", "n=3", "--seed", "4"], standalone_mode=False)
    given = InputRequest(shapes=("n=3",), seed=4)
    assert capsys.readouterr().out == f"{Greet('m', ('a', 'b'), 2, 'cold', given)}\n"
    command(["m"], standalone_mode=False)
    assert capsys.readouterr().out == f"{Greet('m')}\n"


def status(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        command_of("greet", Greet)(list(arguments))
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_the_exit_status_is_the_requests(capsys: pytest.CaptureFixture[str]) -> None:
    assert [status("m"), status("odd"), status("bad"), status("m", "--times", "10")] == [0, 3, 5, 2]
    assert "igniter: error: no such model" in capsys.readouterr().err
    assert status("m", "--tone", "loud") == 2
    assert status("m", "--inputs", "a.npz") == 2, "an option of the group that the verb does not have"


def test_a_request_is_built_of_groups_too() -> None:
    assert build(Greet, {"model": "m", "seed": 3, "times": 1}) == Greet("m", times=1, given=InputRequest(seed=3))
    assert [(p.name, p.group) for p in parameters(Greet)][-2:] == [("shapes", "given"), ("seed", "given")]
    with pytest.raises(igniter.IgniterError, match="give --shape or --inputs"):
        build(request_of("verify"), {"artifact": "a", "shapes": ("n=1",), "inputs": "a.npz"})


def test_the_schema_of_a_request() -> None:
    made = schema(Greet)
    assert (made["description"], made["required"]) == ("Greet a model.", ["model"])
    assert made["properties"]["times"] == {
        "type": "integer", "description": "How often.", "default": 2, "minimum": 1, "maximum": 9,
    }  # fmt: skip
    assert made["properties"]["tone"]["enum"] == ["warm", "cold", None]
    assert made["properties"]["names"] == {
        "type": "array", "items": {"type": "string"}, "description": "Whom.", "default": [],
    }  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_schema_and_options_like_its_schema(verb: str) -> None:
    request = request_of(verb)
    properties = schema(request)["properties"]
    assert [p.name for p in parameters(request)] == list(properties)
    assert all(each["description"] and ("type" in each or "enum" in each) for each in properties.values())
    made = [p.name for p in command_of(verb, request).params if p.name not in ("debug", "help")]
    assert made == list(properties)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_a_function_of_its_request(verb: str) -> None:
    (asked,) = inspect.signature(entry_of(request_of(verb))).parameters.values()
    assert asked.annotation == request_of(verb).__name__


def test_the_entry_is_found_in_the_package_of_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("greetings.other")
    module.__dict__["greet"] = lambda asked: 3 if asked.model == "odd" else None
    monkeypatch.setitem(sys.modules, "greetings", ModuleType("greetings"))
    monkeypatch.setitem(sys.modules, module.__name__, module)

    class Other(Request):
        entry = "other:greet"
        model = "odd"

    monkeypatch.setattr(Other, "__module__", "greetings.request")
    assert Other().run() == 3


def test_help_has_one_whole_line_for_each_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = CliRunner().invoke(app, ["--help"]).output.splitlines()
    assert not [line for line in lines if "..." in line and "ARGS" not in line]
    for title, verbs in GROUPS.items():
        start = lines.index(f"{title}:") + 1
        assert [line.split(None, 1) for line in lines[start : start + len(verbs)]] == [
            [verb, summary(request_of(verb))] for verb in verbs
        ]
    assert max(map(len, lines)) <= 78


def test_a_command_imports_its_own_request_alone() -> None:
    code = (
        "import sys; sys.argv = ['igniter', 'shapes', '--help']\n"
        "from igniter.tools.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('REQUESTS', *(m for m in sys.modules if m.endswith('.request')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = done.stdout.splitlines()[-1].split()[1:]
    assert sorted(found) == ["igniter.toolbox.request", "igniter.toolbox.shapes.request"]


DIFFERENT = {
    "compile": {"json", "budget", "winograd"},
    "report": {"output"},
    "split": {"stages", "output"},
}
"""Parameters whose defaults differ: the method has its own of `None`, or requires the argument."""


@pytest.mark.parametrize(
    "verb", [verb for verb in VERBS if verb not in ("inspect", "edit", "diff") and hasattr(igniter.Module, verb)]
)
def test_a_method_has_the_defaults_of_its_request(verb: str) -> None:
    method = inspect.signature(getattr(igniter.Module, verb)).parameters
    same = [p for p in parameters(request_of(verb)) if p.name in method and p.name not in DIFFERENT.get(verb, ())]
    for parameter in same:
        default = method[parameter.name].default
        if parameter.default is MISSING:
            assert default is inspect.Parameter.empty
        elif default or parameter.default:
            assert default == parameter.default, parameter.name


def test_the_verb_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    page = (ROOT / "docs" / "how-to" / "add-a-verb.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    module = ModuleType("igniter.toolbox.largest")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(code, module.__dict__)
    weights = {name: np.zeros(size, np.float32) for name, size in (("a", 2), ("b", 30), ("c", 400))}
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    nodes = [onnx.helper.make_node("Identity", [name], [f"{name}_out"]) for name in weights]
    outputs = [onnx.helper.make_tensor_value_info(f"{n}_out", 1, list(w.shape)) for n, w in weights.items()]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [], outputs, tensors))
    onnx.save(model, tmp_path / "m.onnx")
    command = command_of("largest", module.LargestRequest)
    command([str(tmp_path / "m.onnx"), "--count", "2", "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out) == {"c": 1600, "b": 120}


@pytest.mark.parametrize("form", ["linalg", "scf"])
def test_a_form_that_another_tool_writes_is_refused_with_its_command(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_of("compile", request_of("compile"))(["m.onnx", f"--emit={form}"])
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert ended.value.code == 2 and f"igniter-opt writes '{form}'" in said and f"--emit={form}" in said
