"""The compile cache: hits, eviction by use, damage, and several processes at once."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest
from library_kit import build, scale_kernel, scale_op

from igniter.errors import IgniterError
from igniter.runtime.cache import Cache, cache_key, default_cache, default_folder, parse_size


def key(i: int) -> str:
    return cache_key("test", str(i))


def payload(i: int, size: int = 1000) -> bytes:
    return bytes([i % 256]) * size


def files(cache: Cache) -> list[Path]:
    return sorted(p for p in cache.folder.rglob("*") if p.is_file() and p.name != "lock")


def test_what_is_put_can_be_got(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.get(key(1)) is None
    cache.put(key(1), b"one")
    cache.put(key(2), b"")
    assert cache.get(key(1)) == b"one"
    assert Cache(tmp_path).get(key(2)) == b""
    assert (cache.statistics.hits, cache.statistics.misses) == (1, 1)
    assert cache.clear() == 2 and cache.get(key(1)) is None


def test_keys_do_not_run_together() -> None:
    assert cache_key("ab", "c") != cache_key("a", "bc") != cache_key("abc")
    with pytest.raises(ValueError, match="not a key"):
        Cache(Path("x")).get("../../etc/passwd")


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10 * 1032)
    for i in range(10):
        cache.put(key(i), payload(i))
    assert cache.statistics.evicted == 0
    cache.get(key(0))
    Cache(tmp_path).get(key(3))  # use by another object, as by another process, counts
    cache.put(key(10), payload(10))
    left = [i for i in range(11) if cache.get(key(i)) is not None]
    assert left == [0, 3, 4, 5, 6, 7, 8, 9, 10]
    assert cache.size() <= cache.limit


def test_the_limit_holds_over_time(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=20_000)
    for i in range(200):
        cache.put(key(i), payload(i))
        assert cache.size() <= 20_000
    assert cache.get(key(199)) is not None


def test_what_is_larger_than_the_limit_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=5000)
    cache.put(key(1), payload(1))
    cache.put(key(2), payload(2, 10_000))
    assert cache.get(key(2)) is None and cache.get(key(1)) is not None
    off = Cache(tmp_path / "off", limit=0)
    off.put(key(1), b"")
    assert off.get(key(1)) is None and not (tmp_path / "off").exists()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "grow"])
def test_damaged_entries_are_dropped(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    cache.put(key(1), payload(1))
    (path,) = files(cache)
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[100] ^= 1
    path.write_bytes({"cut": data[:500], "empty": b"", "grow": data + b"x"}.get(damage, data))
    assert cache.get(key(1)) is None
    assert cache.statistics.corrupt == 1
    assert files(cache) == []
    cache.put(key(1), payload(1))
    assert cache.get(key(1)) == payload(1)


def test_an_entry_under_anothers_name_is_dropped(tmp_path: Path) -> None:
    """The key is digested too: a file that was moved, or restored to the wrong place, is no entry."""
    cache = Cache(tmp_path)
    cache.put(key(1), payload(1))
    (path,) = files(cache)
    wrong = cache.folder / "objects-2" / key(2)[:2] / key(2)[2:]
    wrong.parent.mkdir(exist_ok=True)
    path.rename(wrong)
    assert cache.get(key(2)) is None
    assert cache.statistics.corrupt == 1 and not wrong.exists()


def test_what_earlier_versions_left_goes(tmp_path: Path) -> None:
    left = tmp_path / "objects-1" / "ab"
    left.mkdir(parents=True)
    (left / "c").write_bytes(b"old")
    Cache(tmp_path).put(key(1), payload(1))
    assert not (tmp_path / "objects-1").exists()


@pytest.mark.parametrize("size", ["9" * 5000, "1e30", "-5", "", "5 parsecs", "999999999999T", "0.00001"])
@pytest.mark.parametrize("folder", ["~nobody-of-this-name/cache", "x" * 5000, "/dev/null/cache", "a\nb"])
def test_absurd_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: str, folder: str) -> None:
    """They are errors that name the variable, or they work."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IGNITER_CACHE_SIZE", size)
    monkeypatch.setenv("IGNITER_CACHE_DIR", folder)
    try:
        cache = default_cache()
    except IgniterError as error:
        assert "IGNITER_CACHE_SIZE" in error.message or "IGNITER_CACHE_DIR" in error.message
        return
    cache.put(key(1), payload(1))
    assert cache.get(key(1)) in (None, payload(1))


def test_abandoned_files_are_cleared_away(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=3000)
    cache.put(key(1), payload(1))
    old, new = (files(cache)[0].with_name(f".{n}.tmp") for n in ("old", "new"))
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (1, 1))
    for i in range(2, 5):
        cache.put(key(i), payload(i))
    assert not old.exists() and new.exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = Cache(blocked / "cache")
    cache.put(key(1), b"one")
    assert cache.get(key(1)) is None


def test_where_and_how_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("IGNITER_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "igniter"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_folder() == Path.home() / ".cache" / "igniter"
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("IGNITER_CACHE_SIZE", "1.5M")
    assert default_cache().folder == tmp_path / "own" and default_cache().limit == 3 << 19
    monkeypatch.setenv("IGNITER_CACHE_SIZE", "plenty")
    with pytest.raises(IgniterError, match="'plenty' is not a size"):
        default_cache()
    assert [parse_size(t) for t in ("0", "7", "2k", "2 KiB", "1G")] == [0, 7, 2048, 2048, 1 << 30]


def test_compilations_of_a_process_measure_the_folder_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A measurement looks at every file; and the limit holds all the same."""
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("IGNITER_CACHE_SIZE", "8000")
    measured: list[int] = []
    measure = Cache._measure
    monkeypatch.setattr(Cache, "_measure", lambda cache: measured.append(1) or measure(cache))
    for i in range(7):
        default_cache().put(key(i), payload(i))
    assert len(measured) == 1
    for i in range(7, 20):
        default_cache().put(key(i), payload(i))
    assert default_cache().contents()[1] <= 8000 and default_cache().get(key(19)) is not None


def hammer(folder: str, seed: int, failures) -> None:
    """Puts and gets of few keys under a limit that keeps eviction busy; every hit must be whole and the right one."""
    import random

    rng = random.Random(seed)
    cache = Cache(Path(folder), limit=30_000)
    for _ in range(400):
        i = rng.randrange(40)
        if rng.random() < 0.5:
            cache.put(key(i), payload(i))
        else:
            found = cache.get(key(i))
            if found is not None and found != payload(i):
                failures.put(f"process {seed}: key {i} has {found[:8]!r}")
    if cache.statistics.corrupt:
        failures.put(f"process {seed}: {cache.statistics.corrupt} damaged entries")


@pytest.mark.slow
def test_several_processes_share_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    failures = context.Queue()
    workers = [context.Process(target=hammer, args=(str(tmp_path), seed, failures)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [w.exitcode for w in workers] == [0, 0, 0]
    assert failures.empty(), failures.get()
    cache = Cache(tmp_path, limit=30_000)
    cache.put(key(99), payload(99))
    assert cache.size() <= 30_000 + 3 * 32 * 1032
    assert not [p for p in files(cache) if p.suffix == ".tmp"]


def test_a_second_build_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    first = build([scale_op()], [scale_kernel()], cache=cache)
    monkeypatch.setattr("igniter.backends.cpu.codegen.compile_object", lambda *_: pytest.fail("compiled again"))
    monkeypatch.setattr("igniter.runtime.linker.link_shared", lambda *_: pytest.fail("linked again"))
    assert build([scale_op()], [scale_kernel()], cache=cache).data == first.data


@pytest.mark.slow
def test_a_kernel_is_shared_by_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    build([scale_op()], [scale_kernel()], cache=cache)
    compiled: list[str] = []
    from igniter.backends.cpu import codegen

    original = codegen.compile_object
    monkeypatch.setattr(codegen, "compile_object", lambda text, target: compiled.append(text) or original(text, target))
    build([scale_op("Other_k")], [scale_kernel()], cache=cache)
    assert len(compiled) == 1 and "RegisterCustomOps" in compiled[0]


def test_a_file_is_copied_with_and_without_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 20_000
    (tmp_path / "source").write_bytes(data)
    cache, key = Cache(tmp_path / "cache"), cache_key("k")
    assert cache.put_file(key, tmp_path / "source")
    assert cache.get_file(key, tmp_path / "by the kernel")

    def refused(*_: int) -> int:
        raise OSError

    monkeypatch.setattr("os.copy_file_range", refused, raising=False)
    assert cache.get_file(key, tmp_path / "by hand")
    left = iter([1000, 0])

    def stops(source: int, target: int, count: int, place: int) -> int:
        done = next(left)
        return os.write(target, os.pread(source, done, place)) if done else 0

    monkeypatch.setattr("os.copy_file_range", stops, raising=False)
    assert cache.get_file(key, tmp_path / "by both")
    assert {(tmp_path / name).read_bytes() for name in ("by the kernel", "by hand", "by both")} == {data}
