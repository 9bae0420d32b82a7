"""A pytest plugin that runs tests as if on another machine; `tests/conftest.py` registers it when it is asked for.

IGNITER_NATIVE=NAME   a file of `tests/machines` without its ending, another file, or a target
IGNITER_REACH=FILE    adds to FILE the test files that reach the machine

Where `IGNITER_NATIVE` is a target whose code this machine does not run, a test that is about to run such code is
skipped at that point: what it checked of the code before is checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.machines import Reach, on_new_processes, pretend, pretend_cores


class OnAnotherMachine:
    """The hooks, for the machine that the environment names."""

    def __init__(self) -> None:
        from igniter.backends.cpu.machine import machine_for
        from igniter.backends.cpu.pretended import pretended_target

        record = os.environ.get("IGNITER_REACH")
        self._reach = Reach(Path(record)) if record else None
        if given := os.environ.get("IGNITER_NATIVE"):
            os.environ["IGNITER_NATIVE"] = pretend(given)
            pretend_cores(machine_for("native").cores)
            if pretended_target():
                _skip_where_code_runs()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._reach is not None:
            for item in items:
                if isinstance(item, pytest.Function):
                    self._reach.note_if_holding(_file(item), item.module)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self._reach is not None:
            self._reach.enter(_file(item))
        return (yield)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _skip_where_code_runs() -> None:
    import onnxruntime as ort

    from igniter.backends.cpu import jit
    from igniter.backends.cpu.target import target_of

    load = jit.CompiledFunc.__init__
    native = target_of("native")
    register = ort.SessionOptions.register_custom_ops_library

    def no_load(self: Any, name: str, ir: str, target: Any, *more: Any) -> None:
        if target == native:
            jit.optimize(jit.with_tile_kernels(ir, target), target)
            pytest.skip(f"runs code for {target.cpu}, which is not this machine")
        load(self, name, ir, target, *more)

    def no_register(self: Any, path: Any) -> None:
        from igniter.runtime.library import library_info

        named = library_info(Path(path).read_bytes())["targets"]
        if any(entry["cpu"] == native.cpu for entry in named):
            pytest.skip(f"loads a library for {native.cpu}, which is not this machine")
        register(self, path)

    def no_start(program: str) -> None:
        # Linkers may run; a process of Python's may run the code.
        if Path(program).name.startswith(("python", "igniter", "bash", "sh")):
            pytest.skip(f"starts {Path(program).name}, which may run code for another machine")

    on_new_processes(no_start)
    jit.CompiledFunc.__init__ = no_load
    ort.SessionOptions.register_custom_ops_library = no_register
