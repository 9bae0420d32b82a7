"""Reads the specification of an experiment from TOML, and checks it.

    title = "Does fusion pay?"
    models = ["encoder", "model.onnx", "folder/"]
    base = "none"

    [[variant]]
    name = "none"
    fusion = "by-kind{fuse=none}"

    [[variant]]
    name = "all"

Every error names the file and the key. An unknown key is an error with the closest known one.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from igniter.compiler.compilation import CompileOptions
from igniter.errors import IgniterError
from igniter.toolbox.experiment.spec import (
    DEFAULT_LEVELS,
    LEVELS,
    METRICS,
    PIPELINES,
    SYSTEMS,
    Measure,
    ModelSpec,
    Spec,
    Variant,
    without_defaults,
)


def read_spec(path: str | Path) -> Spec:
    """Reads a specification from a TOML file; raises `IgniterError` for an invalid one."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise IgniterError(f"cannot read {file}: {error}") from error
    return read_text(text, str(file), str(file.resolve().parent))


def read_text(text: str, where: str, folder: str) -> Spec:
    """Reads a specification from TOML; `where` names it in errors, relative paths start from `folder`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise IgniterError(f"{where} is not TOML: {error}") from error
    return spec_of(data, where, folder)


def spec_of(data: Mapping[str, Any], where: str = "the specification", folder: str = "") -> Spec:
    """Returns the specification in the values of a TOML file."""
    known = ("title", "models", "base", "sizes", "threads", "metrics", "ir", "measure", "variant", "grid")
    _require_known(data, known, where)
    variants = _variants(data, where)
    names = [v.name for v in variants]
    models = tuple(_model(m, where) for m in _list(data, "models", where))
    if not models:
        raise IgniterError(f'{where} names no models: write models = ["encoder", "model.onnx"]')
    base = data.get("base", names[0])
    if base not in names:
        raise IgniterError(
            f"{where}: the base '{base}' is no variant; variants are {', '.join(names)}{like(base, names)}"
        )
    metrics = tuple(_list(data, "metrics", where, list(METRICS)))
    for metric in metrics:
        if metric not in METRICS:
            raise IgniterError(
                f"{where}: there is no metric '{metric}'; there are {', '.join(METRICS)}{like(metric, METRICS)}"
            )
    levels = tuple(_list(data, "ir", where, list(DEFAULT_LEVELS)))
    for level in levels:
        if level not in LEVELS:
            raise IgniterError(
                f"{where}: there is no level '{level}' of IR; there are {', '.join(LEVELS)}{like(level, LEVELS)}"
            )
    said: Any = data.get("threads", [1])
    threads = cast("list[Any]", said if isinstance(said, list) else [said])
    return Spec(
        title=_typed(data.get("title", Path(where).stem), str, f"{where}: title"),
        models=models,
        variants=variants,
        base=base,
        sizes=_sizes(data.get("sizes", []), f"{where}: sizes"),
        threads=tuple(_at_least(t, 0, f"{where}: threads") for t in threads),
        metrics=metrics,
        ir=levels,
        measure=_measure(data.get("measure", {}), f"{where}: measure"),
        folder=folder,
    )


def _variants(data: Mapping[str, Any], where: str) -> tuple[Variant, ...]:
    """Returns the variants: those of `variant`, each multiplied by the lists of `grid`."""
    own = [_variant(v, f"{where}: variant {n + 1}") for n, v in enumerate(_list(data, "variant", where))]
    found = [v for variant in own or [Variant("")] for v in _multiplied(variant, data.get("grid", {}), where)]
    if not own and "grid" not in data:
        raise IgniterError(f"{where} has no variants: write a [[variant]] with a name for each")
    twice = [v.name for v in found if sum(v.name == w.name for w in found) > 1]
    if twice:
        raise IgniterError(f"{where}: two variants are called '{twice[0]}'; give each a name of its own")
    return tuple(found)


def _multiplied(variant: Variant, grid: Any, where: str) -> list[Variant]:
    """Returns a variant for every choice of the lists of a grid; names get the choices."""
    table = _table(grid, f"{where}: grid")
    fields = ("fusion", "schedule", "target", "threads", "tune", "spinning")
    _require_known(table, (*fields, "options"), f"{where}: grid")
    named = {name: (name, values) for name, values in table.items() if name != "options"}
    for name, values in _table(table.get("options", {}), f"{where}: grid.options").items():
        named[f"options.{name}"] = (name, values)
    for key, (_, values) in named.items():
        if not isinstance(values, list) or not values:
            raise IgniterError(f"{where}: grid.{key} must be a list of values, not {values!r}")
    if not named:
        return [variant]
    made: list[Variant] = []
    for choice in itertools.product(*(values for _, values in named.values())):
        said = {**_plain(variant), "options": dict(variant.options)}
        for (key, (name, _)), value in zip(named.items(), choice, strict=True):
            (said["options"] if key.startswith("options.") else said)[name] = value
        label = ", ".join(f"{name}={value}" for (name, _), value in zip(named.values(), choice, strict=True))
        said["name"] = f"{variant.name}, {label}" if variant.name else label
        made.append(_variant(said, f"{where}: grid"))
    return made


def _plain(variant: Variant) -> dict[str, Any]:
    return without_defaults(dataclasses.asdict(variant))


def _variant(data: Any, where: str) -> Variant:
    table = dict(_table(data, where))
    names = [f.name for f in dataclasses.fields(Variant)]
    _require_known(table, names, where)
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise IgniterError(f'{where} has no name: write name = "..."')
    where = f"{where} ('{name}')"
    system: Any = table.get("system", "igniter")
    if system not in SYSTEMS:
        raise IgniterError(
            f"{where}: there is no system '{system}'; there are {', '.join(SYSTEMS)}{like(system, SYSTEMS)}"
        )
    _require_effect(table, system, where)
    for key in ("fusion", "schedule", "target"):
        if key in table:
            _typed(table[key], str, f"{where}: {key}")
    pipelines = _table(table.get("pipelines", {}), f"{where}: pipelines")
    _require_known(pipelines, PIPELINES, f"{where}: pipelines")
    options = _table(table.get("options", {}), f"{where}: options")
    if system == "igniter":
        _require_known(options, compile_options(), f"{where}: options")
    sizes = table.get("sizes", {})
    if isinstance(sizes, str) and sizes != "run":
        raise IgniterError(f"{where}: sizes = '{sizes}' is neither a table of sizes nor \"run\"")
    if not isinstance(sizes, str):
        (sizes,) = _sizes([sizes], f"{where}: sizes") or ({},)
    plugins = tuple(_typed(p, str, f"{where}: plugins") for p in _list(table, "plugins", where))
    if table.get("threads") is not None:
        _at_least(table["threads"], 0, f"{where}: threads")
    tune = table.get("tune", 0.0)
    if isinstance(tune, bool) or not isinstance(tune, (int, float)) or tune < 0:
        raise IgniterError(f"{where}: tune is {tune!r}; it must be a number of seconds")
    checked = {"pipelines": pipelines, "options": options, "plugins": plugins, "sizes": sizes, "tune": float(tune)}
    made: dict[str, Any] = {**table, **checked}
    return Variant(**made)


def _require_effect(table: Mapping[str, Any], system: str, where: str) -> None:
    """Raises `IgniterError` for a key that a system other than Igniter ignores."""
    if system == "igniter":
        return
    takes = {"name", "system", "threads", "spinning", *(("options",) if system == "onnxruntime" else ())}
    ignored = [key for key in table if key not in takes]
    if ignored:
        raise IgniterError(f"{where}: '{ignored[0]}' has no effect on {system}; leave it out")


def compile_options() -> list[str]:
    """Returns the names of the options of a compilation that have no key of their own in a variant."""
    own = (
        "target",
        "sizes",
        "fusion_author",
        "tuned",
        "profile",
        *(f"{p}_passes" for p in ("onnx", "fusion", "loop", "schedule", "program")),
    )
    return [f.name for f in dataclasses.fields(CompileOptions) if f.name not in own]


def _measure(data: Any, where: str) -> Measure:
    table = _table(data, where)
    fields = {f.name: f for f in dataclasses.fields(Measure)}
    _require_known(table, fields, where)
    least = {"rounds": 2, "launches": 1, "compiles": 1, "resamples": 100, "seed": 0}
    for name, value in table.items():
        default = getattr(Measure, name)
        if isinstance(default, bool):
            _typed(value, bool, f"{where}.{name}")
        elif isinstance(default, int):
            _at_least(value, least[name], f"{where}.{name}")
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise IgniterError(f"{where}.{name} is {value!r}; it must be a positive number")
    made = Measure(**table)
    if not 0.5 <= made.confidence < 1:
        raise IgniterError(f"{where}.confidence is {made.confidence:g}; it must be from 0.5 to below 1, like 0.95")
    return made


def _model(data: Any, where: str) -> ModelSpec:
    if isinstance(data, str) and data:
        return ModelSpec(data)
    table = _table(data, f"{where}: models")
    _require_known(table, ("name", "sizes"), f"{where}: models")
    name = _typed(table.get("name", ""), str, f"{where}: models: name")
    if not name:
        raise IgniterError(f'{where}: a table in models has no name: write {{name = "model.onnx", sizes = [...]}}')
    return ModelSpec(name, _sizes(table.get("sizes", []), f"{where}: sizes of '{name}'"))


def _sizes(data: Any, where: str) -> tuple[Mapping[str, int], ...]:
    cases = cast("list[Any]", data) if isinstance(data, list) else [data]
    found: list[Mapping[str, int]] = []
    for case in cases:
        table = _table(case, where)
        found.append({name: _at_least(size, 1, f"{where}: {name}") for name, size in table.items()})
    return tuple(found)


# -- checks -----------------------------------------------------------------------------------------------------------


def _require_known(data: Mapping[str, Any], known: Sequence[str] | Mapping[str, Any], where: str) -> None:
    for key in data:
        if key not in known:
            raise IgniterError(f"{where}: there is no key '{key}'; keys are {', '.join(known)}{like(key, known)}")


def like(name: object, known: Sequence[str] | Mapping[str, Any]) -> str:
    """Returns the end of a message on an unknown name: the closest known one, if one is close."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise IgniterError(f"{where} is {value!r}; it must be a table")
    return cast("Mapping[str, Any]", value)


def _list(data: Mapping[str, Any], key: str, where: str, default: list[Any] | None = None) -> list[Any]:
    value = data.get(key, default or [])
    if not isinstance(value, list):
        raise IgniterError(f"{where}: {key} is {value!r}; it must be a list")
    return cast("list[Any]", value)


def _typed(value: Any, kind: type[Any], where: str) -> Any:
    if not isinstance(value, kind):
        raise IgniterError(f"{where} is {value!r}; it must be {'true or false' if kind is bool else 'text'}")
    return value


def _at_least(value: Any, least: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise IgniterError(f"{where} is {value!r}; it must be a whole number from {least} on")
    return value
