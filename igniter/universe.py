"""Igniter's dialects and passes as an xDSL universe: `xdsl-opt` finds them by the entry point `xdsl.universe`.

    xdsl-opt model.mlir -p infer-shapes

A name that xDSL defines as well (`arith`, `canonicalize`) remains xDSL's: with two definitions `xdsl-opt` would not
start. Igniter's `arith` has comparisons and selections of vectors, so `xdsl-opt` reads scheduled kernels only without
these. Nothing is imported before a name is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from igniter.registry import DIALECTS, PASSES, load_dialect, load_pass


def _dialects() -> dict[str, Callable[[], Dialect]]:
    own = DIALECTS.keys() - get_all_dialects().keys()
    return {name: partial(load_dialect, name) for name in sorted(own)}


def _passes() -> dict[str, Callable[[], type[ModulePass]]]:
    own = PASSES.keys() - get_all_passes().keys()
    return {name: partial(load_pass, name) for name in sorted(own)}


UNIVERSE = Universe(all_dialects=_dialects(), all_passes=_passes())
"""The names that Igniter adds to xDSL's."""
