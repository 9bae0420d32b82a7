"""Runs of a session on tensors, without copies.

Inputs are bound by the address of their data. ONNX Runtime allocates outputs, at the size found by the run, and
passes them by DLPack: the tensor owns ONNX Runtime's buffer, and returns it when the tensor is freed. So only an input
that is not dense is copied, and an output never.

An output that updates an input is bound to the memory of the input, and the result is the input itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from igniter.torch.names import Tensor, torch
from igniter.torch.support import ELEMENT_TYPES

_EMPTY = torch.zeros(16, dtype=torch.uint8)
"""A valid address for tensors without elements."""


class Runner:
    """A session, called with tensors and numbers in the order of `names`. `places` are their places among the arguments
    of the part; `in_place` maps outputs to the inputs that they update, by number."""

    def __init__(
        self,
        session: Any,
        places: Sequence[int],
        names: Sequence[str],
        numbers: Sequence[type | None],
        in_place: Mapping[int, int],
    ):
        self.session = session
        self.places = list(places)
        self.names = list(names)
        self.numbers = list(numbers)
        self.calls = 0
        self.copied_inputs = 0
        self.copied_outputs = 0
        state = import_module("onnxruntime.capi._pybind_state")
        self._binding: Any = state.SessionIOBinding
        self._native: Any = session._sess
        self._cpu: Any = state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)
        self._outputs: list[str] = [output.name for output in session.get_outputs()]
        self._in_place = dict(in_place)

    def __call__(self, values: Sequence[Any]) -> list[Tensor]:
        """Returns the outputs as tensors. Passes on ONNX Runtime's errors, for example on wrong sizes."""
        self.calls += 1
        binding = self._binding(self._native)
        held: list[Tensor] = []
        for name, value, number in zip(self.names, values, self.numbers, strict=True):
            tensor = value if number is None else _number(value, number)
            if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
                tensor = tensor.resolve_conj().resolve_neg().contiguous()
                self.copied_inputs += 1
            held.append(tensor)
            address = tensor.data_ptr() or _EMPTY.data_ptr()
            binding.bind_input(name, self._cpu, ELEMENT_TYPES[tensor.dtype], list(tensor.shape), address)
        shared = {place: held[k] for place, k in self._in_place.items() if held[k] is values[k] and held[k].numel()}
        for place, name in enumerate(self._outputs):
            if place in shared:
                tensor = shared[place]
                kind, sizes = ELEMENT_TYPES[tensor.dtype], list(tensor.shape)
                binding.bind_output(name, self._cpu, kind, sizes, tensor.data_ptr())
            else:
                binding.bind_output(name, self._cpu)
        self._native.run_with_iobinding(binding, None)
        # By number: an iteration over this vector of C++ takes 60 µs, more than the run of a small graph.
        given = binding.get_outputs()
        found = [shared[k] if k in shared else self._tensor(given[k]) for k in range(len(given))]
        for place, k in self._in_place.items():
            if place not in shared:
                # A tensor that is not dense was copied.
                found[place] = values[k].copy_(found[place])
        return found

    def _tensor(self, value: Any) -> Tensor:
        if hasattr(value, "to_dlpack"):
            return torch.from_dlpack(value.to_dlpack())
        # ONNX Runtime was built without DLPack.
        self.copied_outputs += 1
        return torch.from_numpy(value.numpy().copy())


def _number(value: Any, kind: type) -> Tensor:
    dtype = {bool: torch.bool, int: torch.int64}.get(kind, torch.float32)
    return torch.tensor(kind(value), dtype=dtype)
