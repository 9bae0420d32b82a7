"""The inputs for timing a model: those of a file, or generated ones of given sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from igniter.toolbox.options import InputRequest
from igniter.verification.given import read_inputs
from igniter.verification.graph_facts import model_facts
from igniter.verification.original import Original
from igniter.verification.verify import typical_inputs


def inputs_for(
    original: str | bytes, case: Mapping[str, int], asked: InputRequest
) -> tuple[dict[str, int], dict[str, Any]]:
    """Returns sizes for all symbolic dims (sizes missing in `case` are chosen), and inputs of these sizes; inputs of a
    file keep their own sizes."""
    source = Original(original, options={"intra_op_num_threads": 1})
    if asked.inputs:
        return {}, read_inputs(asked.inputs, [value.name for value in source.session.get_inputs()])[0]
    return typical_inputs(source, model_facts(original), case, asked.seed)
