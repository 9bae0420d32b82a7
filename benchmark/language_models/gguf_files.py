"""GGUF files of SmolLM2 for OpenVINO GenAI and llama.cpp: the weights of the f32 subject, in one type each."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from benchmark.language_models.subjects import smollm2_gguf

FILE_TYPES = {
    "f32": "ALL_F32",
    "f16": "MOSTLY_F16",
    "q4_0": "MOSTLY_Q4_0",
    "q4_1": "MOSTLY_Q4_1",
    "q8_0": "MOSTLY_Q8_0",
}
"""The types of matrices, with GGUF's name for files of them. Vectors are f32 in all of them."""


def gguf_file(kind: str, folder: Path) -> Path:
    """Returns SmolLM2 with all matrices in the type `kind`, the embedding too; written into `folder` if missing."""
    import gguf

    target = folder / f"{kind}.gguf"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        read: Any = gguf.GGUFReader(smollm2_gguf(Path(place)))
        made = Path(place) / "made.gguf"
        _write(read, made, kind)
        os.replace(made, target)
    return target


def _write(read: Any, target: Path, kind: str) -> None:
    import gguf
    import numpy as np

    written: Any = gguf.GGUFWriter(target, "llama")
    for field in read.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        item = field.types[-1] if len(field.types) > 1 else None
        written.add_key_value(field.name, field.contents(), field.types[0], sub_type=item)
    written.add_file_type(gguf.LlamaFileType[FILE_TYPES[kind]])
    matrix: Any = gguf.GGMLQuantizationType[kind.upper()]
    for tensor in read.tensors:
        numbers: Any = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if numbers.ndim < 2:
            written.add_tensor(tensor.name, numbers.astype(np.float32))
        else:
            written.add_tensor(tensor.name, gguf.quants.quantize(numbers, matrix), raw_dtype=matrix)
    written.write_header_to_file()
    written.write_kv_data_to_file()
    written.write_tensors_to_file()
    written.close()
