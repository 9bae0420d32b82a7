"""Igniter behind ONNX's own backend interface, `onnx.backend.base.Backend`.

    import igniter.backend as backend

    rep = backend.prepare(model)             # compiled; nodes that Igniter has no kernel for run in ONNX Runtime
    outputs = rep.run([x, y])                # arrays in the order of the model's inputs, or a dictionary by name
    (z,) = backend.run_node(node, [x, y])

ONNX's test runner accepts it: `onnx.backend.test.BackendTest(igniter.backend, __name__)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

import igniter
from igniter.compiler.compilation import CompileOptions
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.compiler.artifact import Artifact

EVERYTHING = "form-fusion-regions{contractions=all singletons=all},pack-weights"
"""The fusion passes for compiling every node with a kernel, also if ONNX Runtime's kernel is faster."""


class IgniterRep(BackendRep):
    """A compiled model with its session."""

    def __init__(self, artifact: Artifact, threads: int):
        self.artifact = artifact
        """The compiled model; `artifact.report` lists the compiled nodes, and the reasons for the others."""
        self._session: Any = artifact.session(intra_op_num_threads=threads)
        self._inputs: list[str] = [value.name for value in self._session.get_inputs()]
        self._outputs: list[str] = [value.name for value in self._session.get_outputs()]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns the outputs as a named tuple.

        `inputs` is a sequence in the order of the model's inputs, a dictionary by name, or the single input. Raises
        `IgniterError` if their number is wrong, and ONNX Runtime's own errors if a value does not fit.
        """
        if kwargs:
            raise IgniterError(f"running a compiled model takes no options, and {', '.join(kwargs)} was given")
        made = namedtupledict("Outputs", self._outputs)
        return made(*self._session.run(self._outputs, self._feed(inputs)))

    def _feed(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            return dict(cast("Mapping[str, Any]", inputs))
        values = _values(inputs)
        if len(values) > len(self._inputs):
            raise IgniterError(f"the model has {len(self._inputs)} inputs, and {len(values)} were given")
        # Trailing inputs with a default may be omitted; ONNX Runtime reports one without a default.
        return dict(zip(self._inputs, values, strict=False))


class IgniterBackend(Backend):
    """Compiles for the CPU of this machine."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True for CPU only."""
        return Device(device).type == DeviceType.CPU

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto,
        device: str = "CPU",
        *,
        fusion_passes: str = EVERYTHING,
        threads: int = 1,
        **kwargs: Any,
    ) -> IgniterRep:
        """Compiles a model, unverified. Raises `IgniterError` if a part of it is invalid, or if the device is not CPU.

        `fusion_passes` is the pipeline for fusion; further options are those of `Module.compile`.
        """
        if not cls.supports_device(device):
            raise IgniterError(f"there are no kernels for the device '{device}'; there are for CPU")
        options = CompileOptions(fusion_passes=fusion_passes)
        artifact = igniter.load(model).compile(options=options, verify=False, **kwargs)
        return IgniterRep(artifact, threads)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Calls `prepare`, then runs once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one node. `opset_version` is the version of its domain; by default the first with the op's newest form.

        `outputs_info` gives the type and shape of each output; without it ONNX's shape inference finds them.
        """
        version: int | None = kwargs.pop("opset_version", None)
        if version is None:
            version = onnx.defs.get_schema(node.op_type, domain=node.domain).since_version
        arrays = [np.asarray(v) for v in _values(inputs)]
        names = [name for name in node.input if name]
        given = [_value_info(n, a.dtype, a.shape) for n, a in zip(names, arrays, strict=True)]
        outputs = [name for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", given, [])
        opsets = [onnx.helper.make_opsetid(node.domain, version)]
        # The onnx package may write a newer IR version than ONNX Runtime reads, even for an old op.
        oldest = onnx.helper.find_min_ir_version_for(opsets, ignore_unknown=True)
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=oldest)
        if outputs_info is not None:
            made = [_value_info(n, np.dtype(t), s) for n, (t, s) in zip(outputs, outputs_info, strict=True)]
        else:
            inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
            found = {v.name: v for v in inferred.graph.value_info}
            made = [found.get(name) or onnx.ValueInfoProto(name=name) for name in outputs]
        model.graph.output.extend(made)
        return cls.run_model(model, dict(zip(names, arrays, strict=True)), device, **kwargs)


def _values(inputs: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", inputs if isinstance(inputs, (list, tuple)) else [inputs])


def _value_info(name: str, dtype: Any, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)


is_compatible = IgniterBackend.is_compatible
prepare = IgniterBackend.prepare
run_model = IgniterBackend.run_model
run_node = IgniterBackend.run_node
supports_device = IgniterBackend.supports_device

__all__ = ["IgniterBackend", "IgniterRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
