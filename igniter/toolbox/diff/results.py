"""Two models on the same inputs in ONNX Runtime: ONNX files, their bytes, or folders made by `igniter compile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.frontend import surgery
from igniter.frontend.ort_values import typed
from igniter.runtime.session import make_session
from igniter.verification.given import read_inputs
from igniter.verification.graph_facts import GraphFacts, model_facts
from igniter.verification.original import Original
from igniter.verification.report import Verification
from igniter.verification.verify import BUDGET_SECONDS, Candidate, VerifyOptions, verify_models


def compare_models(
    a: str | Path | bytes,
    b: str | Path | bytes,
    *,
    shapes: Sequence[Mapping[str, int]] | None = None,
    inputs: str | Path | None = None,
    rtol: float | None = None,
    atol: float = 0.0,
    seed: int = 0,
    budget: float | None = None,
) -> Verification:
    """Runs `b` beside `a`, as `Artifact.verify` runs a compiled model beside its original.

    Raises `IgniterError` if the names of inputs or outputs differ.
    """
    if _is_folder(a):
        original = Original(session=Artifact.load(_path(a)).session(log_severity_level=4))
        facts = GraphFacts()
    else:
        original, facts = Original(a if isinstance(a, bytes) else str(a)), model_facts(a)
    feeds: list[dict[str, Any]] | None = None
    if inputs is not None:
        names = [v.name for v in original.session.get_inputs()]
        feeds = [typed(original.session, feed) for feed in read_inputs(inputs, names)]
    options = VerifyOptions(feeds, shapes, rtol, atol, seed, BUDGET_SECONDS if budget is None else budget)
    candidate = Candidate(lambda threads, cut: _session(b, threads, cut))
    _require_same_names(original.session, candidate.session())
    return verify_models(original, candidate, facts, options)


def _session(model: str | Path | bytes, threads: int, cut: Mapping[str, Any]) -> Any:
    options: dict[str, Any] = {"log_severity_level": 4}
    if threads:
        options.update(intra_op_num_threads=threads, config={"session.intra_op.allow_spinning": "0"})
    if _is_folder(model):
        if cut:
            raise IgniterError("a compiled model with random nodes is compared by `igniter verify`")
        return Artifact.load(_path(model)).session(**options)
    if not cut:
        return Original(model if isinstance(model, bytes) else str(model), options=options).session
    proto, folder = surgery.read_proto(model if isinstance(model, bytes) else str(model))
    if folder:
        options["config"] = {
            **options.get("config", {}),
            "session.model_external_initializers_file_folder_path": folder,
        }
    return make_session(surgery.with_inputs(proto, cut).SerializeToString(), **options)


def _require_same_names(a: Any, b: Any) -> None:
    for what in ("inputs", "outputs"):
        mine, theirs = ([v.name for v in getattr(s, f"get_{what}")()] for s in (a, b))
        if mine != theirs:
            raise IgniterError(
                f"the outputs cannot be compared: A has the {what} {', '.join(mine) or 'none'}, and B has "
                f"{', '.join(theirs) or 'none'}"
            )


def _is_folder(model: str | Path | bytes) -> bool:
    return not isinstance(model, bytes) and Path(model).is_dir()


def _path(model: str | Path | bytes) -> Path:
    assert not isinstance(model, bytes)
    return Path(model)
