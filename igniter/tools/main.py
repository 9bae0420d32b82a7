"""The `igniter` command: the options of each subcommand. `igniter.tools.cli` implements them, imported when they
run."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

from igniter._version import __version__
from igniter.tools import commands
from igniter.tools.cli.output import reported
from igniter.tools.commands.options import (
    Atol,
    Budget,
    CompileTarget,
    Database,
    Debug,
    Inputs,
    Json,
    Machine,
    Reference,
    Rtol,
    Seed,
    Shapes,
    Target,
    Threads,
)
from igniter.tools.completion import REQUEST
from igniter.tools.completion.values import fusion_authors, pipeline, targets
from igniter.tools.watch import watched

app = typer.Typer(
    help="Compile ONNX models to native kernels that stock ONNX Runtime runs.",
    no_args_is_help=True,
    # Typer's own adds options and imports to every start; `igniter.tools.completion` calls typer on a shell's request.
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Precision(StrEnum):
    """`igniter.transforms.onnx.lower_precision.PRECISIONS`, as a choice of the command line."""

    f32 = "f32"
    bf16 = "bf16"
    int8_dynamic = "int8-dynamic"


class Tiles(StrEnum):
    """`WINOGRAD` of `igniter.compiler.compilation` and `FILTERS` of `igniter.dialects.onnx.ops.minimal_filters`."""

    off = "off"
    auto = "auto"
    on = "on"
    two = "2"
    four = "4"

    @property
    def option(self) -> int | str:
        """Returns the value for `CompileOptions`."""
        return int(self.value) if self.value.isdigit() else self.value


class Level(StrEnum):
    """The values of `--emit`."""

    onnx = "onnx"
    fusion = "fusion"
    loop = "loop"
    scheduled = "scheduled"
    llvm = "llvm"
    asm = "asm"
    obj = "obj"
    library = "library"


class Failure(StrEnum):
    """The kinds of failure for `igniter reduce`."""

    wrong = "wrong"
    crash = "crash"
    refusal = "refusal"
    timeout = "timeout"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"igniter {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compile ONNX models to native kernels for stock ONNX Runtime."""


@app.command()
def compile(
    model: Annotated[str, typer.Argument(help="The ONNX model.")],
    output: Annotated[
        str, typer.Option("-o", "--output", help="The folder, or the file of --emit.", show_default=False)
    ] = "",
    target: CompileTarget = "native",
    machine: Machine = "",
    precision: Annotated[
        Precision, typer.Option(help="What products with weights are computed in. All but f32 change the results.")
    ] = Precision.f32,
    winograd: Annotated[
        Tiles,
        typer.Option(
            help="Convolutions of 3 x 3 in tiles, which changes the results by rounding: auto where that is faster, 2 "
            "or 4 the same in no larger tiles, on wherever it can be."
        ),
    ] = Tiles.auto,
    fusion_author: Annotated[
        str,
        typer.Option(
            "--fusion-author",
            help="Who decides what is fused, NAME or NAME{option=value}.",
            autocompletion=fusion_authors,
            show_default=False,
        ),
    ] = "",
    emit: Annotated[Level, typer.Option(help="Stop at this level and print it.")] = Level.library,
    explain: Annotated[
        bool, typer.Option(help="Say what was fused and what stopped the biggest missed fusions.")
    ] = False,
    sizes: Annotated[
        str,
        typer.Option(
            help="What symbolic dims typically are, batch=1,seq=128: chosen for, not fixed.", show_default=False
        ),
    ] = "",
    bind_dim: Annotated[
        list[str] | None,
        typer.Option(
            "--bind-dim",
            metavar="DIM=DIM",
            help="Make a dim equal to another before compiling: s84=s13, total=past+seq. May be repeated.",
            show_default=False,
        ),
    ] = None,
    remarks: Annotated[bool, typer.Option(help="Say what every pass did to every node.")] = False,
    verify: Annotated[bool, typer.Option(help="Compare the result with ONNX Runtime on the original.")] = True,
    load: Annotated[
        bool, typer.Option(help="Load the result in ONNX Runtime, verified or not; one that it refuses is an error.")
    ] = True,
    shape: Shapes = None,
    inputs: Inputs = "",
    rtol: Rtol = None,
    atol: Atol = 0.0,
    seed: Seed = 0,
    budget: Budget = 30.0,
    cache: Annotated[bool, typer.Option(help="Use kernels and results of earlier runs.")] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail where a node would be left to ONNX Runtime for want of a kernel.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Have programs note the time, for `igniter bench --profile`.")
    ] = False,
    sanitize: Annotated[
        bool, typer.Option("--sanitize", help="Check every access of a kernel at run time: slow, to look for bugs.")
    ] = False,
    provider: Annotated[
        str,
        typer.Option(
            help="ONNX Runtime's execution provider of GPU kernels, in the place of CUDAExecutionProvider.",
            show_default=False,
        ),
    ] = "",
    tuned: Annotated[bool, typer.Option("--tuned", help="Use the schedules that `igniter tune` found.")] = False,
    db: Database = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compile a model to a folder: the rewritten model, its kernels in a library, and a report."""
    from igniter.tools.cli.compile import CompileRequest, run
    from igniter.tools.cli.output import InputRequest

    with reported(debug, json):
        run(
            CompileRequest(
                model,
                output,
                target,
                precision.value,
                emit.value,
                explain,
                remarks,
                json,
                verify,
                cache,
                strict,
                sanitize,
                InputRequest(tuple(shape or ()), inputs, rtol, atol, seed, budget),
                profile,
                sizes,
                fusion_author,
                machine,
                tuned,
                db,
                winograd.option,
                provider,
                load,
                tuple(bind_dim or ()),
            )
        )


@app.command()
def verify(
    artifact: Annotated[str, typer.Argument(help="The folder that `igniter compile` made.")],
    reference: Reference = "",
    shape: Shapes = None,
    inputs: Inputs = "",
    rtol: Rtol = None,
    atol: Atol = 0.0,
    seed: Seed = 0,
    budget: Budget = 30.0,
    every_value: Annotated[
        bool, typer.Option("--every-value", help="Compare each region on the inputs that its nodes get.")
    ] = False,
    threads: Threads = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare a compiled model with ONNX Runtime on the original, at several shapes."""
    from igniter.tools.cli.output import InputRequest
    from igniter.tools.cli.verify import EXIT_CODES, run, run_every_value

    with reported(debug, json):
        asked = InputRequest(tuple(shape or ()), inputs, rtol, atol, seed, budget)
        status = (run_every_value if every_value else run)(artifact, reference, asked, threads, json)
        code = EXIT_CODES[status]
        if code:
            raise typer.Exit(code)


@app.command()
def bench(
    model: Annotated[str, typer.Argument(help="An ONNX model, or the folder that `igniter compile` made.")],
    reference: Reference = "",
    shape: Shapes = None,
    inputs: Inputs = "",
    rtol: Rtol = None,
    atol: Atol = 0.0,
    seed: Seed = 0,
    threads: Threads = 1,
    rounds: Annotated[int, typer.Option(min=1, help="How often each system gets its turn.")] = 7,
    sweep: Annotated[
        list[str] | None,
        typer.Option(help="Every choice of these sizes, 'batch=1,8 seq=64,128'; may be repeated, a dim each."),
    ] = None,
    csv: Annotated[str, typer.Option("--csv", help="Write the table to this file.", show_default=False)] = "",
    target: Target = "native",
    spinning: Annotated[bool, typer.Option(help="Let ONNX Runtime's threads spin between ops.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Time every kernel of the compiled model instead.")
    ] = False,
    trace: Annotated[
        str,
        typer.Option(help="Write the profile as a trace that Chrome and Perfetto show.", show_default=False),
    ] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Time a model in ONNX Runtime before and after, in turns, each in its own process."""
    from igniter.errors import IgniterError
    from igniter.tools.cli.bench import BenchRequest, run
    from igniter.tools.cli.output import InputRequest

    with reported(debug, json):
        asked = InputRequest(tuple(shape or ()), inputs, rtol, atol, seed)
        if profile or trace:
            if sweep or csv:
                raise IgniterError("--sweep and --csv are for times of whole models: leave out --profile and --trace")
            from igniter.tools.cli.bench_profile import run as run_profile

            run_profile(model, reference, asked, threads, target, spinning, trace, json)
            return
        request = BenchRequest(
            model, reference, asked, threads, rounds, target, spinning, json, tuple(sweep or ()), csv
        )
        if not run(request):
            raise typer.Exit(1)


@app.command()
def kernel(
    model: Annotated[str, typer.Argument(help="An ONNX model, or IR (.mlir).")],
    name: Annotated[
        str, typer.Option("--kernel", help="The kernel's name, where there are several.", show_default=False)
    ] = "",
    schedule: Annotated[
        list[str] | None,
        typer.Option("--schedule", help="IR with the same kernel, scheduled another way; may be repeated."),
    ] = None,
    sizes: Annotated[
        str, typer.Option(help="Sizes of symbols, n=8,m=16; those not given are 64.", show_default=False)
    ] = "",
    target: Target = "native",
    machine: Machine = "",
    threads: Annotated[int, typer.Option(min=1, help="Threads of the kernel.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="How often each schedule gets its turn.")] = 9,
    seed: Seed = 0,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Write the kernel with its schedule here.", show_default=False)
    ] = "",
    asm: Annotated[bool, typer.Option("--asm", help="Print the inner loop's assembly.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Verify one kernel, time schedules of it in turns, and analyse its code."""
    from igniter.tools.cli.kernel import run

    with reported(debug, json):
        run(model, name, schedule or (), sizes, target, machine, threads, rounds, seed, output, asm, json)


@app.command()
def view(
    model: Annotated[str, typer.Argument(help="An ONNX model, or IR (.mlir) with a graph or scheduled kernels.")],
    output: Annotated[
        str,
        typer.Option("-o", "--output", help="The file to write: .html, or .dot for Graphviz.", show_default=False),
    ] = "",
    kernel: Annotated[str, typer.Option(help="Show this kernel alone.", show_default=False)] = "",
    sizes: Annotated[
        str, typer.Option(help="Sizes of symbols, n=8,m=16; those not given are 64.", show_default=False)
    ] = "",
    target: Target = "native",
    debug: Debug = False,
) -> None:
    """Draw regions over the graph, the loops of kernels, and their buffers over time."""
    from igniter.tools.cli.view import run

    with reported(debug, False):
        run(model, output, kernel, sizes, target)


@app.command()
def machine(
    target: Target = "native",
    machine: Machine = "",
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure this machine, some 20 seconds, and show that beside the model.")
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", help="Write the model here, for --machine of other commands.", show_default=False
        ),
    ] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the machine model of schedules, and the source of each figure."""
    from igniter.tools.cli.machine import run

    with reported(debug, json):
        run(target, machine, measure, output, json)


@app.command()
def reduce(
    model: Annotated[str, typer.Argument(help="An ONNX model, or IR (.mlir) of any level.")],
    check: Annotated[
        Failure | None,
        typer.Option(help="How it has to fail: whatever the input does where this is left out.", show_default=False),
    ] = None,
    check_command: Annotated[
        str,
        typer.Option(help="Instead: a command that exits with 0 while the file {} is interesting.", show_default=False),
    ] = "",
    message: Annotated[str, typer.Option(help="What the error has to contain.", show_default=False)] = "",
    passes: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--passes",
            help="The pipeline that fails, rather than the whole compile.",
            autocompletion=pipeline,
            show_default=False,
        ),
    ] = None,
    at_pass: Annotated[bool, typer.Option("--at-pass", help="Reduce the IR in front of the pass that fails.")] = False,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="Name the first rewrite of a pass that makes the result fail.")
    ] = False,
    output: Annotated[
        str, typer.Option("-o", "--output", help="The file for the best found so far.", show_default=False)
    ] = "",
    timeout: Annotated[float, typer.Option(help="Seconds that a candidate may take.")] = 60.0,
    target: Annotated[
        str,
        typer.Option(
            help="The CPU that is compiled for, or that passes work for.", autocompletion=targets, show_default=False
        ),
    ] = "",
    seed: Seed = 0,
    strict: Annotated[bool, typer.Option("--strict", help="A node without a kernel is a refusal.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Shrink a failing model, kernel or pipeline while it still fails in the same way."""
    from igniter.toolbox.reduce.reducer import ReduceOptions
    from igniter.tools.cli.reduce import run

    with reported(debug, json):
        how = "" if check is None else check.value
        options = ReduceOptions(how, check_command, message, passes, target, timeout, seed, strict, at_pass, bisect)
        run(model, output, options, json)


@app.command()
def tune(
    model: Annotated[str, typer.Argument(help="An ONNX model, or IR (.mlir).")],
    name: Annotated[str, typer.Option("--kernel", help="This kernel alone.", show_default=False)] = "",
    sizes: Annotated[
        str, typer.Option(help="Sizes of symbols, n=8,m=16; those not given are 64.", show_default=False)
    ] = "",
    seconds: Annotated[float, typer.Option("--budget", min=1, help="Seconds for all kernels.")] = 600.0,
    trials: Annotated[int, typer.Option(min=0, help="Candidates of a kernel; 0: no limit.")] = 0,
    patience: Annotated[int, typer.Option(min=0, help="Candidates of a kernel since the best one; 0: no limit.")] = 32,
    limit: Annotated[float, typer.Option(min=1, help="Seconds for one candidate.")] = 60.0,
    db: Database = "",
    ray: Annotated[
        str | None,
        typer.Option(help="Spread candidates over this Ray cluster; auto: the one of this machine; local: a new one."),
    ] = None,
    target: Target = "native",
    threads: Annotated[int, typer.Option(min=1, help="Threads of the kernels.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="How often a candidate and the best get their turns.")] = 9,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Search faster schedules for kernels, by measuring, and keep them in a database for `compile --tuned`."""
    from igniter.tools.cli.tune import TuneRequest, run

    with reported(debug, json):
        asked = TuneRequest(
            model, name, sizes, seconds, trials, patience, limit, db, ray, target, threads, rounds, seed, json
        )
        if run(asked):
            # The usual status of a command ended by Ctrl-C.
            raise typer.Exit(130)


@app.command()
def inspect(
    path: Annotated[str, typer.Argument(help="A compiled model's folder, a library, or an ONNX model.")],
    everything: Annotated[bool, typer.Option("--all", help="Print all that is known, and not a summary.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the contents of a model, a compiled model or a library."""
    from igniter.tools.cli.inspect import run

    with reported(debug, json):
        run(path, everything, json)


@app.command()
def demo(
    output: Annotated[
        str, typer.Option("-o", "--output", help="Keep the compiled model here.", show_default=False)
    ] = "",
    layers: Annotated[int, typer.Option(min=1, help="Layers of the model.")] = 24,
    sequence: Annotated[int, typer.Option(min=1, help="The sequence length that is timed.")] = 32,
    threads: Threads = 1,
    rounds: Annotated[int, typer.Option(min=1, help="How often each system gets its turn.")] = 7,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compile a MobileBERT-shaped model made on the spot, verify it, and time it beside ONNX Runtime."""
    from igniter.tools.cli.demo import run

    with reported(debug, json):
        run(output, layers, sequence, threads, rounds, json)


commands.add_to(app)


def complete() -> None:
    """Answers a shell's completion request for a command line of `igniter`."""
    from functools import partial

    from igniter.tools.completion import answer_for, respond

    respond(sys.argv[1:], partial(answer_for, typer.main.get_command(app)))


def main() -> None:
    """Runs the console script."""
    if REQUEST in os.environ:
        complete()
        return
    watched(sys.argv[1:])
    app()


if __name__ == "__main__":
    main()
