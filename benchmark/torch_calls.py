"""First calls of PyTorch's compilers, and the rate of `generate`, beside eager.

    python -m benchmark.torch_calls first [--width 768] [--layers 12] [--without inductor]
    python -m benchmark.torch_calls generate [--models gpt2 llama t5 whisper] [--width 256] [--layers 4] [--tokens 48]

`first` calls a BERT with random weights, `dynamic=True`, in a process for each system: `dynamo` is the trace alone
(`backend="eager"`), which no backend of `torch.compile` can be faster than; `igniter` and `inductor` have empty caches,
then those filled by the process before. Seconds are of the first call, without imports of PyTorch and of the model.

`generate` decodes with eager and with the compiled model in turns, with a static and a dynamic cache, and compares the
tokens. The rate is that of the fastest of `--rounds`. `--cache N` gives the static cache N places.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

IDS = {"vocab_size": 8000, "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
PROMPT = 32
DECODERS = ("gpt2", "llama", "t5", "whisper")


# -- first calls ------------------------------------------------------------------------------------------------------


def first_call(system: str, given: argparse.Namespace) -> dict[str, float]:
    """Seconds of the first call in this process, and the largest difference from eager."""
    import torch
    from transformers import BertConfig, BertModel

    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": given.layers, "hidden_size": given.width, "intermediate_size": 4 * given.width}
    model = BertModel(BertConfig(num_attention_heads=given.width // 64, **sizes)).eval()
    words = torch.randint(0, 30000, (2, 64))
    with torch.inference_mode():
        expected = model(words).last_hidden_state
        start = time.perf_counter()
        fast = torch.compile(model, backend={"dynamo": "eager"}.get(system, system), dynamic=True)
        got = fast(words).last_hidden_state
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "error": float((got - expected).abs().max() / expected.abs().max())}


def first(given: argparse.Namespace) -> None:
    systems = [system for system in ("dynamo", "igniter", "inductor") if system not in given.without]
    if shutil.which(os.environ.get("CXX", "g++")) is None and "inductor" in systems:
        print("inductor is left out: it needs a C++ compiler")
        systems.remove("inductor")
    print("| first call | caches | s | of Dynamo's trace | error |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        floor = 0.0
        for system in systems:
            for caches in ("none",) if system == "dynamo" else ("empty", "filled"):
                row = _in_process(system, given, f"{folder}/{system}")
                floor = floor or row["seconds"]
                ratio = row["seconds"] / floor
                print(f"| {system} | {caches} | {row['seconds']:.1f} | {ratio:.2f} | {row['error']:.0e} |", flush=True)


def _in_process(system: str, given: argparse.Namespace, caches: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmark.torch_calls", "first", f"--one={system}"]
    command += [f"--{name}={getattr(given, name)}" for name in ("width", "layers", "threads")]
    places = {"IGNITER_CACHE_DIR": caches, "TORCHINDUCTOR_CACHE_DIR": caches}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **places}, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# -- generation -------------------------------------------------------------------------------------------------------


def decoder(name: str, width: int, layers: int) -> Any:
    """A model with random weights from a seed."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    heads, inner = width // 64, 4 * width
    if name == "gpt2":
        return t.GPT2LMHeadModel(t.GPT2Config(n_embd=width, n_layer=layers, n_head=heads, n_positions=4096, **IDS))
    if name == "llama":
        sizes = {"hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers}
        heads_of = {"num_attention_heads": heads, "num_key_value_heads": max(1, heads // 2)}
        return t.LlamaForCausalLM(t.LlamaConfig(max_position_embeddings=4096, **sizes, **heads_of, **IDS))
    if name == "t5":
        sizes = {"d_model": width, "d_kv": 64, "d_ff": inner, "num_layers": layers, "num_heads": heads}
        return t.T5ForConditionalGeneration(t.T5Config(decoder_start_token_id=0, **sizes, **IDS))
    sides = {
        f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", layers), ("ffn_dim", inner))
    }
    sides |= {f"{side}_attention_heads": heads for side in ("encoder", "decoder")}
    lengths = {"num_mel_bins": 80, "max_source_positions": 200, "max_target_positions": 448}
    config = t.WhisperConfig(
        d_model=width,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **sides,
        **lengths,
        **IDS,
    )
    return t.WhisperForConditionalGeneration(config)


def generated(model: Any, tokens: int, cache: str, places: int) -> Any:
    """The tokens of a greedy decode; the length of a static cache is at least `places`."""
    import torch
    import transformers as t

    torch.manual_seed(1)
    if isinstance(model, t.WhisperForConditionalGeneration):
        inputs = {"input_features": torch.randn(1, 80, 400)}
    else:
        inputs = {"input_ids": torch.randint(3, IDS["vocab_size"], (1, PROMPT))}
    settings: dict[str, Any] = {"do_sample": False, "max_new_tokens": tokens, "disable_compile": True}
    if cache == "static" and places:
        settings["past_key_values"] = t.StaticCache(model.config, max_cache_len=places)
    else:
        settings["cache_implementation"] = cache
    with torch.inference_mode():
        # Whisper's own `generate` cuts audio into segments and calls this one for each.
        return t.GenerationMixin.generate(model, **inputs, **settings)


def generate(given: argparse.Namespace) -> None:
    import torch
    import transformers as t

    import igniter.torch

    t.logging.set_verbosity_error()
    torch.set_num_threads(given.threads)
    print("| model | cache | tokens | first s | eager ms/token | igniter ms/token | speed |\n" + "| --- " * 7 + "|")
    for name in given.models:
        eager = decoder(name, given.width, given.layers).eval()
        for cache in given.caches:
            torch._dynamo.reset()
            igniter.torch.reset()
            fast = decoder(name, given.width, given.layers).eval()
            fast.compile(backend="igniter", dynamic=True)
            start = time.perf_counter()
            tokens = generated(fast, given.tokens, cache, given.cache)
            seconds = time.perf_counter() - start
            same = "equal" if torch.equal(tokens, generated(eager, given.tokens, cache, given.cache)) else "DIFFER"
            best = {id(eager): float("inf"), id(fast): float("inf")}
            for _ in range(given.rounds):
                for model in (eager, fast):
                    start = time.perf_counter()
                    generated(model, given.tokens, cache, given.cache)
                    best[id(model)] = min(best[id(model)], time.perf_counter() - start)
            theirs, ours = (best[id(model)] / given.tokens * 1e3 for model in (eager, fast))
            row = f"| {name} | {cache} | {same} | {seconds:.1f} | {theirs:.2f} | {ours:.2f} | {theirs / ours:.2f} |"
            print(row, flush=True)
            for reason in igniter.torch.explain().reasons:
                print(f"  eager: {reason}")


# -- the command ------------------------------------------------------------------------------------------------------


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    calls = verbs.add_parser("first")
    calls.add_argument("--width", type=int, default=768)
    calls.add_argument("--layers", type=int, default=12)
    calls.add_argument("--threads", type=int, default=1)
    calls.add_argument("--without", nargs="+", default=[], choices=("dynamo", "igniter", "inductor"))
    calls.add_argument("--one", default="", help=argparse.SUPPRESS)
    rate = verbs.add_parser("generate")
    rate.add_argument("--models", nargs="+", default=list(DECODERS), choices=DECODERS)
    rate.add_argument("--caches", nargs="+", default=["dynamic", "static"], choices=("dynamic", "static"))
    rate.add_argument("--width", type=int, default=256)
    rate.add_argument("--layers", type=int, default=4)
    rate.add_argument("--threads", type=int, default=1)
    rate.add_argument("--tokens", type=int, default=48)
    rate.add_argument("--rounds", type=int, default=4)
    rate.add_argument("--cache", type=int, default=0, metavar="N")
    return parser.parse_args()


def main() -> None:
    if importlib.util.find_spec("transformers") is None:
        sys.exit("needs transformers: pip install transformers")
    given = parsed()
    if given.verb == "generate":
        generate(given)
    elif given.one:
        print("\n" + json.dumps(first_call(given.one, given)))
    else:
        first(given)


if __name__ == "__main__":
    main()
