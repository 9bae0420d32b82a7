"""Sessions of stock ONNX Runtime for aarch64, in an arm64 root under qemu: compiled models run on a CPU that is not
there, with the interface of `onnxruntime.InferenceSession` as far as tests use it."""

from __future__ import annotations

import ctypes
import pickle
import struct
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from igniter.dialects.onnx.types import element_of_dtype
from igniter.frontend.ort_values import _foreign, _is_foreign, _packed, to_array
from tests.platforms.arm64_root import command

GUEST = Path(__file__).with_name("arm64_guest.py")
TIMEOUT = 240.0


class GuestError(Exception):
    """Raised with what ONNX Runtime said in the guest, or if the guest crashed or gave no answer."""


class Guest:
    """A Python under qemu that runs many models; it is started again after a crash."""

    def __init__(self, cpu: str = "max"):
        self._command = [*command(cpu), str(GUEST)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Guest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def run(
        self, folder: Path, feed: Mapping[str, Any], outputs: Mapping[str, str], threads: int = 1, runs: int = 1
    ) -> list[Any]:
        """Returns the outputs of a compiled model's folder; `outputs` are the names with ONNX Runtime's types."""
        kinds = {name: _foreign(kind) for name, kind in outputs.items()}
        job = {
            "model": str(folder / "model.onnx"),
            "libraries": [str(p) for p in sorted(folder.glob("lib*.so"))],
            "feed": {name: _sent(value) for name, value in feed.items()},
            "threads": threads,
            "runs": runs,
            "values": [name for name, kind in kinds.items() if kind is not None],
        }
        answer = self._ask(job)
        if "error" in answer:
            raise GuestError(answer["error"])
        return [_received(v, kind) for v, kind in zip(answer["outputs"], kinds.values(), strict=True)]

    def _ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        process, data = self._process, pickle.dumps(dict(job), protocol=4)
        assert process.stdin is not None and process.stdout is not None
        alarm = threading.Timer(TIMEOUT, process.kill)
        alarm.start()
        try:
            process.stdin.write(struct.pack("<q", len(data)) + data)
            process.stdin.flush()
            size = process.stdout.read(8)
            found = process.stdout.read(struct.unpack("<q", size)[0]) if len(size) == 8 else b""
        except BrokenPipeError:
            found = b""
        finally:
            alarm.cancel()
        if not found:
            self._process = None
            _, said = process.communicate()
            last = said.decode(errors="replace").strip().splitlines()[-1:]
            raise GuestError(f"crash: the guest ended with {process.returncode}: {' '.join(last)}")
        return pickle.loads(found)


class _Value:
    """An `OrtValue` that came as bytes."""

    def __init__(self, shape: Sequence[int], data: bytes):
        self._shape, self._data = list(shape), ctypes.create_string_buffer(data, max(1, len(data)))
        self._size = len(data)

    def shape(self) -> list[int]:
        return self._shape

    def tensor_size_in_bytes(self) -> int:
        return self._size

    def data_ptr(self) -> int:
        return ctypes.addressof(self._data)


def _sent(value: Any) -> Any:
    if not _is_foreign(value):
        return value
    kind = element_of_dtype(value.dtype)
    return "raw", kind.code, value.shape, _packed(np.ascontiguousarray(value), kind.bits)


def _received(value: Any, kind: Any) -> Any:
    if kind is None:
        return value
    _, _, shape, data = value
    return to_array(_Value(shape, data), kind)
