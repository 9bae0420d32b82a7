"""`igniter compile --genai`: the files with which onnxruntime-genai runs a compiled folder.

`genai_config.json` is that of the source, if it has one beside it, with the name of the compiled model and of its
library (`custom_ops_library`, which onnxruntime-genai registers). Otherwise it is made from the graph: names, layers,
heads, sizes; and from `config.json` and `generation_config.json` beside the source: the tokens that begin and end a
text, and the longest sequence. What none of these says is an error that names it, and is given by `--genai-set`.

The tokenizer's files beside the source are copied. A later compile into the folder writes the name of its library
(`igniter.compiler.genai_library`).
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from igniter.compiler.artifact import MODEL, Artifact
from igniter.errors import IgniterError, did_you_mean
from igniter.frontend.surgery import read_proto
from igniter.runtime.files import write_whole
from igniter.toolbox.generate.decoder_graph import DecoderGraph
from igniter.toolbox.generate.model_folder import GENAI, complete_graph
from igniter.toolbox.generate.tokenizer import read_json

TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "merges.txt"),
    *("special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
)
KEYS = ("type", "context_length", "vocab_size", "bos_token_id", "eos_token_id", "pad_token_id", "num_attention_heads")
"""What `--genai-set` gives."""
SEARCH = {
    "do_sample": False,
    "early_stopping": True,
    "num_beams": 1,
    "num_return_sequences": 1,
    "repetition_penalty": 1.0,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
}


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Parses `eos_token_id=2` and alike; several numbers are `eos_token_id=2,7`."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or key not in KEYS:
            raise IgniterError(f"--genai-set '{text}': write KEY=VALUE with {', '.join(KEYS)}{did_you_mean(key, KEYS)}")
        numbers = [int(part) for part in value.split(",")] if re.fullmatch(r"\d+(,\d+)*", value) else []
        if key != "type" and (not numbers or (len(numbers) > 1 and key != "eos_token_id")):
            raise IgniterError(f"--genai-set '{text}': {key} is a number")
        found[key] = value if key == "type" else numbers[0] if len(numbers) == 1 else numbers
    return found


def write_genai(artifact: Artifact, source: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Writes `genai_config.json` and the tokenizer's files into a compiled folder; returns the configuration."""
    libraries = artifact.libraries
    if len(libraries) > 1:
        names = ", ".join(path.name for path in libraries)
        raise IgniterError(
            f"onnxruntime-genai registers one library, and the model has {names}: compile for one target"
        )
    beside = read_json(source.parent / GENAI)
    config = beside or _made(artifact, source, settings)
    model = config["model"]
    if beside:
        model.update({key: value for key, value in settings.items() if key != "num_attention_heads"})
        if "num_attention_heads" in settings:
            model["decoder"]["num_attention_heads"] = settings["num_attention_heads"]
    decoder: dict[str, Any] = model["decoder"]
    decoder["filename"] = MODEL
    options: dict[str, Any] = decoder.setdefault("session_options", {})
    options.pop("custom_ops_library", None)
    if libraries:
        options["custom_ops_library"] = libraries[0].name
    write_whole(artifact.folder / GENAI, json.dumps(config, indent=4) + "\n")
    for name in TOKENIZER_FILES:
        if (source.parent / name).is_file():
            shutil.copy2(source.parent / name, artifact.folder / name)
    return config


def _made(artifact: Artifact, source: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration from the graph and the files beside the source."""
    session: Any = artifact.session(intra_op_num_threads=1)
    graph = complete_graph(session, {}, source)
    plain, generation = read_json(source.parent / "config.json"), read_json(source.parent / "generation_config.json")
    facts: dict[str, Any] = {
        "type": plain.get("model_type"),
        "context_length": plain.get("max_position_embeddings") or plain.get("n_positions"),
        "vocab_size": graph.vocabulary or plain.get("vocab_size"),
        "num_attention_heads": plain.get("num_attention_heads") or plain.get("n_head") or _query_heads(source),
    }
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        facts[key] = generation.get(key, plain.get(key))
    facts |= settings
    missing = [key for key in KEYS if facts[key] is None and key not in ("bos_token_id", "pad_token_id")]
    if missing:
        told = " ".join(f"--genai-set {key}=..." for key in missing)
        raise IgniterError(
            f"neither the graph of {source} nor a config.json beside it says {', '.join(missing)}, which {GENAI} "
            f"needs: give {told}"
        )
    ends = facts["eos_token_id"]
    if facts["pad_token_id"] is None:
        facts["pad_token_id"] = ends[0] if isinstance(ends, list) else ends
    if facts["bos_token_id"] is None:
        del facts["bos_token_id"]
    heads = facts.pop("num_attention_heads")
    search = {**SEARCH, "max_length": facts["context_length"], "past_present_share_buffer": bool(graph.shared)}
    decoder = _decoder(graph, heads, plain.get("hidden_size") or plain.get("n_embd"))
    return {"model": {**facts, "decoder": decoder}, "search": search}


def _decoder(graph: DecoderGraph, heads: int, hidden: int | None) -> dict[str, Any]:
    """Returns the entry on the graph: names, and the sizes of caches."""
    pasts = {_pattern(pair.past): _pattern(pair.present) for pair in graph.caches}
    kinds = {past: "value" if "value" in past.replace("past_key_values", "") else "key" for past in pasts}
    if len(pasts) != 2 or set(kinds.values()) != {"key", "value"}:
        raise IgniterError(
            "onnxruntime-genai takes a key and a value of each layer, named by a number: the caches are "
            + ", ".join(pair.past for pair in graph.caches[:4])
        )
    pair = graph.caches[0]
    inputs = {role: named.name for role, named in graph.inputs.items()}
    outputs = {"logits": graph.logits}
    for past, present in pasts.items():
        inputs[f"past_{kinds[past]}_names"], outputs[f"present_{kinds[past]}_names"] = past, present
    head = cast("int", pair.dims[-1])
    return {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "head_size": head,
        "hidden_size": hidden or heads * head,
        "inputs": inputs,
        "outputs": outputs,
        "num_attention_heads": heads,
        "num_hidden_layers": len(graph.caches) // 2,
        "num_key_value_heads": cast("int", pair.dims[1]),
    }


def _pattern(name: str) -> str:
    """Returns the name of a cache with %d in the place of the layer's number."""
    return re.sub(r"\d+", "%d", name, count=1)


def _query_heads(source: Path) -> int | None:
    """Returns the heads of queries, where a node says them."""
    proto, _ = read_proto(str(source))
    for node in proto.graph.node:
        for attribute in node.attribute:
            if node.op_type in ("GroupQueryAttention", "MultiHeadAttention") and attribute.name == "num_heads":
                return int(attribute.i)
    return None


__all__ = ["parse_settings", "write_genai"]
