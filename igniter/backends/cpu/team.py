"""A program enters the thread pool once: the threads stay together for all its kernels.

    void @p0(ptr buffers, ptr symbols, ptr scratch, ptr parallel_for, ptr context)

requests many runs of one task from the pool (`Team.runs`). The first to start, on any thread, leads: it runs the
program kernel by kernel. The others help until the program has ended; a late run finds it ended. Kernels distribute
their tasks through `@igniter.team.for` instead of the pool's own function: the leader publishes a job, takes tasks from
it like the helpers, and continues when all are done. So a step costs an atomic operation a task; entering the pool
costs microseconds, and much more if its threads sleep in between.

No thread waits for another one to start: if the pool is busy with another run, or has one thread, the leader does all
the work, and no order of starting deadlocks. A job is its generation (the upper half of `ticket`) and its next task
(the lower half), so one atomic addition both takes a task and identifies its job. Jobs alternate between two places: a
place within reach of a late helper is not written before its generation has passed, and a helper that finds another
generation than its task's has taken none. A helper pauses between looks, and leaves after `Team.looks` looks without
work.
"""

from __future__ import annotations

from igniter.backends.cpu.builder import Module, quote
from igniter.backends.cpu.target import Target
from igniter.dialects.loop import Team
from igniter.errors import IgniterError

TYPES = """
%igniter.job = type { ptr, i64, ptr, [5 x i64] }
%igniter.team = type { i64, [7 x i64], i64, [7 x i64], i64, [7 x i64], i64, [7 x i64],
  [2 x %igniter.job], ptr, ptr, ptr, [5 x i64] }
"""

# Fields: leader, ticket, finished, done, each in its own cache line; jobs; buffers, symbols, scratch.
COMMON = """
define internal void @igniter.team.for(ptr %team, ptr %task, i64 %count, ptr %data) #0 {
entry:
  %ticket.at = getelementptr %igniter.team, ptr %team, i64 0, i32 2
  %finished.at = getelementptr %igniter.team, ptr %team, i64 0, i32 4
  %before = load atomic i64, ptr %ticket.at monotonic, align 8
  %last = lshr i64 %before, 32
  %generation = add i64 %last, 1
  %which = and i64 %generation, 1
  %task.at = getelementptr %igniter.team, ptr %team, i64 0, i32 8, i64 %which, i32 0
  %count.at = getelementptr %igniter.team, ptr %team, i64 0, i32 8, i64 %which, i32 1
  %data.at = getelementptr %igniter.team, ptr %team, i64 0, i32 8, i64 %which, i32 2
  store atomic ptr %task, ptr %task.at release, align 8
  store atomic i64 %count, ptr %count.at release, align 8
  store atomic ptr %data, ptr %data.at release, align 8
  store atomic i64 0, ptr %finished.at monotonic, align 8
  %first = shl i64 %generation, 32
  store atomic i64 %first, ptr %ticket.at release, align 8
  br label %take
take:
  %ticket = atomicrmw add ptr %ticket.at, i64 1 acq_rel, align 8
  %index = and i64 %ticket, 4294967295
  %more = icmp ult i64 %index, %count
  br i1 %more, label %run, label %wait
run:
  call void %task(ptr %data, i64 %index)
  %own = atomicrmw add ptr %finished.at, i64 1 acq_rel, align 8
  br label %take
wait:
  %finished = load atomic i64, ptr %finished.at acquire, align 8
  %all = icmp uge i64 %finished, %count
  br i1 %all, label %end, label %idle
idle:
  $PAUSE
  br label %wait
end:
  ret void
}

define internal void @igniter.team.help(ptr %team) #0 {
entry:
  %ticket.at = getelementptr %igniter.team, ptr %team, i64 0, i32 2
  %finished.at = getelementptr %igniter.team, ptr %team, i64 0, i32 4
  %done.at = getelementptr %igniter.team, ptr %team, i64 0, i32 6
  br label %look
look:
  %looks = phi i64 [ 0, %entry ], [ 0, %stale ], [ 0, %work ], [ %more.looks, %idle ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %over = icmp ne i64 %done, 0
  br i1 %over, label %end, label %open
open:
  %seen = load atomic i64, ptr %ticket.at acquire, align 8
  %seen.generation = lshr i64 %seen, 32
  %seen.which = and i64 %seen.generation, 1
  %seen.index = and i64 %seen, 4294967295
  %seen.count.at = getelementptr %igniter.team, ptr %team, i64 0, i32 8, i64 %seen.which, i32 1
  %seen.count = load atomic i64, ptr %seen.count.at monotonic, align 8
  %worth = icmp ult i64 %seen.index, %seen.count
  br i1 %worth, label %take, label %waiting
take:
  %ticket = atomicrmw add ptr %ticket.at, i64 1 acq_rel, align 8
  %generation = lshr i64 %ticket, 32
  %which = and i64 %generation, 1
  %index = and i64 %ticket, 4294967295
  %task.at = getelementptr %igniter.team, ptr %team, i64 0, i32 8, i64 %which, i32 0
  %count.at = getelementptr %igniter.team, ptr %team, i64 0, i32 8, i64 %which, i32 1
  %data.at = getelementptr %igniter.team, ptr %team, i64 0, i32 8, i64 %which, i32 2
  %task = load atomic ptr, ptr %task.at acquire, align 8
  %count = load atomic i64, ptr %count.at acquire, align 8
  %data = load atomic ptr, ptr %data.at acquire, align 8
  %now = load atomic i64, ptr %ticket.at acquire, align 8
  %now.generation = lshr i64 %now, 32
  %same = icmp eq i64 %now.generation, %generation
  %inside = icmp ult i64 %index, %count
  %mine = and i1 %same, %inside
  br i1 %mine, label %work, label %stale
work:
  call void %task(ptr %data, i64 %index)
  %own = atomicrmw add ptr %finished.at, i64 1 acq_rel, align 8
  br label %look
stale:
  br label %look
waiting:
  %more.looks = add i64 %looks, 1
  %tired = icmp ugt i64 %more.looks, $PATIENCE
  br i1 %tired, label %end, label %idle
idle:
  $PAUSE
  br label %look
end:
  ret void
}
"""

ENTRY = """
define internal void @$NAME.team(ptr %team, i64 %index) #0 {
entry:
  %leads = atomicrmw xchg ptr %team, i64 1 acq_rel, align 8
  %first = icmp eq i64 %leads, 0
  br i1 %first, label %lead, label %help
lead:
  %buffers.at = getelementptr %igniter.team, ptr %team, i64 0, i32 9
  %symbols.at = getelementptr %igniter.team, ptr %team, i64 0, i32 10
  %scratch.at = getelementptr %igniter.team, ptr %team, i64 0, i32 11
  %done.at = getelementptr %igniter.team, ptr %team, i64 0, i32 6
  %buffers = load ptr, ptr %buffers.at, align 8
  %symbols = load ptr, ptr %symbols.at, align 8
  %scratch = load ptr, ptr %scratch.at, align 8
  call void @$NAME.alone(ptr %buffers, ptr %symbols, ptr %scratch, ptr @igniter.team.for, ptr %team)
  store atomic i64 1, ptr %done.at release, align 8
  ret void
help:
  call void @igniter.team.help(ptr %team)
  ret void
}

define void @$NAME(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context) #0 {
entry:
  %team = alloca %igniter.team, align 64
  %serial = icmp eq ptr %parallel_for, null
  br i1 %serial, label %alone, label %together
alone:
  call void @$NAME.alone(ptr %buffers, ptr %symbols, ptr %scratch, ptr null, ptr null)
  ret void
together:
  store %igniter.team zeroinitializer, ptr %team, align 64
  %buffers.at = getelementptr %igniter.team, ptr %team, i64 0, i32 9
  %symbols.at = getelementptr %igniter.team, ptr %team, i64 0, i32 10
  %scratch.at = getelementptr %igniter.team, ptr %team, i64 0, i32 11
  store ptr %buffers, ptr %buffers.at, align 8
  store ptr %symbols, ptr %symbols.at, align 8
  store ptr %scratch, ptr %scratch.at, align 8
  call void %parallel_for(ptr %context, ptr @$NAME.team, i64 $TASKS, ptr %team)
  ret void
}
"""

PAUSES = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}


def emit_team(module: Module, name: str, team: Team) -> None:
    """Emits the entry of a program with its own code in `@NAME.alone`; raises `IgniterError` if another program of the
    module has helpers with a different number of looks."""
    target: Target = module.target
    helpers = f"igniter.team {team.looks}"
    if helpers not in module.helpers:
        if any(name.startswith("igniter.team ") for name in module.helpers):
            raise IgniterError(f"program '{name}' has a team of {team.looks} looks, and another of its module has not")
        module.helpers.add(helpers)
        pause = PAUSES[target.arch]
        common = COMMON.replace("$PAUSE", pause).replace("$PATIENCE", str(team.looks))
        module.globals["%igniter.team"] = TYPES
        module.functions.append(common)
        intrinsic = pause.partition("@")[2]
        parameters = "i32" if "(i32" in intrinsic else ""
        module.declarations[intrinsic.partition("(")[0]] = f"declare void @{intrinsic.partition('(')[0]}({parameters})"
    module.functions.append(
        ENTRY.replace("@$NAME.alone", f"@{quote(name + '.alone')}")
        .replace("@$NAME.team", f"@{quote(name + '.team')}")
        .replace("@$NAME", f"@{quote(name)}")
        .replace("$TASKS", str(team.runs))
    )
