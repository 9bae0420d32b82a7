"""The flags of `mlir-opt`: each is taken, or refused with a remedy, and the guide has them all."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from tools_kit import opt

from igniter.tools.igniter_opt import build_parser
from igniter.tools.mlir_flags import FLAGS, VALUES, translated
from igniter.tools.opt_arguments import long_options
from tests.docs.transcripts import ROOT

GUIDE = (ROOT / "docs" / "how-to" / "for-mlir-users.md").read_text(encoding="utf-8")
IR = '"test.op"() : () -> ()\n'
MLIR_OPT = next((found for name in ("mlir-opt", "mlir-opt-19") if (found := shutil.which(name))), None)

OTHERS = ("--mlir-print-debuginfo", "--mlir-pretty-debuginfo", "--mlir-generate-reproducer", "--mlir-pass-pipeline-")
"""Flags about locations and reproducers, which are options of their own or argparse's errors."""


def test_every_flag_has_one_answer() -> None:
    known = long_options(build_parser())
    for name, flag in FLAGS.items():
        assert sum(map(bool, (flag.use, flag.note, flag.refused))) == 1, name
        assert name not in known
        assert not flag.use or flag.use.partition("=")[0] in known, name
    assert VALUES.keys() <= FLAGS.keys()


def test_the_guide_has_every_flag() -> None:
    table = GUIDE[GUIDE.index("## Flags") :]
    shown = set(re.findall(r"`(-[-a-z]+)", table))
    assert FLAGS.keys() <= shown
    for name in re.findall(r"^\|.*\| `(--[a-z-]+)", table, re.MULTILINE):
        assert name in long_options(build_parser()), name


@pytest.mark.parametrize("name", [name for name, flag in FLAGS.items() if flag.refused])
def test_a_refused_flag_says_what_to_use(name: str) -> None:
    found = opt(f"{name}=x", text=IR)
    assert found.status == 2 and found.out == ""
    assert found.err == f"igniter-opt: error: {name} is a flag of mlir-opt, not of igniter-opt: {FLAGS[name].refused}\n"


def test_values_are_translated() -> None:
    assert translated(["--mlir-timing-display=list", "--mlir-output-format=json"])[0] == [
        "--timing=list",
        "--timing=json",
    ]
    assert translated(["--mlir-timing=false", "--mlir-timing=true"])[0] == ["--timing"]
    assert translated(["--mlir-print-ir-after=cse,dce"])[0] == ["--print-ir-after=cse,dce"]


@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt is not installed")
def test_every_common_flag_of_mlir_opt_has_an_answer() -> None:
    assert MLIR_OPT is not None
    text = subprocess.run([MLIR_OPT, "--help"], capture_output=True, text=True, check=True).stdout
    there = set(
        re.findall(r"^  (--(?:mlir-[a-z-]+|print-ir[a-z-]*|show-dialects|dump-pass-pipeline))", text, re.MULTILINE)
    )
    known = {*FLAGS, *long_options(build_parser())}
    assert len(there) > 25
    assert not {name for name in there - known if not name.startswith(OTHERS)}
