"""Make the benchmark models: architectures from transformers' configurations, exported by torch in both its ways.

    python benchmark/export.py --model_name=bert-base-uncased --exporter=dynamo
    python benchmark/export.py --all

Files go to `benchmark/.cache/<model>-<exporter>/model.onnx` and are made once. `dynamo` is `torch.export` at opset
18, `torchscript` the tracer at opset 17; both have dynamic batch and sequence. Decode steps, which take a cache of
dynamic length instead, are exported by dynamo alone.
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
            count = len(architecture.inputs)
            named: dict[str, Any] = dict(zip(architecture.inputs, tensors[:count], strict=True))
            if architecture.cache is None:
                out = self.model(**named, return_dict=True)
                return tuple(out[name] for name in architecture.outputs)
            cache = _cache_of(tensors[count:])
            out = self.model(**named, past_key_values=cache, use_cache=True, return_dict=True)
            present = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
            return (*(out[name] for name in architecture.outputs), *present)

    # The tracing exporter restores the mode of the wrapper, not of what is in it.
    return Wrapper().eval()


def _cache_of(tensors: tuple[Any, ...]) -> Any:
    """transformers' cache with these keys and values; its own way to fill one would concatenate them to nothing."""
    from transformers.cache_utils import DynamicCache, DynamicLayer

    cache = DynamicCache()
    for keys, values in zip(tensors[::2], tensors[1::2], strict=True):
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache


def torch_module(name: str) -> Any:
    """The module that the model called `name` was exported from: what torch's own compiler is given."""
    return build(find(name))


def example_inputs(architecture: Architecture, batch: int, length: int) -> tuple[Any, ...]:
    """Example tensors for the export; of a decode step `length` is that of the past."""
    import torch

    decode = architecture.cache
    tokens = (batch, 1 if decode else length)
    values = {
        "input_ids": torch.randint(5, 1000, tokens, dtype=torch.int64),
        "attention_mask": torch.ones((batch, length + 1 if decode else length), dtype=torch.int64),
        "token_type_ids": torch.zeros(tokens, dtype=torch.int64),
        "position_ids": torch.full(tokens, length, dtype=torch.int64),
    }
    found = [values[name] for name in architecture.inputs]
    if decode:
        shape = (batch, decode.heads, length, decode.size)
        found += [torch.randn(shape) for _ in decode.names("past_key_values")]
    return tuple(found)


def _export_dynamo(wrapper: Any, architecture: Architecture, target: Path) -> None:
    import torch
    from torch.export import Dim

    batch, length = Dim("batch", min=1, max=64), Dim(architecture.dims[1], min=2, max=500)
    if architecture.cache:
        whole = {"input_ids": {0: batch}, "position_ids": {0: batch}, "attention_mask": {0: batch, 1: length + 1}}
        shapes = [whole.get(name, {0: batch, 2: length}) for name in architecture.all_inputs]
    else:
        shapes = [{0: batch, 1: length} for _ in architecture.inputs]
    torch.onnx.export(
        wrapper,
        example_inputs(architecture, 2, 16),
        str(target),
        dynamo=True,
        opset_version=EXPORTERS["dynamo"],
        input_names=list(architecture.all_inputs),
        output_names=list(architecture.all_outputs),
        dynamic_shapes=(tuple(shapes),),
        external_data=True,
        verbose=False,
    )


def _export_torchscript(wrapper: Any, architecture: Architecture, target: Path) -> None:
    import torch

    if architecture.cache:
        raise ValueError(f"{architecture.name} is exported by dynamo alone")
    axes = {name: {0: "batch", 1: "sequence"} for name in architecture.inputs}
    for name in architecture.outputs:
        # The logits of a language model are for every token, those of a classifier for the sequence.
        whole = name in ("last_hidden_state", "start_logits", "end_logits") or "LM" in architecture.model
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
            for exporter in exporters if architecture.cache is None else ["dynamo"]:
                try:
                    print(ensure(architecture, exporter), flush=True)
                except subprocess.CalledProcessError:
                    failed.append(f"{architecture.name} ({exporter})")
        if failed:
            sys.exit(f"not exported: {', '.join(failed)}")
        return
    if not args.model_name:
        parser.error("--model_name or --all")
    for exporter in exporters if find(args.model_name).cache is None else ["dynamo"]:
        start = time.perf_counter()
        path = export(find(args.model_name), exporter)
        print(f"{path} ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
