"""Make the benchmark models: architectures from transformers' configurations, exported by torch in both its ways.

    python benchmark/export.py --model_name=bert-base-uncased --exporter=dynamo
    python benchmark/export.py --all

Files go to `benchmark/.cache/<model>-<exporter>/model.onnx` and are made once. `dynamo` is `torch.export` at opset
18, `torchscript` the tracer at opset 17; both have dynamic batch and sequence.
Attention is exported as the plain MatMul, Softmax, MatMul that deployed models have.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmark.models.zoo import ARCHITECTURES, Architecture, find

CACHE = Path(__file__).resolve().parent / ".cache"
EXPORTERS = {"dynamo": 18, "torchscript": 17}
SEED = 2026


def build(architecture: Architecture) -> Any:
    """The torch module: trained weights where a package has them, else seeded random ones."""
    import torch
    import transformers

    torch.manual_seed(SEED)
    model_type = getattr(transformers, architecture.model)
    if architecture.package:
        directory = importlib.import_module(architecture.package).get_model_path()
        model = model_type.from_pretrained(directory, attn_implementation="eager")
    else:
        config = getattr(transformers, architecture.config)(**architecture.arguments)
        config._attn_implementation = "eager"
        model = model_type(config)
        perturb(model)
    return wrap(model, architecture)


def perturb(model: Any) -> None:
    """Move every 1-D parameter off its initial value.

    Norms start at exactly 1 and biases at 0, so that a compiler which dropped `x * w + b` would go unnoticed.
    """
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)


def wrap(model: Any, architecture: Architecture) -> Any:
    """A module that takes the inputs by position and returns the outputs as a tuple."""
    import torch

    class Wrapper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: Any) -> tuple[Any, ...]:
            out = self.model(**dict(zip(architecture.inputs, tensors, strict=True)), return_dict=True)
            return tuple(out[name] for name in architecture.outputs)

    # The tracing exporter restores the mode of the wrapper, not of what is in it.
    return Wrapper().eval()


def example_inputs(architecture: Architecture, batch: int, sequence: int) -> tuple[Any, ...]:
    """Example tensors for the export."""
    import torch

    values = {
        "input_ids": torch.randint(5, 1000, (batch, sequence), dtype=torch.int64),
        "attention_mask": torch.ones((batch, sequence), dtype=torch.int64),
        "token_type_ids": torch.zeros((batch, sequence), dtype=torch.int64),
    }
    return tuple(values[name] for name in architecture.inputs)


def _export_dynamo(wrapper: Any, architecture: Architecture, target: Path) -> None:
    import torch
    from torch.export import Dim

    dims = {0: Dim("batch", min=1, max=64), 1: Dim("sequence", min=2, max=500)}
    torch.onnx.export(
        wrapper,
        example_inputs(architecture, 2, 16),
        str(target),
        dynamo=True,
        opset_version=EXPORTERS["dynamo"],
        input_names=list(architecture.inputs),
        output_names=list(architecture.outputs),
        dynamic_shapes=(tuple(dims for _ in architecture.inputs),),
        external_data=True,
        verbose=False,
    )


def _export_torchscript(wrapper: Any, architecture: Architecture, target: Path) -> None:
    import torch

    axes = {name: {0: "batch", 1: "sequence"} for name in architecture.inputs}
    for name in architecture.outputs:
        whole = name in ("last_hidden_state", "start_logits", "end_logits") or architecture.name == "gpt2"
        axes[name] = {0: "batch", 1: "sequence"} if whole else {0: "batch"}
    torch.onnx.export(
        wrapper,
        example_inputs(architecture, 2, 16),
        str(target),
        dynamo=False,
        opset_version=EXPORTERS["torchscript"],
        input_names=list(architecture.inputs),
        output_names=list(architecture.outputs),
        dynamic_axes=axes,
    )


def path_of(architecture: Architecture, exporter: str) -> Path:
    """Where the model is, or will be."""
    return CACHE / f"{architecture.slug}-{exporter}" / "model.onnx"


def ensure(architecture: Architecture, exporter: str) -> Path:
    """The model's file, exported in a process of its own if it is not there yet.

    torch keeps gigabytes after an export; a process of its own gives them back.
    """
    path = path_of(architecture, exporter)
    if not path.exists():
        command = [sys.executable, __file__, f"--model_name={architecture.name}", f"--exporter={exporter}"]
        subprocess.run(command, check=True)
    return path


def export(architecture: Architecture, exporter: str) -> Path:
    """Export the model into the cache; the directory appears whole or not at all."""
    path = path_of(architecture, exporter)
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="export-", dir=CACHE))
    try:
        wrapper = build(architecture)
        (_export_dynamo if exporter == "dynamo" else _export_torchscript)(wrapper, architecture, work / "model.onnx")
        if path.parent.exists():
            shutil.rmtree(path.parent)
        os.replace(work, path.parent)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model_name", default="", help=f"one of {', '.join(ARCHITECTURES)}")
    parser.add_argument("--exporter", choices=[*EXPORTERS, "both"], default="both")
    parser.add_argument("--all", action="store_true", help="every model, one process after another")
    args = parser.parse_args()
    exporters = list(EXPORTERS) if args.exporter == "both" else [args.exporter]
    if args.all:
        failed: list[str] = []
        for architecture in ARCHITECTURES.values():
            for exporter in exporters:
                try:
                    print(ensure(architecture, exporter), flush=True)
                except subprocess.CalledProcessError:
                    failed.append(f"{architecture.name} ({exporter})")
        if failed:
            sys.exit(f"not exported: {', '.join(failed)}")
        return
    if not args.model_name:
        parser.error("--model_name or --all")
    for exporter in exporters:
        start = time.perf_counter()
        path = export(find(args.model_name), exporter)
        print(f"{path} ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
