"""A root of arm64 Debian packages with Python, numpy and stock ONNX Runtime, run by qemu's user mode.

    python -m tests.platforms.arm64_root

The root is build/platforms/arm64-root; the environment variable IGNITER_PLATFORMS names another folder for it.

Debian's packages come through apt-get with a state of its own, so the machine's list of packages does not change, and
are unpacked without being installed: no root rights, no chroot. The wheels come through pip. qemu resolves absolute
paths of the guest inside the root first (`-L`).
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

FOLDER = Path(os.environ.get("IGNITER_PLATFORMS") or Path(__file__).resolve().parents[2] / "build" / "platforms")
PROGRAMS = ("qemu-aarch64-static", "qemu-aarch64")
OLDEST = (6, 1)
"""The first version of qemu whose CPU `max` has i8mm and bf16."""
PACKAGES = ("python3-minimal", "libpython3-stdlib", "libstdc++6")
WHEELS = ("numpy", "onnxruntime")
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
CPUS = 4
"""The CPUs that the guest's /proc/cpuinfo lists."""

_APT = """
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::State "{0}";
Dir::State::status "{0}/status";
Dir::Cache "{0}";
Dir::Etc::sourceparts "{1}";
"""

_CPU = """processor\t: {0}
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""


@cache
def qemu() -> str | None:
    """The emulator's program; None without one that is new enough."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        return None
    told = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    version = re.search(r"version (\d+)\.(\d+)", told)
    return program if version is not None and (int(version[1]), int(version[2])) >= OLDEST else None


def missing() -> str | None:
    """The reason why there is no arm64 system to run code in; None if there is one."""
    if qemu() is None:
        return f"no qemu-aarch64 of version {OLDEST[0]}.{OLDEST[1]} or later: install qemu-user-static"
    if not (FOLDER / "arm64-root" / "complete").exists():
        return f"no arm64 root in {FOLDER}: python -m tests.platforms.arm64_root makes it"
    return None


def command(cpu: str = "max") -> list[str]:
    """The command that starts the root's Python on an emulated CPU."""
    program, root = qemu(), FOLDER / "arm64-root"
    assert program is not None
    python = next(p for p in sorted((root / "usr/bin").glob("python3.*")) if re.fullmatch(r"python3\.\d+", p.name))
    return [
        *(program, "-cpu", cpu, "-L", str(root)),
        *("-E", f"PYTHONHOME={root / 'usr'}", "-E", f"PYTHONPATH={root / 'opt/site'}"),
        *("-E", "PYTHONDONTWRITEBYTECODE=", "-U", "LD_LIBRARY_PATH", str(python)),
    ]


def make() -> None:
    """Makes the root, unless it is complete; raises `RuntimeError` if a program for it is missing."""
    root = FOLDER / "arm64-root"
    if (root / "complete").exists():
        return
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise RuntimeError(f"an arm64 root is made of Debian's packages by {program}, which is not there")
    shutil.rmtree(root, ignore_errors=True)
    for package in _debian_packages(FOLDER / "apt"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(root)], check=True)
    # Debian's lib is a link to usr/lib, and packages unpack to both.
    shutil.copytree(root / "lib", root / "usr/lib", symlinks=True, dirs_exist_ok=True)
    python = next(p.name for p in (root / "usr/bin").glob("python3.*") if re.fullmatch(r"python3\.\d+", p.name))
    for wheel in wheels(PLATFORMS, python.removeprefix("python"), FOLDER / "aarch64-wheels"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(root / "opt/site")
    # ONNX Runtime reads which Arm CPU it has; the host's file would say x86.
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text("".join(_CPU.format(k) for k in range(CPUS)))
    (root / "complete").touch()


def _debian_packages(state: Path) -> list[Path]:
    """Downloads the packages and what they depend on."""
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    sources = state / "sources"
    sources.mkdir(exist_ok=True)
    listed = [*Path("/etc/apt/sources.list.d").glob("debian*"), *Path("/etc/apt").glob("sources.list")]
    for file in (f for f in listed if "debian" in f.read_text()):
        shutil.copy(file, sources)
    if not any(sources.iterdir()):
        raise RuntimeError("an arm64 root is made of Debian's packages; /etc/apt has no source of Debian's")
    (state / "apt.conf").write_text(_APT.format(state, sources))
    environment = {**os.environ, "APT_CONFIG": str(state / "apt.conf")}
    install = ["apt-get", "-qq", "--no-install-recommends", "--download-only", "-y", "install", *PACKAGES]
    for arguments in (["apt-get", "-qq", "update"], install):
        subprocess.run(arguments, env=environment, check=True, stdout=subprocess.DEVNULL)
    return sorted((state / "archives").glob("*.deb"))


def wheels(platforms: tuple[str, ...], python: str, folder: Path, names: tuple[str, ...] = WHEELS) -> list[Path]:
    """Downloads the wheels for a platform and a Python, of the versions that are installed here."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [f"{name}=={importlib.metadata.version(name)}" for name in names]
    arguments = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps"]
    arguments += ["--only-binary=:all:", "--python-version", python, "-d", str(folder)]
    arguments += [part for platform in platforms for part in ("--platform", platform)]
    subprocess.run([*arguments, *wanted], check=True)
    return [next(folder.glob(f"{each.replace('==', '-')}-*.whl")) for each in wanted]


if __name__ == "__main__":
    if qemu() is None:
        print(f"skipped: {missing()}")
    else:
        make()
        print(FOLDER / "arm64-root")
