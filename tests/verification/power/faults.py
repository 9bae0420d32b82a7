"""Seeded faults in the folder of a compiled model. Nothing is compiled again: each fault patches a copy of one file."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.external_data_helper import ExternalDataInfo

WEIGHT, WIRING, CODE = "bit of a weight", "swapped operands", "wrong tail"
KINDS = (WEIGHT, WIRING, CODE)

_BITS = {
    onnx.TensorProto.FLOAT: (np.uint32, range(23, 31)),
    onnx.TensorProto.FLOAT16: (np.uint16, range(10, 15)),
    onnx.TensorProto.BFLOAT16: (np.uint16, range(7, 15)),
    onnx.TensorProto.DOUBLE: (np.uint64, range(52, 63)),
    onnx.TensorProto.INT8: (np.uint8, range(5, 8)),
    onnx.TensorProto.UINT8: (np.uint8, range(5, 8)),
}
"""The bits that are flipped: those of the exponent, or the upper three of a code."""
_COMMUTATIVE = frozenset(
    ("Add", "Mul", "Max", "Min", "Sum", "Mean", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
)


@dataclass(frozen=True)
class Fault:
    """One fault: `plant` writes it into a folder that holds a copy of the compiled model."""

    kind: str
    where: str
    plant: Callable[[Path], None]


def faults(folder: Path, count: int, seed: int) -> list[Fault]:
    """`count` faults of a compiled model, as many of each kind as there are places for them; the same for a seed."""
    rng = np.random.default_rng(seed)
    made = {WEIGHT: _weights(folder, rng), WIRING: _wiring(folder, rng), CODE: _code(folder, rng)}
    chosen: list[Fault] = []
    # In turns, so that a kind without enough places leaves its share to the others.
    while len(chosen) < count and made:
        for kind in [*made]:
            found = next(made[kind], None)
            if found is None:
                del made[kind]
            elif len(chosen) < count:
                chosen.append(found)
    return chosen


# -- weights ----------------------------------------------------------------------------------------------------------


def _weights(folder: Path, rng: np.random.Generator) -> Iterator[Fault]:
    """Exponent bits of weights: every second time of any element, else of any tensor."""
    proto = onnx.load(folder / "model.onnx", load_external_data=False)
    tensors = [t for t in proto.graph.initializer if t.data_type in _BITS and np.prod(t.dims) > 0]
    if not tensors:
        return
    sizes = np.array([np.prod(t.dims) for t in tensors], np.float64)
    for turn in range(10_000):
        at = int(rng.choice(len(tensors), p=sizes / sizes.sum() if turn % 2 else None))
        tensor = tensors[at]
        element, bits = int(rng.integers(int(sizes[at]))), _BITS[tensor.data_type][1]
        bit = int(rng.choice(bits))
        if _bits_at(folder, tensor, element) == 0:
            continue  # padding, for the most part
        yield Fault(WEIGHT, f"{tensor.name}[{element}] bit {bit}", _Flip(tensor.name, element, bit))


def _bits_at(folder: Path, tensor: onnx.TensorProto, element: int) -> int:
    kind = _BITS[tensor.data_type][0]
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return int(_array(tensor).view(kind).reshape(-1)[element])
    info = ExternalDataInfo(tensor)
    data = np.memmap(folder / info.location, np.uint8, "r")
    start = int(info.offset or 0) + element * np.dtype(kind).itemsize
    return int(np.frombuffer(bytes(data[start : start + np.dtype(kind).itemsize]), kind)[0])


def _array(tensor: onnx.TensorProto) -> np.ndarray[Any, Any]:
    return np.array(numpy_helper.to_array(tensor))


@dataclass(frozen=True)
class _Flip:
    name: str
    element: int
    bit: int

    def __call__(self, folder: Path) -> None:
        proto = onnx.load(folder / "model.onnx", load_external_data=False)
        tensor = next(t for t in proto.graph.initializer if t.name == self.name)
        kind = _BITS[tensor.data_type][0]
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            info = ExternalDataInfo(tensor)
            path = folder / info.location
            start = int(info.offset or 0) + self.element * np.dtype(kind).itemsize
            _own_copy(path)
            data = np.memmap(path, kind, "r+", start, (1,))
            data[0] ^= kind(1 << self.bit)
            data.flush()
            return
        array = _array(tensor)
        array.reshape(-1).view(kind)[self.element] ^= kind(1 << self.bit)
        tensor.CopyFrom(numpy_helper.from_array(array, self.name))
        _save(proto, folder)


def linked_copy(folder: Path, copy: Path) -> None:
    """A copy of a folder whose files are the same until `_own_copy`."""
    copy.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            os.link(path, copy / path.name)


def _own_copy(path: Path) -> None:
    """Replace a link to a file by a file of its own."""
    copied = path.with_name(path.name + ".own")
    shutil.copyfile(path, copied)
    copied.replace(path)


def _save(proto: onnx.ModelProto, folder: Path) -> None:
    path = folder / "model.onnx"
    path.unlink()
    path.write_bytes(proto.SerializeToString())


# -- wiring -----------------------------------------------------------------------------------------------------------


def _wiring(folder: Path, rng: np.random.Generator) -> Iterator[Fault]:
    """Two operands of one node, of one type and shape and with different contents, in each other's place."""
    proto = onnx.load(folder / "model.onnx")
    types = _types(proto)
    weights = {t.name: t for t in proto.graph.initializer}
    places = [
        (i, a, b)
        for i, node in enumerate(proto.graph.node)
        if node.op_type not in _COMMUTATIVE
        for a, b in combinations(range(len(node.input)), 2)
        if node.input[a] != node.input[b] and types.get(node.input[a], 0) == types.get(node.input[b], 1)
    ]
    for at in rng.permutation(len(places)):
        i, a, b = places[at]
        node = proto.graph.node[i]
        one, two = (weights.get(node.input[k]) for k in (a, b))
        if one is not None and two is not None and np.array_equal(_array(one), _array(two)):
            continue
        where = f"{node.op_type}: {node.input[a]} and {node.input[b]}"
        yield Fault(WIRING, where, _Swap(i, a, b))


def _types(proto: onnx.ModelProto) -> dict[str, tuple[Any, ...]]:
    """The element type and dims of every value that has them in the file."""
    found: dict[str, tuple[Any, ...]] = {t.name: (t.data_type, *t.dims) for t in proto.graph.initializer}
    for value in (*proto.graph.input, *proto.graph.value_info, *proto.graph.output):
        tensor = value.type.tensor_type
        if tensor.HasField("shape"):
            dims = [d.dim_param or d.dim_value for d in tensor.shape.dim]
            found[value.name] = (tensor.elem_type, *dims)
    return found


@dataclass(frozen=True)
class _Swap:
    node: int
    a: int
    b: int

    def __call__(self, folder: Path) -> None:
        proto = onnx.load(folder / "model.onnx", load_external_data=False)
        node = proto.graph.node[self.node]
        node.input[self.a], node.input[self.b] = node.input[self.b], node.input[self.a]
        _save(proto, folder)


# -- kernels ----------------------------------------------------------------------------------------------------------

_LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(\S+)?\s*(.*)$")
_NEAR = 256
"""Bytes around a float instruction in which a comparison counts as a kernel's."""
_FLOATS = re.compile(r"^v(fm|fnm|mul|add|sub|max|min|mov(up|ap)|dp|pdp|div|sqrt).*(ps|pd|ss|sd|ds?|us)$")
_CONDITIONS = {0x72: 0x76, 0x76: 0x72, 0x73: 0x77, 0x77: 0x73, 0x7C: 0x7E, 0x7E: 0x7C, 0x7D: 0x7F, 0x7F: 0x7D}
"""Below and below or equal, less and less or equal, and their opposites: a loop with one turn more or less."""


def disassembler() -> str | None:
    """The program that finds instructions; without it no kernel is patched."""
    return shutil.which("objdump") or shutil.which("llvm-objdump")


def _code(folder: Path, rng: np.random.Generator) -> Iterator[Fault]:
    """Loop bounds and tails in kernels: a constant that something is compared with, one more or less, a count that is
    one less, and jumps that take "less or equal" for "less"."""
    tool = disassembler()
    libraries = sorted(folder.glob("libigniter_*.so"))
    if tool is None or not libraries:
        return
    places: list[tuple[str, int, int, str]] = []
    for library in libraries:
        text = subprocess.run([tool, "-d", "-w", str(library)], capture_output=True, text=True, check=True).stdout
        delta = _file_delta(library)
        places += [(library.name, at + delta, to, said) for at, to, said in _patches(_instructions(text), rng)]
    for at in rng.permutation(len(places)):
        name, offset, value, said = places[at]
        yield Fault(CODE, f"{name} {said}", _Patch(name, offset, value))


def _instructions(text: str) -> list[tuple[int, bytes, str, str]]:
    found: list[tuple[int, bytes, str, str]] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and match[3]:
            found.append((int(match[1], 16), bytes.fromhex(match[2].replace(" ", "")), match[3], match[4]))
    return found


def _patches(code: Sequence[tuple[int, bytes, str, str]], rng: np.random.Generator) -> Iterator[tuple[int, int, str]]:
    """The address of a byte, what it becomes, and the instruction."""
    floats = np.array([at for at, _, name, _ in code if _FLOATS.match(name)], np.int64)
    for at, data, name, operands in code:
        i = int(np.searchsorted(floats, at))
        near = [abs(int(floats[k]) - at) for k in (i - 1, i) if 0 <= k < len(floats)]
        if min(near, default=_NEAR) >= _NEAR:
            continue
        if name.startswith("cmp") and "$0x" in operands and 3 <= len(data) <= 7 and 0 < data[-1] < 0x7F:
            immediate = int(re.sub(r".*\$0x([0-9a-f]+),.*", r"\1", operands), 16)
            if data[-1] == immediate and immediate > 1:
                yield at + len(data) - 1, immediate + (1 if rng.integers(2) else -1), f"{at:x}: {name} {operands}"
        elif name == "mov" and len(data) in (5, 6) and operands.startswith("$0x") and data[-3:] == b"\0\0\0":
            # A number of rows, or of bytes between them.
            if 1 < data[-4] < 0x7F:
                yield at + len(data) - 4, data[-4] - 1, f"{at:x}: {name} {operands}"
        elif len(data) == 2 and data[0] in _CONDITIONS:
            yield at, _CONDITIONS[data[0]], f"{at:x}: {name}"
        elif len(data) == 6 and data[0] == 0x0F and data[1] - 0x10 in _CONDITIONS:
            yield at + 1, _CONDITIONS[data[1] - 0x10] + 0x10, f"{at:x}: {name}"


def _file_delta(library: Path) -> int:
    """The file offset of the code minus its address, by the executable segment of an ELF file."""
    data = library.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for k in range(count):
        kind, flags, offset, address = struct.unpack_from("<IIQQ", data, table + k * size)
        if kind == 1 and flags & 1:
            return int(offset) - int(address)
    raise ValueError(f"{library} has no executable segment")


@dataclass(frozen=True)
class _Patch:
    library: str
    offset: int
    value: int

    def __call__(self, folder: Path) -> None:
        path = folder / self.library
        _own_copy(path)
        data = bytearray(path.read_bytes())
        data[self.offset] = self.value
        path.write_bytes(bytes(data))
