"""Reads and writes weights in NumPy files: `.npy` for one, `.npz` or a folder of `.npy` files for many.

The name of a weight is that of its initializer, or of its Constant node's result. Bytes are read when they are written,
one weight at a time; a `.npy` file is mapped and stays in place. Types that NumPy lacks (bfloat16, 8-bit floats, 4-bit
integers) are written as integers of the same width, at least one byte per element, and converted back to the type of
the replaced weight. A sparse weight has `NAME.values` and `NAME.indices`.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.attributes import SparseTensorAttr, TensorAttr
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.types import STRING, element_type
from igniter.dialects.onnx.weights import FileRange, Weight
from igniter.errors import IgniterError
from igniter.registry import UnknownName
from igniter.toolbox.edit.names import Names, result_names

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

VALUES, INDICES = ".values", ".indices"


def weight_ops(module: ModuleOp) -> dict[str, OnnxOp]:
    """Returns the tensor constants of a model, by name, except those inside local functions."""
    found: dict[str, OnnxOp] = {}
    for op in Names(module).graph.walk():
        if isinstance(op, OnnxOp) and op.name == "onnx.Constant" and tensors_of(op):
            name = result_names(op)[0]
            if name:
                found.setdefault(name, op)
    return found


def tensors_of(op: OnnxOp) -> dict[str, Weight]:
    """Returns the tensors of a constant, by the suffix of their names."""
    value, sparse = op.attributes.get("value"), op.attributes.get("sparse_value")
    if isinstance(value, TensorAttr):
        return {"": value.data}
    if isinstance(sparse, SparseTensorAttr):
        return {VALUES: sparse.values.data, INDICES: sparse.indices.data}
    return {}


# -- to files ---------------------------------------------------------------------------------------------------------


def write_weights(module: ModuleOp, path: str | os.PathLike[str], names: list[str] | None = None) -> dict[str, Weight]:
    """Writes weights, all or the named ones, to a `.npz` file, a `.npy` file (one weight), or a new folder.

    Returns the written weights, by their names in the file. Raises `IgniterError` for other names."""
    known = weight_ops(module)
    for name in names or ():
        if name not in known:
            raise UnknownName("weight", name, known)
    chosen = {n: op for n, op in known.items() if names is None or n in names}
    tensors = {f"{n}{end}": w for n, op in chosen.items() for end, w in tensors_of(op).items()}
    target = Path(path)
    if not tensors:
        raise IgniterError("the model has no weights")
    if target.suffix == ".npz":
        _write_npz(target, tensors)
    elif target.suffix == ".npy":
        if len(tensors) != 1:
            raise IgniterError(
                f"{target} takes one weight, and {len(tensors)} are to be written: name a .npz or a folder"
            )
        _write_npy(target, next(iter(tensors.values())))
    else:
        target.mkdir(parents=True, exist_ok=True)
        for name, weight in tensors.items():
            _write_npy(target / f"{quote(name, safe='')}.npy", weight)
    return tensors


def _saved(weight: Weight) -> Array:
    array = weight.array()
    if weight.element_type == STRING:
        return array.astype(str) if array.size else np.zeros(array.shape, "<U1")
    return array.view(np.dtype(f"u{array.dtype.itemsize}")) if array.dtype.isbuiltin != 1 else array


def _write_npy(target: Path, weight: Weight) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            np.lib.format.write_array(file, _saved(weight), allow_pickle=False)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _write_npz(target: Path, tensors: Mapping[str, Weight]) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            for name, weight in tensors.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(cast(Any, file), _saved(weight), allow_pickle=False)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


# -- from files -------------------------------------------------------------------------------------------------------


def weight_files(path: str | os.PathLike[str]) -> list[str]:
    """Returns the names in a `.npz` file or in a folder of `.npy` files."""
    where = Path(path)
    if where.is_dir():
        return sorted(unquote(p.name.removesuffix(".npy")) for p in where.glob("*.npy"))
    try:
        with zipfile.ZipFile(where) as archive:
            return [n.removesuffix(".npy") for n in archive.namelist()]
    except (OSError, zipfile.BadZipFile) as error:
        raise IgniterError(f"{where} is neither a .npz file nor a folder of .npy files: {error}") from error


def read_weight(path: str | os.PathLike[str], name: str, like: Weight) -> Weight:
    """Returns a weight of the type and shape of `like` from a `.npy` file, or from `name` of a `.npz` file or a folder.

    Raises `IgniterError` if type or shape differ; the values are not checked."""
    where = Path(path)
    if where.is_dir():
        return read_weight(where / f"{quote(name, safe='')}.npy", name, like)
    found = _mapped(where, like, name) if where.suffix == ".npy" else None
    if found is None:
        found = _from_array(_load(where, name), like, name, str(where))
    _require_shape(found, like, name, str(where))
    return found


def weight_of_array(array: Array, name: str, like: Weight) -> Weight:
    """Returns a weight with the values of an array. Raises `IgniterError` if type or shape differ from `like`."""
    found = _from_array(array, like, name, "the array")
    _require_shape(found, like, name, "the array")
    return found


def _require_shape(found: Weight, like: Weight, name: str, where: str) -> None:
    if found.shape != like.shape:
        raise IgniterError(f"'{name}' has the shape {list(like.shape)}, and in {where} it is {list(found.shape)}")


def _load(where: Path, name: str) -> Array:
    try:
        read = np.load(where, allow_pickle=False)
        return read[name] if where.suffix != ".npy" else read
    except KeyError as error:
        raise UnknownName(f"weight in {where}", name, dict.fromkeys(weight_files(where))) from error
    except (OSError, ValueError, EOFError) as error:
        raise IgniterError(f"cannot read the weight '{name}' from {where}: {error}") from error


def _mapped(where: Path, like: Weight, name: str) -> Weight | None:
    """Returns the weight as a range of the file; `None` if its bytes do not have ONNX's layout."""
    try:
        with open(where, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
            shape, fortran, dtype = read(file)
            offset = file.tell()
    except (OSError, ValueError, KeyError):
        return None
    row = like.element
    if row.bits < 8 or like.element_type == STRING or dtype.byteorder == ">" or (fortran and len(shape) > 1):
        return None
    _require_dtype(dtype, like, name, str(where))
    length = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return Weight(shape, like.element_type, file=FileRange(str(where.resolve()), offset, length))


def _require_dtype(dtype: np.dtype[Any], like: Weight, name: str, where: str) -> None:
    wanted = like.element.dtype
    if dtype == wanted or (like.element_type == STRING and dtype.kind in "US"):
        return
    unsigned_like = wanted.isbuiltin != 1 and dtype.kind in "uV" and dtype.itemsize == wanted.itemsize
    if not unsigned_like:
        raise IgniterError(
            f"'{name}' is {like.element.onnx_name}, and in {where} it is {dtype}: convert it, {wanted} is taken"
        )


def _from_array(array: Array, like: Weight, name: str, where: str) -> Weight:
    _require_dtype(array.dtype, like, name, where)
    if like.element_type == STRING:
        return Weight(array.shape, STRING, strings=[str(s).encode() for s in array.reshape(-1)])
    made = np.asarray(array, order="C")
    if made.dtype != like.element.dtype:
        made = made.view(like.element.dtype)
    return Weight(made.shape, element_type(like.element_type).attr, array=made)


def ends(name: str) -> Iterator[tuple[str, str]]:
    """Yields the possible weights of a file entry, with the suffix of the part."""
    yield name, ""
    for end in (VALUES, INDICES):
        if name.endswith(end):
            yield name.removesuffix(end), end
