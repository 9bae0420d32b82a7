"""The intermediate models of a quantisation: written to a folder, with weights in a file beside them, and opened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.structure import main_graph
from igniter.frontend import save_model
from igniter.frontend.surgery import read_proto, with_outputs
from igniter.runtime.session import SessionError, make_session
from igniter.toolbox.quantize.calibration.calibrate import Observation, observe
from igniter.toolbox.quantize.calibration.errors import (
    LayerError,
    OutputErrors,
    Samples,
    compare_outputs,
    layer_errors,
    probes,
)
from igniter.toolbox.quantize.quantization_plan import Candidate, candidates, value_name
from igniter.toolbox.quantize.quantize_model import WITH_RESULTS, Ranges, Style, coded_result, quantize

EXACT = {"session.x64quantprecision": "1"}
"""The setting for exact products: without it, on x86-64 without VNNI, ONNX Runtime multiplies u8 by i8 in saturating 16
bits."""

CALM = {"session.intra_op.allow_spinning": "0"}
"""The setting against spinning threads: runs are short, and spinning would slow the work between them."""

FATAL = 4
"""The least severity of ONNX Runtime's log, for expected failures."""


@dataclass(frozen=True)
class Workbench:
    """The nodes to quantise and their style, the given float model, and the folder for files."""

    reference: Any
    folder: Path
    style: Style
    ops: tuple[str, ...]
    only: tuple[str, ...]
    leave: tuple[str, ...]

    def candidates(self, module: ModuleOp) -> list[Candidate]:
        """Returns the nodes to quantise."""
        return candidates(module, self.ops, self.only, self.leave)

    def values(self, module: ModuleOp) -> list[str]:
        """Returns the values in need of ranges: factors, and results of convolutions."""
        graph = main_graph(module)
        found: dict[str, None] = {}
        for candidate in self.candidates(module):
            for index in candidate.computed:
                found[value_name(candidate.op.operands[index], graph)] = None
            if candidate.op.op_type in WITH_RESULTS:
                found[value_name(coded_result(candidate.op), graph)] = None
        return [name for name in found if name]

    def observe(
        self, module: ModuleOp, samples: Samples, progress: Callable[[str], None] = lambda _: None
    ) -> Observation:
        """Returns histograms of these values."""
        names = self.values(module)
        return observe(self.session(module, "seen", names), names, samples, progress)

    def layers(self, module: ModuleOp, ranges: Ranges, samples: Samples) -> list[LayerError]:
        """Returns each node's own error."""
        copy = module.clone()
        nodes = self.candidates(copy)
        names = probes(copy, nodes, ranges, self.style)
        session = self.session(copy, "probes", [n for each in names for n in each])
        return layer_errors(session, nodes, names, samples)

    def errors(
        self,
        module: ModuleOp,
        ranges: Ranges,
        samples: Sequence[Samples],
        shifts: Mapping[str, Any] | None = None,
        floats: Collection[str] = (),
    ) -> list[OutputErrors]:
        """Returns the errors of the outputs over several sets of samples."""
        copy = module.clone()
        quantize(copy, [c for c in self.candidates(copy) if c.name not in floats], ranges, self.style, shifts)
        session = self.session(copy, "quantized")
        return [compare_outputs(self.reference, session, each) for each in samples]

    def session(self, module: ModuleOp, name: str, outputs: Sequence[str] = ()) -> Any:
        """Creates a session of a module with more outputs."""
        path = save(module, self.folder / f"{name}.onnx")
        if outputs:
            proto, _ = read_proto(str(path))
            present = {output.name for output in proto.graph.output}
            with_more = with_outputs(proto, [n for n in outputs if n not in present])
            path.write_bytes(with_more.SerializeToString())
        return open_exactly(path)


def save(module: ModuleOp, path: Path) -> Path:
    """Writes a module with its weights in a file beside it."""
    save_model(module, path, external_data_threshold=1024)
    return path


def open_exactly(path: Path) -> Any:
    """Creates a session with exact products, if possible."""
    try:
        return make_session(path, config={**EXACT, **CALM}, log_severity_level=FATAL)
    except SessionError:
        # With this setting ONNX Runtime 1.32 refuses a weight dequantised by two nodes: it adds the weight twice. Nodes
        # are then computed one by one, in float.
        return make_session(path, config={**CALM, "session.disable_quant_qdq": "1"}, log_severity_level=3)


__all__ = ["EXACT", "Workbench", "open_exactly", "save"]
