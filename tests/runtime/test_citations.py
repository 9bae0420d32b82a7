"""Citations of schedules and authors, and the way of schedules between databases."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper
from typer.testing import CliRunner
from xdsl.dialects.builtin import StringAttr

import igniter
from igniter.analysis.fusion.author import FusionAuthor
from igniter.api import parse
from igniter.compiler.artifact import Artifact
from igniter.dialects.loop import KernelOp
from igniter.errors import IgniterError
from igniter.schedules.author import make_author
from igniter.schedules.citation import cite_author, cite_schedule, name_schedule, schedule_hash
from igniter.schedules.default_author import DefaultAuthor
from igniter.targets import backend_for
from igniter.toolbox.schedule.exchange import export_schedules, import_schedules
from igniter.toolbox.tune.executors import LocalExecutor
from igniter.tools.main import app
from igniter.transforms.structured.schedule_database import Entry, opened

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
BY_HAND = EXAMPLES / "linear_by_hand.mlir"
TARGET = backend_for("native").target_of("native")


def relu_model() -> ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 8]) for name in "xy")
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Exp", ["h"], ["y"])]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)])


def kernel_in(text: str) -> KernelOp:
    found = next(op for op in parse(text).ir.ops if isinstance(op, KernelOp))
    found.detach()
    return found


def test_a_hash_ignores_names_and_covers_directives():
    text = BY_HAND.read_text()
    kernel = kernel_in(text)
    renamed = kernel_in(text.replace("%x", "%other").replace("@linear", "@again"))
    assert schedule_hash(renamed) == schedule_hash(kernel)
    name_schedule(renamed, "by-hand", "1", "a page")
    assert schedule_hash(renamed) == schedule_hash(kernel)
    assert str(cite_schedule(renamed)) == f"by-hand 1 (schedule {schedule_hash(kernel)}, a page)"
    assert schedule_hash(kernel_in(text.replace("vector 16", "vector 8"))) != schedule_hash(kernel)
    assert schedule_hash(kernel_in(text.replace("maximumf", "minimumf"))) != schedule_hash(kernel)


def test_a_citation_round_trips_and_a_wrong_one_is_refused():
    kernel = kernel_in(BY_HAND.read_text())
    name_schedule(kernel, "by-hand", source="a page")
    again = kernel_in(str(kernel))
    assert cite_schedule(again) == cite_schedule(kernel)
    kernel.attributes["citation"] = StringAttr("by-hand")
    with pytest.raises(IgniterError, match=r"the citation of kernel @linear is \"by-hand\"; write"):
        cite_schedule(kernel)
    given = again.attributes["citation"]
    again.attributes["citation"] = type(given)({"title": StringAttr("x")})
    with pytest.raises(IgniterError, match="has an entry 'title'; its entries are name, version, source"):
        cite_schedule(again)


@dataclass(frozen=True)
class Versioned(DefaultAuthor):
    name = "versioned"
    version = "7"
    most: int = 8


@dataclass(frozen=True)
class Plain(FusionAuthor):
    name = "plain"


def test_authors_have_citations_by_options_and_code():
    ours = cite_author(make_author("default"))
    assert (ours.kind, ours.name, ours.version) == ("schedule author", "default", igniter.__version__)
    mine, other = cite_author(Versioned()), cite_author(Versioned(most=4))
    assert mine.version == "7" and mine.name.startswith("versioned")
    assert len({ours.hash, mine.hash, other.hash}) == 3
    assert mine == cite_author(Versioned())
    assert cite_author(Plain()).kind == "fusion author"


def test_a_compiled_model_cites_its_authors(tmp_path: Path):
    found = igniter.compile(relu_model(), tmp_path / "out", verify=False)
    assert isinstance(found, Artifact)
    kinds = [(each["kind"], each["name"]) for each in found.report["authors"]]
    assert kinds == [("fusion author", "default"), ("schedule author", "default")]


def test_schedules_move_between_databases(tmp_path: Path):
    moved, again = tmp_path / "moved.mlir", tmp_path / "again.mlir"
    named = ("by-hand", "1", "a page")
    (out,) = export_schedules(BY_HAND, moved, TARGET, None, citation=named)
    assert out.origin == "its own" and out.citation.name == "by-hand"
    with opened(tmp_path / "other.sqlite", create=True) as database:
        (found,) = import_schedules(moved, TARGET, database, executor=LocalExecutor())
        assert found.entry is not None and found.entry.is_timed and found.entry.ratio > 0
        # The plain kernel of another file gets the schedule, with the same hash.
        (back,) = export_schedules(EXAMPLES / "linear.mlir", again, TARGET, database, citation=named)
        assert back.citation == out.citation
        assert back.origin == f"imported, {out.citation}"
        (untimed,) = import_schedules(moved, TARGET, database)
        assert untimed.entry is not None and not untimed.entry.is_timed
    assert cite_schedule(kernel_in(again.read_text())) == out.citation


def test_what_cannot_move_is_refused(tmp_path: Path):
    plain, database = EXAMPLES / "linear.mlir", tmp_path / "db.sqlite"
    with opened(database, create=True) as found:
        with pytest.raises(IgniterError, match=r"no kernel of .* has a schedule to export: .* has none for"):
            export_schedules(plain, tmp_path / "out.mlir", TARGET, found)
        with pytest.raises(IgniterError, match="nest 'matmul' of kernel @linear has no schedule"):
            import_schedules(plain, TARGET, found)
        with pytest.raises(IgniterError, match="has no kernel 'other'; it has: linear"):
            import_schedules(BY_HAND, TARGET, found, kernel="other")
    assert not (tmp_path / "out.mlir").exists()


def test_the_command_line(tmp_path: Path):
    def run(*args: str) -> tuple[int, str]:
        found = CliRunner().invoke(app, ["schedule", *args])
        return found.exit_code, " ".join(found.output.split())

    status, text = run("export", str(BY_HAND), "-o", str(tmp_path / "f.mlir"), "--name", "mine")
    assert status == 0 and "mine" in text
    assert run("cite", str(tmp_path / "f.mlir"), "--json")[1].startswith(
        '{ "@linear": { "kind": "schedule", "name": "mine"'
    )
    status, text = run("import", str(tmp_path / "f.mlir"), "--no-time", "--db", str(tmp_path / "d.sqlite"))
    assert status == 0 and "added, not timed" in text
    assert "it belongs to export" in run("cite", str(BY_HAND), "--name", "x")[1]
    assert "needs a file to write" in run("export", str(BY_HAND))[1]


def test_a_database_of_the_former_layout_is_taken_up(tmp_path: Path):
    path = tmp_path / "old.sqlite"
    with opened(path, create=True):
        pass
    with sqlite3.connect(path) as raw:
        raw.execute("alter table schedules drop column citation")
        raw.execute("alter table trials drop column features")
        raw.execute("pragma user_version = 1")
    with opened(path) as database:
        (found,) = import_schedules(BY_HAND, TARGET, database)
        assert isinstance(found.entry, Entry)
        (entry,) = database.entries(found.entry.subject.kernel, TARGET.key)
        assert "schedule" in entry.citation
