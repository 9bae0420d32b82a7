# ruff: noqa: F821  (lit defines `config`)
"""How lit finds and runs the tests of this folder: `make lit`, or `lit lit_tests/dialects`."""

import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))

from in_process import InProcessTest  # noqa: E402

config.name = "igniter"
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_format = InProcessTest()
config.test_source_root = str(here)
config.test_exec_root = str(here.parent / "build" / "lit")
Path(config.test_exec_root).mkdir(parents=True, exist_ok=True)
# RUN lines that do need a shell find the tools of the environment that lit runs in.
config.environment["PATH"] = f"{Path(sys.executable).parent}:{config.environment.get('PATH', '')}"
config.environment["PYTHONPATH"] = str(here.parent)
