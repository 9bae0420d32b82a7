"""The edits of a model, as methods of `Module`: names, dims, types, nodes, weights, inputs, outputs and the opset.

Each builds a pass of `igniter.transforms.edit` from its arguments and runs it in place (`docs/edit.md`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.context import IgniterContext
    from igniter.dialects.onnx.weights import Weight
    from igniter.runtime.verification.edited import EditCheck
    from igniter.transforms.edit.edit import Edit


class ModelEdits:
    """What changes a model as its user asks, for `Module`."""

    ir: ModuleOp
    ctx: IgniterContext
    source: str | Path | bytes | None
    edits: tuple[Edit, ...] = ()
    """The edits that were made, in order; `check_edits` compares with the original under them."""

    def edit(self, *edits: Edit) -> Self:
        """Make edits (`igniter.transforms.edit`) in order. One that is refused leaves the module as it was."""
        from igniter.passes import PassError, run_passes

        self._keep_original()
        for this in edits:
            changed = self.ir.clone()
            try:
                run_passes(self.ctx, changed, (this,))
            except PassError as error:
                from igniter.errors import IgniterError

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
        """Give values (inputs, outputs, weights and inner ones), nodes and dims other names, `{old: new}`."""
        from igniter.transforms.edit.rename_dims import RenameDims
        from igniter.transforms.edit.rename_nodes import RenameNodes
        from igniter.transforms.edit.rename_values import RenameValues

        made: list[Edit] = []
        for kind, names in ((RenameValues, values), (RenameNodes, nodes), (RenameDims, dims)):
            if names is not None:
                made.append(kind(old=tuple(names), new=tuple(names.values())))
        return self.edit(*_some(made, "rename"))

    def fix_dims(self, places: Mapping[str, int] | None = None, /, **sizes: int) -> Self:
        """Give dims of inputs a size: `fix_dims(batch=1)`, `fix_dims({"x:0": 1})`."""
        from igniter.transforms.edit.set_dims import SetDims

        given = {**(places or {}), **sizes}
        return self.edit(SetDims(dims=tuple(given), to=tuple(given.values())))

    def bind_dims(self, places: Mapping[str, str] | None = None, /, **dims: str) -> Self:
        """Make dims of inputs equal to others, or to expressions over these: `bind_dims(total="past + seq")`."""
        from igniter.transforms.edit.set_dims import SetDims

        given = {**(places or {}), **dims}
        return self.edit(SetDims(dims=tuple(given), to=tuple(given.values())))

    def free_dims(self, places: Mapping[str, str]) -> Self:
        """Make numbers among the dims of inputs symbols, where that is legal: `free_dims({"x:0": "batch"})`."""
        from igniter.transforms.edit.free_dims import FreeDims

        return self.edit(FreeDims(dims=tuple(places), symbols=tuple(places.values())))

    def change_types(self, values: Mapping[str, str] | None = None, /, **types: str) -> Self:
        """Give inputs and outputs another element type, with Casts: `change_types(input_ids="int32")`."""
        from igniter.transforms.edit.change_types import ChangeTypes

        given = {**(values or {}), **types}
        return self.edit(ChangeTypes(values=tuple(given), types=tuple(given.values())))

    def drop(self, *nodes: str, by: Mapping[str, str] | None = None) -> Self:
        """Take nodes away; an input of each takes its result's place, or the value that `by` has for it."""
        from igniter.transforms.edit.drop_nodes import DropNodes

        places = {**dict.fromkeys(nodes, ""), **(by or {})}
        return self.edit(DropNodes(nodes=tuple(places), by=tuple(places.values())))

    def insert(self, node: str, readers: Sequence[str] = ()) -> Self:
        """Put a node into the graph, written as ONNX does: `insert("h = Relu (h)")` takes the place of `h`, for all
        nodes that read it or for the `readers` named."""
        from igniter.transforms.edit.insert_nodes import ALL_READERS, InsertNodes

        return self.edit(InsertNodes(nodes=(node,), readers=(",".join(readers) or ALL_READERS,)))

    def replace(self, node: str, by: str) -> Self:
        """Put another node, written as ONNX does, in the place of one: `replace("act", "y = Relu (x)")`."""
        from igniter.transforms.edit.replace_nodes import ReplaceNodes

        return self.edit(ReplaceNodes(nodes=(node,), by=(by,)))

    def expose(self, *values: str, pattern: str = "", all: bool = False) -> Self:
        """Make inner values outputs too: those named, those in whose name the regular expression is found, or all."""
        from igniter.transforms.edit.expose_values import ExposeValues

        return self.edit(ExposeValues(values=values, pattern=pattern, all=all))

    def remove_inputs(self, *names: str) -> Self:
        """Take inputs away that nothing reads, or that have a default."""
        from igniter.transforms.edit.remove_inputs import RemoveInputs

        return self.edit(RemoveInputs(inputs=names))

    def remove_outputs(self, *names: str) -> Self:
        """Take outputs away, and the nodes that only they needed."""
        from igniter.transforms.edit.remove_outputs import RemoveOutputs

        return self.edit(RemoveOutputs(outputs=names))

    def convert_opset(self, version: int) -> Self:
        """Write the model in another version of ai.onnx."""
        from igniter.transforms.edit.convert_opset import ConvertOpset

        return self.edit(ConvertOpset(version=version))

    def weights(self) -> dict[str, Weight]:
        """The weights by name, as handles: `.shape`, `.nbytes`, and `.array()`, which reads one."""
        from igniter.transforms.edit.weight_files import tensors_of, weight_ops

        return {f"{n}{end}": w for n, op in weight_ops(self.ir).items() for end, w in tensors_of(op).items()}

    def save_weights(self, path: str | PathLike[str], names: Sequence[str] | None = None) -> dict[str, Weight]:
        """Write weights, all or those named, to a `.npz` or `.npy` file or to a folder of `.npy` files."""
        from igniter.transforms.edit.weight_files import write_weights

        return write_weights(self.ir, path, None if names is None else list(names))

    def replace_weights(self, given: Mapping[str, Any] | str | PathLike[str]) -> Self:
        """Take the values of weights from files or arrays: `{name: array or .npy file}`, or a `.npz` file or a folder
        with as many as there are to replace. Type and shape stay."""
        from igniter.transforms.edit.replace_weights import ReplaceWeights, with_arrays

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
        """Keep what lies between the values `start` and `end`; with `part`, what is `before` or `after` that. With
        `exact` the inside has no outputs but `end`, else also what the model reads of it behind them."""
        from igniter.transforms.edit.extract_part import ExtractPart

        return self.edit(ExtractPart(tuple(start), tuple(end), part, exact=exact and part == "inside"))

    def check_edits(self, *, run: bool = True, seed: int = 0, budget: float = 30.0) -> EditCheck:
        """Have ONNX's checker look at the edited model, and `run` it beside the original in ONNX Runtime where the
        edits leave the outputs as they are. `IgniterError` where the checker refuses it."""
        from igniter.runtime.verification.edited import check_edits

        return check_edits(self.ir, self.source, self.edits, run=run, seed=seed, budget=budget)

    def current_source(self) -> str | Path | bytes:
        """The model as it is now, for running it: the file that it came from, or bytes where it has been edited since.
        `IgniterError` where it is too big for that."""
        from igniter.errors import IgniterError

        found = self._whole_model() if self.edits or self.source is None else self.source
        if found is None:
            raise IgniterError("the edited model has over 2 GB: save it, and load what was saved")
        return found

    def _keep_original(self) -> None:
        """Where the model is in no file, what it is before the first edit is what edits are checked against."""
        if self.source is None and not self.edits:
            self.source = self._whole_model()

    def _forget_original(self) -> None:
        """What the model is from here on is compared with itself: the file computes something else."""
        self.source, self.edits = None, ()

    def _whole_model(self) -> bytes | None:
        """The model as bytes; `None` where a message cannot hold it."""
        from igniter.frontend import export_model, fits_message

        made = export_model(self.ir)
        return made.SerializeToString() if fits_message(made) else None


def _some(edits: Sequence[Edit], what: str) -> Sequence[Edit]:
    """The edits; `IgniterError` where there is none."""
    if not edits:
        from igniter.errors import IgniterError

        raise IgniterError(f"nothing is named for {what}")
    return edits
