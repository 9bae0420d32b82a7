"""Python functions of tensors alone that call an op as a sample of the database does.

A sample's tensors become parameters; all else is written into the source, or is a global where it has no literal:

    sample  torch.cat([a, b], dim=1)
    source  def program(t0, t1):
                return OP([t0, t1], dim=1)
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

KINDS = ("plain", "before", "after", "part")
"""What a program does besides the op: nothing; change the first tensor before the op, or behind it; change a part of
it, and return the part."""


@dataclass
class Sample:
    """A call of an op: its tensors, and the call as source over `t0`, `t1` ... and the globals of `names`."""

    tensors: list[torch.Tensor]
    call: str
    names: dict[str, Any]

    @property
    def structure(self) -> tuple[Any, ...]:
        """What calls have in common that one compiled function is for."""
        return (self.call, *((t.dtype, t.dim()) for t in self.tensors), *map(repr, self.names.values()))


def sample_of(op: Any, sample: Any) -> Sample:
    found = Sample([], "", {"OP": op.op})
    arguments = [_literal(value, found) for value in (sample.input, *sample.args)]
    arguments += [f"{name}={_literal(value, found)}" for name, value in sample.kwargs.items()]
    found.call = f"OP({', '.join(arguments)})"
    return found


def _literal(value: Any, into: Sample) -> str:
    if isinstance(value, torch.Tensor):
        into.tensors.append(value.detach())
        return f"t{len(into.tensors) - 1}"
    if type(value) is tuple:
        return f"({''.join(_literal(each, into) + ', ' for each in value)})"
    if type(value) is list:
        return f"[{', '.join(_literal(each, into) for each in value)}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {_literal(each, into)}" for key, each in value.items()) + "}"
    if value is None or (isinstance(value, (bool, int, str)) and type(value).__module__ == "builtins"):
        return repr(value)
    name = f"CONSTANT_{len(into.names)}"
    into.names[name] = value
    return name


def program(sample: Sample, kind: str = "plain") -> Callable[..., Any]:
    """The function, in a module of its own: Dynamo imports the module of a function that it inlines."""
    names = ", ".join(f"t{number}" for number in range(len(sample.tensors)))
    change = "logical_not_()" if sample.tensors and sample.tensors[0].dtype is torch.bool else "add_(1)"
    lines = {
        "plain": [f"return {sample.call}"],
        "before": [f"t0.{change}", f"return {sample.call}"],
        "after": [f"result = {sample.call}", f"t0.{change}", "return result"],
        "part": ["part = t0[1:]", f"part.{change}", f"return {sample.call}, part"],
    }[kind]
    source = f"def program({names}):\n" + "".join(f"    {line}\n" for line in lines)
    module = ModuleType(f"opinfo_{len([name for name in sys.modules if name.startswith('opinfo_')])}")
    sys.modules[module.__name__] = module
    vars(module).update({**sample.names, "torch": torch})
    file = f"<{module.__name__}>"
    # Dynamo reads the source of what it traces for its messages.
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), vars(module))
    return vars(module)["program"]


class Module(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *tensors: Any) -> Any:
        return self.function(*tensors)
