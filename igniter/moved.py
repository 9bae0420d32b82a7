"""Modules by their former names: `import igniter.compilation` gives `igniter.compiler.compilation`, with a warning.

A module that moves keeps its former name until the next minor version.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

RENAMED = {
    "igniter.analysis.fusion.left_nodes": "igniter.analysis.fusion.fallback_nodes",
    "igniter.compiler.checking": "igniter.compiler.artifact",
    "igniter.rewrites": "igniter.rewrite_budget",
    # Packages whose modules have several places now.
    "igniter.analysis.model": "igniter.toolbox",
    "igniter.transforms.edit": "igniter.toolbox.edit",
    "igniter.analysis.structured.band_schedules": "igniter.schedules.bands",
    "igniter.analysis.structured.body_cost": "igniter.analysis.structured.nest_bodies",
    "igniter.analysis.structured.procedure_schedules": "igniter.schedules.procedures",
    "igniter.analysis.structured.product_schedules": "igniter.schedules.products",
    "igniter.analysis.structured.row_schedules": "igniter.schedules.rows",
    "igniter.analysis.structured.schedule_author": "igniter.schedules.author",
    "igniter.analysis.structured.schedule_choice": "igniter.schedules.choice",
    "igniter.analysis.structured.schedule_groups": "igniter.schedules.groups",
    "igniter.analysis.structured.schedule_space": "igniter.schedules.space",
    "igniter.analysis.structured.tile_schedules": "igniter.schedules.tiles",
    "igniter.analysis.model.node_costs": "igniter.analysis.onnx.op_counts",
    "igniter.analysis.model.traffic": "igniter.analysis.onnx.op_counts",
    "igniter.runtime.compare_models": "igniter.toolbox.diff.results",
    "igniter.runtime.profile": "igniter.toolbox.bench.time_profile",
    "igniter.runtime.compiled_plan": "igniter.toolbox.plan.compiled",
    "igniter.runtime.machine_measurement": "igniter.toolbox.machine.measurement",
    "igniter.runtime.plan_chart": "igniter.toolbox.plan.chart",
    "igniter.runtime.tuning": "igniter.toolbox.tune",
    "igniter.runtime.verification.edited": "igniter.toolbox.edit.verified",
    "igniter.transforms.edit.stages": "igniter.toolbox.split.cuts",
    "igniter.schedules.body_cost": "igniter.analysis.structured.nest_bodies",
    "igniter.toolbox.bench.profile": "igniter.toolbox.bench.time_profile",
    "igniter.toolbox.profile.node_costs": "igniter.analysis.onnx.op_counts",
    "igniter.toolbox.profile.traffic": "igniter.analysis.onnx.op_counts",
    "igniter.tools.cli": "igniter.toolbox",
    "igniter.tools.cli.amounts": "igniter.toolbox.profile.amounts",
    "igniter.tools.cli.bench": "igniter.toolbox.bench.show",
    "igniter.tools.cli.bench_profile": "igniter.toolbox.bench.show_profile",
    "igniter.tools.cli.compile": "igniter.toolbox.compile.show",
    "igniter.tools.cli.compress": "igniter.toolbox.compress.show",
    "igniter.tools.cli.demo": "igniter.tools.demo.show",
    "igniter.tools.cli.diff": "igniter.toolbox.diff.show",
    "igniter.tools.cli.doctor": "igniter.toolbox.doctor.show",
    "igniter.tools.cli.edit": "igniter.toolbox.edit.show",
    "igniter.tools.cli.extract": "igniter.toolbox.extract.show",
    "igniter.tools.cli.fuse": "igniter.toolbox.fuse.show",
    "igniter.tools.cli.inspect": "igniter.toolbox.inspect.show",
    "igniter.tools.cli.inspect_summary": "igniter.toolbox.inspect.summary",
    "igniter.tools.cli.kernel": "igniter.toolbox.kernel.show",
    "igniter.tools.cli.machine": "igniter.toolbox.machine.show",
    "igniter.tools.cli.output": "igniter.toolbox.output",
    "igniter.tools.cli.plan": "igniter.toolbox.plan.show",
    "igniter.tools.cli.profile": "igniter.toolbox.profile.show",
    "igniter.tools.cli.quantize": "igniter.toolbox.quantize.show",
    "igniter.tools.cli.reduce": "igniter.toolbox.reduce.show",
    "igniter.tools.cli.report": "igniter.toolbox.report.show",
    "igniter.tools.cli.run_stages": "igniter.toolbox.split.run_stages",
    "igniter.tools.cli.shapes": "igniter.toolbox.shapes.show",
    "igniter.tools.cli.split": "igniter.toolbox.split.show",
    "igniter.tools.cli.stage_inputs": "igniter.toolbox.split.stage_inputs",
    "igniter.tools.cli.sweep": "igniter.toolbox.bench.sweep",
    "igniter.tools.cli.tables": "igniter.toolbox.tables",
    "igniter.tools.cli.torch": "igniter.tools.torch.show",
    "igniter.tools.cli.tune": "igniter.toolbox.tune.show",
    "igniter.tools.cli.verified_save": "igniter.toolbox.verified_save",
    "igniter.tools.cli.verify": "igniter.toolbox.verify.show",
    "igniter.tools.cli.view": "igniter.toolbox.view.show",
}
MOVED = {
    ("igniter", "igniter.compiler"): "compilation driver",
    ("igniter.analysis.model", "igniter.analysis"): "devices",
    ("igniter.analysis.model", "igniter.analysis.onnx"): "input_places",
    ("igniter.analysis.model", "igniter.toolbox.compress"): "weight_plan weight_uses",
    ("igniter.analysis.model", "igniter.toolbox.diff"): "diff node_matching weight_difference",
    ("igniter.analysis.model", "igniter.toolbox.plan"): "plan plan_order plan_values",
    ("igniter.analysis.model", "igniter.toolbox.profile"): (
        "constants counting decoder modules profile roofline sparsity tensors"
    ),
    ("igniter.analysis.model", "igniter.toolbox.quantize"): "channel_scales channel_sites quantization_plan",
    ("igniter.analysis.model", "igniter.toolbox.shapes"): "compute_nodes shape_code shape_engine shapes sizes",
    ("igniter.analysis.model", "igniter.toolbox.split"): "balance",
    ("igniter.analysis.structured", "igniter.schedules"): (
        "attention_blocks default_author expected_time launch_groups made_panels product_blocks "
        "scheduling size_variants split_sums triton_author"
    ),
    ("igniter.analysis.scheduled", "igniter.schedules"): ("loop_cost"),
    ("igniter.runtime", "igniter"): "verification",
    ("igniter.runtime", "igniter.compiler"): "artifact compile_helpers compile_worker loading results",
    ("igniter.runtime", "igniter.toolbox"): "doctor reduce report",
    ("igniter.runtime", "igniter.toolbox.kernel"): "schedules workbench",
    ("igniter.runtime", "igniter.toolbox.profile"): "device_measurement",
    ("igniter.runtime", "igniter.toolbox.quantize"): "calibration",
    ("igniter.runtime", "igniter.toolbox.split"): "stages",
    ("igniter.runtime", "igniter.toolbox.view"): "graph_drawing views",
    ("igniter.runtime", "igniter.verification"): "check check_bound check_inputs interp verify",
    ("igniter.transforms.edit", "igniter.toolbox.compress"): "compress_weights weight_rewriting",
    ("igniter.transforms.edit", "igniter.toolbox.edit"): (
        "change_types convert_opset dims drop_nodes edit edits expose_values free_dims graph_edits insert_nodes "
        "names remove_inputs remove_outputs rename_dims rename_nodes rename_values replace_nodes replace_weights "
        "set_dims shape_conflicts value_types weight_files"
    ),
    ("igniter.transforms.edit", "igniter.toolbox.extract"): "extract_part parts",
    ("igniter.transforms.edit", "igniter.toolbox.fuse"): "fuse_pattern graph_pattern pattern_matching patterns",
    ("igniter.transforms.edit", "igniter.toolbox.quantize"): (
        "bias_shifts quantizable_form quantize_model scale_channels"
    ),
    ("igniter.transforms.edit", "igniter.toolbox.shapes"): "drop_shape_nodes fix_symbols shape_arithmetic",
    ("igniter.transforms.edit", "igniter.toolbox.split"): "shard_products sharding_plan",
}
"""Names of modules by their former and their present package."""

NAMES = RENAMED | {f"{old}.{name}": f"{new}.{name}" for (old, new), names in MOVED.items() for name in names.split()}


def present_name(name: str) -> str | None:
    """Returns the present name of a module that has moved, or is in a package that has; `None` for any other."""
    package, rest = name, ""
    while "." in package:
        if package in NAMES:
            return NAMES[package] + rest
        package, _, last = package.rpartition(".")
        rest = f".{last}{rest}"
    return None


class FormerNames:
    """Finds modules by their former names. It stands before the finder of files, which would find the modules of a
    moved package a second time."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Returns a spec for a former name, as `sys.meta_path` asks for it."""
        moved = fullname.startswith("igniter.") and present_name(fullname) is not None
        return ModuleSpec(fullname, self) if moved else None  # pyright: ignore[reportArgumentType]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Imports the module by its present name, and warns."""
        name = present_name(spec.name)
        assert name is not None
        warnings.warn(f"{spec.name} is {name} now", DeprecationWarning, stacklevel=3)
        if any(other.startswith(f"{spec.name}.") for other in NAMES):
            return _package(spec.name, name)
        module = import_module(name)
        # The import system gives a new module the spec; this one has its own.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restores the module's own spec; its code has run."""
        assert module.__spec__ is not None
        if module.__spec__.loader_state is not None:
            module.__spec__ = module.__spec__.loader_state


def _package(former: str, name: str) -> ModuleType:
    """Returns a package for a former name whose modules have several places now. It has the attributes of `name`; the
    import system sets its modules as attributes of the package, where those of `name` could have the same names."""
    package = ModuleType(former)
    package.__path__ = []
    setattr(package, "__getattr__", partial(getattr, import_module(name)))  # noqa: B010
    return package


def install() -> None:
    """Makes former names importable."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, FormerNames())  # pyright: ignore[reportArgumentType]
