"""What a `Module` can say of its model, and do to it, besides compiling: the toolbox in Python.

Each method is one verb of the command line (`docs/toolbox.md`). Those that look return frozen data and leave the module
as it is; those that change it run a pass of the same name in place and return the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.builtin import ModuleOp

    from igniter.analysis.model.profile import Profile
    from igniter.context import IgniterContext


class ModelTools:
    """The verbs of the toolbox, for `Module`."""

    ir: ModuleOp
    ctx: IgniterContext

    def profile(self, sizes: Mapping[str, int] | None = None, *, sparsity: bool = False) -> Profile:
        """What the model computes, holds and moves, by node, op type, module and in total (docs/profile.md).

        Amounts are expressions in the symbols of the model, and numbers where `sizes` gives all of these. Weights are
        read only for `sparsity`. `IgniterError` for a size of a symbol that the model has not.
        """
        from igniter.analysis.model.counting import count_model
        from igniter.analysis.model.sizes import given_sizes
        from igniter.memory import collection_paused
        from igniter.passes import run_pipeline
        from igniter.transforms.fusion.inline_regions import onnx_level

        with collection_paused():
            module = onnx_level(self.ir)
            run_pipeline(self.ctx.clone(), module, "inline-functions,infer-shapes", verify_each=False)
            found = count_model(module, sizes, sparsity)
        return found.at(given_sizes(found, sizes or {}))
