"""`igniter fuse`: what it prints and writes, and that it writes nothing wrong."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from igniter.tools.main import app
from tests.analysis.model.kit import model

TEXT = """g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z)
<float root = {1.4142135}, float one = {1}, float half = {0.5}> {
 d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) y = Mul(p, half)
 f = Div(x, one) g = Erf(f) h = Add(g, one) q = Mul(x, h) z = Mul(q, half) }"""


def fuse(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["fuse", *arguments])
    return done.exit_code, done.output


@pytest.fixture
def gelus(tmp_path: Path) -> str:
    onnx.save(model(TEXT.replace("g (", "net (", 1)), tmp_path / "gelus.onnx")
    return str(tmp_path / "gelus.onnx")


def test_it_is_written_and_told(gelus: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.onnx")
    status, said = fuse(gelus, "--pattern", "gelu", "-o", out, "--json")
    found = json.loads(said)
    assert status == 0 and [a["node"] for a in found["applied"]] == ["mul_4"]
    assert found["verification"]["status"] == "passed"
    assert (
        found["nearest"][0]["node"] == "mul_9" and "1.41421354 is wanted, and found is 1" in found["nearest"][0]["why"]
    )
    made = onnx.load(out)
    assert made.graph.node[0].op_type == "Gelu" and made.functions[0].name == "Gelu"
    status, said = fuse(gelus, "--pattern", "gelu", "-o", out, "--as", "default")
    assert status == 0 and "wrote" in said and "1 instance replaced" in said
    assert onnx.load(out).graph.node[0].domain == "com.microsoft"


def test_nothing_wrong_is_written(gelus: str, tmp_path: Path) -> None:
    """An op that computes something else."""
    out = tmp_path / "out.onnx"
    status, said = fuse(gelus, "--pattern", "gelu", "-o", str(out), "--as", "com.microsoft.QuickGelu")
    assert status == 1 and "does not compute what" in said and not out.exists()
    status, said = fuse(gelus, "--pattern", "gelu", "-o", str(out), "--as", "mine.Op")
    assert status == 1 and not out.exists()
    assert fuse(gelus, "--pattern", "gelu", "-o", str(out), "--as", "mine.Op", "--no-verify")[0] == 0
    assert {p.name for p in tmp_path.iterdir()} == {"gelus.onnx", "out.onnx"}


def test_nothing_that_matches_is_an_error(gelus: str, tmp_path: Path) -> None:
    status, said = fuse(gelus, "--pattern", "mha", "-o", str(tmp_path / "out.onnx"))
    assert status == 1 and "nothing in the model matches mha" in said
    status, said = fuse(gelus, "--pattern", "gelu", "-o", str(tmp_path / "out.onnx"), "--no-verify", "--rtol", "1")
    assert status == 1 and "are for verifying" in said
