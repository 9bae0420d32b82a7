"""The words of CPUs and the choice by their features, in C on CPUs that are made up, under the sanitizers."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from igniter.backends.c_runtime.build import SOURCES
from igniter.cpu_features import FEATURES, SAVED_AVX512, WORDS

from .test_sanitized import build, compiler, run

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="CPUID is of x86-64")

TABLE = FEATURES["x86_64"]
OSXSAVE = 1 << 27
ALL = {
    "0:0": (0x24, 0, 0, 0),
    "1:0": (0, 0, 0x11, 0),
    "7:0": (1, 0x22, 0x33, 0x44),
    "7:1": (0x55, 0, 0, 0x66 | 1 << 19),
    "24:0": (0, 2, 0, 0),
    "80000000:0": (0x80000008, 0, 0, 0),
    "80000001:0": (0, 0, 0x77, 0),
}
"""A CPU with all leaves, whose registers differ."""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    units = [SOURCES / f"{name}.c" for name in ("register", "cpu", "messages")]
    return build(compiler(), "address,undefined", tmp_path_factory.mktemp("features"), "features_driver.c", units)


def asked(driver: Path, leaves: dict[str, tuple[int, ...]], *others: str) -> list[str]:
    given = [f"{place}={','.join(f'{value:x}' for value in values)}" for place, values in leaves.items()]
    done = run(driver, [*given, *others])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def words(driver: Path, leaves: dict[str, tuple[int, ...]], *others: str) -> dict[str, int]:
    found = asked(driver, leaves, *others)[0].split()[: len(WORDS)]
    return {name: value for name, text in zip(WORDS, found, strict=True) if (value := int(text, 16))}


def test_each_word_is_of_its_leaf(driver: Path) -> None:
    every = {"1.ecx": 0x11, "7.ebx": 0x22, "7.ecx": 0x33, "7.edx": 0x44, "7.1.eax": 0x55, "7.1.edx": 0x80066}
    assert words(driver, ALL) == {**every, "80000001.ecx": 0x77, "avx10": 3}


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        # Intel's CPUs repeat the last leaf for those beyond it.
        ({"0:0": (6, 0, 0, 0)}, {"7.ebx", "7.ecx", "7.edx", "7.1.eax", "7.1.edx", "avx10"}),
        ({"0:0": (0x23, 0, 0, 0)}, {"avx10"}),
        ({"7:0": (0, 0x22, 0x33, 0x44)}, {"7.1.eax", "7.1.edx", "avx10"}),
        ({"7:1": (0x55, 0, 0, 0x66)}, {"avx10"}),
        ({"80000000:0": (0x80000000, 0, 0, 0)}, {"80000001.ecx"}),
    ],
)
def test_a_leaf_that_a_cpu_lacks(driver: Path, changed: dict[str, tuple[int, ...]], lost: set[str]) -> None:
    assert words(driver, ALL).keys() - words(driver, ALL | changed).keys() == lost


def test_xcr0_is_read_only_if_the_system_enabled_it(driver: Path) -> None:
    assert "xcr0" not in words(driver, ALL, "xcr0=e7")
    assert asked(driver, ALL, "xcr0=e7")[0].endswith(" 0 xgetbv")
    assert words(driver, ALL | {"1:0": (0, 0, OSXSAVE, 0)}, "xcr0=e7")["xcr0"] == 0xE7


def cpu(*without: str, saved: int = 0xFFFFFFFF) -> tuple[dict[str, tuple[int, ...]], str]:
    """A CPU with all features of the table but some, and the registers that its system saves."""
    on = dict.fromkeys(WORDS, 0)
    on |= {"1.ecx": OSXSAVE | 1 << 13, "80000001.ecx": 1, "7.1.edx": 1 << 19}
    for feature in TABLE.values():
        on[WORDS[feature.word]] |= feature.bits
    for name in without:
        on[WORDS[TABLE[name].word]] &= ~TABLE[name].bits
    leaves = {
        "0:0": (0x24, 0, 0, 0),
        "1:0": (0, 0, on["1.ecx"], 0),
        "7:0": (1, on["7.ebx"], on["7.ecx"], on["7.edx"]),
        "7:1": (on["7.1.eax"], 0, 0, on["7.1.edx"]),
        "24:0": (0, on["avx10"].bit_length(), 0, 0),
        "80000000:0": (0x80000001, 0, 0, 0),
        "80000001:0": (0, 0, on["80000001.ecx"], 0),
    }
    return leaves, f"xcr0={saved:x}"


NAMES = sorted(TABLE)
ROWS = [f"{name}={TABLE[name].word:x},{TABLE[name].bits:x},{TABLE[name].saved:x}" for name in NAMES]


def bits(*names: str) -> str:
    return f"{sum(1 << NAMES.index(name) for name in names):x}"


def test_every_feature_is_found_at_its_place(driver: Path) -> None:
    leaves, saved = cpu()
    assert len(NAMES) <= 64
    assert asked(driver, leaves, saved, *ROWS, f"4/{bits(*NAMES)}")[1:] == ["variant 0"]
    for name in NAMES:
        leaves, saved = cpu(name)
        same = [n for n in NAMES if TABLE[n].word == TABLE[name].word and TABLE[n].bits & TABLE[name].bits]
        if name == "avx10.1":  # A version, so the next one is missing too.
            leaves["24:0"], same = (0, 0, 0, 0), ["avx10.1", "avx10.2"]
        (said,) = asked(driver, leaves, saved, *ROWS, f"1/{bits(*NAMES)}")[1:]
        assert said.startswith("9: this is ") and said.endswith(f" without {', '.join(same)}.")


def test_registers_that_the_system_does_not_save(driver: Path) -> None:
    leaves, saved = cpu(saved=0x7)
    (said,) = asked(driver, leaves, saved, *ROWS, f"3/{bits('avx2', 'avxvnni', 'avx512vnni', 'egpr')}")[1:]
    assert said == "9: this is 3 without avx512vnni, egpr."
    leaves, saved = cpu(saved=SAVED_AVX512)
    (said,) = asked(driver, leaves, saved, *ROWS, f"3/{bits('avx2', 'avxvnni', 'avx512vnni', 'egpr')}")[1:]
    assert said == "9: this is 4 without egpr."


def test_the_first_variant_whose_features_are_all_there(driver: Path) -> None:
    wide, narrow = f"4/{bits('avx512f', 'avx512vnni')}", f"4/{bits('avx512f')}"
    for without, variant in ((), 0), (("avx512vnni",), 1), (("avx512f",), 2):
        leaves, saved = cpu(*without)
        assert asked(driver, leaves, saved, *ROWS, wide, narrow, "2/0")[1:] == [f"variant {variant}"]
    leaves, saved = cpu("avx512vnni", "avx512f")
    assert asked(driver, leaves, saved, *ROWS, wide, narrow)[1:] == ["9: this is 3 without avx512f."]
    leaves, saved = cpu("avx512vl")
    assert asked(driver, leaves, saved, *ROWS, narrow)[1:] == ["9: this is 3."], "the level is too low by itself"
    assert asked(driver, leaves, saved, *ROWS)[1:] == ["variant 0"], "a library for every CPU"


def test_a_long_list_of_features_is_cut(driver: Path) -> None:
    """The buffer of the message is on the stack."""
    rows = [f"{'a' * 60}{k}=0,{1 << 31:x},0" for k in range(64)]
    (said,) = asked(driver, cpu()[0], *rows, f"1/{(1 << 64) - 1:x}")[1:]
    assert len(said) == 1023 + len("9: ")
