"""`python -m benchmark.on_gpu build|run FOLDER`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="compile cases; needs Igniter with Triton, no GPU")
    build.add_argument("folder", type=Path)
    build.add_argument("--parts", default="checks,ops,models", help="comma-separated, of checks, ops and models")
    build.add_argument("--exported", type=Path, default=Path("benchmark/.cache"), help="where models by torch are")
    build.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    build.add_argument("--share", type=int, default=6, help="of ONNX's node tests of each op, one in so many")
    build.add_argument("--only", default="", help="a part of the names")
    run = commands.add_parser("run", help="check and time them; needs torch with a GPU")
    run.add_argument("folder", type=Path)
    run.add_argument("--parts", default="checks,ops,models")
    run.add_argument("--only", default="")
    run.add_argument("--csv", type=Path, help="where to write the times")
    run.add_argument("--seconds", type=float, default=0.0, help="stop beginning new cases after so many (0: never)")
    args = parser.parse_args()
    parts = args.parts.split(",")
    if args.command == "build":
        from benchmark.on_gpu.build import build as work

        work(args.folder, parts, args.exported, args.jobs, args.share, args.only)
    else:
        from benchmark.on_gpu.run import run as work_there

        work_there(args.folder, parts, args.only, args.csv, args.seconds)


if __name__ == "__main__":
    main()
