"""The command line: `python -m benchmark.language_models build|tokens|speed|attention`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmark import language_models
from benchmark.language_models import attention, build
from benchmark.language_models.attention import FORMS as CACHES
from benchmark.language_models.subjects import SUBJECTS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.language_models",
        description=language_models.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=["build", "tokens", "speed", "attention"])
    large = [name for name, subject in SUBJECTS.items() if subject.large]
    parser.add_argument("names", nargs="*", default=large, metavar="NAME", help=", ".join(SUBJECTS))
    parser.add_argument("--forms", nargs="+", default=["f32", "int4-level0", "int4-level4"], metavar="FORM")
    parser.add_argument("--to", type=Path, default=build.FOLDER, help="the folder of the models")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--prompts", type=int, nargs="+", default=[128, 512], metavar="TOKENS")
    parser.add_argument("--rounds", type=int, default=5, help="of speed: the turns of each system")
    parser.add_argument("--steps", type=int, default=32, help="of speed: the tokens of each turn")
    parser.add_argument("--max-length", type=int, default=2048, help="of speed: the keys of the shared buffer")
    parser.add_argument(
        "--against", default="", metavar="FORM", help="of speed: what ONNX Runtime runs (the same form)"
    )
    parser.add_argument("--caches", nargs="+", default=list(CACHES), metavar="CACHE", help="of attention: the forms")
    parser.add_argument(
        "--kv-heads", type=int, nargs="+", default=[8], metavar="HEADS", help="of attention, of 8 heads"
    )
    asked = parser.parse_args()
    if asked.verb == "attention":
        return attention.run_attention(asked.caches, asked.kv_heads, asked.threads, asked.rounds)
    unknown = [name for name in asked.names if name not in SUBJECTS]
    unknown += [form for form in asked.forms if form.removesuffix(build.PRUNED) not in build.FORMS]
    if unknown:
        forms = f"forms {', '.join(build.FORMS)}, each with {build.PRUNED} or without"
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(SUBJECTS)}; {forms}")
    if asked.verb == "build":
        return build.run(asked.names, asked.forms, asked.to)
    from benchmark.language_models import measure

    if asked.verb == "tokens":
        return measure.run_tokens(asked.names, asked.forms, asked.to, asked.threads, asked.prompts)
    how = asked.rounds, asked.steps, asked.max_length, asked.against
    return measure.run_speed(asked.names, asked.forms, asked.to, asked.threads, asked.prompts, *how)


if __name__ == "__main__":
    sys.exit(main())
