"""The answers of `docs/deploy/operations.md`, each with a test. Programs run in processes of their own, without
Igniter."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.compiler.artifact import Artifact
from igniter.runtime.cache import default_cache
from tests.installed import sbom

from . import ort_versions
from .cgroups import limited
from .children import run
from .models import FEED, compiled, expected, small_model

RUNS = "print(float(session_of(folder).run(None, feed())[0].sum()))"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="it asks Linux")


def needs(tool: str, package: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool} (package {package})")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """A model whose kernels need memory that grows with the batch: products between transposes."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    value = "x"
    weights = {f"w{i}": (rng.standard_normal((256, 256)) / 16).astype(np.float32) for i in range(3)}
    for i in range(3):
        nodes += [
            helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]),
            helper.make_node("Transpose", [f"m{i}"], [f"t{i}"], perm=[1, 0]),
            helper.make_node("Softmax", [f"t{i}"], [f"s{i}"], axis=-1),
            helper.make_node("Transpose", [f"s{i}"], [f"u{i}"], perm=[1, 0]),
        ]
        value = f"u{i}"
    nodes.append(helper.make_node("ReduceMean", [value], ["y"], axes=[0], keepdims=0))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 256])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [256])]
    graph = helper.make_graph(
        nodes, "scratch", inputs, outputs, [numpy_helper.from_array(w, name) for name, w in weights.items()]
    )
    folder = tmp_path_factory.mktemp("scratch")
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx"
    )
    return igniter.compile(folder / "model.onnx", folder / "out", verify=False, cache=False, debug_info=True)


# -- versions of ONNX Runtime -----------------------------------------------------------------------------------------


def test_the_table_of_versions_is_the_commands() -> None:
    rows = ort_versions.shown().splitlines()
    assert rows[0] == ort_versions.table([]).splitlines()[0]
    found = [row.split(" | ")[0].removeprefix("| ") for row in rows[2:]]
    assert [version.rpartition(".")[0] for version in found] == [*ort_versions.VERSIONS]
    assert all(set(row.strip("| ").split(" | ")[1:]) == {"yes"} for row in rows[2:])


@pytest.mark.slow
def test_the_installed_version_runs_a_folder(small: Artifact, tmp_path: Path) -> None:
    """One row of the table, without an installation."""
    import onnxruntime

    np.savez(tmp_path / "feed.npz", y=expected(), **FEED)
    packages = Path(onnxruntime.__file__).parents[1]
    row = ort_versions.run(packages, small.folder, small.folder, tmp_path / "feed.npz")
    assert {row.get(name) for name in ort_versions.COLUMNS} == {"yes"}, row


@pytest.mark.full
@pytest.mark.parametrize("version", ["1.17", "1.22", "1.27"])
def test_a_sample_of_versions(version: str, tmp_path: Path) -> None:
    (row,) = ort_versions.measure([version], tmp_path)
    if "not installed" in row.get("error", ""):
        pytest.skip(row["error"])
    assert {row.get(name) for name in ort_versions.COLUMNS} == {"yes"}, row


# -- other CPUs -------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the emulated CPUs are of x86-64")
@pytest.mark.parametrize(
    ("target", "cpu", "said"),
    [
        (
            "x86-64-v4",
            "Haswell",
            "compiled for x86-64-v4, and this CPU is x86-64-v3 without avx512bw, avx512cd, avx512dq, avx512f, ",
        ),
        ("x86-64-v3", "Nehalem", "compiled for x86-64-v3, and this CPU is x86-64-v2 without avx, avx2, bmi, "),
        (
            "znver4",
            "max",
            "compiled for znver4 (x86-64-v4), and this CPU is x86-64-v3 without avx512bf16, avx512bitalg, ",
        ),
        ("haswell", "Nehalem", "compiled for haswell (x86-64-v3), and this CPU is x86-64-v2 without avx, avx2, bmi, "),
        ("x86-64-v3+avxvnni", "Haswell", "and this CPU is x86-64-v3 without avxvnni: compile the model with --target"),
        ("x86-64-v3", "Haswell,-f16c", "and this CPU is x86-64-v2 without f16c: compile the model with --target="),
        ("x86-64-v2+avx2+fma", "Haswell,-fma", "and this CPU is x86-64-v2 without fma: compile the model with"),
        ("x86-64-v2,x86-64-v3+avxvnni", "Haswell", ""),
        ("x86-64-v2,x86-64-v4", "Haswell", ""),
        ("x86-64-v2,x86-64-v4", "Nehalem", ""),
    ],
)
def test_a_library_on_an_older_cpu(target: str, cpu: str, said: str, tmp_path: Path) -> None:
    needs("qemu-x86_64-static", "qemu-user-static")
    artifact = compiled(tmp_path, target=target, load=False)
    python = os.path.realpath(sys.executable)
    text = Path(tmp_path / "program.py")
    from .children import PACKAGES, SESSION

    text.write_text(SESSION + RUNS)
    done = subprocess.run(
        ["qemu-x86_64-static", "-cpu", cpu, python, str(text), str(artifact.folder)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PACKAGES), "PATH": os.environ["PATH"]},
        check=False,
    )
    if said:
        assert done.returncode == 1 and said in done.stderr
    else:
        assert abs(float(done.stdout) - 3) < 1e-4, done.stderr


# -- read-only, offline, another user ---------------------------------------------------------------------------------


@pytest.fixture
def public(small: Artifact) -> Iterator[Path]:
    """A copy of the folder that every user can read and nobody can write, beside a folder for anything."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp" if Path("/var/tmp").is_dir() else None))
    folder = Path(shutil.copytree(small.folder, place / "small.igniter"))
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    place.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(place)


@LINUX
def test_another_user_runs_a_folder_that_it_cannot_write(public: Path) -> None:
    """Without a home, and without a folder that it could write to; as root also with another user's rights."""
    before: list[str] = []
    if os.geteuid() == 0:
        needs("setpriv", "util-linux")
        # Nobody, with the right to read alone: the interpreter may be below root's home.
        read = "+dac_read_search"
        before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={read}"]
        before += [f"--ambient-caps={read}", f"--bounding-set=-all,{read}", "--no-new-privs"]
    program = f"{RUNS}\nprint(os.geteuid(), os.access(folder, os.W_OK))"
    nowhere = {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}
    total, user, writable = run(program, public, before=before, env=nowhere, cwd="/").stdout.split()
    assert abs(float(total) - 3) < 1e-4
    assert (user != "0", writable) == (True, "False")


class Network(Exception):
    pass


@pytest.mark.slow
def test_a_compile_and_a_session_open_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python; the next test watches native code as well."""

    def refuse(*_: object) -> None:
        raise Network("a socket is opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))
    artifact = igniter.compile(small_model(tmp_path / "small.onnx"), tmp_path / "out", verify=False)
    assert np.allclose(artifact.session().run(None, FEED)[0], expected(), rtol=1e-4)


@pytest.mark.full
@LINUX
def test_no_system_call_reaches_the_network(tmp_path: Path) -> None:
    needs("strace", "strace")
    small_model(tmp_path / "small.onnx")
    command = [sys.executable, "-m", "igniter.tools.main", "compile", "small.onnx", "-o", "out", "--no-cache"]
    trace = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,bind", "-o", "trace"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [*trace, *command], cwd=tmp_path, capture_output=True, text=True, env=environment, check=False
    )
    if "ptrace" in done.stderr and not (tmp_path / "out").exists():
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    run(
        RUNS,
        tmp_path / "out",
        before=["strace", "-f", "-qq", "-e", "trace=connect,sendto,bind", "-o", str(tmp_path / "t")],
    )
    found = (tmp_path / "trace").read_text() + (tmp_path / "t").read_text()
    assert "AF_INET" not in found


# -- CPUs, threads and memory -----------------------------------------------------------------------------------------


@LINUX
def test_threads_are_those_that_a_session_asks_for(small: Artifact) -> None:
    """Igniter's library starts none of its own."""
    done = run(
        """
        before = threads()
        sessions = [session_of(folder, intra_op_num_threads=n) for n in (1, 4)]
        counts = []
        for n in (1, 4):
            start = threads()
            session = session_of(folder, intra_op_num_threads=n)
            session.run(None, feed(4096))
            counts.append(threads() - start)
        print(json.dumps(counts))
        """,
        small.folder,
    )
    # The caller's thread is one of them.
    assert json.loads(done.stdout) == [0, 3]


@LINUX
def test_sessions_share_a_pool(small: Artifact) -> None:
    done = run(
        """
        ort.set_global_thread_pool_sizes(3, 1)
        warm = session_of(folder, use_per_session_threads=False)
        start = threads()
        shared = [session_of(folder, use_per_session_threads=False) for _ in range(4)]
        print(threads() - start, float(shared[3].run(None, feed())[0].sum()))
        """,
        small.folder,
    )
    more, total = done.stdout.split()
    assert more == "0" and abs(float(total) - 3) < 1e-4


@LINUX
def test_threads_stay_where_they_are_put(small: Artifact) -> None:
    done = run(
        """
        before = {*os.listdir("/proc/self/task")}
        config = {"session.intra_op_thread_affinities": "1", "session.intra_op.allow_spinning": "0"}
        session = session_of(folder, config, intra_op_num_threads=2)
        session.run(None, feed(4096))
        mine = {*os.listdir("/proc/self/task")} - before
        end = time.monotonic() + 30
        # A thread moves itself when it first runs, which on a busy machine may be after the run.
        while any(len(os.sched_getaffinity(int(thread))) > 1 for thread in mine) and time.monotonic() < end:
            time.sleep(0.01)
        print(json.dumps([sorted(os.sched_getaffinity(int(thread))) for thread in mine]))
        """,
        small.folder,
    )
    # ONNX Runtime counts processors from 1.
    assert json.loads(done.stdout) == [[0]]


@LINUX
def test_a_process_with_one_cpu(small: Artifact) -> None:
    """As in a container with a cpuset: any number of threads is right there."""
    needs("taskset", "util-linux")
    program = "for n in (1, 8): print(float(session_of(folder, intra_op_num_threads=n).run(None, feed(512))[0].sum()))"
    done = run(program, small.folder, before=["taskset", "-c", str(min(os.sched_getaffinity(0)))])
    assert [abs(float(line) - 512) < 1e-2 for line in done.stdout.split()] == [True, True]


@LINUX
@pytest.mark.parametrize("threads", [1, 8])
def test_a_container_with_a_twentieth_of_a_cpu(small: Artifact, threads: int) -> None:
    """A quota stops all threads at once, within a run too: some wait for others that do not run."""
    program = """
    session = session_of(folder, intra_op_num_threads=int(sys.argv[2]))
    first, end = session.run(None, feed(512))[0], time.monotonic() + 1
    Path(sys.argv[3], "cgroup.procs").write_text(str(os.getpid()))
    while time.monotonic() < end:
        assert (session.run(None, feed(512))[0] == first).all()
    print(float(first.sum()))
    """
    with limited(cpus=0.05) as limits:
        done = run(program, small.folder, threads, *limits.folders, timeout=120)
        assert limits.stat("cpu.stat")["nr_throttled"] > 0
    assert abs(float(done.stdout) - 512) < 1e-2


@pytest.mark.slow
@LINUX
def test_a_container_with_too_little_memory_is_killed_and_others_run(scratch: Artifact) -> None:
    program = "print(session_of(folder).run(None, {'x': np.ones((int(sys.argv[2]), 256), np.float32)})[0].shape)"
    with limited(memory=400 << 20) as limits:
        assert run(program, scratch.folder, 1000, before=limits.before).stdout == "(256,)\n"
        # Two buffers of 1 GB.
        assert run(program, scratch.folder, 1 << 20, before=limits.before, check=False).returncode == -signal.SIGKILL


@LINUX
@pytest.mark.parametrize("arena", [False, True])
def test_memory_that_cannot_be_had_is_an_error_of_the_run(scratch: Artifact, arena: bool) -> None:
    """No crash, and the session goes on."""
    done = run(
        """
        arena = sys.argv[2] == "True"
        inputs = lambda n: {"x": np.ones((n, 256), np.float32)}
        big = inputs(1 << 17)
        session = session_of(folder, enable_cpu_mem_arena=arena, intra_op_num_threads=1)
        first = session.run(None, inputs(100))[0]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
        try:
            session.run(None, big)
        except Exception as error:
            print(type(error).__module__, error)
        assert (session.run(None, inputs(100))[0] == first).all()
        print("goes on")
        """,
        scratch.folder,
        arena,
    )
    assert "igniter_p0 node" in done.stdout
    assert "Failed to allocate memory" in done.stdout if arena else "bad_alloc" in done.stdout
    assert done.stdout.endswith("goes on\n")


# -- profiles and crashes ---------------------------------------------------------------------------------------------


def test_the_profile_has_each_op_with_its_sizes(small: Artifact, tmp_path: Path) -> None:
    session = small.session(enable_profiling=True, profile_file_prefix=str(tmp_path / "profile"))
    session.run(None, FEED)
    events = json.loads(Path(session.end_profiling()).read_text())
    (found,) = (e for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time"))
    assert found["args"]["op_name"].startswith("igniter_") and found["args"]["provider"] == "CPUExecutionProvider"
    assert found["dur"] >= 0 and {"float": [3, 64]} in found["args"]["input_type_shape"]


CRASH = """
import ctypes, faulthandler

faulthandler.enable()
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
session = session_of(folder, intra_op_num_threads=1)
binding = session.io_binding()
# A caller's mistake: a megabyte that may not be read (PROT_NONE).
binding.bind_input("x", "cpu", 0, np.float32, (1024, 256), libc.mmap(None, 1 << 20, 0, 0x22, -1, 0))
binding.bind_output("y")
session.run_with_iobinding(binding)
"""


@LINUX
def test_a_crash_in_a_kernel_is_shown_by_faulthandler(scratch: Artifact) -> None:
    done = run(CRASH, scratch.folder, check=False)
    assert done.returncode == -11
    assert "Segmentation fault" in done.stderr and "in run_with_iobinding" in done.stderr


@pytest.mark.full
@LINUX
def test_a_debugger_names_the_kernel_and_the_library(scratch: Artifact) -> None:
    needs("gdb", "gdb")
    done = run(
        CRASH, scratch.folder, before=["gdb", "-q", "-batch", "-ex", "run", "-ex", "bt 1", "--args"], check=False
    )
    if "SIGSEGV" not in done.stdout:
        pytest.skip("gdb may not trace here")
    assert re.search(r"#0 .* in igniter\.[\w.]+ \(\) from .*/libigniter_[0-9a-f]+\.so", done.stdout), done.stdout


@pytest.mark.full
def test_a_division_by_zero_is_an_error_of_the_run(tmp_path: Path) -> None:
    nodes = [helper.make_node("Div", ["a", "b"], ["q"], "quotient"), helper.make_node("Abs", ["q"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.INT32, ["n"]) for name in ("a", "b", "y")]
    graph = helper.make_graph(nodes, "division", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = igniter.compile(model, tmp_path / "out", verify=False).session(log_severity_level=4)
    one, zero = np.ones(4, np.int32), np.zeros(4, np.int32)
    with pytest.raises(Exception, match="node 'quotient': cannot divide an integer by 0"):
        session.run(None, {"a": one, "b": zero})
    assert session.run(None, {"a": one, "b": one})[0].tolist() == [1, 1, 1, 1]


# -- sizes, licences, cache -------------------------------------------------------------------------------------------


def test_a_folder_is_as_large_as_its_weights_and_its_code(small: Artifact) -> None:
    sizes = {path.suffix: path.stat().st_size for path in small.folder.iterdir()}
    # The bias is small, and in the model.
    weights = 4 * 64 * 32
    assert weights <= sizes[".data"] <= weights + 4096 and sizes[".so"] < 100_000 and sizes[".onnx"] < 10_000


def test_the_bill_of_materials_has_each_dependency_with_version_and_licence() -> None:
    pytest.importorskip("cyclonedx", reason="the extra dev is not installed")
    import tomllib
    from importlib.metadata import version

    from packaging.requirements import Requirement

    project = tomllib.loads((sbom.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = json.loads(sbom.text())
    listed = {c["name"]: c for c in found["components"]}
    for line in project["dependencies"]:
        name = Requirement(line).name
        assert listed[name.replace("_", "-")]["version"] == version(name)
    for name, each in listed.items():
        licence = each["licenses"][0]
        assert licence.get("expression") or licence["license"].get("id"), f"{name} has no SPDX licence: {licence}"
    assert {"cytoscape", "cytoscape-dagre"} <= listed.keys()
    assert found["metadata"]["component"]["name"] == "onnx-igniter"
    assert sbom.text() == sbom.text()


@pytest.mark.full
def test_a_removed_cache_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))
    model = small_model(tmp_path / "small.onnx")
    igniter.compile(model, tmp_path / "out", verify=False)
    assert default_cache().contents()[0] > 0
    shutil.rmtree(tmp_path / "cache")
    assert np.allclose(igniter.compile(model, tmp_path / "out", verify=False).session().run(None, FEED)[0], expected())


# -- reproducible builds ----------------------------------------------------------------------------------------------

VARYING = ("seconds", "peak_memory", "source", "cached_kernels", "from_cache")
"""The entries of `report.json` that are of a compile, and not of its result."""

COMPILE = "import sys, igniter; igniter.compile(sys.argv[1], sys.argv[2], verify=False)"


def built(model: Path, output: Path, cwd: Path, **variables: str) -> dict[str, object]:
    """Compiles in a process of its own; returns the parts of the folder."""
    cwd.mkdir(parents=True, exist_ok=True)
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    environment = {**os.environ, "PYTHONPATH": paths, "IGNITER_CACHE_DIR": f"{output}.cache", **variables}
    subprocess.run([sys.executable, "-c", COMPILE, str(model), str(output)], cwd=cwd, env=environment, check=True)
    return parts(output)


def parts(folder: Path) -> dict[str, object]:
    """The files of a folder by name, and its report without what varies."""
    files: dict[str, object] = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "report.json"}
    report = json.loads((folder / "report.json").read_text())
    return {**files, "report.json": {k: v for k, v in report.items() if k not in VARYING}}


@pytest.mark.slow
def test_two_compiles_give_the_same_bytes(small: Artifact, tmp_path: Path) -> None:
    """In another process, folder and cache, with another seed of hashes, and a model of another name."""
    other = tmp_path / "deep" / "er"
    other.mkdir(parents=True)
    second = built(small_model(other / "name.onnx"), tmp_path / "b", other, PYTHONHASHSEED="77", TMPDIR=str(other))
    assert parts(small.folder) == second


@pytest.mark.full
def test_larger_models_give_the_same_bytes(tmp_path: Path, scratch: Artifact) -> None:
    demo = tmp_path / "demo.onnx"
    command = [sys.executable, "-m", "igniter.tools.demo_model", "--layers", "2", str(demo)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    for model in (demo, Path(str(scratch.source))):
        found = [
            built(model, tmp_path / f"{model.stem}{seed}", tmp_path / f"cwd{seed}", PYTHONHASHSEED=seed)
            for seed in ("1", "2")
        ]
        assert found[0] == found[1], model
