"""Calls every public name of the installed package once, in a folder with the models.

    python calls.py                all of them
    python calls.py torch_calls    those of PyTorch alone

The package says which names are public: those of `igniter.__all__`, the methods of its classes, `igniter.backend` and,
with the extra, `igniter.torch`. A name that nothing here calls is a failure.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

ROWS = {"rows": 4}


class Recorder:
    """Notes which public names were called."""

    def __init__(self) -> None:
        self.public: set[str] = set()
        self.called: set[str] = set()

    def _noted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        self.public.add(name)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.called.add(name)
            return function(*args, **kwargs)

        return call

    def watch_module(self, module: Any, names: list[str]) -> None:
        """Watches the functions of a module, and the making and the methods of its classes."""
        for name in names:
            found = getattr(module, name)
            if inspect.isclass(found):
                self.watch_class(found, f"{module.__name__}.{name}")
            elif callable(found):
                setattr(module, name, self._noted(f"{module.__name__}.{name}", found))

    def watch_class(self, cls: type, called: str) -> None:
        cls.__init__ = self._noted(called, cls.__init__)  # type: ignore[misc]
        for name in (n for n in dir(cls) if not n.startswith("_") and self._is_own(cls, n)):
            found = inspect.getattr_static(cls, name)
            full = f"{called}.{name}"
            if isinstance(found, property):
                setattr(cls, name, property(self._noted(full, found.fget)))  # type: ignore[arg-type]
            elif isinstance(found, classmethod):
                setattr(cls, name, classmethod(self._noted(full, found.__func__)))
            elif isinstance(found, staticmethod):
                setattr(cls, name, staticmethod(self._noted(full, found.__func__)))
            elif inspect.isfunction(found):
                setattr(cls, name, self._noted(full, found))

    @staticmethod
    def _is_own(cls: type, name: str) -> bool:
        """Not what a class takes from Python's own exceptions, or from PyTorch's modules."""
        owner = next(c for c in cls.__mro__ if name in vars(c))
        return owner.__module__.partition(".")[0] == "igniter"

    def missing(self) -> list[str]:
        return sorted(self.public - self.called)


def whole_models(igniter: Any) -> None:
    module = igniter.load("model.onnx")
    assert "9 nodes" in repr(module)
    assert len(module.clone().run_passes("cpu-onnx,cpu-fusion").remarks) > 0
    module.save("saved.onnx")
    assert len(module.to_onnx().graph.node) == 9
    artifact = module.compile("calls.igniter", options=igniter.CompileOptions())
    again = igniter.Artifact.load("calls.igniter")
    x = np.load("samples.npz")["x"]
    (y,) = again.session(intra_op_num_threads=1).run(None, {"x": x})
    np.testing.assert_allclose(y.sum(axis=-1), 1.0, rtol=1e-5)
    assert again.verify(shapes=[ROWS]) and artifact.verify_every_value(shapes=ROWS).status == "passed"
    assert again.model_path.is_file() and len(again.libraries) == len(again.library_infos()) == 1
    assert again.providers()
    assert igniter.compile("model.onnx").verify({"x": x})
    assert igniter.shape_engine("model.onnx")
    parsed = igniter.parse(str(module))
    assert not parsed.diff(module)
    try:
        igniter.compile("model.onnx", precision="bf16", rtol=1e-9)
    except igniter.VerificationFailed as error:
        assert error.verification.status == "differs"
    else:
        raise AssertionError("products of rounded factors pass a tolerance of 1e-9")
    try:
        igniter.load("missing.onnx")
    except igniter.IgniterError as error:
        assert "missing.onnx" in error.message
    else:
        raise AssertionError("a file that is missing is loaded")


def toolbox(igniter: Any) -> None:
    def fresh() -> Any:
        return igniter.load("model.onnx")

    module = fresh()
    assert "rows" in str(module.shapes()) and module.shape_engine(["h"])
    assert module.profile(ROWS).total and module.plan(ROWS).peak and module.plan_compiled(ROWS).arenas is not None
    module.report("calls.html", ROWS)
    assert Path("calls.html").stat().st_size > 10_000
    module.compute_graph()
    assert fresh().fuse("gelu").save("fused.onnx") is None
    assert fresh().compress("int8", min_elements=16).weights()
    assert fresh().quantize("samples.npz") is not None
    fresh().split("calls.stages", 2)
    fresh().split_products("calls.ranks", 2)


def edits(igniter: Any) -> None:
    from igniter.toolbox.edit.expose_values import ExposeValues

    module = igniter.load("model.onnx")
    assert set(module.save_weights("weights.npz")) >= {"up", "down"}
    module.rename({"x": "tokens"}).replace_weights("weights.npz").expose("h").insert("s = Clip (s)")
    module.replace("gelu_erf", "erf = Tanh (scaled)").drop("gelu_half").remove_outputs("y").convert_opset(18)
    module.edit(ExposeValues(values=("wide",)))
    assert module.check_edits(run=False) is not None
    assert isinstance(module.current_source(), bytes)
    igniter.load("model.onnx").fix_dims(rows=2).free_dims({"x:0": "n"}).change_types(x="float16")
    igniter.load("model.onnx").extract(["h"], ["g"]).save("part.onnx")
    igniter.load("spare.onnx").bind_dims(others="rows").remove_inputs("spare").save("without.onnx")


def schedules(igniter: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 64), np.float32), rng.standard_normal((64, 96), np.float32)
    s = igniter.Schedule("product.onnx")
    product, relu = s.nests
    assert s.nest(product).label == product
    i, j, k = s.loops(product)
    columns, _ = s.split(product, j, 16)
    rows, _ = s.split(product, i, 8)
    s.reorder(product, columns, rows, k, i, j)
    s.vectorize(product, j, 8)
    s.unroll(product, k, 4)
    s.threads(product, columns)
    s.compute_at(relu, product, rows)
    s.store_at(product, rows)
    assert columns in s.loops(product) and "loop.kernel" in s.text()
    np.testing.assert_allclose(s.run(a, b)[0], np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)
    assert s.apply() is not None and s.asm()
    assert s.time(igniter.Schedule("product.onnx", author=True), rounds=2) is not None

    s = igniter.Schedule("product.onnx")
    depth, _ = s.split(product, k, 16)
    s.reorder(product, depth, i, j, k)
    s.into_result(product, depth)
    s.variant("few", "d0 <= 2", igniter.Schedule("product.onnx"))
    np.testing.assert_allclose(s.run(a, b)[0], np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)
    s = igniter.Schedule("turned.onnx")
    turned = next(nest for nest in s.nests if len(s.loops(nest)) == 3)
    i, j, k = s.loops(turned)
    packed = s.pack(turned)
    columns, _ = s.split(turned, j, 48)
    rows, _ = s.split(turned, i, 8)
    s.reorder(turned, columns, rows, i, j, k)
    s.tensorize(turned, i, j, k, (8, 3))
    assert packed in s.nests
    np.testing.assert_allclose(s.run(a, b.T)[0], a @ b, rtol=1e-4, atol=1e-4)
    s = igniter.Schedule("product.onnx")
    s.cache(product, 0)
    s.split_reduction(product, k, 4)
    gelu = igniter.Schedule("model.onnx", "r0")
    assert gelu.inline(next(nest for nest in gelu.nests[:-1] if len(gelu.loops(nest)) == 2))


def generation(igniter: Any) -> None:
    import onnx
    from onnx import TensorProto, helper

    table = (5.0 * np.eye(8, dtype=np.float32))[:, np.roll(np.arange(8), 1)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["logits"])],
        "bigrams",
        [info("input_ids", TensorProto.INT64, ["batch", "sequence"])],
        [info("logits", TensorProto.FLOAT, ["batch", "sequence", 8])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), "bigrams.onnx")
    generator = igniter.Generator("bigrams.onnx")
    assert generator.cache == "no" and generator.tokenizer is None and generator.encode([1]) == [1]
    following = [(np.argmax(table[1]) + k * (np.argmax(table[1]) - 1)) % 8 for k in range(3)]
    assert generator.generate([1], max_new_tokens=3).tokens == following
    assert generator.stream([1], max_new_tokens=3).result().tokens == following
    assert generator.generate_batch([[1]], max_new_tokens=3)[0].tokens == following
    assert [p.token for p in generator.stream_batch([[1]], max_new_tokens=3).pieces()] == following
    assert generator.conversation().send([1], max_new_tokens=3).tokens == following
    try:
        generator.chat()
    except igniter.IgniterError as error:
        assert "no chat template" in error.message
    else:
        raise AssertionError("a chat without a template begins")


def backend(igniter: Any) -> None:
    import onnx

    import igniter.backend as served

    model, x = onnx.load("model.onnx"), np.load("samples.npz")["x"]
    assert served.supports_device("CPU") and served.prepare(model).run([x])
    assert served.run_model(model, [x])
    (y,) = served.run_node(onnx.helper.make_node("Relu", ["x"], ["y"]), [x])
    assert (y == np.maximum(x, 0)).all()
    from igniter.toolbox.doctor import examine, worst

    assert worst(examine()) != "problem"


def torch_calls(igniter: Any) -> None:
    import module as given
    import torch

    import igniter.torch

    layers, (x,) = given.made()
    with torch.no_grad():
        eager = layers(x)
        fast = igniter.torch.compile(layers)
        torch.testing.assert_close(fast(x), eager, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(torch.compile(layers, backend="igniter")(x), eager, rtol=1e-3, atol=1e-4)
    report = igniter.torch.explain()
    assert report.compiled >= 1 and report.sessions >= 1 and report.reasons == []
    igniter.torch.reset()
    results = igniter.torch.verify_every_module(layers, (x,))
    assert results and len(results.rows()) == len(results.to_dict()) == 4
    with torch.no_grad(), igniter.torch.intercept(layers, "calls"):
        layers(x)
    assert len(igniter.torch.load_calls("calls")) == len(igniter.torch.replay(layers, "calls")) == 4
    # What an `nn.Module` has is that of the module which is compiled.
    assert fast.load_state_dict(fast.state_dict()).missing_keys == []
    for listed in ("parameters", "named_parameters", "modules", "named_modules", "children", "named_children"):
        assert len(list(getattr(fast, listed)())) == len(list(getattr(layers, listed)())), listed
    assert [*fast.buffers(), *fast.named_buffers()] == []
    assert fast.get_submodule("0") is layers[0] and fast.get_parameter("0.bias") is layers[0].bias
    layers.register_buffer("offset", torch.zeros(1))
    assert fast.get_buffer("offset") is layers.offset
    fast.apply(lambda part: None).requires_grad_(False).zero_grad()
    assert fast.train().training and not fast.eval().training


def main(asked: list[str]) -> int:
    import igniter

    recorder = Recorder()
    recorder.watch_module(igniter, [name for name in igniter.__all__ if name != "__version__"])
    parts: list[Callable[[Any], None]] = [whole_models, toolbox, edits, schedules, generation, backend]
    import igniter.backend as served

    recorder.watch_module(served, ["prepare", "run_model", "run_node", "supports_device"])
    if find_spec("torch") is not None:
        import igniter.torch

        recorder.watch_module(igniter.torch, list(igniter.torch.__all__))
        parts.append(torch_calls)
    for part in parts if not asked else [p for p in parts if p.__name__ in asked]:
        part(igniter)
        print(f"ok     {part.__name__}", flush=True)
    missing = [name for name in recorder.missing() if not asked or name.startswith("igniter.torch.")]
    for name in missing:
        print(f"{name} is not called here: add a call of it to {Path(__file__).name}")
    print(f"{len(recorder.called)} of {len(recorder.public)} public names called")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
