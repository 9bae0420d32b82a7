"""`igniter compile --emit`: a model to a level before the library, and the model with bound dims.

`igniter.toolbox.compile.show` imports this module when it is needed: a result from the cache needs no compiler.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import igniter
from igniter.api import blaming, is_fused, report
from igniter.compiler import driver
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.reproduce import kernel_recorder, leaving_reproducer
from igniter.errors import IgniterError
from igniter.runtime.cache import default_cache
from igniter.runtime.files import write_whole
from igniter.runtime.session import silence
from igniter.toolbox.edit.show import pairs
from igniter.toolbox.ir_text import module_text
from igniter.toolbox.output import console, print_json, progress
from igniter.transforms.fusion.form_fusion_regions import summaries
from igniter.transforms.fusion.inline_regions import onnx_level

if TYPE_CHECKING:
    from igniter.api import Module
    from igniter.toolbox.compile.request import CompileRequest


def print_level(request: CompileRequest, options: CompileOptions) -> None:
    """Compiles to the level of the request and writes it to the output, or prints it."""
    with progress("compiling", request.json) as step:
        silence()
        step("reading")
        module = bound(request)
        c = Compilation(
            module.ir,
            options,
            module.ctx,
            cache=default_cache() if request.cache else None,
            strict=request.strict,
            progress=step,
        )
        original = module.clone().ir
        module.ctx.recorder = kernel_recorder()
        with blaming(module.source), leaving_reproducer(c, original, lambda c: emit(c, request.emit)):
            text = emit(c, request.emit)
    if request.json:
        payload = text if isinstance(text, str) else f"{len(text)} bytes"
        if request.output:
            _write(text, request.output)
            payload = request.output
        print_json({**report(c), request.emit: payload})
        return
    if request.explain or request.remarks:
        err = console(stderr=True)
        for summary in summaries(c.ctx.remarks) if request.explain else ():
            err.print(str(summary), markup=False)
        for remark in c.ctx.remarks if request.remarks else ():
            err.print(str(remark), markup=False)
    _write(text, request.output)


def bound(request: CompileRequest) -> Module:
    """Returns the model with the dims of `--bind-dim` made equal to others."""
    module = igniter.load(request.model)
    if request.bind_dim:
        module.bind_dims(dict(zip(*pairs("--bind-dim", request.bind_dim), strict=True)))
    return module.with_graph()


def emit(c: Compilation, level: str) -> str | bytes:
    """Takes the compilation to `level`, one of `igniter.compiler.driver.STAGES` before the library, and prints it."""
    fused = is_fused(c.module)
    if not fused:
        driver.make_onnx(c)
    if level == "onnx":
        return module_text(onnx_level(c.module) if fused else c.module)
    if fused:
        driver.require_no_author(c)
    else:
        driver.make_fusion(c)
    if level == "fusion":
        return module_text(c.module)
    driver.make_loop(c)
    if level == "loop":
        return module_text(c.module)
    if level == "scheduled":
        return module_text(driver.make_scheduled(c))
    driver.make_llvm(c)
    if level == "llvm":
        return driver.make_module(c)
    if level == "asm":
        return driver.make_assembly(c)
    if level == "obj":
        return driver.make_object(c)
    raise IgniterError(f"there is no level '{level}'; there are {', '.join(driver.STAGES)}")


def _write(text: str | bytes, output: str) -> None:
    if isinstance(text, bytes):
        if not output:
            if sys.stdout.isatty():
                raise IgniterError("an object file does not belong on a terminal: give -o FILE")
            sys.stdout.buffer.write(text)
            return
        write_whole(output, text)
    elif output:
        write_whole(output, text)
    else:
        sys.stdout.write(text)
