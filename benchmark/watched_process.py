"""Run a command and measure it: `python -S benchmark/watched_process.py COMMAND ...`, for `benchmark.compile_time`.

The last line of the output is JSON: the exit status, the seconds of the clock, the seconds of all CPUs, the largest
resident memory of one process in kilobytes, and the largest anonymous memory of all processes together in bytes. This
process has a few megabytes, because the memory of a new process begins with that of its parent.

Resident memory includes mapped files, once for each mapping, although the system can take their pages back. Anonymous
memory is what a container's limit has to hold: it is read in `/proc` every `INTERVAL` seconds (Linux; 0 elsewhere). The
memory that a fork shares with its parent counts for both.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

INTERVAL = 0.02
"""The seconds between two looks at the memory."""
SEARCH = 10
"""Every so many looks, new processes are searched for."""


def family(root: int) -> list[int]:
    """Returns the process and its descendants."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except OSError:  # it has ended
                continue
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def anonymous(process: int) -> int:
    """Returns the bytes of a process's memory that are pages of no file; 0 after its end."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:
            return next((int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon:")), 0)
    except OSError:
        return 0


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    start = time.perf_counter()
    child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, setsigmask=[])
    looks, most, processes = 0, 0, [child]
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if looks % SEARCH == 0:
            processes = family(child)
        looks += 1
        most = max(most, sum(map(anonymous, processes)))
        signal.sigtimedwait([signal.SIGCHLD], INTERVAL)
    seconds = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    print(json.dumps([os.waitstatus_to_exitcode(status), seconds, cpu, usage.ru_maxrss, most]))


if __name__ == "__main__":
    main()
