"""igniter-opt: what goes in, what comes out, and what it says when something is wrong."""

from __future__ import annotations

import json
from dataclasses import make_dataclass
from pathlib import Path

import onnx
import pytest
from tools_kit import opt, tiny_model
from xdsl.passes import ModulePass

from igniter.tools.describing import options_of

IR = '%0 = arith.constant 1 : i32\n%1 = arith.constant 1 : i32\n"test.op"(%0, %1) : (i32, i32) -> ()\n'


def test_reads_ir_from_a_pipe() -> None:
    found = opt("--cse", text=IR)
    assert found.status == 0
    assert '"test.op"(%0, %0)' in found.out


def test_reads_a_model_by_its_name(model: Path) -> None:
    assert "onnx.Relu" in opt(str(model)).out


def test_reads_a_model_from_a_pipe() -> None:
    found = opt("--frontend=onnx", text=tiny_model().SerializeToString())
    assert "onnx.Relu" in found.out


def test_what_it_prints_it_reads(model: Path) -> None:
    text = opt(str(model), "-p", "infer-shapes").out
    assert opt(text=text).out == text
    assert opt(text=opt("--emit=generic", text=text).out).out == text


def test_writes_a_model(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    assert opt(str(model), "--emit=onnx", "-o", str(target)).status == 0
    written = onnx.load(target)
    onnx.checker.check_model(written)
    assert [n.op_type for n in written.graph.node] == [n.op_type for n in tiny_model().graph.node]


def test_writes_text_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    assert opt("-o", str(target), text=IR).out == ""
    assert "test.op" in target.read_text()


def test_flags_and_pipelines_keep_their_order() -> None:
    found = opt("--dce", "-p", "cse,canonicalize", "--dce", "--timing", "--emit=none", text=IR)
    steps = [line.split()[-1] for line in found.err.splitlines()[1:]]
    assert steps == ["(read)", "(verify)", "dce", "cse", "canonicalize", "dce", "(write)", "total"]


def test_pass_flags_take_options(bad_passes: None) -> None:
    assert "crashed 7 times" in opt("--crash=times=7", text=IR).err
    assert "crashed 7 times" in opt("--crash={times=7}", text=IR).err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("-p", "csee"), "no pass or pipeline called 'csee'; did you mean 'cse'"),
        (("-p", "cse{x=1}"), "pass 'cse'"),
        (("-p", "crash{times=many}"), "pass 'crash'"),
        (("-p", "cpu-fusion{x=1}"), "is a pipeline and takes no options"),
        (("-p", "crash"), "pass 'crash': KeyError: 'crashed 1 times'"),
        (("missing.mlir",), "missing.mlir: No such file"),
        (("missing.onnx",), "missing.onnx"),
    ],
)
def test_an_error_is_one_paragraph(bad_passes: None, args: tuple[str, ...], said: str) -> None:
    found = opt(*args, text=IR)
    assert found.status == (4 if args == ("-p", "crash") else 1)  # The pass is a plug-in's.
    assert found.out == ""
    assert found.err.startswith("igniter-opt: error: ")
    assert said in found.err
    assert "Traceback" not in found.err
    assert "\n\n" not in found.err.strip()


def test_debug_adds_the_traceback(bad_passes: None) -> None:
    assert "Traceback" in opt("-p", "crash", "--debug", text=IR).err


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "text.onnx"
    path.write_text("this is not a model")
    found = opt(str(path))
    assert found.status == 1
    assert "text.onnx" in found.err
    assert "Traceback" not in found.err


def test_ir_that_a_pass_left_invalid_is_that_pass_fault(model: Path, bad_passes: None) -> None:
    found = opt(str(model), "-p", "corrupt")
    assert found.status == 1
    assert "pass 'corrupt': left IR that does not verify" in found.err
    assert opt(str(model), "-p", "corrupt", "--no-verify-each", "--emit=none").status == 0


def test_split_parts_fail_alone() -> None:
    found = opt("--split-input-file", text=f'{IR}// -----\n"no.such"() : () -> ()\n// -----\n{IR}')
    assert found.status == 1
    assert found.out.count("test.op") == 2
    assert "<stdin>:5:" in found.err


def test_remarks_as_text_and_json(model: Path, bad_passes: None) -> None:
    text = opt(str(model), "-p", "break-relu", "--remarks", "--emit=none")
    assert text.err == "remark: break-relu: 'Relu_3' applied: broken [count=1]\n"
    found = opt(str(model), "-p", "break-relu", "--remarks=json", "--remarks-output=-", "--emit=none")
    (remark,) = json.loads(found.out)
    assert remark == {
        "pass": "break-relu",
        "node": "Relu_3",
        "kind": "applied",
        "message": "broken",
        "details": {"count": 1},
    }


def test_no_remarks_unless_asked(model: Path, bad_passes: None) -> None:
    assert opt(str(model), "-p", "break-relu", "--emit=none").err == ""


def test_expectations_that_do_not_come_true() -> None:
    silent = opt("--verify-diagnostics", text=f"// expected-error {{{{boom}}}}\n{IR}")
    assert silent.status == 1
    assert "expected error 'boom' was not produced; there was no error" in silent.err
    text = '// expected-error @+2 {{not registered}}\n"no.such"() : () -> ()\n'
    assert "came from line 2" in opt("--verify-diagnostics", text=text).err
    assert opt("--verify-diagnostics", text=text.replace("+2", "+1")).status == 0
    assert opt("--verify-diagnostics", text=f"// expected-error\n{IR}").status == 1


def test_lists_every_pass() -> None:
    from igniter.registry import PASSES

    out = opt("--list-passes").out
    for name in PASSES:
        assert any(line.startswith(f"{name} ") for line in out.splitlines())
    assert "max-nodes: int" in out
    assert "cpu-fusion" in opt("--list-pipelines").out


def test_a_fused_model_is_written_as_its_nodes(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    assert opt(model, "-p", "cpu-onnx,cpu-fusion", "--emit=onnx", "-o", target).status == 0
    onnx.checker.check_model(onnx.load(target))
    assert len(onnx.load(target).graph.node) >= 4


def test_what_fails_leaves_no_file(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    assert opt(model, "-p", "tile-loops{sice=8}", "--emit=onnx", "-o", target).status == 1
    (tmp_path / "bad.mlir").write_text("no ir")
    assert opt(tmp_path / "bad.mlir", "-o", target).status == 1
    assert not target.exists()


def test_what_has_no_effect_or_no_place_is_an_error(tmp_path: Path) -> None:
    found = opt("--cse", "--print-ir-before=canonicalize-loop", text=IR)
    assert found.status == 1 and "--print-ir-before=canonicalize-loop: 'canonicalize-loop' is no pass" in found.err
    for option in ("--print-ir-before", "--print-ir-after", "--debug-only"):
        found = opt("-p", "cse,dce,infer-shapes", f"{option}=infer-shape", text=IR)
        assert (found.status, found.out) == (1, "")
        assert found.err == (
            f"igniter-opt: error: {option}=infer-shape: 'infer-shape' is no pass of the pipeline; "
            "did you mean 'infer-shapes'?\n"
        )
    found = opt("--cse", "--check-sizes=n=1", text=IR)
    assert found.status == 1 and "--check-sizes are those of --check-each" in found.err
    target = tmp_path / "nowhere" / "out.mlir"
    found = opt("--cse", "-o", str(target), text=IR)
    assert found.status == 1 and f"cannot write {target}: No such file" in found.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--print-ir-afer-all"],
            "there is no option or pass --print-ir-afer-all; did you mean '--print-ir-after-all'",
        ),
        (["--infer-shape", "-p", "cse"], "there is no option or pass --infer-shape; did you mean '--infer-shapes'"),
        (["--remarks-outptu=x"], "there is no option or pass --remarks-outptu; did you mean '--remarks-output'"),
        (["--zzzz"], "there is no option or pass --zzzz (igniter-opt --help"),
        (["a.mlir", "b.mlir"], "one file is read, and 'b.mlir' is another one after 'a.mlir'"),
        (["--emit=obj"], "argument --emit: igniter-opt writes text, and no obj: igniter compile MODEL --emit=obj -o"),
        (["--emit=linlag"], "argument --emit: invalid choice: 'linlag'"),
        (["--stop-after=x"], "argument --stop-after: 'x' is no number of rewrites"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], said: str) -> None:
    found = opt(*arguments, text=IR)
    assert (found.status, found.out, found.err.count("\n")) == (2, "", 1)
    assert found.err.startswith("igniter-opt: error: ") and said in found.err
    assert found.err.endswith("(igniter-opt --help lists all options)\n")


def test_the_type_of_an_option_is_shown_as_in_the_source() -> None:
    """The types of a module without `from __future__ import annotations` are objects, not texts."""
    fields = [("most", int, 3), ("names", tuple[str, ...], ()), ("limit", int | None, None), ("ratio", "float", 0.5)]
    made = make_dataclass("Sized", fields, bases=(ModulePass,), frozen=True)
    shown = [(option.name, option.type) for option in options_of(made)]
    assert shown == [("most", "int"), ("names", "tuple[str, ...]"), ("limit", "int | None"), ("ratio", "float")]
