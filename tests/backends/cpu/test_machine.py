"""Machine models: where their figures come from, what may be given instead, and what follows from that."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from igniter.analysis.machine import (
    DERIVED,
    IDENTITY,
    INSTRUCTIONS,
    OP_CYCLES,
    TYPICAL,
    MachineError,
    MachineModel,
    figures,
    given_of,
    machine_of,
    override,
    pass_figures,
)
from igniter.backends.cpu.machine import host_figures, machine_for, microarchitecture_of
from igniter.backends.cpu.microarchitectures import CORES, LIKE
from igniter.backends.cpu.target import known_cpus, target_of
from igniter.context import IgniterContext
from igniter.targets import backend_for, given_machine, read_machine

TARGETS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4", "sapphirerapids", "neoverse-v2", "aarch64")


@pytest.mark.parametrize("name", [*TARGETS, "native"])
def test_a_model_has_what_its_target_has(name: str) -> None:
    machine, target = machine_for(name), target_of(name)
    assert (machine.vector_bytes, machine.registers) == (target.vector_bytes, target.vector_registers)
    assert (machine.fma, machine.arch, machine.cpu) == (target.has_fma, target.arch, target.cpu)
    assert machine.byte_products == target.byte_products and machine.byte_tiles == target.byte_tiles
    assert machine.half_tiles == target.half_tiles
    assert (machine.byte_pairs, machine.half_pairs) == (target.byte_pairs, target.half_pairs)
    assert machine == machine_for(name) and hash(machine) == hash(machine_for(name))


@pytest.mark.parametrize("name", sorted(known_cpus()))
def test_every_cpu_has_a_row(name: str) -> None:
    machine = machine_for(name)
    assert 1 <= machine.fma_ports <= 4 and 2 <= machine.add_latency <= machine.fma_latency <= 9
    assert 16 << 10 <= machine.l1d_bytes < machine.l2_bytes and machine.l3_share <= machine.l3_bytes
    assert machine.l1_bytes_cycle >= machine.l2_bytes_cycle >= machine.l3_bytes_cycle


def test_archspec_says_what_a_cpu_descends_from() -> None:
    names = ("znver4", "skx", "haswell", "graniterapids", "apple-m1")
    found = {name: microarchitecture_of(target_of(name)).name for name in names}
    assert found == {
        "znver4": "zen4",
        "skx": "skylake_avx512",
        "haswell": "haswell",
        # archspec does not know it yet: it is most like the generation before.
        "graniterapids": "sapphirerapids",
        "apple-m1": "m1",
    }
    # No row of its own: that of the generation that it descends from.
    assert "cascadelake" not in CORES and "cascadelake" not in LIKE
    assert machine_for("cascadelake").l2_bytes == CORES["skylake_avx512"].caches.l2
    # Known to neither: what its level has.
    assert machine_for("goldmont").microarchitecture == "x86_64_v2"


def test_sources() -> None:
    machine = machine_for("znver4")
    assert machine.source_of("vector_bytes") == "llvm"
    assert machine.source_of("microarchitecture") == "archspec"
    assert machine.source_of("fma_ports") == "manuals"
    assert machine.source_of("launch_us") == "typical"
    given = override(machine, given_of({"l2_bytes": 1 << 19}))
    assert (given.source_of("l2_bytes"), given.source_of("l2_budget")) == ("given", "derived")
    # Where a figure comes from decides nothing.
    bare = dataclasses.replace(given, sources={})
    assert given == bare and given.key() == bare.key()


@pytest.mark.parametrize("name", [*TARGETS, "native"])
def test_what_authors_count_on_is_the_same_for_every_target(name: str) -> None:
    """The code of every target was tuned with these; a change of them has to be meant."""
    m = machine_for(name)
    assert (m.tile_bytes, m.group_bytes, m.row_elements, m.stream_vectors) == (1 << 20, 256 << 10, 16384, 64)
    assert (m.sum_chains, m.products_a_cycle, m.access_cycles, m.task_cycles, m.most_tasks) == (4, 16, 2, 16384, 64)
    assert (m.launch_us, m.memory_bytes_us) == (1.0, 8000.0)
    assert (m.step_cycles, m.stretch_lines, m.read_streams) == (1.0, 8, 8)
    assert (m.pack_rows, m.pack_rows_beside, m.launch_elements) == (4, 32, 16384)
    assert (m.l2_move_products, m.l3_move_products, m.memory_move_products) == (5, 7, 10)
    assert (m.team_bytes, m.idle_looks) == (1 << 20, 32768)
    assert m.op_cycles == OP_CYCLES == tuple(sorted(OP_CYCLES))


MULTIPLIED = ("byte_tiles", "half_tiles", "byte_pairs", "half_pairs")
"""The figures of instructions of products, which a user cannot give to a machine that lacks them."""


def test_every_figure_counts(tmp_path: Path) -> None:
    """Each is in the key, is told about, and can be given unless it says which machine it is."""
    keys = {TYPICAL.key()}
    for figure in figures():
        if figure.name in IDENTITY:
            continue
        own = getattr(TYPICAL, figure.name)
        other: Any = (
            not own
            if isinstance(own, bool)
            else {"math.exp": 7}
            if figure.name == "op_cycles"
            else own / 2
            if isinstance(own, float)
            else own // 2
        )
        if figure.name in MULTIPLIED:
            continue
        changed = override(TYPICAL, given_of({figure.name: other}))
        assert changed != TYPICAL and changed.source_of(figure.name) == "given", figure.name
        keys.add(changed.key())
        assert figure.metadata["about"]
    assert len(keys) == 1 + len(figures()) - len(IDENTITY) - len(MULTIPLIED)
    assert {f.name for f in dataclasses.fields(MachineModel)} == {f.name for f in figures()} | {"sources"}
    assert set(DERIVED) | set(INSTRUCTIONS) | set(IDENTITY) <= {f.name for f in figures()}


def test_what_is_derived() -> None:
    assert override(TYPICAL, given_of({"l2_bytes": 1 << 18})).group_bytes == 1 << 16
    assert override(TYPICAL, given_of({"add_latency": 2})).sum_chains == 2
    assert override(TYPICAL, given_of({"handover_cycles": 1000})).task_cycles == 32000
    assert override(TYPICAL, given_of({"fma_ports": 2})).products_a_cycle == 32
    assert override(TYPICAL, given_of({"launch_us": 2.5})).launch_elements == 40960
    assert override(TYPICAL, given_of({"launch_us": 0})).launch_elements == 1
    # What is said itself is not derived.
    assert override(TYPICAL, given_of({"l2_bytes": 1 << 18, "l2_budget": 1 << 20})).l2_budget == 1 << 20
    # Ops that are not named keep their cycles.
    found = override(TYPICAL, given_of({"op_cycles": {"math.exp": 7}}))
    assert (found.cycles_of("math.exp"), found.cycles_of("math.erf"), found.cycles_of("arith.addf")) == (7, 22, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"l2_byte": 1}, "no figure 'l2_byte'; did you mean 'l2_bytes'?"),
        ({"colour": 1}, "no figure 'colour'; known: name, cpu,"),
        ({"l2_bytes": "1M"}, "figure 'l2_bytes' is '1M'; it must be a whole number"),
        ({"l2_bytes": 0.5}, "has to be a whole number"),
        ({"l2_bytes": -1}, "must be at least 1"),
        ({"fma_ports": True}, "has to be a number"),
        ({"fma_ports": 0}, "has to be 0.01 or more"),
        ({"fma": 1}, "figure 'fma' is 1; it must be true or false"),
        ({"vector_bytes": 24}, "it must be 16, 32 or 64"),
        ({"registers": 4}, "it must be at least 8"),
        ({"stretch_lines": 1}, "must be at least 2"),
        ({"vector_bytes": 64}, "target 'x86-64-v3' has 32; name a target that has it"),
        ({"byte_tiles": True}, "figure 'byte_tiles' is true, but target 'x86-64-v3' has false"),
        ({"cpu": "znver4"}, "cpu is 'znver4', but target 'x86-64-v3' has 'x86-64-v3'; name the target"),
        ({"op_cycles": {"math.expo": 1}}, "did you mean 'math.exp'?"),
        ({"op_cycles": {"math.exp": 0}}, "it must be a positive whole number"),
        ({"op_cycles": 3}, "it must map names of ops to cycles"),
        ({"l2_bytes": {"value": 1, "unti": "bytes"}}, "there is no key 'unti'"),
        ({"l2_bytes": {"value": 1, "source": "rumour"}}, "there is no source 'rumour'"),
    ],
)
def test_what_no_machine_has_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(MachineError, match=re.escape(message)):
        machine_for("x86-64-v3", given_of(given))


def test_files(tmp_path: Path) -> None:
    machine = machine_for("znver4")
    path = tmp_path / "m.json"
    path.write_text(json.dumps(machine.to_dict()))
    # A copy of the target's own figures decides nothing, and derives nothing.
    assert machine_for("znver4", read_machine(path)) == machine
    data = machine.to_dict()
    data["l2_bytes"]["value"] = 1 << 18
    path.write_text(json.dumps(data))
    changed = machine_for("znver4", given_machine(path))
    assert (changed.l2_bytes, changed.l2_budget, changed.source_of("l2_bytes")) == (1 << 18, 1 << 18, "given")
    # And what was measured comes back as that.
    measured = override(machine, [("add_latency", 3.0, "measured")])
    path.write_text(json.dumps(measured.to_dict()))
    again = machine_for("znver4", read_machine(str(path)))
    assert again == measured and again.source_of("add_latency") == "measured" and again.sum_chains == 3
    with pytest.raises(MachineError, match="name the target of the machine's description"):
        machine_for("aarch64", read_machine(path))
    with pytest.raises(MachineError, match="cannot read the machine"):
        read_machine(tmp_path / "none.json")
    for text, message in (("{", "it is not JSON"), ("[1]", "it has to be an object"), ('{"x": 1}', "figure 'x' of")):
        path.write_text(text)
        with pytest.raises(MachineError, match=message):
            read_machine(path)


def test_several_targets() -> None:
    names = "x86-64-v3,x86-64-v4"
    assert [m.name for m in backend_for(names).machines_for(names)] == names.split(",")
    assert pass_figures(backend_for(names).machines_for(names))["vector_bytes"] == 32
    assert pass_figures(backend_for("cpu").machines_for("x86-64-v3,sapphirerapids"))["byte_products"] is True
    with pytest.raises(MachineError, match="the targets are several"):
        backend_for(names).machines_for(names, given_of({"l2_bytes": 1 << 18}))


def test_the_context_carries_it() -> None:
    ctx = IgniterContext()
    assert machine_of(ctx) is TYPICAL
    machine = machine_for("aarch64")
    on = ctx.on(machine)
    assert machine_of(on) is machine and machine_of(on.clone()) is machine and machine_of(ctx) is TYPICAL
    assert on.remarks is ctx.remarks
    on.get_optional_op("loop.nest")
    assert ctx.loaded_dialects.__class__ is not None and "loop" in {d.name for d in ctx.loaded_dialects}


def test_what_linux_says(tmp_path: Path) -> None:
    def cache(index: int, level: str, kind: str, size: str, shared: str) -> None:
        folder = tmp_path / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        facts = {"level": level, "type": kind, "size": size, "shared_cpu_list": shared, "coherency_line_size": "128"}
        for name, text in facts.items():
            (folder / name).write_text(f"{text}\n")

    assert host_figures(tmp_path) == {}
    cache(0, "1", "Data", "48K", "0")
    cache(1, "1", "Instruction", "32K", "0")
    cache(2, "2", "Unified", "2M", "0")
    (tmp_path / "present").write_text("0-3,8\n")
    small = {"l1d_bytes": 48 << 10, "l2_bytes": 2 << 20, "line_bytes": 128, "cores": 5}
    assert host_figures(tmp_path) == {**small, "l3_bytes": 0, "l3_cores": 1}
    cache(3, "3", "Unified", "30720K", "0-1,4")
    assert host_figures(tmp_path) == {**small, "l3_bytes": 30 << 20, "l3_cores": 3}
