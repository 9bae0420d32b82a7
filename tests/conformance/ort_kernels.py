"""Writes the table of ONNX Runtime's kernels for CPUs, `igniter/analysis/fusion/ort_kernels.txt`.

    python tests/conformance/ort_kernels.py --dump old.json                    # with the oldest ONNX Runtime supported
    python tests/conformance/ort_kernels.py --dump new.json                    # with the newest
    python -m tests.conformance.ort_kernels old.json new.json > igniter/analysis/fusion/ort_kernels.txt

`--dump` needs the package onnxruntime alone. The table has the kernels that every given version has, of those versions
that know the op's schema.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Alternative = dict[str, frozenset[str]]
"""The types that one kernel takes, by the places of inputs and outputs that have them: `in0 in1 out0`."""
Table = dict[tuple[str, str, int], list[Alternative]]
"""By domain, op and the version of its schema. An empty list: there is no kernel."""

OPEN = 2**31 - 1
"""The end of the range of a kernel that nothing has replaced yet."""
INTERNAL = ("com.ms.internal.nhwc", "com.microsoft.nchwc")
"""Domains of ops that only ONNX Runtime's own optimisations make."""


def dump() -> dict[str, Any]:
    """The kernels and the schemas of the installed ONNX Runtime, as JSON values."""
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    kernels = [
        [
            k.domain,
            k.op_name,
            list(k.version_range),
            {name: sorted(types) for name, types in k.type_constraints.items()},
        ]
        for k in state.get_all_opkernel_def()
        if k.provider == "CPUExecutionProvider"
    ]
    schemas = [
        [s.domain, s.name, s.since_version, *([_parameter(p) for p in side] for side in (s.inputs, s.outputs))]
        for s in state.get_all_operator_schema()
    ]
    return {"version": onnxruntime.__version__, "kernels": kernels, "schemas": schemas}


def _parameter(parameter: Any) -> list[str]:
    return [parameter.name, parameter.typeStr, parameter.option.name]


def table_of(dumped: Mapping[str, Any]) -> Table:
    """The kernels by schema. ONNX Runtime takes a kernel whose range begins with the schema, or is closed around it."""
    by_op: dict[tuple[str, str], list[Any]] = {}
    for domain, name, versions, constraints in dumped["kernels"]:
        by_op.setdefault((domain, name), []).append((versions, constraints))
    found: Table = {}
    for domain, name, since, inputs, outputs in dumped["schemas"]:
        if domain in INTERNAL:
            continue
        places = _places(inputs, outputs)
        alternatives = [
            {" ".join(places[key]): _kept(types) for key, types in constraints.items() if places.get(key)}
            for (first, last), constraints in by_op.get((domain, name), ())
            if first == since or (last != OPEN and first <= since <= last)
        ]
        found[domain, name, since] = _joined(each for each in alternatives if all(each.values()))
    return found


def _kept(types: Iterable[str]) -> frozenset[str]:
    """Without maps, which no lowering takes."""
    return frozenset(type_ for type_ in types if "map(" not in type_)


def _places(inputs: Sequence[Sequence[str]], outputs: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """The inputs and outputs that a constraint is about: those of a type variable, or the one of that name."""
    found: dict[str, list[str]] = {}
    for side, parameters in (("in", inputs), ("out", outputs)):
        for index, (name, variable, option) in enumerate(parameters):
            place = f"{side}{index}{'+' * (option == 'Variadic')}"
            for key in dict.fromkeys((variable, name)):
                found.setdefault(key, []).append(place)
    return found


def _joined(alternatives: Iterable[Alternative]) -> list[Alternative]:
    """The same with fewer entries: two that differ in one set of types become one."""
    rest = list(alternatives)
    joined = True
    while joined:
        joined = False
        for i, a in enumerate(rest):
            for j in range(i + 1, len(rest)):
                b = rest[j]
                differ = [key for key in a if a[key] != b.get(key)]
                if a.keys() == b.keys() and len(differ) <= 1:
                    rest[i] = {key: a[key] | b[key] for key in a}
                    del rest[j]
                    joined = True
                    break
            if joined:
                break
    return rest


def common(tables: Sequence[Table]) -> Table:
    """What all tables have that know the schema."""
    found: Table = {}
    for key in sorted({key for table in tables for key in table}):
        known = [table[key] for table in tables if key in table]
        both = known[0]
        for other in known[1:]:
            met = [_met(older, newer) for older in both for newer in other]
            both = _joined(each for each in met if all(each.values()))
        if both:
            found[key] = both
    return found


def _met(older: Alternative, newer: Alternative) -> Alternative:
    """What both kernels take, in the places of the newer one, whose schema may have more type variables."""
    known = {place: types for places, types in older.items() for place in places.split()}
    return {
        places: types.intersection(*(known[place] for place in places.split() if place in known))
        for places, types in newer.items()
    }


def text_of(table: Table, versions: Sequence[str]) -> str:
    """The file; versions of an op that have the same kernels share a line."""
    lines: dict[tuple[str, str, str], list[int]] = {}
    for (domain, name, since), alternatives in table.items():
        said = " | ".join(sorted(_alternative_text(each) for each in alternatives))
        lines.setdefault((domain, name, said), []).append(since)
    head = [
        f"# The kernels for CPUs that ONNX Runtime {' and '.join(versions)} have, by op and version of its schema.",
        "# Written by tests/conformance/ort_kernels.py; igniter/analysis/fusion/ort_kernels.py reads it.",
    ]
    body = [
        f"{domain}:{name} {','.join(map(str, since))}: {said}" for (domain, name, said), since in sorted(lines.items())
    ]
    return "\n".join([*head, *body]) + "\n"


def _alternative_text(alternative: Alternative) -> str:
    return "; ".join(
        f"{places}={','.join(sorted(map(_short, types)))}" for places, types in sorted(alternative.items())
    )


def _short(type_: str) -> str:
    plain = type_.removeprefix("tensor(").removesuffix(")")
    return plain if type_ == f"tensor({plain})" else type_


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", type=Path, help="write the kernels of the installed ONNX Runtime to this file")
    parser.add_argument("dumps", nargs="*", type=Path, help="what --dump wrote, the oldest version first")
    args = parser.parse_args()
    if args.dump:
        args.dump.write_text(json.dumps(dump()))
        return 0
    read = [json.loads(path.read_text()) for path in args.dumps]
    sys.stdout.write(text_of(common([table_of(each) for each in read]), [each["version"] for each in read]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
