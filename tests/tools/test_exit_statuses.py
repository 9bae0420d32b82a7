"""The table of error codes against the tools: what makes a code, and the exit status after it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
from onnx import helper
from tools_kit import opt, save_tiny_model
from typer.testing import CliRunner

from igniter import registry
from igniter.plugin_files import VARIABLE
from igniter.tools.main import app
from tests.docs.error_table import table
from tests.docs.transcripts import PACKAGE, ROOT

STATUS = {code: int(status) for code, status in re.findall(r"^\| (IGN\d+) \|.*?\| (\d) \|", table(), re.M)}
EXAMPLES = ROOT / "docs" / "examples"
RELU = str(EXAMPLES / "relu_kernel.mlir")
PLUGIN = """
from dataclasses import dataclass
from igniter.analysis.fusion.author import FusionAuthor
from igniter.dialects.onnx.ops import register
from igniter.dialects.onnx.registry import OpSpec, TensorInfo

@dataclass(frozen=True)
class BadAuthor(FusionAuthor):
    name = "bad-author"
    def refuse_node(self, node):
        {}["axis"]

def infer(ctx):
    x = ctx.input(0)
    return [TensorInfo(x.element, x.dims)]

def lower(ctx):
    {}["axis"]

register(OpSpec("own.Twice", kind="elementwise", infer=infer, fold=lambda _, a: [a[0] * 2], lower=lower))
register(OpSpec("own.Wrong", kind="elementwise", infer=infer, fold=lambda _, a: [a[0] * 2],
                lower=lambda ctx: [ctx.map(lambda x: x * 3)]))
"""


@dataclass(frozen=True)
class Case:
    """A command line; `{x}` is a file of the test."""

    arguments: tuple[str, ...]
    text: str = "builtin.module {}\n"
    shown: str = ""
    """The code in the output: IGN0102 for an error inside of a pass, whose cause has a code of its own."""


def opt_case(*arguments: str, text: str = "builtin.module {}\n", inside: bool = False) -> Case:
    """An error of igniter-opt; `inside` for one inside of a pass."""
    return Case(("igniter-opt", *arguments), text, "IGN0102" if inside else "")


def verb_case(*arguments: str) -> Case:
    return Case(("igniter", *arguments))


HOIST = ("-p", "infer-shapes,canonicalize-onnx,hoist-once", "--check-each")
FUNC = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "other.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""
CASES: dict[str, tuple[Case, ...]] = {
    "IGN0001": (
        opt_case("--emit=none", "--debug-info"),
        opt_case("--load={folder}"),
        verb_case("inspect", "{folder}/absent.onnx"),
        verb_case("kernel", str(EXAMPLES / "two_products.mlir"), "--kernel=absent"),
    ),
    "IGN0002": (opt_case("{folder}/absent.mlir"),),
    "IGN0101": (opt_case("-p", "cse{"), opt_case("-p", "tile-loops{sice=8}"), opt_case("-p", "no-such-pass")),
    "IGN0102": (opt_case("{model}", "-p", "cpu-onnx,cpu-fusion,fusion.region(cse)"),),
    "IGN0103": (opt_case("{model}", "-p", "form-fusion-regions{author=nobody}", inside=True),),
    "IGN0104": (opt_case(str(EXAMPLES / "quantized_attention.mlir"), *HOIST, f"--load={PACKAGE}"),),
    "IGN0107": (opt_case(text="no ir\n"), opt_case(str(EXAMPLES / "misspelt_schedule.mlir"))),
    "IGN0201": (opt_case("--machine={machine}", "--target=x86-64-v3", "-p", "choose-schedule"),),
    "IGN0202": (
        opt_case("--target=vax", "-p", "cse"),
        verb_case("compile", "{model}", "--target=vax"),
        verb_case("machine", "--target=vax"),
    ),
    "IGN0305": (opt_case("--emit=linalg"), opt_case(RELU, "--emit=scf")),
    "IGN0306": (opt_case("-p", "lower-linalg-to-loop", "--allow-unregistered-dialect", text=FUNC, inside=True),),
    "IGN0401": (
        opt_case(
            "{model}", "-p", "infer-shapes,form-fusion-regions{author=bad-author}", "--load={plugin}", inside=True
        ),
    ),
    "IGN0402": (opt_case("{twice}", "-p", "cpu-onnx,cpu-fusion", "--strict", "--load={plugin}", inside=True),),
    "IGN0603": (verb_case("compile", "{wrong}", "-o", "{folder}/w.igniter"),),
}
RARE = {
    "IGN0000": "a fault of Igniter",
    "IGN0003": "an argument in Python",
    "IGN0004": "an argument in Python",
    "IGN0005": "an argument in Python",
    "IGN0006": "tests/deploy/test_bounds.py",
    "IGN0105": "a step of the reducer, which it catches",
    "IGN0106": "needs MLIR",
    "IGN0301": "a fault of a lowering",
    "IGN0302": "a fault of a pass",
    "IGN0303": "a fault of the emitter",
    "IGN0304": "a fault of a pass",
    "IGN0501": "needs a linker that fails",
    "IGN0502": "needs a model that ONNX Runtime refuses and the checker accepts",
    "IGN0503": "needs another machine",
    "IGN0504": "needs another ONNX Runtime",
    "IGN0505": "in Python",
    "IGN0506": "needs a GPU",
    "IGN0507": "needs MLIR",
    "IGN0508": "in Python and in tests without MLIR",
    "IGN0509": "tests/deploy/test_trust.py",
    "IGN0510": "tests/deploy/test_trust.py",
    "IGN0601": "IR with undefined behaviour",
    "IGN0602": "takes minutes",
    "IGN0604": "needs a module of MLIR",
    "IGN0605": "needs a module of MLIR",
    "IGN0606": "needs a module of MLIR",
    "IGN0607": "needs MLIR",
    "IGN0608": "tests/tools/test_prove.py",
    "IGN0801": "an answer of a server",
    "IGN0802": "an answer of a server",
    "IGN0803": "an answer of a server",
    "IGN0804": "an answer of a server",
    "IGN0805": "an answer of a server",
}
"""The codes without a cheap command line, with the reason."""


def test_every_code_has_a_case_or_a_reason() -> None:
    assert CASES.keys() | RARE.keys() == STATUS.keys()
    assert not CASES.keys() & RARE.keys()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The files of the cases."""
    for name in ("Twice", "Wrong"):
        node = helper.make_node(name, ["x"], ["y"], name="n", domain="own")
        ends = [helper.make_tensor_value_info(end, 1, ["n", 8]) for end in ("x", "y")]
        graph = helper.make_graph([node], "g", ends[:1], ends[1:])
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / f"{name.lower()}.onnx")
    (tmp_path / "raising_plugin.py").write_text(PLUGIN)
    (tmp_path / "machine.json").write_text(json.dumps({"registers": "many"}))
    return {
        "folder": str(tmp_path),
        "model": str(save_tiny_model(tmp_path)),
        "plugin": str(tmp_path / "raising_plugin.py"),
        "twice": str(tmp_path / "twice.onnx"),
        "wrong": str(tmp_path / "wrong.onnx"),
        "machine": str(tmp_path / "machine.json"),
    }


@pytest.mark.parametrize(("code", "place"), [(code, k) for code, cases in CASES.items() for k in range(len(cases))])
@pytest.mark.usefixtures("plugins_apart")
def test_the_exit_status_is_that_of_the_table(
    code: str, place: int, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[code][place]
    tool, *arguments = (re.sub(r"\{(\w+)\}", lambda m: files.get(m[1], m[0]), text) for text in case.arguments)
    if tool == "igniter-opt":
        found = opt(*arguments, "--error-format=json", text=case.text)
        status, shown = found.status, json.loads(found.err.splitlines()[-1])["error"]["code"]
    else:
        if "{wrong}" in case.arguments:
            monkeypatch.setenv(VARIABLE, files["plugin"])
            registry.forget_packages()
        done = CliRunner().invoke(app, [*arguments, "--json"])
        status, shown = done.exit_code, json.loads(done.stdout)["error"]["code"]
    assert (status, shown) == (STATUS[code], case.shown or code)
