"""The promises of `docs/deploy/trust.md`: the cache of one user, the digest of a library, and of a whole folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.runtime.cache import Cache, UntrustedCache, cache_key, default_cache
from igniter.runtime.digests import WrongDigest, folder_digest, require_digest
from igniter.tools.main import app

KEY = cache_key("test")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache with one entry."""
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))
    made = default_cache()
    made.put(KEY, b"code")
    return made


def entry_of(cache: Cache) -> Path:
    (found,) = (p for p in cache.folder.rglob("*") if p.is_file())
    return found


def other_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives a file or folder to another user; or makes this process another user, where only root may do that."""
    if os.geteuid() == 0:
        os.chown(path, 4242, 4242)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def test_a_new_cache_is_private(cache: Cache) -> None:
    entry = entry_of(cache)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (cache.folder, entry.parents[1], entry.parent, entry))


@pytest.mark.parametrize(("mode", "who"), [(0o770, "its group"), (0o777, "everybody"), (0o702, "everybody")])
@pytest.mark.parametrize("inside", [False, True])
def test_a_cache_that_others_can_write_to_is_refused(cache: Cache, mode: int, who: str, inside: bool) -> None:
    folder = entry_of(cache).parents[1] if inside else cache.folder
    folder.chmod(mode)
    with pytest.raises(UntrustedCache, match=f"may be written to by {who}.*chmod -R go-w {cache.folder}"):
        default_cache()
    folder.chmod(0o755)
    assert default_cache().get(KEY) == b"code"


def test_a_cache_of_another_user_is_refused(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    other_user(cache.folder, monkeypatch)
    with pytest.raises(UntrustedCache, match=r"belongs to another user \(uid \d+, you are \d+\).*IGNITER_CACHE_DIR"):
        default_cache()


@pytest.fixture
def usual(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """The same cache at the usual place of a user."""
    home = cache.folder.parent / "home"
    monkeypatch.delenv("IGNITER_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    home.mkdir()
    cache.folder.rename(home / "igniter")
    return default_cache()


def test_the_usual_cache_loses_the_write_permission_of_others(usual: Cache) -> None:
    folders = usual.folder, entry_of(usual).parents[1]
    for folder in folders:
        folder.chmod(0o777)
    assert default_cache().get(KEY) == b"code"
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o755, 0o755]


def test_the_usual_cache_of_another_user_is_not_used(
    usual: Cache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other_user(usual.folder, monkeypatch)
    found = default_cache()
    assert found.get(KEY) is None
    found.put(KEY, b"other")
    assert entry_of(usual).read_bytes().endswith(b"code")
    assert "nothing is cached: the cache" in caplog.text and "belongs to another user" in caplog.text


def test_an_entry_of_another_user_is_not_read(cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other_user(entry_of(cache), monkeypatch)
    assert cache.get(KEY) is None and cache.digest(KEY) is None and not cache.get_file(KEY, tmp_path / "out")


def test_an_entry_that_others_can_write_to_is_not_read(cache: Cache) -> None:
    entry_of(cache).chmod(0o666)
    assert cache.get(KEY) is None
    # It is replaced by the next one stored.
    cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"


def test_a_cache_of_root_serves_everybody(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image whose cache was filled when it was built."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a cache of root's")
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert default_cache().get(KEY) == b"code"


def test_a_compile_refuses_the_cache_before_the_work(cache: Cache, small: Artifact) -> None:
    cache.folder.chmod(0o777)
    done = CliRunner().invoke(app, ["compile", str(small.source), "-o", str(cache.folder.with_name("out")), "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]["code"] == "IGN0509"
    assert not cache.folder.with_name("out").exists()


# -- libraries --------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(small: Artifact, tmp_path: Path) -> Path:
    """A copy of the compiled folder."""
    return Path(shutil.copytree(small.folder, tmp_path / "small.igniter"))


def changed(path: Path) -> None:
    """Changes one byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_changed_library_is_not_loaded(folder: Path) -> None:
    (library,) = Artifact.load(folder).libraries
    changed(library)
    artifact = Artifact.load(folder)
    with pytest.raises(WrongDigest, match=f"{library.name} has changed since it was compiled"):
        artifact.session()
    with pytest.raises(WrongDigest):
        artifact.verify()
    done = CliRunner().invoke(app, ["bench", str(folder)])
    assert done.exit_code == 1 and "has changed since it was compiled" in " ".join(done.stderr.split())


def test_a_folder_without_digests_loads(folder: Path) -> None:
    """One of an earlier version."""
    report = json.loads((folder / "report.json").read_text())
    del report["digests"]
    (folder / "report.json").write_text(json.dumps(report))
    Artifact.load(folder).session()


# -- folders ----------------------------------------------------------------------------------------------------------


def digest_of(folder: Path) -> str:
    done = CliRunner().invoke(app, ["verify", str(folder), "--digest"])
    assert done.exit_code == 0
    return done.stdout.strip()


def test_the_digest_is_that_of_ordinary_tools(folder: Path) -> None:
    for tool in ("find", "sort", "sha256sum", "sh"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}")
    (folder / "notes").mkdir()
    (folder / "notes" / "a b\\c\nd").write_text("a file of the user's")
    command = "find . -type f -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
    said = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert digest_of(folder) == f"sha256:{said.split()[0]}" == Artifact.load(folder).digest()


@pytest.mark.parametrize("name", ["model.onnx", "report.json", "library", "more"])
def test_any_change_of_a_folder_is_noticed(folder: Path, name: str) -> None:
    known = digest_of(folder)
    require_digest(folder, known)
    assert CliRunner().invoke(app, ["verify", str(folder), f"--digest={known}"]).exit_code == 0
    if name == "more":
        (folder / "more").touch()
    else:
        changed(next(folder.glob("*.so")) if name == "library" else folder / name)
    with pytest.raises(WrongDigest, match="do not load it"):
        require_digest(folder, known)
    if name != "report.json":
        # A damaged report is an error of its own.
        assert CliRunner().invoke(app, ["verify", str(folder), f"--digest={known}"]).exit_code == 1


@pytest.mark.parametrize("wrong", ["", "sha256:12", "md5:" + "0" * 32])
def test_what_is_no_digest_is_an_error(folder: Path, wrong: str) -> None:
    done = CliRunner().invoke(app, ["verify", str(folder), f"--digest={wrong}"])
    assert done.exit_code == 1 and "is not a digest" in done.stderr


def test_a_digest_goes_with_no_run(folder: Path) -> None:
    done = CliRunner().invoke(app, ["verify", str(folder), "--digest", "--every-value"])
    assert done.exit_code == 1 and "--digest compares the bytes" in done.stderr


def test_a_link_out_of_a_folder_is_refused(folder: Path) -> None:
    (folder / "link").symlink_to("/etc/hostname")
    with pytest.raises(IgniterError, match="is a symbolic link"):
        folder_digest(folder)


def test_a_digest_is_signed_and_checked_by_ssh(folder: Path, tmp_path: Path) -> None:
    """The commands of the page."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen (package openssh-client)")

    def sh(command: str) -> int:
        return subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False).returncode

    (tmp_path / "small.digest").write_text(digest_of(folder) + "\n")
    assert sh("ssh-keygen -q -t ed25519 -N '' -f key && echo \"builder $(cat key.pub)\" > allowed_signers") == 0
    assert sh("ssh-keygen -Y sign -q -f key -n igniter small.digest") == 0
    check = "ssh-keygen -Y verify -f allowed_signers -I builder -n igniter -s small.digest.sig < small.digest"
    assert sh(check) == 0
    require_digest(folder, (tmp_path / "small.digest").read_text())
    (tmp_path / "small.digest").write_text(f"sha256:{'0' * 64}\n")
    assert sh(check) != 0
