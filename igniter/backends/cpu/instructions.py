"""The CPU features that code for a target may use, from LLVM's own tables.

LLVM knows the features of each CPU by name, and llvmlite has no function for them. But LLVM inlines a function into
another one only if the caller has all features of the callee. So each feature of the table
(`igniter/cpu_features.py`) gets a function that has the features of the target and this one; it is inlined if the
target has the feature already, by its CPU, its own features, or as part of another one:

    define void @caller() "target-cpu"="znver4" { call void @"with avx512vnni"() ... }
    define void @"with avx512vnni"() "target-cpu"="znver4" "target-features"="+avx512vnni" { ... }

This takes 20 ms for each target.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import llvmlite.binding as llvm

from igniter.backends.cpu.codegen import parse
from igniter.cpu_features import FEATURES
from igniter.errors import IgniterError
from igniter.systems import architecture_of

_PREFIX = "with "


def instructions(identity: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the features of `igniter.cpu_features` that code for a target may use, by the entries of the target in a
    library; none for other machines."""
    triple = identity.get("triple", "")
    if architecture_of(triple) not in FEATURES:
        return ()
    return _instructions(triple, identity.get("cpu", ""), identity.get("features", ""))


@lru_cache(maxsize=64)
def _instructions(triple: str, cpu: str, features: str) -> tuple[str, ...]:
    known = FEATURES[architecture_of(triple)]
    module = parse(_probe(triple, cpu, features, tuple(known)))
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    builder.getModulePassManager().run(module, builder)
    calls = (
        operand.name.removeprefix(_PREFIX)
        for block in module.get_function("caller").blocks
        for instruction in block.instructions
        if instruction.opcode == "call"
        for operand in instruction.operands
    )
    lacking = frozenset(calls)
    if not lacking <= known.keys():
        raise IgniterError(f"LLVM changed the probe of the features of '{cpu}': it calls {', '.join(sorted(lacking))}")
    return tuple(sorted(known.keys() - lacking))


def _probe(triple: str, cpu: str, features: str, names: tuple[str, ...]) -> str:
    """Returns a module whose `caller` calls a function for each feature."""
    lines = [f'target triple = "{triple}"', "@cell = global i32 0", f"define void @caller() {_with(cpu, features)} {{"]
    lines += [f'  call void @"{_PREFIX}{name}"()' for name in names]
    lines += ["  ret void", "}"]
    for name in names:
        given = ",".join(filter(None, (features, f"+{name}")))
        # The store keeps the call from being dropped.
        lines.append(
            f'define void @"{_PREFIX}{name}"() inlinehint {_with(cpu, given)} {{\n'
            "  store volatile i32 0, ptr @cell\n  ret void\n}"
        )
    return "\n".join(lines) + "\n"


def _with(cpu: str, features: str) -> str:
    return f'nounwind "target-cpu"="{cpu}" "target-features"="{features}"'
