"""`igniter-opt`: read IR or an ONNX model, run passes over it, print the result.

This file is only the command line, and imports neither xDSL nor anything heavier, so `--help` answers at once.
`opt_driver.py` implements the options.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from igniter._version import __version__
from igniter.errors import IgniterError
from igniter.plugin_files import named
from igniter.registry import PASSES, all_passes, forget_packages, load
from igniter.registry import plugins as installed
from igniter.tools.completion import REQUEST, respond
from igniter.tools.mlir_flags import FLAGS, translated
from igniter.tools.opt_arguments import OptParser, described_name, joined, long_options, two_dashes, values_of
from igniter.tools.watch_options import WatchOptions, add_options

LISTS = ("list_passes", "list_pipelines", "show_dialects", "list_fusion_authors", "list_schedule_authors")
"""The options that print lists, named like the functions of `listing.py`."""

SEPARATOR = "// -----"
"""The line between the parts of a split file."""

LOAD = "--load"
"""The option with plug-ins, whose passes are flags: it is read before the others."""

EMITS = ("mlir", "generic", "linalg", "scf", "onnx", "llvm", "asm", "none")

LLVM_VERSIONS = ("14", "17", "19", "newest")
"""The versions of LLVM with a text of their own (`igniter.backends.cpu.llvm_versions`), and llvmlite's."""

DESCRIPTION = "Run passes over Igniter's IR (.mlir) or over an ONNX model (.onnx), and print the result."

EPILOG = """\
examples:
  igniter-opt model.onnx                                  the model as IR
  igniter-opt model.onnx -p infer-shapes,fold-constants   passes in order
  igniter-opt a.mlir --tile-loops="sizes=8,64" --cse      the same, a flag for each pass
  igniter-opt model.onnx -p cpu-fusion --emit=none --remarks
  igniter-opt --list-passes                               every pass, its options and what it does
"""


@dataclass(frozen=True)
class OptOptions:
    """The command line of `igniter-opt`, parsed."""

    input: str
    output: str
    pipeline: str
    frontend: str
    emit: str
    target: str | None
    llvm: str | None
    debug_info: bool
    print_debuginfo: bool
    machine: str
    sizes: str
    verify_each: bool
    verify_roundtrip: bool
    split_input_file: str
    output_split_marker: str
    implicit_module: bool
    dump_pass_pipeline: bool
    verify_diagnostics: bool
    allow_unregistered: bool
    watch: WatchOptions
    check_each: str
    proofs: str
    check_seed: int
    check_sizes: list[str]
    check_with: str
    stop_after: int | None
    isolate: bool
    debug: bool
    strict: bool = False
    error_format: str = "text"
    crash_reproducer: str = ""
    local_reproducer: bool = False
    reproducer_weights: str = "auto"
    run_reproducer: bool = False


class _AppendPass(argparse.Action):
    """Collects `-p a,b` and `--a=x=1 --b` into one pipeline, in their order."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if option_string in ("-p", "--passes", "--pass-pipeline"):
            element = str(values)
        else:
            name = str(option_string)[2:]
            options = str(values).strip("{}") if values else ""
            element = f"{name}{{{options}}}" if options else name
        if element.strip():
            namespace.pipeline = [*(namespace.pipeline or []), element]


def _checks(text: str) -> str:
    unknown = set(text.split(",")) - {"values", "prove"}
    if text and unknown:
        raise argparse.ArgumentTypeError(f"'{min(unknown)}' is no check: values, prove")
    return text


def _truth(text: str) -> bool:
    if text not in ("true", "1", "false", "0"):
        raise argparse.ArgumentTypeError(f"'{text}' is neither true nor false")
    return text in ("true", "1")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no number of rewrites: 0, 1, 2, ...")
    return int(text)


def build_parser(pass_names: Sequence[str] = ()) -> OptParser:
    """Returns the parser, with a flag for each of `pass_names`, not shown in the help."""
    parser = OptParser(
        "igniter-opt",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    add = parser.add_argument
    add("-h", "--help", action="help", help="show this help message and exit; --help PASS describes a pass")
    add("input", nargs="?", default="-", help="an .mlir or .onnx file; standard input without one, or with '-'")
    add("-o", "--output", default="-", metavar="FILE", help="write to FILE rather than to standard output")
    add(
        "-p",
        "--passes",
        "--pass-pipeline",
        action=_AppendPass,
        dest="pipeline",
        metavar="PIPELINE",
        help="passes or named pipelines, comma-separated: 'a,b{option=1 other=x,y}'; each pass is a flag too, --a. "
        "'builtin.module(a,loop.kernel(b))' runs b on each kernel; 'cpu with a after b, without c' edits a pipeline",
    )
    add(
        "--frontend", choices=("auto", "mlir", "onnx"), default="auto", help="how to read the input (default: its name)"
    )
    add(
        "--emit",
        type=_form,
        choices=EMITS,
        default="mlir",
        help="what to write (default: mlir); 'onnx' needs -o or a pipe, and for a GPU 'llvm' is Python, 'asm' PTX",
    )
    add(
        "--target",
        metavar="TARGET",
        help="the CPU or GPU that passes work for, where their options do not say (default: one with AVX-512), and "
        "that --emit=llvm and asm write for (default: this machine)",
    )
    add(
        "--llvm",
        choices=LLVM_VERSIONS,
        help="with --emit=llvm: the LLVM that reads the text; the module is then complete, with its micro-kernels",
    )
    add(
        "--debug-info",
        action="store_true",
        help="with --emit=llvm: the names of the ONNX nodes of each kernel, for debuggers and profilers",
    )
    add(
        "--print-debuginfo",
        "--mlir-print-debuginfo",
        action="store_true",
        help='print the location of each op, the name of its ONNX node: loc("softmax")',
    )
    add(
        "--machine",
        default="",
        metavar="FILE",
        help="figures of the machine that take the place of the target's own: what 'igniter machine -o' writes",
    )
    add(
        "--sizes",
        default="",
        metavar="SIZES",
        help="what symbols typically are, which passes choose for: batch=1,seq=128",
    )
    add(
        "--isolate",
        action="store_true",
        help="a kernel that a pass refuses costs its own regions alone, as in 'igniter compile', and is no error",
    )
    add("--strict", action="store_true", help="a plug-in's rule that raises is an error, and no warning")
    add(
        LOAD,
        action="append",
        default=[],
        metavar="PATH",
        help="a plug-in that is not installed: a Python file with passes, or a folder with a pyproject.toml",
    )
    add_options(parser)
    group = parser.add_argument_group("checking")
    add = group.add_argument
    add(
        "--verify-each",
        nargs="?",
        const="true",
        default=True,
        type=_truth,
        metavar="true|false",
        help="verify the IR after every pass, nested ones included (default: true)",
    )
    add("--no-verify-each", dest="verify_each", action="store_false", help="the same as --verify-each=false")
    add("--verify-roundtrip", action="store_true", help="check that the IR, printed and read, is the same IR")
    add(
        "--check-each",
        nargs="?",
        const="values",
        default="",
        type=_checks,
        metavar="values,prove",
        help="run the IR before and after every pass, and name the pass that changed a result; '=prove' instead proves "
        "for all sizes that passes over kernels keep their meaning, and '=values,prove' does both",
    )
    add("--proofs", default="", metavar="FILE", help="write the proofs of --check-each=prove to FILE, as JSON")
    add("--check-seed", type=int, default=0, metavar="N", help="seed of the random inputs of --check-each")
    add(
        "--check-sizes",
        action="append",
        default=[],
        metavar="SIZES",
        help="sizes of symbols for --check-each: n=8,m=16",
    )
    add(
        "--check-with",
        default="",
        metavar="COMMAND",
        help="run a pass of MLIR, 'mlir-opt --cse' say, over a file of MLIR or over what --emit=linalg or scf writes, "
        "and compare results before and after; the output is the command's",
    )
    add(
        "--stop-after",
        type=_count,
        metavar="N",
        help="let the passes make N rewrites in all; --list-passes says what one is, --remarks which is the last",
    )
    add(
        "--verify-diagnostics",
        action="store_true",
        help="check '// expected-error {{...}}' comments; without any, print the error and exit 0",
    )
    add(
        "--split-input-file",
        nargs="?",
        const=SEPARATOR,
        default="",
        metavar="MARKER",
        help=f"treat the parts between lines with MARKER as files of their own (default: '{SEPARATOR}')",
    )
    add("--output-split-marker", default=SEPARATOR, metavar="MARKER", help="the line between the results of the parts")
    add(
        "--no-implicit-module",
        dest="implicit_module",
        action="store_false",
        help="read a builtin.module, and add none around other ops",
    )
    add(
        "--allow-unregistered-dialect",
        dest="allow_unregistered",
        action="store_true",
        help="accept ops of unknown dialects",
    )
    add("--debug", action="store_true", help="a traceback with an error")
    add(
        "--error-format",
        choices=("text", "json"),
        default="text",
        help="json: an error is an object with its code, message and reproducer (on standard error)",
    )
    group = parser.add_argument_group("reproducers")
    add = group.add_argument
    add(
        "--crash-reproducer",
        "--mlir-pass-pipeline-crash-reproducer",
        default="",
        metavar="FILE",
        help="if a pass fails, write the IR before it and the rest of the pipeline to FILE (.mlir)",
    )
    add(
        "--local-reproducer",
        "--mlir-pass-pipeline-local-reproducer",
        action="store_true",
        help="write the failing pass alone rather than the pipeline from it",
    )
    add(
        "--reproducer-weights",
        choices=("auto", "elide", "keep"),
        default="auto",
        help="weights of more than 64 elements in the reproducer (default: kept if it does not fail without them)",
    )
    add(
        "--run-reproducer",
        action="store_true",
        help="run the pipeline of a reproducer, with its machine, sizes and seed",
    )
    group = parser.add_argument_group("about")
    lists: dict[str, Any] = {"nargs": "?", "const": "text", "default": "", "choices": ("text", "json")}
    group.add_argument("--list-passes", help="every pass: its options and what it does", **lists)
    group.add_argument("--list-pipelines", help="every named pipeline and its passes", **lists)
    group.add_argument("--show-dialects", action="store_true", help="every dialect and its class")
    group.add_argument("--dump-pass-pipeline", action="store_true", help="print the pipeline, with all names expanded")
    group.add_argument("--list-fusion-authors", action="store_true", help="every fusion author and its options")
    group.add_argument("--list-schedule-authors", action="store_true", help="every schedule author and its options")
    group.add_argument("--version", action="version", version=f"igniter-opt {__version__}")
    for name in pass_names:
        parser.add_argument(
            f"--{name}", nargs="?", const="", action=_AppendPass, dest="pipeline", help=argparse.SUPPRESS
        )
    return parser


def _form(text: str) -> str:
    """Returns a value of `--emit`; an error names the tool that writes libraries' files."""
    if text in ("obj", "library"):
        what = "--emit=obj -o FILE.o" if text == "obj" else "-o FOLDER"
        raise argparse.ArgumentTypeError(f"igniter-opt writes text, and no {text}: igniter compile MODEL {what}")
    return text


def _pass_flags(args: Sequence[str]) -> list[str]:
    """Returns the passes with flags: Igniter's own, and those of installed packages if a flag is none of these."""
    names = list(PASSES)
    known = {action for a in build_parser()._actions for action in a.option_strings}
    flags = [f"--{a.partition('=')[0].lstrip('-')}" for a in args if a.startswith("-") and len(a) > 2]
    if any(f not in known and f[2:] not in PASSES for f in flags):
        names = list(all_passes())
    return names


def run(args: Sequence[str], stdin: IO[bytes], stdout: IO[str], stderr: IO[str]) -> int:
    """Runs `igniter-opt` with `args` on the given streams; returns the exit status."""
    plugins = values_of((LOAD, *(name for name, flag in FLAGS.items() if flag.use == LOAD)), args)
    if not plugins:
        return _run(args, stdin, stdout, stderr)
    with named(plugins):
        forget_packages()
        try:
            installed()  # One that cannot be loaded is an error, used or not.
            return _run(args, stdin, stdout, stderr)
        except IgniterError as error:
            _print_error(error, args, stderr)
            return error.exit_status
        finally:
            forget_packages()


def _print_error(error: IgniterError, args: Sequence[str], stderr: IO[str]) -> None:
    """Prints an error from before the run, in the form that the command line asks for."""
    if values_of(("--error-format",), args)[-1:] == ["json"]:
        print(json.dumps({"error": {"code": error.code, "message": str(error)}}), file=stderr)
        return
    print(f"igniter-opt: error: {error}", file=stderr)


def _run(args: Sequence[str], stdin: IO[bytes], stdout: IO[str], stderr: IO[str]) -> int:
    try:
        parser = build_parser(_pass_flags(args))
        arguments, notes = translated(two_dashes(args, {*long_options(parser), *FLAGS}))
        described = described_name(arguments)
        if described:
            stdout.write(load("igniter.tools.describing:help_of")(described))
            return 0
        parsed = parser.parsed(arguments, FLAGS)
    except IgniterError as error:
        _print_error(error, args, stderr)
        return 2
    for note in notes:
        print(f"igniter-opt: note: {note}", file=stderr)
    listed = next((name for name in LISTS if getattr(parsed, name)), None)
    if listed is not None:
        form = getattr(parsed, listed)
        load(f"igniter.tools.listing:{listed}")(stdout, form if isinstance(form, str) else "text")
        return 0
    values = {name: getattr(parsed, name) for name in OptOptions.__dataclass_fields__ if hasattr(parsed, name)}
    values["pipeline"] = joined(parsed.pipeline or [])
    values["watch"] = WatchOptions(**{name: getattr(parsed, name) for name in WatchOptions.__dataclass_fields__})
    from igniter.tools.opt_driver import OptDriver

    return OptDriver(OptOptions(**values), stdin, stdout, stderr).run()


def complete() -> None:
    """Answers a shell's completion request for a command line of `igniter-opt`."""
    from igniter.tools.completion.opt import answer

    respond(sys.argv[1:], partial(answer, build_parser()))


def main() -> None:
    """Runs the console script."""
    if REQUEST in os.environ:
        complete()
        return
    try:
        status = run(sys.argv[1:], sys.stdin.buffer, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe; Python would report an error when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)


if __name__ == "__main__":
    main()
