# ruff: noqa: F821  (lit defines `config`)
"""How lit finds and runs the tests of this folder: `lit tests`, with this package and Igniter installed."""

import os
import sys
from pathlib import Path

import lit.formats

config.name = "my-package"
config.suffixes = [".mlir"]
config.test_format = lit.formats.ShTest()
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "output")
# igniter-opt and filecheck are beside the Python of this environment.
config.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
# The variables of a package that is not installed. The tests run in a folder of their own, so their paths are absolute.
for name in ("PYTHONPATH", "IGNITER_PLUGINS"):
    paths = os.environ.get(name, "").split(os.pathsep)
    config.environment[name] = os.pathsep.join(os.path.abspath(path) for path in paths if path)
