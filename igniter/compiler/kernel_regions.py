"""The regions of a model with their kernels, each a custom op of its own: for `igniter.verification.regions`, which
compares them with their nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.compile_report import kernel_digest
from igniter.compiler.driver import make_fusion, make_library, make_llvm, make_loop, make_onnx
from igniter.context import IgniterContext
from igniter.dialects.fusion import RegionOp
from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.runtime.cache import default_cache
from igniter.runtime.library import Library
from igniter.verification.original import Original


@dataclass(frozen=True)
class KernelRegions:
    """A compilation that ends before programs: every region has its kernel, and still contains its nodes."""

    compilation: Compilation

    @property
    def module(self) -> ModuleOp:
        """The model with its regions."""
        return self.compilation.module

    @property
    def digest(self) -> str:
        """The digest of the kernels."""
        return kernel_digest(self.compilation.kernels)

    def library(self, module: ModuleOp) -> tuple[Library, ModuleOp]:
        """Returns a library with the kernels of the regions in `module`, and a copy of `module` with custom ops in
        their place."""
        c = self.compilation
        used = {op.kernel_name for op in module.walk() if isinstance(op, RegionOp)}
        alone = Compilation(module.clone(), c.options, c.ctx, cache=c.cache)
        alone.kernels = [k for k in c.kernels if k.name in used]
        library = make_library(alone)
        if library is None:
            raise IgniterError("no kernel of the model compiles")
        return library, alone.module


def region_compiler(options: CompileOptions) -> Callable[[Original], KernelRegions]:
    """Returns the function that compiles a model with these options until each region has its kernel."""
    alone = dataclasses.replace(options, program_passes="", profile=False)

    def compile_regions(original: Original) -> KernelRegions:
        assert original.model is not None
        ctx = IgniterContext()
        ctx.remarks.enabled = True
        c = Compilation(import_model(original.model), alone, ctx, cache=default_cache())
        make_onnx(c)
        make_fusion(c)
        make_loop(c)
        make_llvm(c)
        return KernelRegions(c)

    return compile_regions
