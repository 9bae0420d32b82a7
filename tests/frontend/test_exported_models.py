"""Transformers as both exporters of torch write them: a round trip loses nothing and computes the same bits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from model_equality import difference
from round_trip import round_trip
from runtime_equality import original_outputs, outputs, same_bits

pytestmark = pytest.mark.full

SMALL: dict[str, dict[str, Any]] = {
    "bert": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 4},
    "deberta": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128},
}


def _export(kind: str, path: Path, dynamo: bool) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(kind, vocab_size=200, use_cache=False, **SMALL[kind])
    torch.manual_seed(0)
    inner = transformers.AutoModel.from_config(config).eval()

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, ids: Any, mask: Any) -> Any:
            return self.inner(input_ids=ids, attention_mask=mask).last_hidden_state

    ids = torch.arange(14).reshape(2, 7)
    arguments: dict[str, Any] = {"input_names": ["ids", "mask"], "output_names": ["y"], "dynamo": dynamo}
    if dynamo:
        dims = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
        arguments["dynamic_shapes"] = {"ids": dims, "mask": dims}
    else:
        arguments["dynamic_axes"] = {name: {0: "batch", 1: "seq"} for name in ("ids", "mask", "y")}
        arguments["opset_version"] = 17
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(Network(), (ids, torch.ones_like(ids)), str(path), **arguments)


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "torchscript"])
@pytest.mark.parametrize("kind", SMALL)
def test_exported_transformers(kind: str, dynamo: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    _export(kind, path, dynamo)
    before = onnx.load(path)
    after = round_trip(path)
    assert difference(before, after) is None
    onnx.checker.check_model(after, full_check=True)
    ids = np.random.default_rng(0).integers(0, 200, (3, 9))
    feeds = {v.name: ids if i == 0 else np.ones_like(ids) for i, v in enumerate(before.graph.input)}
    assert same_bits(original_outputs(before, feeds), outputs(after, feeds))
