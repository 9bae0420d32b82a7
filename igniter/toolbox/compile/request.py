"""The arguments and options of `igniter compile`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.options import DEFAULT_INPUTS, CompileTarget, Database, InputRequest, Json, Machine
from igniter.toolbox.request import Argument, Option, Request

FOR_MLIR = {
    "linalg": "igniter-opt writes 'linalg': igniter-opt MODEL -p cpu-onnx,cpu-fusion,cpu-loop --emit=linalg",
    "scf": "igniter-opt writes 'scf': igniter-opt MODEL -p cpu --emit=scf",
}
"""The forms of MLIR, which igniter-opt writes at any level."""


@dataclass(frozen=True)
class CompileRequest(Request):
    """Compile a model to native kernels for ONNX Runtime.

    The result is a folder: the rewritten model, its kernels in a library, and a report.
    """

    model: Annotated[str, Argument("The ONNX model.")]
    output: Annotated[str, Option("The folder, or the file of --emit.", "-o", "--output")] = ""
    target: CompileTarget = "native"
    machine: Machine = ""
    precision: Annotated[
        Literal["f32", "bf16", "int8-dynamic"],
        Option("The type that matrix products are computed in. All but f32 change the results."),
    ] = "f32"
    winograd: Annotated[
        Literal["off", "auto", "on", "2", "4"],
        Option(
            "Convolutions of 3 x 3 in tiles, which changes the results by rounding: auto where that is faster, "
            "2 or 4 the same in no larger tiles, on wherever it can be."
        ),
    ] = "auto"
    subnormals: Annotated[
        Literal["flush", "flush-values", "keep"],
        Option(
            "Numbers too small for a normal one, which are slow: weights written as 0 where that is harmless; values "
            "in kernels taken for 0, too, which changes such results; or all kept."
        ),
    ] = "flush"
    tile_weights: Annotated[
        Literal["load", "file"],
        Option(
            "The transformed weights of convolutions in tiles: computed whenever a session is created, or stored in "
            "the folder, where they take up to 4 times the space."
        ),
    ] = "load"
    fusion_author: Annotated[
        str,
        Option("Who decides what is fused, NAME or NAME{option=value}.", "--fusion-author", completes="fusion_authors"),
    ] = ""
    passes: Annotated[
        str,
        Option("Edit the pipeline: 'cpu with PASS{option=1} after NAME', '... before NAME', 'without NAME'."),
    ] = ""
    emit: Annotated[
        Literal["onnx", "fusion", "loop", "scheduled", "llvm", "asm", "obj", "library"],
        Option("Stop at this level and print it.", elsewhere=FOR_MLIR),
    ] = "library"
    explain: Annotated[bool, Option("Say what was fused and what stopped the biggest missed fusions.")] = False
    sizes: Annotated[str, Option("What symbolic dims typically are, batch=1,seq=128: chosen for, not fixed.")] = ""
    bind_dim: Annotated[
        tuple[str, ...],
        Option(
            "Make a dim equal to another before compiling: s84=s13, total=past+seq. May be repeated.",
            "--bind-dim",
            metavar="DIM=DIM",
        ),
    ] = ()
    remarks: Annotated[bool, Option("Say what every pass did to every node.")] = False
    pass_timing: Annotated[
        bool, Option("Say how long each pass took, those of each kernel included.", "--pass-timing")
    ] = False
    verify: Annotated[bool, Option("Compare the result with ONNX Runtime on the original.")] = True
    load: Annotated[
        bool, Option("Load the result in ONNX Runtime, verified or not; one that it refuses is an error.")
    ] = True
    measure: Annotated[
        bool,
        Option(
            "Time every region beside ONNX Runtime on this machine, and leave to it those without which the model is "
            "faster. Outcomes are cached.",
            "--measure",
        ),
    ] = False
    measure_again: Annotated[
        bool, Option("Like --measure, without the outcomes of earlier runs.", "--measure-again")
    ] = False
    threads: Annotated[
        int, Option("ONNX Runtime's threads within an op, for --measure; 0 leaves it to ONNX Runtime.", min=0)
    ] = 1
    given: InputRequest = DEFAULT_INPUTS
    cache: Annotated[bool, Option("Use kernels and results of earlier runs.")] = True
    strict: Annotated[
        bool,
        Option(
            "Fail where a node would be left to ONNX Runtime for want of a kernel, or a plug-in's rule raises.",
            "--strict",
        ),
    ] = False
    profile: Annotated[bool, Option("Have programs note the time, for `igniter bench --profile`.", "--profile")] = False
    sanitize: Annotated[
        bool, Option("Check every access of a kernel at run time: slow, to look for bugs.", "--sanitize")
    ] = False
    debug_info: Annotated[
        bool,
        Option(
            "Name the ONNX nodes of each kernel in the library (DWARF), for debuggers and profilers.", "--debug-info"
        ),
    ] = False
    max_memory: Annotated[
        str,
        Option(
            "End the compile with an error if it takes more memory: 2G, 500M. It then runs in a process of its own.",
            "--max-memory",
            metavar="SIZE",
        ),
    ] = ""
    max_seconds: Annotated[
        float, Option("End the compile with an error if it takes longer; 0 sets no bound.", "--max-seconds", min=0)
    ] = 0.0
    provider: Annotated[
        str, Option("ONNX Runtime's execution provider of GPU kernels, in the place of CUDAExecutionProvider.")
    ] = ""
    genai: Annotated[
        bool, Option("Write genai_config.json and the tokenizer, so that onnxruntime-genai runs the folder.", "--genai")
    ] = False
    genai_set: Annotated[
        tuple[str, ...],
        Option(
            "What the files beside the model do not say: eos_token_id=2, context_length=2048, type=llama.",
            "--genai-set",
            metavar="KEY=VALUE",
        ),
    ] = ()
    tuned: Annotated[bool, Option("Use the schedules that `igniter tune` found.", "--tuned")] = False
    db: Database = ""
    json: Json = False
