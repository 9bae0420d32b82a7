"""A sample of the ledger of types; `python -m tests.conformance.types` and `make test-full` run all of it."""

from pathlib import Path

import pytest

from tests.conformance.type_cases import NoCase, TypeCase, all_cases, model_of, schemas
from tests.conformance.type_page import page
from tests.conformance.types import LOADS, TypeResult, read_ledger, run_case, run_cases

STRIDE = 701
"""Each N-th case is in the sample."""
KNOWN = {
    "Neg-13 T=tensor(bfloat16)": "no kernel",
    "ReduceSum-13 T=tensor(uint32)": "no kernel",
    "MaxPool-22 T=tensor(bfloat16)": "no kernel",
    "GlobalMaxPool-22 T=tensor(bfloat16)": "no kernel",
    "com.microsoft.BiasGelu-1 T=tensor(float)": LOADS,
}


def case_of(key: str) -> TypeCase:
    return next(case for case in all_cases() if case.key == key)


@pytest.mark.parametrize("key", KNOWN)
def test_what_onnxruntime_has_no_kernel_for_is_compiled_and_right(key: str) -> None:
    found = run_case(case_of(key))
    assert found.original.startswith(KNOWN[key])
    assert found.compiled == LOADS
    assert found.right == "right"


def test_a_sample_has_no_fault() -> None:
    sample = [run_case(case) for case in all_cases()[::STRIDE]]
    assert sum(bool(r.original) for r in sample) > 5
    assert not [r for r in sample if r.fault]


@pytest.mark.full
def test_every_case_has_no_fault(tmp_path: Path) -> None:
    found = run_cases(all_cases(), tmp_path / "types.jsonl", 2)
    assert not [r for r in found.values() if r.fault]


@pytest.mark.slow
def test_the_ledger_goes_on_where_it_was(tmp_path: Path) -> None:
    cases = [case_of("Neg-13 T=tensor(float)"), case_of("Neg-13 T=tensor(bfloat16)")]
    path = tmp_path / "types.jsonl"
    first = run_cases(cases[:1], path, 1)
    path.write_text(path.read_text() + '{"key": "cut of')
    assert read_ledger(path) == first
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines()[:1]))
    run_cases(cases[1:], path, 1)
    assert list(read_ledger(path)) == [c.key for c in cases]


def test_every_version_since_opset_7_is_there() -> None:
    found = schemas()
    assert {s for (d, n, s) in found if (d, n) == ("", "ReduceSum")} == {1, 11, 13}
    assert {s for (d, n, s) in found if (d, n) == ("", "Add")} >= {7, 13, 14}
    assert ("", "Add", 6) not in found
    assert len([k for k in found if k[0] == "com.microsoft"]) > 100


def test_older_versions_have_attributes_for_inputs() -> None:
    model, _ = model_of(case_of("ReduceSum-1 T=tensor(float)"))
    (node,) = model.graph.node
    assert [a.name for a in node.attribute if a.name == "axes"] or len(node.input) == 1
    with pytest.raises(NoCase):
        model_of(case_of("Identity-25 V=optional(tensor(float))"))


def test_the_page_says_what_loads_only_compiled() -> None:
    results = [
        TypeResult("a", "Neg", 13, "T", "tensor(bfloat16)", "no kernel", LOADS, True, "right"),
        TypeResult("b", "Neg", 13, "T", "tensor(float)", LOADS, LOADS, False, "right"),
        TypeResult("c", "Foo", 1, "T", "tensor(float)", "no kernel", "not loaded: x; 'node' (Foo): no lowering of Foo"),
    ]
    text = page(results)
    assert "| Neg | 1 | 2 | 1 | 2 | 2 |  | bfloat16 |" in text
    assert "| neither has a kernel | 1 | Foo |" in text
