"""Every call of ORT's API may fail: then there is a status, nothing leaks, and the next call is none the worse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fake_ort import FakeOrt, LoadedLibrary
from library_kit import build, function
from test_library import PARALLEL, PARALLEL_OP
from xdsl.dialects.builtin import f32

from igniter.dialects.ort import OpOp, port
from igniter.dialects.sym.expr import Expr

# The kernel of the parallel test, its second output left out of what is looked at; more scratch than the stack takes.
OP = OpOp(
    "Rows_k",
    "rows",
    ["n", "m"],
    [port("x", f32, ["n", "m"]), port("w", f32, [2, 3])],
    [port("y", f32, ["n", "m"])],
    Expr.parse("4*n*m + 8192"),
)
KERNEL = function(
    "rows",
    """
    %n = symbol 0
    %low.x = buffer 0
    %data = alloca { ptr, ptr, i64 }
    %y = buffer 2
    store ptr %y, ptr %data
    %d1 = getelementptr { ptr, ptr, i64 }, ptr %data, i64 0, i32 1
    store ptr %scratch, ptr %d1
    call void %parallel_for(ptr %context, ptr @task, i64 %n, ptr %data)
    call void %parallel_for(ptr %context, ptr @task, i64 %n, ptr %data)
    """,
    """
define internal void @task(ptr %data, i64 %row) {
  %y = load ptr, ptr %data
  %d1 = getelementptr { ptr, ptr, i64 }, ptr %data, i64 0, i32 1
  %scratch = load ptr, ptr %d1
  %address = ptrtoint ptr %scratch to i64
  %low = and i64 %address, 63
  %aligned = icmp eq i64 %low, 0
  %value = select i1 %aligned, float 1.0, float -1.0
  %to = getelementptr float, ptr %y, i64 %row
  %old = load float, ptr %to
  %new = fadd float %old, %value
  store float %new, ptr %to
  ret void
}
""",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> LoadedLibrary:
    return LoadedLibrary(build([OP], [KERNEL]).write(tmp_path_factory.mktemp("faults")))


# A library knows an ORT by the address of its table, which is never another's while the process lives.
FAKES: list[FakeOrt] = []


@pytest.fixture
def ort(library: LoadedLibrary) -> FakeOrt:
    fake = FakeOrt()
    FAKES.append(fake)
    assert library.register(fake) is None
    fake.inputs = [np.ones((5, 4), np.float32), np.ones((2, 3), np.float32)]
    fake.constants = {1: fake.inputs[1]}  # type: ignore[dict-item]
    return fake


def outstanding(ort: FakeOrt) -> list[str]:
    """What the library holds, besides its domain, which ORT keeps."""
    return [kind for kind in ort.live.values() if kind != "domain"]


def test_without_faults(library: LoadedLibrary, ort: FakeOrt) -> None:
    status, kernel = library.create(ort, ort.ops[0])
    assert status is None and kernel
    assert outstanding(ort) == ["memory"]
    ort.calls = 0
    assert library.compute(ort.ops[0], kernel) is None
    assert ort.outputs[-1][0].tolist() == [2, 2, 2, 2]
    # The constant input has been checked when the kernel was made.
    assert sum(1 for value in ort._values.values() if value is ort.inputs[1]) > 0
    library.destroy(ort.ops[0], kernel)
    assert outstanding(ort) == []


def test_every_call_of_a_run_may_fail(library: LoadedLibrary, ort: FakeOrt) -> None:
    _, kernel = library.create(ort, ort.ops[0])
    assert kernel is not None
    ort.calls = 0
    library.compute(ort.ops[0], kernel)
    total = ort.calls
    assert total > 15
    seen: set[str] = set()
    for k in range(1, total + 1):
        ort.calls, ort.fail_at = 0, k
        message = ort.message(library.compute(ort.ops[0], kernel))
        seen.add(ort.failed_in)
        # A failure to free is nothing that the result depends on.
        if ort.failed_in == "AllocatorFree":
            assert message is None
            ort.live = {h: kind for h, kind in ort.live.items() if kind != "memory" or h == kernel}
        else:
            assert message == f"failure in {ort.failed_in}"
        assert outstanding(ort) == ["memory"], ort.failed_in
    assert {"KernelContext_ParallelFor", "AllocatorAlloc", "GetDimensions", "KernelContext_GetOutput"} <= seen
    ort.fail_at = None
    ort.outputs.clear()
    assert library.compute(ort.ops[0], kernel) is None
    assert ort.outputs[-1].sum() == 10


def test_tasks_run_even_when_the_pool_refuses(library: LoadedLibrary, ort: FakeOrt) -> None:
    """The status says that it went wrong, but no step reads what was never written."""
    _, kernel = library.create(ort, ort.ops[0])
    assert kernel is not None
    ort.calls = 0
    library.compute(ort.ops[0], kernel)
    for before_the_end in (2, 1):  # two calls of ParallelFor, then one to free the memory
        ort.outputs.clear()
        total, ort.calls = ort.calls, 0
        ort.fail_at = total - before_the_end
        message = ort.message(library.compute(ort.ops[0], kernel))
        assert message == "failure in KernelContext_ParallelFor"
        assert ort.outputs[-1].sum() == 10
    library.destroy(ort.ops[0], kernel)
    assert outstanding(ort) == []


def test_every_call_of_making_a_kernel_may_fail(library: LoadedLibrary, ort: FakeOrt) -> None:
    ort.calls = 0
    status, kernel = library.create(ort, ort.ops[0])
    assert status is None and kernel is not None
    total = ort.calls
    assert total == 8
    library.destroy(ort.ops[0], kernel)
    for k in range(1, total + 1):
        ort.calls, ort.fail_at = 0, k
        status, kernel = library.create(ort, ort.ops[0])
        ort.fail_at = None
        if ort.failed_in == "KernelInfoGetConstantInput_tensor":
            # Not known to be constant: it is checked in every call instead.
            assert status is None and kernel is not None
            library.destroy(ort.ops[0], kernel)
        else:
            assert ort.message(status) == f"failure in {ort.failed_in}"
        assert outstanding(ort) == [], ort.failed_in


@pytest.mark.slow
def test_every_call_of_registering_may_fail(tmp_path: Path) -> None:
    probe = FakeOrt()
    assert LoadedLibrary(build([OP], [KERNEL], note=-1).write(tmp_path)).register(probe) is None
    total = probe.calls
    assert total == 5
    for k in range(1, total + 1):
        # A library of its own each time, since the domain is made once in a library.
        fresh = LoadedLibrary(build([OP], [KERNEL], note=k).write(tmp_path))
        fake = FakeOrt()
        fake.fail_at = k
        assert fake.message(fresh.register(fake)) == f"failure in {fake.failed_in}"
        left = ["domain"] if fake.failed_in in ("AddCustomOpDomain", "AddSessionConfigEntry") else []
        assert list(fake.live.values()) == left
        fake.fail_at = None
        assert fresh.register(fake) is None
        assert list(fake.live.values()) == ["domain"], "one domain, however often the library is registered"


def test_a_domain_is_added_to_options_once(tmp_path: Path) -> None:
    """ORT refuses options with a domain twice: whichever copy of the library comes second adds nothing."""
    built = build([OP], [KERNEL], note="twice")
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    copies = [LoadedLibrary(built.write(folder)) for folder in folders]
    fake = FakeOrt()
    for library in (copies[0], copies[1], copies[0]):
        assert library.register(fake) is None
        assert len(fake.registered) == 1
    assert fake.entries == {built.domain: "1"}
    fake.registered, fake.entries = [], {}
    assert copies[1].register(fake) is None, "other options get the domain too"
    assert len(fake.registered) == 1


def test_two_runtimes_in_one_process(tmp_path: Path) -> None:
    library = LoadedLibrary(build([OP], [KERNEL], note="two").write(tmp_path))
    one, two = FakeOrt(), FakeOrt()
    for fake in (one, two, one):
        assert library.register(fake) is None
        fake.inputs = [np.ones((2, 4), np.float32), np.ones((2, 3), np.float32)]
    kernels = [library.create(fake, fake.ops[0])[1] for fake in (one, two)]
    for fake, kernel in zip((one, two), kernels, strict=True):
        assert kernel is not None
        assert library.compute(fake.ops[0], kernel) is None
        assert fake.outputs[-1][0].tolist()[:2] == [2, 2]
        library.destroy(fake.ops[0], kernel)
        assert outstanding(fake) == []


@pytest.mark.parametrize(("version", "fits"), [(16, False), (17, True), (20, True)])
def test_an_old_runtime_is_told_so(tmp_path: Path, version: int, fits: bool) -> None:
    library = LoadedLibrary(build([OP], [KERNEL], note=f"old {version}").write(tmp_path))
    fake = FakeOrt(version)
    status = library.register(fake)
    if fits:
        assert status is None
    else:
        assert fake.message(status) == "this library of Igniter needs ONNX Runtime 1.17 or newer"
        assert fake.live == {}


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (1, 1, "Igniter op Rows_k: input 1 ('w') is missing"),
        (3, 1, "Igniter op Rows_k: expected at most 2 inputs, got 3"),
        (2, 2, "Igniter op Rows_k: expected at most 1 outputs, got 2"),
        (2, 0, "Igniter op Rows_k: output 0 ('y') is left out of the node, but required"),
        (0, 1, "Igniter op Rows_k: input 0 ('x') is missing"),
    ],
)
def test_wrong_counts(library: LoadedLibrary, ort: FakeOrt, inputs: int, outputs: int, message: str) -> None:
    """ORT checks these against the schema; the library does not rely on it."""
    _, kernel = library.create(ort, ort.ops[0])
    assert kernel is not None
    ort.inputs = [*ort.inputs, np.ones(1, np.float32)][:inputs]
    ort.output_count = outputs
    assert ort.message(library.compute(ort.ops[0], kernel)) == message
    library.destroy(ort.ops[0], kernel)
    assert outstanding(ort) == []


def test_a_wrong_type_at_run_time(library: LoadedLibrary, ort: FakeOrt) -> None:
    _, kernel = library.create(ort, ort.ops[0])
    assert kernel is not None
    ort.inputs[0] = np.ones((2, 2), np.int64)
    message = ort.message(library.compute(ort.ops[0], kernel))
    assert message == "Igniter op Rows_k: input 0 ('x') has element type int64, expected float"


def test_the_parallel_kernel_runs_alone(tmp_path: Path) -> None:
    """The same kernel code works without a pool of several threads: the fake one runs task after task."""
    library = LoadedLibrary(build([PARALLEL_OP], [PARALLEL]).write(tmp_path))
    fake = FakeOrt()
    assert library.register(fake) is None
    assert fake.ops
