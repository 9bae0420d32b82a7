"""The options of several verbs, and the group of options for inputs and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from igniter.errors import IgniterError
from igniter.toolbox.output import parse_shapes
from igniter.toolbox.request import Option

Json = Annotated[bool, Option("Print JSON and nothing else on standard output.", "--json")]
Csv = Annotated[str, Option("Write the table to this file.", "--csv")]
CompileTarget = Annotated[
    str,
    Option(
        "The CPU, the GPUs, or both: native, x86-64-v3, znver4, aarch64+dotprod, cuda, native,cuda, ...",
        "--target",
        completes="targets",
    ),
]
Target = Annotated[
    str, Option("The CPU: native, x86-64-v3, znver4, aarch64, aarch64+dotprod, ...", completes="targets")
]
Machine = Annotated[
    str, Option("Figures of the machine in the place of the target's own: a file that `igniter machine -o` wrote.")
]
Seed = Annotated[int, Option("Of the random inputs.")]
Threads = Annotated[int, Option("ONNX Runtime's threads within an op; 0 leaves it to ONNX Runtime.", min=0)]
Rounds = Annotated[int, Option("How often each system gets its turn.", min=1)]
Database = Annotated[str, Option("The database of tuned schedules; beside the cache by default.", "--db")]
Reference = Annotated[str, Option("The original model, where the folder does not know it.")]
WholeModel = Annotated[str, Option("Compare with this model, the whole one.")]
KernelSizes = Annotated[str, Option("Sizes of symbols, n=8,m=16; those not given are 64.")]
KeepWeights = Annotated[
    bool,
    Option(
        "Refer to the files of external data that the model has, where they are in the folder of the output.",
        "--keep-weights/--copy-weights",
    ),
]
Only = Annotated[
    tuple[str, ...], Option("Only what has this name or op (* and ? stand for any); may be repeated.", "--only")
]
Except = Annotated[tuple[str, ...], Option("What stays as it is, named likewise; may be repeated.", "--except")]


Shapes = Annotated[
    tuple[str, ...],
    Option("Sizes of dims, batch=1,seq=128, or an input's shape, x=1x3x8x8; may be repeated.", "--shape"),
]
Inputs = Annotated[str, Option("Inputs to use: a .npz file, or a folder with input_0.pb and so on", "--inputs")]


@dataclass(frozen=True)
class InputRequest:
    """The inputs of a run and the limits of a comparison."""

    shapes: Shapes = ()
    inputs: Inputs = ""
    rtol: Annotated[float | None, Option("The largest error allowed, relative to the largest value.")] = None
    atol: Annotated[float, Option("An error that is allowed besides, in absolute terms.")] = 0.0
    seed: Seed = 0
    budget: Annotated[float, Option("Seconds for finding sizes and comparing.")] = 30.0

    def __post_init__(self) -> None:
        require_one(self.shapes, self.inputs)

    def for_verify(self) -> dict[str, Any]:
        """Returns the arguments of `Artifact.verify`; raises `IgniterError` for a negative one."""
        for name in ("rtol", "atol", "seed", "budget"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise IgniterError(f"--{name} is {value:g}: it is not negative")
        return {
            "shapes": parse_shapes(self.shapes),
            "inputs": self.inputs or None,
            "rtol": self.rtol,
            "atol": self.atol,
            "seed": self.seed,
            # The default is mapped to the verification's own default, which has cached outcomes.
            "budget": None if self.budget == 30.0 else self.budget,
        }


def require_one(shapes: Sequence[str], inputs: str) -> None:
    """Raises `IgniterError` if sizes are given for inputs from a file, which have their own."""
    if shapes and inputs:
        raise IgniterError(f"--shape gives sizes, and the inputs of {inputs} have theirs: give --shape or --inputs")


DEFAULT_INPUTS = InputRequest()
"""Generated inputs at chosen sizes, compared within the default limits."""
