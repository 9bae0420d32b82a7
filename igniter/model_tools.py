"""What a `Module` can say of its model, and do to it, besides compiling: the toolbox in Python.

Each method is one verb of the command line (`docs/toolbox.md`). Those that look return frozen data and leave the module
as it is; those that change it run a pass of the same name in place and return the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from xdsl.dialects.builtin import ModuleOp

    from igniter.analysis.model.plan import MemoryPlan
    from igniter.context import IgniterContext
    from igniter.runtime.compiled_plan import CompiledPlan


class ModelTools:
    """The verbs of the toolbox, for `Module`."""

    ir: ModuleOp
    ctx: IgniterContext

    def plan(
        self,
        sizes: Mapping[str, int] | None = None,
        *,
        order: str = "ort",
        inputs: bool = False,
        fold: bool = True,
        views: bool = True,
        in_place: bool = True,
        align: int = 64,
    ) -> MemoryPlan:
        """The memory of the model's activations: lifetimes, places and totals in bytes (docs/memory-plan.md).

        Amounts are expressions in the symbols of the model, and numbers where `sizes` gives all of these. Nodes are in
        the `order` in which ONNX Runtime runs them (`ort`, or with its `execution_order=1` `ort-priority`), or as the
        `model` has them. `inputs` counts the model's inputs too; `fold` takes what only weights lead to for weights;
        `views` and `in_place` let values share a buffer; buffers are multiples of `align` bytes. `IgniterError` for a
        size of a symbol that the model does not have.
        """
        from igniter.analysis.model.plan import plan_memory
        from igniter.analysis.model.plan_values import Rules
        from igniter.passes import run_pipeline
        from igniter.transforms.fusion.inline_regions import onnx_level

        module = onnx_level(self.ir)
        run_pipeline(self.ctx.clone(), module, "inline-functions,infer-shapes", verify_each=False)
        return plan_memory(module, sizes, order, Rules(inputs, fold, views, in_place), align)

    def report(
        self,
        output: str | PathLike[str],
        sizes: Mapping[str, int] | None = None,
        *,
        threads: int = 1,
        target: str = "native",
        verify: bool = True,
    ) -> None:
        """Compile the model for `target`, and write a page on it: its graph, and where time and memory go, measured
        with so many threads on made inputs of `sizes` (docs/report.md). `VerificationFailed` where an output differs.
        """
        from pathlib import Path
        from typing import cast

        from igniter.api import Module
        from igniter.runtime.report.make import report_module

        report_module(cast("Module", self), Path(output), sizes, threads, target, verify)

    def plan_compiled(self, sizes: Mapping[str, int] | None = None, *, target: str = "native") -> CompiledPlan:
        """The memory of the model as Igniter runs it on `target`: `graph` is the plan of what ONNX Runtime runs,
        `arenas` has what passes between the kernels of each program. The model is compiled for it, but not linked."""
        from typing import cast

        from igniter.api import Module
        from igniter.runtime.compiled_plan import plan_compiled

        return plan_compiled(cast("Module", self), sizes, target)
