"""A model repository for Triton Inference Server, whose ONNX Runtime backend loads custom-op libraries.

    REPOSITORY/NAME/config.pbtxt
    REPOSITORY/NAME/1/model.onnx, its weights, and the library

The backend hands `model_operations.op_library_filename` to ONNX Runtime as it is
(https://github.com/triton-inference-server/onnxruntime_backend, `src/onnxruntime.cc`), so a relative name would be
searched from the server's working directory. The file therefore has the path that the repository has on the server.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.runtime.session import CPU_PROVIDER
from igniter.toolbox.serve.model import ServedModel
from igniter.toolbox.serve.settings import Settings
from igniter.toolbox.serve.tensors import Tensor

TRITON = {"BYTES": "STRING"}
"""Names of types in `config.pbtxt` that differ from the protocol's."""

NOT_SERVED = (".html", ".json", ".npz")


def write_repository(folder: str | Path, repository: str | Path, at: str, settings: Settings) -> Path:
    """Writes the folder of a compiled model into a repository, and returns its path there.

    `at` is the absolute path of the repository on the server. An existing model of this name is replaced in one step.
    """
    artifact = Artifact.load(folder)
    if not PurePosixPath(at).is_absolute():
        raise IgniterError(f"the repository's path on the server is absolute, not '{at}'")
    providers = {p for info in artifact.library_infos() for p in info.get("providers", ())}
    model = ServedModel(folder) if not providers - {"", CPU_PROVIDER} else None
    root = Path(repository)
    root.mkdir(parents=True, exist_ok=True)
    target = root / settings.name
    with tempfile.TemporaryDirectory(dir=root, prefix=".igniter-") as temporary:
        made = Path(temporary) / settings.name
        (made / "1").mkdir(parents=True)
        for file in sorted(artifact.folder.iterdir()):
            if file.is_file() and file.suffix not in NOT_SERVED:
                shutil.copyfile(file, made / "1" / file.name)
        libraries = [f"{PurePosixPath(at) / settings.name / '1' / path.name}" for path in artifact.libraries]
        (made / "config.pbtxt").write_text(_config(model, libraries, settings), encoding="utf-8")
        if target.exists():
            if not (target / "config.pbtxt").is_file():
                raise IgniterError(f"{target} exists and is no model of a repository; it stays as it is")
            target.rename(Path(temporary) / "old")
        made.rename(target)
    return target


def _config(model: ServedModel | None, libraries: Sequence[str], settings: Settings) -> str:
    """Returns the text of `config.pbtxt`. Strings are quoted as in JSON, which the format reads."""
    lines = [f"name: {json.dumps(settings.name)}", 'backend: "onnxruntime"', f"max_batch_size: {_most(settings)}"]
    if model is not None:
        batched = settings.batch > 1
        lines += [_tensors("input", model.inputs, batched), _tensors("output", model.outputs, batched)]
    names = ", ".join(json.dumps(path) for path in libraries)
    lines.append(f"model_operations {{ op_library_filename: [ {names} ] }}")
    kind = "KIND_CPU" if model is not None else "KIND_GPU"
    lines.append(f"instance_group [ {{ count: {settings.replicas} kind: {kind} }} ]")
    if settings.batch > 1:
        delay = round(settings.wait_ms * 1e3)
        lines.append(f"dynamic_batching {{ max_queue_delay_microseconds: {delay} }}")
    for key, value in (("intra_op_thread_count", settings.threads), ("inter_op_thread_count", 1)):
        if value:
            lines.append(f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}')
    return "\n".join(lines) + "\n"


def _most(settings: Settings) -> int:
    return settings.batch if settings.batch > 1 else 0


def _tensors(what: str, tensors: Sequence[Tensor], batched: bool) -> str:
    """Returns the list of inputs or outputs. With batches, Triton adds the first dim itself. A scalar has one dim for
    Triton, and none for the model."""
    made: list[str] = []
    for tensor in tensors:
        dims = tensor.shape[1:] if batched else tensor.shape
        text = f"[ {', '.join(map(str, dims or [1]))} ]"
        reshape = "" if dims else " reshape { shape: [ ] }"
        kind = TRITON.get(tensor.datatype, tensor.datatype)
        made.append(f"  {{ name: {json.dumps(tensor.name)} data_type: TYPE_{kind} dims: {text}{reshape} }}")
    return f"{what} [\n" + ",\n".join(made) + "\n]"
