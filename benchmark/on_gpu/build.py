"""`python -m benchmark.on_gpu build FOLDER`: compiles cases for a GPU, and writes what a run of each takes.

    FOLDER/cases.json              what there is
    FOLDER/LIBRARY.so              the library of a case
    FOLDER/NAME.npz                of a case that is checked: its inputs, and ONNX Runtime's results

Weights of models that are only timed are random on the GPU, too: only their shapes are written.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import igniter
from benchmark.on_gpu.cases import Case, cases, models
from igniter.dialects.library_names import is_library_domain
from igniter.errors import IgniterError

INTEGERS = (2, 3, 5, 6, 7, 9, 12, 13)


def build(folder: Path, parts: Sequence[str], exported: Path, jobs: int, share: int = 6, only: str = "") -> None:
    """Compiles the cases of some parts: `checks` (of ONNX's node tests of each op, one in `share`), `ops` and
    `models`. What was there of other parts stays."""
    folder.mkdir(parents=True, exist_ok=True)
    todo: list[tuple[str, str, Path]] = []
    if "checks" in parts:
        todo += [("check", name, exported) for name in check_names(share)]
    if "ops" in parts:
        todo += [("op", case.name, exported) for case in cases()]
    if "models" in parts:
        todo += [("model", case.name, exported) for case in models(exported)]
    todo = [job for job in todo if only in job[1]]
    made: list[dict[str, Any]] = []
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(_guarded, [folder] * len(todo), todo):
            made += found
    listed = folder / "cases.json"
    names = {each["name"] for each in made}
    before = json.loads(listed.read_text()) if listed.exists() else []
    listed.write_text(json.dumps([*(each for each in before if each["name"] not in names), *made], indent=1))
    built = [each for each in made if "library" in each]
    print(f"{len(built)} cases built, {len(made) - len(built)} not")


def check_names(share: int) -> list[str]:
    """Node tests of ONNX, one in `share` of those of each op."""
    from tests.conformance.node_cases import node_cases

    by_op: dict[str, list[str]] = {}
    for name, case in node_cases().items():
        by_op.setdefault(case.model.graph.node[0].op_type, []).append(name)
    ordered = (sorted(names, key=lambda name: zlib.crc32(name.encode())) for names in by_op.values())
    return [name for names in ordered for name in names[: -(-len(names) // share)]]


def _guarded(folder: Path, job: tuple[str, str, Path]) -> list[dict[str, Any]]:
    kind, name, exported = job
    try:
        if kind == "check":
            return [_check(folder, name)]
        listed = cases() if kind == "op" else models(exported)
        return list(_timed(folder, next(case for case in listed if case.name == name)))
    except Exception as error:  # whatever a case fails by, it is told, and the others go on
        print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
        return [{"name": name, "why": str(error)[:200]}]


def _check(folder: Path, name: str) -> dict[str, Any]:
    from tests.conformance.node_cases import GPU_BOUND, GPU_EVERYTHING, node_cases

    case = node_cases()[name]
    inputs, expected = case.data_sets[0]
    arrays = [*inputs, *expected]
    if not all(isinstance(each, np.ndarray) for each in arrays) or any(each.dtype.kind in "OUS" for each in arrays):
        raise IgniterError("its values are no tensors of numbers")
    options = igniter.CompileOptions(target="cuda", onnx_passes=GPU_BOUND, fusion_passes=GPU_EVERYTHING)
    entry, weights = _compiled(folder, name, case.model, options)
    given = dict(zip((v.name for v in case.model.graph.input), inputs, strict=False))
    held = {**weights, **given}
    file = f"{entry['library'].removesuffix('.so')}.npz"
    kept = {f"in.{k}": _plain(held[k]) for k in entry["inputs"] if k}
    results = {v.name: k for k, v in enumerate(case.model.graph.output)}
    kept |= {f"out.{k}": _plain(expected[results[n]]) for k, n in enumerate(entry["results"]) if n in results}
    np.savez_compressed(folder / file, **kept)
    types = {k: helper.np_dtype_to_tensor_dtype(held[k].dtype) for k in entry["inputs"] if k}
    return {**entry, "kind": "check", "data": file, "types": types, "rtol": case.rtol, "atol": case.atol}


def _timed(folder: Path, case: Case) -> Iterator[dict[str, Any]]:
    for target in case.targets:
        start = time.perf_counter()
        sizes = dict(case.sizes[0]) if case.chosen else {}
        model = case.make()
        dims = {d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim if d.dim_param}
        chosen = igniter.CompileOptions(
            target=target, sizes=tuple(sorted((k, v) for k, v in sizes.items() if k in dims))
        )
        entry, arrays = _compiled(folder, f"{case.name} {target}", model, chosen)
        shapes = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
        kinds = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
        weights = {k: (list(v.shape), helper.np_dtype_to_tensor_dtype(v.dtype)) for k, v in arrays.items()}
        # Indices and sizes decide what is computed; other weights only how long their bytes take.
        small = {k: v for k, v in arrays.items() if weights[k][1] in INTEGERS}
        file = f"{entry['library'].removesuffix('.so')}.npz"
        np.savez_compressed(folder / file, **{f"in.{k}": _plain(v) for k, v in small.items()})
        runs = [{k: [_at(dim, size) for dim in dims] for k, dims in shapes.items()} for size in case.sizes]
        print(f"{case.name} {target}: {time.perf_counter() - start:.1f} s", flush=True)
        yield {
            **entry,
            "kind": "timed",
            "case": case.name,
            "target": target,
            "beside": list(case.beside),
            "flops": case.flops,
            "types": {**kinds, **{k: t for k, (_, t) in weights.items()}},
            "weights": {k: s for k, (s, _) in weights.items()},
            "data": file,
            "sizes": [dict(s) for s in case.sizes],
            "runs": runs,
        }


def _compiled(
    folder: Path, name: str, model: onnx.ModelProto, options: igniter.CompileOptions
) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """A case's entry, and the arrays that its op reads besides the model's inputs; `IgniterError` where it is not one
    op."""
    with tempfile.TemporaryDirectory() as place:
        artifact = igniter.compile(model, Path(place) / "made", options=options, verify=False)
        proto = onnx.load(artifact.model_path)
        nodes = proto.graph.node
        own = [node for node in nodes if is_library_domain(node.domain)]
        if len(nodes) != 1 or len(own) != 1:
            left = sorted({node.op_type for node in nodes if node not in own})
            raise IgniterError(f"it is not one op: {len(own)} and {left}")
        (node,) = own
        (library,) = artifact.libraries
        launches = [step for program in artifact.report.get("programs", ()) for step in program["steps"]]
        file = f"{zlib.crc32(name.encode()):08x}.so"
        shutil.copyfile(library, folder / file)
        arrays = {t.name: numpy_helper.to_array(t, str(artifact.folder)) for t in proto.graph.initializer}
        arrays = {k: v for k, v in arrays.items() if k in node.input}
    types = {v.name: v.type.tensor_type.elem_type for v in proto.graph.output}
    outputs = [types[name] for name in node.output]
    entry = {
        "name": name,
        "library": file,
        "op": node.op_type,
        "inputs": list(node.input),
        "outputs": outputs,
        "results": list(node.output),
        "steps": len(launches) or 1,
    }
    return entry, arrays


def _at(dim: int | str, sizes: Mapping[str, int]) -> int:
    """A dim at some sizes; one that exporters write is a sum of a symbol and a number."""
    if isinstance(dim, int):
        return dim
    symbol, _, more = dim.partition(" + ")
    return sizes.get(symbol, 1) + int(more or 0)


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As numpy can write it: 16-bit floats that it does not know as their bits."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else np.asarray(array)
