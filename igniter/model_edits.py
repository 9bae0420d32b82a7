"""The edits of a model, as methods of `Module`: names, dims, types, nodes, weights, inputs, outputs and the opset.

Each builds a pass of `igniter.toolbox.edit` from its arguments and runs it in place (`docs/how-to/edit.md`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from igniter.errors import IgniterError
from igniter.frontend import export_model, fits_message
from igniter.passes import PassError, run_passes
from igniter.toolbox.edit.change_types import ChangeTypes
from igniter.toolbox.edit.convert_opset import ConvertOpset
from igniter.toolbox.edit.drop_nodes import DropNodes
from igniter.toolbox.edit.expose_values import ExposeValues
from igniter.toolbox.edit.free_dims import FreeDims
from igniter.toolbox.edit.insert_nodes import ALL_READERS, InsertNodes
from igniter.toolbox.edit.keep_last import KeepLast
from igniter.toolbox.edit.remove_inputs import RemoveInputs
from igniter.toolbox.edit.remove_outputs import RemoveOutputs
from igniter.toolbox.edit.rename_dims import RenameDims
from igniter.toolbox.edit.rename_nodes import RenameNodes
from igniter.toolbox.edit.rename_values import RenameValues
from igniter.toolbox.edit.replace_nodes import ReplaceNodes
from igniter.toolbox.edit.replace_weights import ReplaceWeights, with_arrays
from igniter.toolbox.edit.set_dims import SetDims
from igniter.toolbox.edit.weight_files import tensors_of, weight_ops, write_weights
from igniter.toolbox.extract.extract_part import ExtractPart

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.context import IgniterContext
    from igniter.dialects.onnx.weights import Weight
    from igniter.toolbox.edit.edit import Edit
    from igniter.toolbox.edit.verified import EditCheck


class ModelEdits:
    """The edits of a model by its user, for `Module`."""

    ir: ModuleOp
    ctx: IgniterContext
    source: str | Path | bytes | None
    edits: tuple[Edit, ...] = ()
    """The edits made so far, in order; `check_edits` compares with the original under them."""

    def edit(self, *edits: Edit) -> Self:
        """Makes edits (`igniter.toolbox.edit`) in order. A refused edit leaves the module unchanged."""
        self._keep_original()
        for this in edits:
            changed = self.ir.clone()
            try:
                run_passes(self.ctx, changed, (this,))
            except PassError as error:
                if isinstance(error.__cause__, IgniterError):
                    raise IgniterError(error.__cause__.message) from error
                raise
            self.ir = changed
            self.edits = (*self.edits, this)
        return self

    def rename(
        self,
        values: Mapping[str, str] | None = None,
        *,
        nodes: Mapping[str, str] | None = None,
        dims: Mapping[str, str] | None = None,
    ) -> Self:
        """Gives values (inputs, outputs, weights and inner ones), nodes and dims other names, `{old: new}`."""
        made: list[Edit] = []
        for kind, names in ((RenameValues, values), (RenameNodes, nodes), (RenameDims, dims)):
            if names is not None:
                made.append(kind(old=tuple(names), new=tuple(names.values())))
        return self.edit(*_some(made, "rename"))

    def fix_dims(self, places: Mapping[str, int] | None = None, /, **sizes: int) -> Self:
        """Gives dims of inputs a size: `fix_dims(batch=1)`, `fix_dims({"x:0": 1})`."""
        given = {**(places or {}), **sizes}
        return self.edit(SetDims(dims=tuple(given), to=tuple(given.values())))

    def bind_dims(self, places: Mapping[str, str] | None = None, /, **dims: str) -> Self:
        """Makes dims of inputs equal to others, or to expressions over these: `bind_dims(total="past + seq")`."""
        given = {**(places or {}), **dims}
        return self.edit(SetDims(dims=tuple(given), to=tuple(given.values())))

    def free_dims(self, places: Mapping[str, str]) -> Self:
        """Replaces numbers among the dims of inputs by symbols, where legal: `free_dims({"x:0": "batch"})`."""
        return self.edit(FreeDims(dims=tuple(places), symbols=tuple(places.values())))

    def change_types(self, values: Mapping[str, str] | None = None, /, **types: str) -> Self:
        """Gives inputs and outputs another element type, with Casts: `change_types(input_ids="int32")`."""
        given = {**(values or {}), **types}
        return self.edit(ChangeTypes(values=tuple(given), types=tuple(given.values())))

    def drop(self, *nodes: str, by: Mapping[str, str] | None = None) -> Self:
        """Removes nodes; readers of a node's result read one of its inputs instead, or the value given in `by`."""
        places = {**dict.fromkeys(nodes, ""), **(by or {})}
        return self.edit(DropNodes(nodes=tuple(places), by=tuple(places.values())))

    def insert(self, node: str, readers: Sequence[str] = ()) -> Self:
        """Inserts a node, written in ONNX's syntax: `insert("h = Relu (h)")` replaces `h` for all its readers, or only
        for the `readers` named."""
        return self.edit(InsertNodes(nodes=(node,), readers=(",".join(readers) or ALL_READERS,)))

    def replace(self, node: str, by: str) -> Self:
        """Replaces a node by another one, written in ONNX's syntax: `replace("act", "y = Relu (x)")`."""
        return self.edit(ReplaceNodes(nodes=(node,), by=(by,)))

    def expose(self, *values: str, pattern: str = "", all: bool = False) -> Self:
        """Makes inner values outputs too: the named ones, those whose name matches the regular expression, or all."""
        return self.edit(ExposeValues(values=values, pattern=pattern, all=all))

    def keep_last(self, *outputs: str) -> Self:
        """Keeps the last row of an axis of outputs, given as `logits:1`, and computes no other row before them."""
        return self.edit(KeepLast(outputs=outputs))

    def remove_inputs(self, *names: str) -> Self:
        """Removes unused inputs, or inputs with a default."""
        return self.edit(RemoveInputs(inputs=names))

    def remove_outputs(self, *names: str) -> Self:
        """Removes outputs, and the nodes needed only by them."""
        return self.edit(RemoveOutputs(outputs=names))

    def convert_opset(self, version: int) -> Self:
        """Converts the model to another version of ai.onnx."""
        return self.edit(ConvertOpset(version=version))

    def weights(self) -> dict[str, Weight]:
        """Returns the weights by name, as handles: `.shape`, `.nbytes`, and `.array()` to read one."""
        return {f"{n}{end}": w for n, op in weight_ops(self.ir).items() for end, w in tensors_of(op).items()}

    def save_weights(self, path: str | PathLike[str], names: Sequence[str] | None = None) -> dict[str, Weight]:
        """Writes weights, all or the named ones, to a `.npz` or `.npy` file or to a folder of `.npy` files."""
        return write_weights(self.ir, path, None if names is None else list(names))

    def replace_weights(self, given: Mapping[str, Any] | str | PathLike[str]) -> Self:
        """Replaces the values of weights by those of files or arrays: `{name: array or .npy file}`, or a `.npz` file or
        a folder with one array for each weight to replace. Type and shape stay."""
        if not isinstance(given, Mapping):
            return self.edit(ReplaceWeights(files=(str(given),)))
        files = {n: os.fspath(f) for n, f in given.items() if isinstance(f, (str, Path))}
        arrays = {n: a for n, a in given.items() if n not in files}
        if arrays:
            self._keep_original()
            self.ir = with_arrays(self.ir, arrays)
            self.edits = (*self.edits, ReplaceWeights(weights=tuple(arrays)))
        return self.edit(ReplaceWeights(tuple(files), tuple(files.values()))) if files or not arrays else self

    def extract(
        self, start: Sequence[str] = (), end: Sequence[str] = (), part: str = "inside", *, exact: bool = True
    ) -> Self:
        """Keeps the part between the values `start` and `end`; with `part`, the part `before` or `after` it. With
        `exact` the inside has no outputs but `end`; otherwise also its values read by the rest of the model."""
        return self.edit(ExtractPart(tuple(start), tuple(end), part, exact=exact and part == "inside"))

    def check_edits(self, *, run: bool = True, seed: int = 0, budget: float = 30.0) -> EditCheck:
        """Runs ONNX's checker on the edited model, and with `run` compares it with the original in ONNX Runtime if the
        edits do not change the outputs. Raises `IgniterError` if the checker refuses it."""
        from igniter.toolbox.edit.verified import check_edits

        return check_edits(self.ir, self.source, self.edits, run=run, seed=seed, budget=budget)

    def current_source(self) -> str | Path | bytes:
        """Returns the current model for running it: its file, or bytes if it was edited. Raises `IgniterError` if it is
        too big for bytes."""
        found = self._whole_model() if self.edits or self.source is None else self.source
        if found is None:
            raise IgniterError("the edited model has over 2 GB: save it, and load what was saved")
        return found

    def _keep_original(self) -> None:
        """Keeps a model without a file before its first edit, as the reference for checks."""
        if self.source is None and not self.edits:
            self.source = self._whole_model()

    def _forget_original(self) -> None:
        """Makes the edited model its own reference, because the file computes something else."""
        self.source, self.edits = None, ()

    def _whole_model(self) -> bytes | None:
        """Returns the model as bytes; `None` if a message cannot hold it."""
        made = export_model(self.ir)
        return made.SerializeToString() if fits_message(made) else None


def _some(edits: Sequence[Edit], what: str) -> Sequence[Edit]:
    """Returns the edits; raises `IgniterError` if the list is empty."""
    if not edits:
        raise IgniterError(f"nothing is named for {what}")
    return edits
