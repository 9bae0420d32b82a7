"""What a backend beside the CPU's decides: legality, profit, authors, words and pipelines, with the CPU's untouched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx.parser
import pytest

import igniter
from igniter import registry
from igniter.analysis.machine import MachineModel
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop import KernelOp, NestOp
from igniter.dialects.loop.schedule import VOCABULARY, Loop, ScheduleAttr, parse_steps, words_of
from igniter.errors import IgniterError
from igniter.schedules.author import Choice, ScheduleAuthor, make_author
from igniter.targets import backend_for, backend_of
from igniter.toolbox.kernel.schedules import Schedule
from tests.toy_backend import LAUNCH, ToyBackend, toy

__all__ = ["toy"]

HERE = "tests.test_toy_backend"

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[n, 8] x) => (float[n, 8] y)
{
    a = Abs(x)
    b = Neg(a)
    c = Exp(b)
    d = Tanh(c)
    e = Sqrt(c)
    y = Add(d, e)
}
"""


def model() -> onnx.ModelProto:
    made = onnx.parser.parse_model(MODEL)
    for node in made.graph.node:
        node.name = node.output[0]
    return made


def regions(module: igniter.Module) -> list[list[str]]:
    return [
        [op.node_name for op in r.block.ops if hasattr(op, "node_name")]
        for r in module.ir.walk()
        if isinstance(r, RegionOp)
    ]


def fused(target: str | None, options: str = "") -> igniter.Module:
    return igniter.load(model()).run_passes(f"infer-shapes,form-fusion-regions{options}", target=target)


# -- fusion -----------------------------------------------------------------------------------------------------------


def test_the_backend_says_what_it_has_code_for(toy: ToyBackend) -> None:
    module = fused("toy:x86-64-v3")
    missed = {r.node: (r.details["reason"], r.message) for r in module.remarks.of("form-fusion-regions", "missed")}
    assert missed == {"d": ("type", "toy:x86-64-v3 has no code for Tanh")}
    assert not fused("x86-64-v3").remarks.of("form-fusion-regions", "missed")


def test_no_author_allows_what_the_backend_has_no_code_for(toy: ToyBackend) -> None:
    for author in ("toy", "default"):
        assert "d" not in [n for names in regions(fused("toy", f"{{author={author}}}")) for n in names]


def test_the_backend_names_the_author(toy: ToyBackend) -> None:
    assert regions(fused("toy")) == [["a", "b", "c"], ["e", "y"]]
    assert regions(fused("toy", "{author=toy}")) == [["a", "b"], ["c", "e"], ["y"]]
    assert regions(fused("native")) == [["a", "b", "c", "d", "e", "y"]]
    with pytest.raises(IgniterError, match="the fusion author 'toy' has no option 'singletons'"):
        fused("toy", "{singletons=all}")


def test_the_backend_has_its_own_cost_model(toy: ToyBackend) -> None:
    def saved(target: str) -> float:
        (note,) = (r for r in fused(target).remarks.of("form-fusion-regions", "note") if "summary" in r.details)
        return note.details["summary"]["regions"][0]["microseconds_saved"]

    assert saved("toy") == 2 * LAUNCH
    assert saved("native") < LAUNCH


# -- schedules --------------------------------------------------------------------------------------------------------

KERNEL = """
builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<?x48xf32, #sym.dims<n, 48>>, %w: tensor<48x64xf32>) -> (tensor<?x64xf32, #sym.dims<n, 64>>) {
    %y = loop.nest "matmul" [i: parallel n, j: parallel 64, k: reduction 48] SCHEDULE-> tensor<?x64xf32, #sym.dims<n, 64>> {
      %a = loop.read %x[i, k] : f32
      %b = loop.read %w[k, j] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield add %c at [i, j]
    }
    loop.return %y : tensor<?x64xf32, #sym.dims<n, 64>>
  }
}
"""  # noqa: E501


def kernel_text(schedule: str = "") -> str:
    return KERNEL.replace("SCHEDULE", f"schedule {schedule} " if schedule else "")


def scheduled(target: str | None, schedule: str = "", options: str = "") -> str:
    module = igniter.parse(kernel_text(schedule)).run_passes(f"choose-schedule{options}", target=target)
    (nest,) = (op for op in module.ir.walk() if isinstance(op, NestOp))
    return str(nest.schedule)


def test_the_backend_names_the_author_of_schedules(toy: ToyBackend) -> None:
    assert scheduled("toy") == "[i threads, j, k]"
    assert scheduled("toy", options='{author="toy{threads=false}"}') == "[i, j, k]"
    assert "product(i, j, k)" in scheduled("x86-64-v3")
    assert scheduled("x86-64-v3", options="{author=toy}") == "[i threads, j, k]"
    assert scheduled("x86-64-v3", options="{author=default}") == scheduled("x86-64-v3")


@pytest.mark.parametrize(
    "schedule, said",
    [
        (
            "[i, j vector 8, k]",
            "nest 'matmul': loop 'j': the backend 'toy' has no 'vector'; its words are by, product, threads",
        ),
        ('[i fuse "g", j, k]', "nest 'matmul': loop 'i': the backend 'toy' has no 'fuse'"),
        ("[i by 8 tail peel, i, j, k]", "nest 'matmul': loop 'i': the backend 'toy' has no 'tail'"),
        ("[store in stack, i, j, k]", "nest 'matmul': 'store in stack': the backend 'toy' has no 'store'"),
        (
            "[i by 6, j by 16, product(i, j, k) tile [6, 1], i, j]",
            "nest 'matmul': 'product(i, j, k) tile [6, 1]': 'toy:x86-64-v3' has no micro-kernel 'f32'",
        ),
    ],
)
def test_words_that_a_backend_does_not_have_are_refused(toy: ToyBackend, schedule: str, said: str) -> None:
    """The verifier lets them pass, and so does the backend that has them."""
    igniter.parse(kernel_text(schedule)).ir.verify()
    assert scheduled("x86-64-v3", schedule) == schedule
    with pytest.raises(IgniterError, match="pass 'choose-schedule': the schedule of ") as error:
        scheduled("toy:x86-64-v3", schedule)
    assert said in error.value.message


def test_an_author_may_not_say_what_the_backend_does_not_have(toy: ToyBackend) -> None:
    with pytest.raises(IgniterError, match=r"nest 'matmul': .* the backend 'toy' has no"):
        scheduled("toy", options="{author=default}")


def test_words_of_steps() -> None:
    from xdsl.parser import Parser

    from igniter.context import IgniterContext

    loops = 'i by 8 tail peel threads 4 fuse "g", k by 4 into result, store in stack, i, j vector 8 accumulators 2'
    steps = parse_steps(Parser(IgniterContext(), f"[{loops}, k unroll]"))
    found = [words_of(step) for step in steps]
    assert found == [
        ("by", "tail", "threads", "fuse"),
        ("by", "into"),
        ("store",),
        (),
        ("vector", "accumulators"),
        ("unroll",),
    ]
    assert {word for words in found for word in words} <= backend_for("cpu").words
    assert backend_for("cpu").words | {"grid", "launch"} == set(VOCABULARY)


# -- authors of schedules ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Odd(ScheduleAuthor):
    """Answers what is none"""

    name = "odd"
    what: str = ""

    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        loops = ScheduleAttr([Loop("i"), Loop("j"), Loop("k")])
        answers: Mapping[str, list[Choice]] = {
            "nothing": [],
            "label": [Choice({"matmull": loops}, "")],
            "twice": [Choice({"matmul": loops}, ""), Choice({"matmul": loops}, "")],
            "axis": [Choice({"matmul": ScheduleAttr([Loop("i"), Loop("j")])}, "")],
        }
        return answers[self.what]


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"odd": f"{HERE}:Odd", "none": f"{HERE}:HERE"}
    monkeypatch.setattr(registry, "SCHEDULE_AUTHORS", {**registry.SCHEDULE_AUTHORS, **own})


@pytest.mark.parametrize(
    "author, said",
    [
        ("odd{what=label}", "asked about kernel @k, gives a schedule for 'matmull': there is no nest of this name"),
        ("odd{what=twice}", "asked about kernel @k, gives a schedule for 'matmul': it has already given one"),
        ("odd{what=axis}", "gives a schedule for 'matmul': axis 'k' has no loop"),
        ("odd", "the schedule author 'odd', asked about kernel @k, failed: KeyError: ''"),
        (
            "odds",
            "there is no schedule author called 'odds'; there are default, none, odd, triton; did you mean 'odd'?",
        ),
        ("none", "it must be a class derived from igniter.schedules.author.ScheduleAuthor"),
        ("default{tile=3}", "the schedule author 'default' has no option 'tile': it has no options"),
    ],
)
def test_authors_that_answer_what_is_none(odd: None, author: str, said: str) -> None:
    with pytest.raises(IgniterError) as error:
        scheduled("x86-64-v3", options=f'{{author="{author}"}}')
    assert said in error.value.message


def test_what_an_author_leaves_out_gets_plain_loops(odd: None) -> None:
    module = igniter.parse(kernel_text()).run_passes('choose-schedule{author="odd{what=nothing}"},lower-to-loops')
    assert "schedule" not in str(module)


def test_a_nest_that_has_a_schedule_keeps_it(odd: None) -> None:
    assert scheduled(None, "[j, i, k]", '{author="odd{what=nothing}"}') == "[j, i, k]"
    assert make_author("default")(kernel_of(kernel_text("[j, i, k]")), backend_for("native").machine_for("native"))


def kernel_of(text: str) -> KernelOp:
    return next(op for op in igniter.parse(text).ir.ops if isinstance(op, KernelOp))


# -- all of it --------------------------------------------------------------------------------------------------------


def test_passes_find_the_backend_by_their_machine(toy: ToyBackend) -> None:
    ctx = igniter.parse("builtin.module {}").ctx
    assert backend_of(ctx).name == "cpu"
    assert backend_of(ctx.on(toy.machine_for("toy:x86-64-v3"))).name == "toy"


@pytest.mark.slow
def test_a_model_goes_through_the_pipelines_of_its_backend(toy: ToyBackend, tmp_path: Any) -> None:
    steps: list[str] = []
    artifact = igniter.load(model()).compile(tmp_path / "out", target="toy", cache=False, progress=steps.append)
    said = artifact.report["options"]
    assert said["fusion_passes"] == "form-fusion-regions" and said["schedule_passes"] == toy.pipelines.schedule
    assert [node["node"] for node in artifact.report["left_to_onnxruntime"]] == ["d"]
    assert artifact.report["regions"] == 2
    chosen = [r["message"] for r in artifact.report["remarks"] if r["pass"] == "choose-schedule"]
    assert chosen and all("plain loops for toy:native" in message for message in chosen)
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)
    (y,) = artifact.session().run(None, {"x": x})
    e = np.exp(-np.abs(x))
    np.testing.assert_allclose(y, np.tanh(e) + np.sqrt(e), rtol=1e-5)


def test_a_kernel_is_scheduled_by_the_pipeline_of_its_backend(toy: ToyBackend) -> None:
    s = Schedule(kernel_of(kernel_text()), target="toy", author=True)
    assert str(s) == "matmul: [i threads, j, k]"
    x, w = (np.arange(n, dtype=np.float32).reshape(-1, m) / n for n, m in ((96, 48), (48 * 64, 64)))
    np.testing.assert_allclose(s.run(x, w)[0], x @ w, rtol=1e-5)
    module = igniter.parse(kernel_text()).run_passes("schedule-kernels", target="toy")
    assert "threads(" in str(module) and "vector" not in str(module)


def test_options_fill_in_the_pipelines_of_their_backend(toy: ToyBackend) -> None:
    own = igniter.CompileOptions(target="toy", loop_passes="lower-onnx-to-loop", program_passes="").pipelines
    assert (own.fusion, own.loop, own.programs) == ("form-fusion-regions", "lower-onnx-to-loop", "")
    assert igniter.CompileOptions().pipelines == backend_for("cpu").pipelines
    assert igniter.CompileOptions(target="toy").key() != igniter.CompileOptions().key()
