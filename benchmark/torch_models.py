"""Small models of `transformers` and torch's own modules: eager, Inductor and Igniter, beside each other.

    python -m benchmark.torch_models [NAME ...] [--json FILE] [--rounds 15] [--without inductor]

Weights are random and configurations small, so nothing is downloaded. Each model has a process of its own. Every system
gets the same inputs at several sizes, and every output is compared with eager's; times are medians over calls that take
turns, on one thread, at the last size. First calls are what a new process waits for (caches as they are), memory is how
much the process has grown by them. `igniter` is `igniter.torch.compile(model)`, `backend` is
`torch.compile(model, backend="igniter", dynamic=True)`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SYSTEMS = ("igniter", "backend", "inductor")
SIZES = ((2, 16), (3, 29), (4, 64))
"""Batch and sequence; of images the batch."""

WIDTH, INNER, HEADS, LAYERS, WORDS = 256, 1024, 4, 2, 1000
PLAIN = {
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "vocab_size": WORDS,
}
LLAMA = {**PLAIN, "num_key_value_heads": 2, "head_dim": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
VISION = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_attention_heads": HEADS, "num_hidden_layers": LAYERS}
OF_TRANSFORMERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "BERT": ("bert", PLAIN, "text"),
    "DistilBERT": (
        "distilbert",
        {"dim": WIDTH, "hidden_dim": INNER, "n_heads": HEADS, "n_layers": LAYERS, "vocab_size": WORDS},
        "text",
    ),
    "RoBERTa": ("roberta", PLAIN, "text"),
    "XLM-R": ("xlm-roberta", PLAIN, "text"),
    "ELECTRA": ("electra", {**PLAIN, "embedding_size": 128}, "text"),
    "ALBERT": ("albert", {**PLAIN, "embedding_size": 128}, "text"),
    "MobileBERT": ("mobilebert", {"num_hidden_layers": 4, "vocab_size": WORDS}, "text"),
    "DeBERTa": ("deberta", {**PLAIN, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, "text"),
    "MPNet": ("mpnet", PLAIN, "text"),
    "GPT-2": (
        "gpt2",
        {
            "n_embd": WIDTH,
            "n_head": HEADS,
            "n_layer": LAYERS,
            "vocab_size": WORDS,
            "bos_token_id": 1,
            "eos_token_id": 1,
        },
        "decoder",
    ),
    "Llama": ("llama", LLAMA, "decoder"),
    "Mistral": ("mistral", {**LLAMA, "sliding_window": 32}, "decoder"),
    "Qwen2": ("qwen2", LLAMA, "decoder"),
    "Gemma": ("gemma", LLAMA, "decoder"),
    "Phi": ("phi", {**PLAIN, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}, "decoder"),
    "OPT": (
        "opt",
        {
            "hidden_size": WIDTH,
            "ffn_dim": INNER,
            "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS,
            "vocab_size": WORDS,
            "word_embed_proj_dim": WIDTH,
        },
        "decoder",
    ),
    "BLOOM": ("bloom", {"hidden_size": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "vocab_size": WORDS}, "decoder"),
    "GPT-NeoX": ("gpt_neox", {**PLAIN, "bos_token_id": 1, "eos_token_id": 1}, "decoder"),
    "T5": (
        "t5",
        {"d_model": WIDTH, "d_ff": INNER, "d_kv": 64, "num_heads": HEADS, "num_layers": LAYERS, "vocab_size": WORDS},
        "translation",
    ),
    "Whisper": (
        "whisper",
        {
            "d_model": WIDTH,
            "encoder_layers": LAYERS,
            "decoder_layers": LAYERS,
            "encoder_attention_heads": HEADS,
            "decoder_attention_heads": HEADS,
            "encoder_ffn_dim": INNER,
            "decoder_ffn_dim": INNER,
            "max_source_positions": 50,
            "vocab_size": WORDS,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
        "speech",
    ),
    "ViT": ("vit", {**VISION, "image_size": 64, "patch_size": 8}, "image"),
    "Swin": (
        "swin",
        {"image_size": 64, "patch_size": 2, "embed_dim": 48, "depths": [2, 2], "num_heads": [3, 6]},
        "image",
    ),
    "ConvNeXt": ("convnext", {"hidden_sizes": [32, 64, 128, 256], "depths": [1, 1, 2, 1]}, "image"),
    "CLIP": (
        "clip",
        {
            "text_config": {**PLAIN, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
            "vision_config": {**VISION, "image_size": 64, "patch_size": 8},
        },
        "both",
    ),
}


def of_torch() -> dict[str, tuple[Any, str]]:
    """torch's own modules, and what they are given."""
    from torch import nn

    def block(channels: int, out: int, stride: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1),
            nn.BatchNorm2d(out),
            nn.ReLU(),
        )

    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True, norm_first=True)
    return {
        "nn.TransformerEncoder": (nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False), "vectors"),
        "nn.LSTM": (nn.LSTM(WIDTH, WIDTH, 1, batch_first=True), "vectors"),
        "CNN": (
            nn.Sequential(
                block(3, 32, 2),
                block(32, 64, 2),
                block(64, 128, 2),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(1),
                nn.Linear(128, 10),
            ),
            "image",
        ),
        "MLP": (
            nn.Sequential(nn.Linear(WIDTH, INNER), nn.GELU(), nn.Linear(INNER, WIDTH), nn.LayerNorm(WIDTH)),
            "vectors",
        ),
    }


def model_and_inputs(name: str) -> tuple[Any, list[dict[str, Any] | tuple[Any, ...]]]:
    """A model in evaluation mode, and its arguments at each of `SIZES`."""
    import torch

    torch.manual_seed(0)
    if name in OF_TRANSFORMERS:
        from transformers import AutoConfig, AutoModel

        kind, settings, given = OF_TRANSFORMERS[name]
        model = AutoModel.from_config(AutoConfig.for_model(kind, **settings))
    else:
        model, given = of_torch()[name]
    return model.eval(), [inputs(given, batch, length) for batch, length in SIZES]


def inputs(given: str, batch: int, length: int) -> Any:
    import torch

    words = torch.randint(3, WORDS, (batch, length))
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, length - 3 :] = 0
    pixels = torch.randn(batch, 3, 64, 64)
    return {
        "text": {"input_ids": words, "attention_mask": mask},
        "decoder": {"input_ids": words, "attention_mask": mask, "use_cache": False},
        "translation": {
            "input_ids": words,
            "attention_mask": mask,
            "decoder_input_ids": words[:, :5],
            "use_cache": False,
        },
        "speech": {
            "input_features": torch.randn(batch, 80, 100),
            "decoder_input_ids": words,
            "use_cache": False,
        },
        "image": {"pixel_values": pixels},
        "both": {"input_ids": words, "attention_mask": mask, "pixel_values": pixels},
        "vectors": (torch.randn(batch, length, WIDTH),),
    }[given]


def call(system: Any, given: Any) -> list[Any]:
    """The tensors among what a system returns."""
    import torch
    from torch.utils import _pytree as pytree

    if isinstance(given, dict) and set(given) == {"pixel_values"} and not hasattr(system, "config"):
        given = (given["pixel_values"],)
    result = system(**given) if isinstance(given, dict) else system(*given)
    result = dict(result) if hasattr(result, "to_tuple") else result
    return [leaf for leaf in pytree.tree_leaves(result) if torch.is_tensor(leaf)]


def measure(name: str, rounds: int, systems: tuple[str, ...]) -> dict[str, Any]:
    """All figures of one model, in this process."""
    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    import torch

    import igniter.torch
    from igniter.torch.compare import differences

    torch.set_num_threads(1)
    model, sizes = model_and_inputs(name)
    ready: dict[str, Any] = {"eager": model}
    row: dict[str, Any] = {"name": name, "error": {}, "first": {}, "memory": {}, "ms": {}}
    with torch.inference_mode():
        expected = [[leaf.clone() for leaf in call(model, given)] for given in sizes]
        for system in systems:
            fast = {
                "igniter": lambda: igniter.torch.compile(model),
                "backend": lambda: torch.compile(model, backend="igniter", dynamic=True),
                "inductor": lambda: torch.compile(model, dynamic=True),
            }[system]()
            before = resident()
            start = time.perf_counter()
            try:
                got = [call(fast, sizes[0])]
                row["first"][system] = time.perf_counter() - start
                got += [call(fast, given) for given in sizes[1:]]
            except Exception as error:
                row["error"][system] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                continue
            row["memory"][system] = (resident() - before) / 2**20
            found = [differences(one, other, 1e-3) for one, other in zip(got, expected, strict=True)]
            wrong = [why for _, why in found if why]
            row["error"][system] = wrong[0] if wrong else max(error for error, _ in found)
            ready[system] = fast
        times: dict[str, list[float]] = {system: [] for system in ready}
        for _ in range(rounds):
            for system, fast in ready.items():
                start = time.perf_counter()
                call(fast, sizes[-1])
                times[system].append(time.perf_counter() - start)
    row["ms"] = {system: statistics.median(each) * 1e3 for system, each in times.items()}
    told = igniter.torch.explain()
    pieces = [piece for graph in told.graphs for piece in graph.pieces]
    row["compiled"] = [sum(piece.nodes for piece in pieces if piece.compiled), sum(piece.nodes for piece in pieces)]
    row["reasons"] = told.reasons
    return row


def resident() -> int:
    """Bytes of memory that this process has."""
    import psutil

    return int(psutil.Process().memory_info().rss)


HEADER = (
    "model",
    "error",
    "eager ms",
    "igniter ms",
    "backend ms",
    "Inductor ms",
    "first call s",
    "memory MB",
    "eager ops",
)


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown; of three figures in one cell the order is igniter, backend, Inductor."""
    lines = [" | ".join(HEADER), " | ".join("---" for _ in HEADER)]
    for row in rows:
        if "failed" in row:
            lines.append(f"{row['name']} | {row['failed']} | | | | | | | ")
            continue
        errors = [row["error"].get(system) for system in SYSTEMS]
        worst = [e if isinstance(e, str) else f"{e:.0e}" for e in errors if e is not None]
        cells = [row["name"], " / ".join(worst), *(_ms(row, system) for system in ("eager", *SYSTEMS))]
        cells.append(" / ".join(_number(row["first"].get(s), "{:.1f}") for s in SYSTEMS))
        cells.append(" / ".join(_number(row["memory"].get(s), "{:.0f}") for s in SYSTEMS))
        cells.append("; ".join(row["reasons"])[:160] or "none")
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" for line in lines)


def _ms(row: dict[str, Any], system: str) -> str:
    return _number(row["ms"].get(system), "{:.2f}")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="models; all where none is named")
    parser.add_argument("--json", default="", help="a file for all figures; what is in it is not measured again")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--without", action="append", default=[], choices=SYSTEMS)
    parser.add_argument("--limit", type=float, default=600, help="seconds for one model")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    systems = tuple(system for system in SYSTEMS if system not in given.without)
    if given.one:
        print("\n" + json.dumps(measure(given.names[0], given.rounds, systems)))
        return
    known = [*OF_TRANSFORMERS, *of_torch()]
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"there is no model {', '.join(unknown)}; there are {', '.join(known)}")
    file = Path(given.json) if given.json else None
    rows: list[dict[str, Any]] = json.loads(file.read_text()) if file is not None and file.exists() else []
    done = {row["name"] for row in rows}
    for name in given.names or known:
        if name in done:
            continue
        command = [sys.executable, "-m", "benchmark.torch_models", name, "--one", f"--rounds={given.rounds}"]
        command += [f"--without={system}" for system in given.without]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=given.limit)
            rows.append(json.loads(ran.stdout.splitlines()[-1]))
        except subprocess.TimeoutExpired:
            rows.append({"name": name, "failed": f"took more than {given.limit:.0f} s"})
        except (ValueError, IndexError):
            rows.append({"name": name, "failed": (ran.stderr.strip().splitlines() or ["no output"])[-1]})
        print(table(rows[-1:]).splitlines()[-1], flush=True)
        if file is not None:
            file.write_text(json.dumps(rows, indent=1))
    print("\n" + table(rows))


if __name__ == "__main__":
    main()
