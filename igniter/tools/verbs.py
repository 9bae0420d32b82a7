"""The verbs of `igniter`, by group, each with its `Request`. A new verb is a line here."""

from __future__ import annotations

from importlib import import_module

from igniter.toolbox.request import Request

GROUPS: dict[str, dict[str, str]] = {
    "Compile": {
        "compile": "igniter.toolbox.compile.request:CompileRequest",
        "verify": "igniter.toolbox.verify.request:VerifyRequest",
        "bench": "igniter.toolbox.bench.request:BenchRequest",
        "torch": "igniter.tools.torch.request:TorchRequest",
        "demo": "igniter.tools.demo.request:DemoRequest",
    },
    "Look": {
        "inspect": "igniter.toolbox.inspect.request:InspectRequest",
        "view": "igniter.toolbox.view.request:ViewRequest",
        "shapes": "igniter.toolbox.shapes.request:ShapesRequest",
        "profile": "igniter.toolbox.profile.request:ProfileRequest",
        "plan": "igniter.toolbox.plan.request:PlanRequest",
        "diff": "igniter.toolbox.diff.request:DiffRequest",
        "report": "igniter.toolbox.report.request:ReportRequest",
    },
    "Change": {
        "edit": "igniter.toolbox.edit.request:EditRequest",
        "extract": "igniter.toolbox.extract.request:ExtractRequest",
        "fuse": "igniter.toolbox.fuse.request:FuseRequest",
        "compress": "igniter.toolbox.compress.request:CompressRequest",
        "quantize": "igniter.toolbox.quantize.request:QuantizeRequest",
        "split": "igniter.toolbox.split.request:SplitRequest",
    },
    "Research": {
        "kernel": "igniter.toolbox.kernel.request:KernelRequest",
        "experiment": "igniter.toolbox.experiment.request:ExperimentRequest",
        "tune": "igniter.toolbox.tune.request:TuneRequest",
        "schedule": "igniter.toolbox.schedule.request:ScheduleRequest",
        "explain": "igniter.toolbox.explain.request:ExplainRequest",
        "machine": "igniter.toolbox.machine.request:MachineRequest",
        "reduce": "igniter.toolbox.reduce.request:ReduceRequest",
    },
    "Operate": {
        "generate": "igniter.toolbox.generate.request:GenerateRequest",
        "run-stages": "igniter.toolbox.split.request:RunStagesRequest",
        "serve": "igniter.toolbox.serve.request:ServeRequest",
        "doctor": "igniter.toolbox.doctor.request:DoctorRequest",
        "completion": "igniter.tools.completion.request:CompletionRequest",
    },
}

VERBS = {verb: place for verbs in GROUPS.values() for verb, place in verbs.items()}
"""The module and the class of every verb."""


def request_of(verb: str) -> type[Request]:
    """Returns the request of a verb; only the module of this verb is imported."""
    module, _, name = VERBS[verb].partition(":")
    return getattr(import_module(module), name)
