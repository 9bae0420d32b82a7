"""One comparison: all variants of one model, at one choice of sizes, with one number of threads.

Every step is a record of the store (`store.py`), so a comparison that is run again does the missing steps only. Builds,
inputs and checks are jobs (`jobs.py`); times are `timing.py`. A variant that fails has its reason in the place of
figures, and the others go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from igniter.errors import IgniterError
from igniter.runtime.timing import System
from igniter.toolbox.experiment import peers
from igniter.toolbox.experiment.jobs import run_job
from igniter.toolbox.experiment.plugins import environment_with, plugin_digest
from igniter.toolbox.experiment.spec import Spec, Variant, digest
from igniter.toolbox.experiment.store import Store, machine, read_record, slug, versions
from igniter.toolbox.experiment.subjects import WORK, Subject
from igniter.toolbox.experiment.timing import Entry, time_launch
from igniter.toolbox.experiment.variants import build_key, typical_sizes

LOCAL = ("igniter", "onnxruntime")
"""The systems that are no peers."""


@dataclass(frozen=True)
class Case:
    """The place of a comparison in an experiment."""

    subject: Subject
    sizes: Mapping[str, int]
    threads: int

    @property
    def id(self) -> str:
        """The name of its folder."""
        sizes = ",".join(f"{name}={size}" for name, size in self.sizes.items())
        return slug(self.subject.name, *([sizes] if sizes else []), f"threads={self.threads}")


def cases_of(spec: Spec, subjects: list[Subject]) -> list[Case]:
    """Returns the comparisons of an experiment, in order."""
    return [Case(s, sizes, threads) for s in subjects for sizes in s.sizes for threads in spec.threads]


def build_id_of(model: str, variant: Variant, sizes: Mapping[str, int]) -> str:
    """Returns the name of the folder of a build; builds at the sizes of the run differ by these."""
    at = ",".join(f"{name}={size}" for name, size in sizes.items()) if variant.sizes == "run" else ""
    return slug(model, variant.name, *([at] if at else []))


def plan_of(spec: Spec, case: Case) -> str:
    """Returns a hash of what a comparison is to time, whatever the machine."""
    said = [case.id, case.subject.digest, spec.measure.timing(), spec.base, versions()]
    return digest([*said, [v.key() for v in spec.variants]])


def is_complete(spec: Spec, case: Case, store: Store) -> bool:
    """True if all launches of a comparison were timed, on any machine."""
    places = [f"cases/{case.id}/launch-{k}.json" for k in range(spec.measure.launches)]
    found = [read_record(store.root, place) for place in places]
    return all(record is not None and record.get("plan") == plan_of(spec, case) for record in found)


class Comparison:
    """Runs one comparison; `say` gets a line for each step."""

    def __init__(self, spec: Spec, case: Case, store: Store, say: Callable[[str], object]):
        self.spec, self.case, self.store, self.say = spec, case, store, say
        self.limit = spec.measure.limit

    def run(self) -> None:
        """Does the missing steps."""
        found = self.store.made(f"{self._place}/case.json", self._key, self._case)
        if "error" in found:
            return
        builds = {v.name: self._build(v) for v in self.spec.variants}
        checks = self.store.made(
            f"{self._place}/checks.json", digest([self._key, builds]), lambda: self._checks(builds)
        )
        checks = {name: value for name, value in checks.items() if name != "key"}
        timed = [self._key, plan_of(self.spec, self.case), builds, checks]
        for number in range(self.spec.measure.launches):
            place, key = f"{self._place}/launch-{number}.json", digest([timed, number])
            self.store.made(place, key, lambda number=number: self._launch(number, builds, checks))

    # -- what is run --------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> str:
        return f"cases/{self.case.id}"

    @cached_property
    def _key(self) -> str:
        subject = self.case.subject
        seed = self.spec.measure.seed
        return digest([self.case.id, subject.digest, subject.reason, seed, versions(), machine()])

    @cached_property
    def _inputs(self) -> str:
        """The file of the inputs, made if it is missing: an archive or a record has only the sizes."""
        file = self.store.root / self._place / "inputs.npz"
        if not file.is_file():
            self._make_inputs(file.as_posix())
        return str(file)

    def _make_inputs(self, file: str) -> dict[str, Any]:
        os.makedirs(os.path.dirname(file), exist_ok=True)
        said = {"model": self.case.subject.path, "sizes": self.case.sizes, "seed": self.spec.measure.seed, "path": file}
        return run_job(f"{WORK}:make_inputs", said, limit=self.limit)

    def _case(self) -> dict[str, Any]:
        subject = self.case.subject
        about = {"model": subject.name, "threads": self.case.threads, "asked": dict(self.case.sizes)}
        about |= {"machine": machine(), "versions": versions()}
        if subject.reason:
            return {**about, "error": subject.reason}
        self.say(f"{self.case.id}: inputs")
        try:
            made = self._make_inputs(str(self.store.root / self._place / "inputs.npz"))
        except IgniterError as error:
            return {**about, "error": f"the model does not run: {error.message}"}
        return {**about, **made}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        found = self.store.get(f"{self._place}/case.json", self._key) or {}
        return dict(found["sizes"])

    # -- builds and checks --------------------------------------------------------------------------------------------

    def _build(self, variant: Variant) -> dict[str, Any]:
        """Returns the facts of a compiled variant, or `error`; empty for systems without a build here."""
        if variant.system != "igniter":
            reason = peers.unavailable(variant.system) if variant.system not in LOCAL else None
            return {"unavailable": reason} if reason is not None else {}
        sizes = typical_sizes(variant, self._sizes)
        name = build_id_of(self.case.subject.name, variant, self._sizes)
        place = self.store.root / "builds" / name
        said = versions()["build"], self.case.subject.digest, build_key(variant, sizes), self.spec.ir
        try:
            files = plugin_digest(variant.plugins, Path(self.spec.folder))
        except IgniterError as error:
            return {"error": error.message}
        key = digest([*said, files, self.spec.measure.compiles, machine()["cpu"]])
        found = self.store.made(f"builds/{name}/build.json", key, lambda: self._built(variant, sizes, name))
        if "error" not in found and not (place / "model").is_dir():
            # Records that were brought here without the compiled model.
            found = self.store.put(f"builds/{name}/build.json", key, self._built(variant, sizes, name))
        return {**{k: v for k, v in found.items() if k != "key"}, "build": name}

    def _built(self, variant: Variant, sizes: Mapping[str, int], name: str) -> dict[str, Any]:
        self.say(f"{self.case.subject.name}: compiling '{variant.name}'")
        place = self.store.root / "builds" / name
        place.mkdir(parents=True, exist_ok=True)
        said = {"model": self.case.subject.path, "variant": asdict(variant), "sizes": sizes, "folder": str(place)}
        more = {"levels": list(self.spec.ir), "compiles": self.spec.measure.compiles}
        try:
            environment = environment_with(variant.plugins, Path(self.spec.folder), self.store.root / "plugins")
            # Tuning has its own limit besides.
            limit = self.limit + variant.tune
            facts = run_job(f"{WORK}:build", {**said, **more}, limit=limit, environment=environment)
        except IgniterError as error:
            return {"model": self.case.subject.name, "variant": variant.name, "error": error.message}
        return {"model": self.case.subject.name, "variant": variant.name, **facts}

    def _checks(self, builds: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Returns the facts of all builds, and the comparison of their outputs at the sizes of the run."""
        found: dict[str, Any] = {}
        # The base first: variants with its kernels need no check of their own.
        for variant in sorted(self.spec.variants, key=lambda v: v.name != self.spec.base):
            build = builds[variant.name]
            if "build" not in build or "error" in build:
                continue
            if is_same_code(self.spec, variant, builds) and self.spec.base in found:
                found[variant.name] = found[self.spec.base]
                continue
            self.say(f"{self.case.id}: checking '{variant.name}'")
            said = {
                "folder": str(self.store.root / "builds" / build["build"] / "model"),
                "model": self.case.subject.path,
                "inputs": self._inputs,
                "verify": self.spec.measure.verify,
            }
            try:
                found[variant.name] = run_job(f"{WORK}:check", said, limit=self.limit)
            except IgniterError as error:
                found[variant.name] = {"error": f"it does not run: {error.message}"}
        return {"builds": builds, "checks": found}

    # -- times --------------------------------------------------------------------------------------------------------

    def _launch(self, number: int, builds: Mapping[str, Any], checks: Mapping[str, Any]) -> dict[str, Any]:
        """Times all variants that run and differ from the base."""
        entries = [e for v in self.spec.variants if (e := self._entry(v, builds, checks)) is not None]
        if not entries:
            return {"plan": plan_of(self.spec, self.case), "times": {}, "failed": {}, "memory": {}, "runs": 0}
        count = f"launch {number + 1} of {self.spec.measure.launches}"
        self.say(f"{self.case.id}: timing {len(entries)} variants, {count}")
        reference = self._reference() if any(entry.is_peer for entry in entries) else ""
        found = time_launch(entries, self.spec.measure, digest([self.case.id, number]), reference)
        return {"plan": plan_of(self.spec, self.case), **found}

    def _entry(self, variant: Variant, builds: Mapping[str, Any], checks: Mapping[str, Any]) -> Entry | None:
        """Returns a variant as a system to time; `None` if it cannot run, or is the base once more."""
        build, check = builds[variant.name], checks.get(variant.name, {})
        if {"error", "unavailable"} & build.keys() or "error" in check:
            return None
        if is_unchanged(self.spec, variant, builds):
            return None
        threads = self.case.threads if variant.threads is None else variant.threads
        spinning = self.spec.measure.spinning if variant.spinning is None else variant.spinning
        model, libraries = self.case.subject.path, ()
        if variant.system == "igniter":
            folder = self.store.root / "builds" / build["build"] / "model"
            model, libraries = str(folder / "model.onnx"), tuple(str(folder / n) for n in build["libraries"])
        if variant.system in LOCAL:
            settings = dict(variant.options) if variant.system == "onnxruntime" else {}
            system = System(variant.name, model, self._inputs, libraries, threads, spinning, "", settings)
            return Entry(system)
        said = {"peer": variant.system, "torch": list(self.case.subject.torch)}
        entry = f"{peers.__name__}:{peers.load_peer.__name__}"
        system = System(variant.name, model, self._inputs, (), threads, spinning, entry, said)
        return Entry(system, peers.environment(threads, spinning), True)

    def _reference(self) -> str:
        file = self.store.root / self._place / "reference.npz"
        said = {"model": self.case.subject.path, "inputs": self._inputs, "path": str(file)}
        run_job(f"{WORK}:write_reference", said, limit=self.limit)
        return str(file)


def is_unchanged(spec: Spec, variant: Variant, builds: Mapping[str, Any]) -> bool:
    """True if a variant runs the base's kernels, to the byte, in the base's way."""
    base = spec.variant(spec.base)
    same_way = (variant.threads, variant.spinning) == (base.threads, base.spinning)
    return same_way and is_same_code(spec, variant, builds)


def is_same_code(spec: Spec, variant: Variant, builds: Mapping[str, Any]) -> bool:
    """True if a variant other than the base has the base's kernels, to the byte."""
    own, other = builds.get(variant.name, {}).get("code"), builds.get(spec.base, {}).get("code")
    return variant.name != spec.base and own is not None and own == other
