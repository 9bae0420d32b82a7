"""The command line: `python -m benchmark.language_models build`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmark import language_models
from benchmark.language_models import build
from benchmark.language_models.subjects import SUBJECTS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.language_models",
        description=language_models.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=["build"])
    large = [name for name, subject in SUBJECTS.items() if subject.large]
    parser.add_argument("names", nargs="*", default=large, metavar="NAME", help=", ".join(SUBJECTS))
    parser.add_argument("--forms", nargs="+", default=["f32", "int4-level0", "int4-level4"], metavar="FORM")
    parser.add_argument("--to", type=Path, default=build.FOLDER, help="the folder of the models")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in SUBJECTS]
    unknown += [form for form in asked.forms if form.removesuffix(build.PRUNED) not in build.FORMS]
    if unknown:
        forms = f"forms {', '.join(build.FORMS)}, each with {build.PRUNED} or without"
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(SUBJECTS)}; {forms}")
    return build.run(asked.names, asked.forms, asked.to)


if __name__ == "__main__":
    sys.exit(main())
