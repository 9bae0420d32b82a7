"""Compile a model with a schedule pipeline from another package: `python compile_with_my_schedule.py MODEL FOLDER`."""

from __future__ import annotations

import sys

import igniter


def main() -> None:
    model, folder = sys.argv[1:]
    options = igniter.CompileOptions(schedule_passes="my-cpu-schedule")
    artifact = igniter.load(model).compile(folder, options=options, cache=False)
    print(artifact.report["options"]["schedule_passes"], artifact.report["regions"])


if __name__ == "__main__":
    main()
