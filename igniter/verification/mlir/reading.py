"""Reading and writing modules of MLIR in their generic form, with every op unregistered."""

from __future__ import annotations

import re
from io import StringIO

from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from igniter.errors import IgniterError
from igniter.runtime.mlir_tools import MlirTools, run_tool
from igniter.verification.mlir.values import bits_of, rounding, to_bits

GENERIC = ("--mlir-print-op-generic", "--allow-unregistered-dialect")

_MAP = re.compile(r"affine_map<(?:->|<=|>=|[^<>])*>")
_SEMI = re.compile(r'#igniter\.semi_affine<"([^"]*)">')
_RESOURCE = re.compile(r"dense_resource<([\w.$-]+)>")
_BLOB = re.compile(r'([\w.$-]+)\s*:\s*"0x[0-9A-Fa-f]{8}([0-9A-Fa-f]*)"')
_DENSE = re.compile(r'dense<([^"<>]*0x[^"<>]*)>(\s*:\s*(?:tensor|vector|memref)<[^<>]*?(f16|bf16|f32|f64)>)')
_METADATA = re.compile(r"\{-#.*#-\}", re.DOTALL)


_FLOATS: dict[str, builtin.AnyFloat] = {
    "f16": builtin.f16,
    "bf16": builtin.bf16,
    "f32": builtin.f32,
    "f64": builtin.f64,
}


def is_generic(text: str) -> bool:
    """True if the first op of a text is in the generic form."""
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "!", "//")):
            return line.startswith('"')
    return False


def generic_form(text: str, tools: MlirTools) -> str:
    """Returns a module in the generic form. Raises `MlirError` if it is not valid."""
    return text if is_generic(text) else run_tool(tools.opt, GENERIC, text)


def parse_module(text: str) -> ModuleOp:
    """Parses a module in the generic form. Raises `IgniterError` if xDSL cannot read it."""
    ctx = Context(allow_unregistered=True)
    ctx.load_dialect(Builtin)
    try:
        return Parser(ctx, _readable(text)).parse_module()
    except (ParseError, NotImplementedError, ValueError) as error:
        raise IgniterError(f"xDSL does not read the generic form: {error}") from error


def print_module(module: ModuleOp) -> str:
    """Returns the text of a module, which mlir-opt reads."""
    out = StringIO()
    Printer(stream=out, print_generic_format=True).print_op(module)
    return _SEMI.sub(lambda m: f"affine_map<{m.group(1)}>", out.getvalue()) + "\n"


def _readable(text: str) -> str:
    """Returns the text with the parts replaced that xDSL does not read.

    Maps with a product of symbols become an attribute of another name, resources become literals, and so do elements
    that are the bits of a float, which xDSL takes for integers.
    """
    text = _MAP.sub(_map, text)
    blobs = dict(_BLOB.findall(text))
    text = _RESOURCE.sub(lambda m: f'dense<"0x{blobs[m.group(1)]}">' if m.group(1) in blobs else m.group(0), text)
    return _METADATA.sub("", _DENSE.sub(_dense, text))


def _dense(found: re.Match[str]) -> str:
    """Returns a dense literal of floats as bytes."""
    type_ = _FLOATS[found.group(3)]
    numbers = [n.strip() for n in found.group(1).replace("[", " ").replace("]", " ").split(",")]
    bits = [int(n, 16) if n.startswith("0x") else to_bits(rounding(type_)(float(n)), type_) for n in numbers]
    data = b"".join(b.to_bytes(bits_of(type_) // 8, "little") for b in bits)
    return f'dense<"0x{data.hex().upper()}">{found.group(2)}'


def _map(found: re.Match[str]) -> str:
    ctx = Context(allow_unregistered=True)
    ctx.load_dialect(Builtin)
    try:
        Parser(ctx, found.group(0)).parse_attribute()
    except (NotImplementedError, ParseError):
        return f'#igniter.semi_affine<"{found.group(0)[len("affine_map<") : -1]}">'
    return found.group(0)
