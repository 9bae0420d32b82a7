"""The entry of a program whose threads stay together, as LLVM IR: one call of the team.

    void @p0(ptr buffers, ptr symbols, ptr scratch, ptr parallel_for, ptr context)

The team is C (`igniter/backends/c_runtime/src/team.c`); the code generator links it into the module.
"""

from __future__ import annotations

from igniter.backends.cpu.builder import LlvmModule, quote
from igniter.dialects.loop import Team

RUN = "igniter_team_run"
"""`void (ptr program, i64 runs, i64 looks, ptr buffers, ptr symbols, ptr scratch, ptr parallel_for, ptr context)`"""

PAUSES = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}
"""The instruction of a thread that polls."""

_ENTRY = """
define void @$NAME(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context) #0 {
entry:
  call void @$RUN(ptr @$ALONE, i64 $RUNS, i64 $LOOKS, ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for,
    ptr %context)
  ret void
}
"""


def emit_team(module: LlvmModule, name: str, team: Team) -> None:
    """Emits the entry of a program with its own code in `@NAME.alone`."""
    module.declarations[RUN] = f"declare void @{RUN}(ptr, i64, i64, ptr, ptr, ptr, ptr, ptr)"
    module.functions.append(
        _ENTRY.replace("$NAME", quote(name))
        .replace("$ALONE", quote(f"{name}.alone"))
        .replace("$RUNS", str(team.runs))
        .replace("$LOOKS", str(team.looks))
        .replace("$RUN", RUN)
    )
