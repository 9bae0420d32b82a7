"""The `ort.op` of a scheduled kernel: all that a descriptor says is in the signature of the `loop.func`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from igniter.dialects.loop import FuncOp
from igniter.dialects.ort import OpOp, Port
from igniter.dialects.sym import dims_of, element_of


def describe_kernel(
    func: FuncOp,
    name: str,
    *,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    reuses: Mapping[int, int] | None = None,
) -> OpOp:
    """The custom op called `name` that `func` computes.

    Inputs and outputs are called by the names given, else by those of the func's buffers, else by their position.
    `reuses` maps an output to the input whose memory it may take: only for a kernel that was made for that.
    """
    args = func.block.args
    split = len(args) - func.output_count
    ports: list[Port] = []
    for i, arg in enumerate(args):
        group, index = (input_names, i) if i < split else (output_names, i - split)
        fallback = arg.name_hint or (f"input{index}" if i < split else f"output{index}")
        called = group[index] if index < len(group) else fallback
        reused = (reuses or {}).get(index) if i >= split else None
        ports.append(Port(called, element_of(arg.type), dims_of(arg.type), reuses=reused))
    return OpOp(name, func.sym_name.data, func.symbol_names, ports[:split], ports[split:], func.scratch_bytes)
