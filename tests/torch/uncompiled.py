"""Models in ONNX Runtime as PyTorch's exporter wrote them: for what is about graphs, and not about kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class _Uncompiled:
    """In an artifact's place: a model as it is."""

    def __init__(self, path: Path):
        self.report: dict[str, Any] = {}
        self._data = path.read_bytes()
        self._weights = path.with_name("weights.bin").read_bytes()

    def session(self, **_: Any) -> Any:
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        settings.intra_op_num_threads = 1
        settings.add_external_initializers_from_files_in_memory(["weights.bin"], [self._weights], [len(self._weights)])
        return onnxruntime.InferenceSession(self._data, settings, providers=["CPUExecutionProvider"])


def uncompiled(path: Path, _: Any) -> Any:
    """In the place of `igniter.torch.sessions.compiled`."""
    return _Uncompiled(path)
