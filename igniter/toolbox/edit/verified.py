"""Checks of an edited model: it must be valid, and must agree with the original unless the edits change its outputs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.onnx.types import BY_NAME
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.frontend import import_model, save_model, why_invalid
from igniter.frontend.diagnosis import checker_says
from igniter.frontend.saving import weight_bytes
from igniter.runtime.session import SessionError
from igniter.toolbox.edit.dims import ModelDims
from igniter.toolbox.edit.edit import Edit, Interface
from igniter.verification.graph_facts import facts_of
from igniter.verification.judgement import compare_output
from igniter.verification.original import Original
from igniter.verification.report import OutputResult, plain
from igniter.verification.specs import symbols_of
from igniter.verification.verify import typical_inputs

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

MOST_BYTES = 1 << 30
"""The maximum size of a model's weights for a run: ONNX Runtime would hold them in memory twice."""
OTHER_SIZES = (2, 3)
"""The sizes to try for freed dims, besides their old size."""
TRIED_SIZE = 3
"""The default size of dims that are made equal."""


def too_big(module: ModuleOp) -> str:
    """Returns the reason why a model is too big to run beside another; "" if it is not."""
    size = weight_bytes(module)
    return (
        f"its weights are {size / 1e9:.1f} GB, and a model with more than 1 GB is not run" if size > MOST_BYTES else ""
    )


@dataclass(frozen=True)
class EditCheck:
    """The result of a check. `status` is `passed` if outputs were compared and agree, `runs` if the edited model ran
    and its outputs need not be the same, `not run` with the reason, or `differs`."""

    status: Literal["passed", "runs", "not run", "differs"]
    outputs: tuple[OutputResult, ...] = ()
    """The compared outputs, with their names in the edited model."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The sizes of the comparison."""
    reason: str = ""

    @property
    def ok(self) -> bool:
        return self.status in ("passed", "runs")

    def __bool__(self) -> bool:
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        outputs = [{"name": o.name, "max_error": o.max_error, "ok": o.ok, "reason": o.reason} for o in self.outputs]
        return plain({"status": self.status, "reason": self.reason, "sizes": self.sizes, "outputs": outputs})


def interface_of(module: ModuleOp, edits: Sequence[Edit]) -> Interface:
    """Returns the correspondence between the edited model's interface and the original `module`."""
    graph = main_graph(module)
    found = Interface({n: n for n in graph.input_names}, {n: n for n in graph.output_names})
    for edit in edits:
        edit.track(found)
    return found


def check_edits(
    edited: ModuleOp,
    source: str | Path | bytes | None,
    edits: Sequence[Edit],
    *,
    run: bool = True,
    path: str | Path | None = None,
    seed: int = 0,
    budget: float = 30.0,
) -> EditCheck:
    """Checks an edited module against the model in `source`. `path` is its existing file; without one it is written to
    a temporary file. Raises `IgniterError` if the edited model is invalid and the original is valid."""
    if source is None:
        raise IgniterError(
            "there is nothing to compare with: the model came from no file, or no longer computes what its file does"
        )
    with tempfile.TemporaryDirectory(prefix="igniter-edit-") as scratch:
        if path is None:
            path = Path(scratch) / "edited.onnx"
            save_model(edited, path)
        _require_valid(path, source)
        if not run:
            return EditCheck("not run", reason="it was not asked for")
        if why := too_big(edited):
            return EditCheck("not run", reason=f"{why}; ONNX's checker looked at it")
        given = source if isinstance(source, bytes) else str(source)
        module = import_model(given)
        return _Comparison(module, edited, given, str(path), interface_of(module, edits), seed, budget).run()


def _require_valid(path: str | Path, source: str | Path | bytes) -> None:
    for says in (checker_says, why_invalid):
        why = says(str(path))
        if why is not None and says(source if isinstance(source, bytes) else str(source)) is None:
            raise IgniterError(f"the edited model is not valid: {why}")


@dataclass
class _Comparison:
    module: ModuleOp
    edited_module: ModuleOp
    source: str | bytes
    path: str
    interface: Interface
    seed: int
    budget: float

    def run(self) -> EditCheck:
        original, edited = Original(self.source), Original(self.path)
        try:
            _ = original.session
        except SessionError as error:
            # A custom op, or an op without a kernel in ONNX Runtime: the edit is not at fault.
            return EditCheck("not run", reason=f"the original does not run: {_first(error)}")
        try:
            session = edited.session
        except SessionError as error:
            return EditCheck("differs", reason=f"ONNX Runtime does not load the edited model: {_first(error)}")
        if self.interface.different:
            reasons = " and ".join(dict.fromkeys(self.interface.different))
            return self._alone(edited, {}, f"{reasons}: its outputs are not meant to be the original's")
        if original.random_values is None or original.random_values:
            return self._alone(edited, {}, "random nodes are in it")
        try:
            sizes, feed = self._inputs(original)
        except IgniterError as error:
            return EditCheck("not run", reason=error.message)
        outputs = self._compare(original, session, feed)
        bad = next((o for o in outputs if not o.ok), None)
        if bad is not None:
            return EditCheck("differs", tuple(outputs), sizes, f"output '{bad.name}': {bad.reason}")
        for size in OTHER_SIZES if self.interface.freed else ():
            there = self._alone(edited, dict.fromkeys(self.interface.freed, size), "")
            if there.status != "runs":
                freed = ", ".join(f"{n}={size}" for n in self.interface.freed)
                return EditCheck("differs", tuple(outputs), sizes, f"it does not run at {freed}: {there.reason}")
        return EditCheck("passed", tuple(outputs), sizes)

    def _inputs(self, original: Original) -> tuple[dict[str, int], dict[str, Any]]:
        known = set(symbols_of(original.specs))
        fixed = {s: n for k, n in self.interface.sizes.items() if (s := self._symbol(k, known)) is not None}
        for dim, to in self.interface.equal:
            self._bind(fixed, known, dim, to)
        return typical_inputs(original, facts_of(self.module), fixed, self.seed, self.budget, small=True)

    def _symbol(self, text: str, known: set[str]) -> str | None:
        """Returns the name of an original's dim in an ORT session; the unnamed dim `x:0` is `x.0` there."""
        if text in known:
            return text
        place = ModelDims(self.module).place(text)
        name, _, axis = text.rpartition(":")
        symbol = place[2].symbol if place is not None and place[2] is not None else None
        candidates = [symbol or "", f"{name}.{axis}"]
        return next((n for n in candidates if n in known), None)

    def _bind(self, fixed: dict[str, int], known: set[str], dim: str, to: str) -> None:
        symbol, target = self._symbol(dim, known), Expr.parse(to)
        for name in sorted(target.symbols):
            source = self._symbol(self.interface.original_dim(name), known)
            if source is not None:
                fixed.setdefault(source, TRIED_SIZE)
        values = {n: fixed.get(self.interface.original_dim(n), TRIED_SIZE) for n in target.symbols}
        if symbol is not None:
            fixed[symbol] = target.evaluate(values)

    def _alone(self, edited: Original, sizes: Mapping[str, int], reason: str) -> EditCheck:
        """Checks only that the edited model runs."""
        try:
            found, _ = typical_inputs(edited, facts_of(self.edited_module), sizes, self.seed, self.budget, small=True)
        except IgniterError as error:
            return EditCheck("differs", reason=error.message)
        return EditCheck("runs", sizes=found, reason=reason)

    def _compare(self, original: Original, session: Any, feed: dict[str, Any]) -> list[OutputResult]:
        mine = {v.name: _dtype(v.type) for v in session.get_inputs()}
        given: dict[str, Any] = {}
        for name, dtype in mine.items():
            old: str = self.interface.inputs.get(str(name), str(name))
            value = feed.get(old)
            if value is None:
                continue
            # A sequence keeps its type.
            given[name] = value
            if dtype is not None and value.dtype != dtype:
                given[name] = value.astype(dtype)
                # The original must get the same converted value, including the rounding.
                feed[old] = given[name].astype(value.dtype)
        names = [v.name for v in session.get_outputs()]
        wanted = {n: self.interface.outputs.get(n, self.interface.original_value(n)) for n in names}
        there = set(original.output_names)
        inner = [n for n in dict.fromkeys(wanted.values()) if n not in there]
        reference = original.exposing(inner) if inner else original.session
        asked = list(dict.fromkeys(wanted.values()))
        expected = dict(zip(asked, reference.run(asked, feed), strict=True))
        found: list[OutputResult] = []
        for name, value in zip(names, session.run(names, given), strict=True):
            other = expected[wanted[name]]
            if hasattr(other, "astype") and hasattr(value, "dtype") and other.dtype != value.dtype:
                other = other.astype(value.dtype)
            found.append(compare_output(name, other, value))
        return found


def _dtype(text: str) -> Any:
    row = BY_NAME.get(text.removeprefix("tensor(").removesuffix(")"))
    return row.dtype if row is not None and row.onnx_name != "string" else None


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
