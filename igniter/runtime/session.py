"""ONNX Runtime sessions with Igniter's libraries in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from igniter.errors import IgniterError
from igniter.runtime.library import OTHER_CPU, library_providers, other_system

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


CPU_PROVIDER = "CPUExecutionProvider"


class SessionError(IgniterError):
    """Raised if ONNX Runtime refuses a model, with its message."""

    code = "IGN0502"


class LibraryElsewhere(IgniterError):
    """Raised if a library of Igniter's is for another machine, or for another ONNX Runtime."""

    code = "IGN0503"


class ProviderMissing(LibraryElsewhere):
    """Raised if the installed ONNX Runtime lacks the execution provider of a library."""

    code = "IGN0506"


def onnxruntime_package() -> Any:
    """Returns the package, imported at the first call: a result from the cache needs no session."""
    import onnxruntime

    return onnxruntime


def silence() -> None:
    """Disables ONNX Runtime's log on standard error: errors carry the same messages."""
    ort = onnxruntime_package()
    ort.set_default_logger_severity(4)


def make_session(model: str | Path | bytes, libraries: Sequence[str | Path] = (), **options: Any) -> InferenceSession:
    """Creates a session of `model`, a path or the bytes of one, with custom-op libraries registered.

    Options are `providers` and `provider_options` (by default those of the libraries, and the provider of CPUs),
    `sess_options` to start from (used directly, so each object serves one session), `config`, a mapping of `session.*`
    entries, and any attribute of `onnxruntime.SessionOptions` by name: `intra_op_num_threads=1`. `IgniterError` names
    an unknown option, and carries ORT's message about a model (`SessionError`) or a library that it refuses;
    `LibraryElsewhere` is for a library for another machine, `ProviderMissing` for one whose provider this ORT lacks.
    """
    ort = onnxruntime_package()
    given = dict(options)
    settings: Any = given.pop("sess_options", None)
    if settings is None:
        settings = ort.SessionOptions()
    providers = given.pop("providers", None) or providers_of(libraries)
    provider_options = given.pop("provider_options", None)
    for key, value in cast("Mapping[str, Any]", given.pop("config", None) or {}).items():
        settings.add_session_config_entry(key, str(value))
    for name, value in given.items():
        if not hasattr(settings, name) or callable(getattr(settings, name)):
            known = sorted(n for n in dir(settings) if not n.startswith("_") and not callable(getattr(settings, n)))
            raise IgniterError(
                f"ONNX Runtime's sessions have no option '{name}'; known: providers, provider_options, sess_options, "
                f"config, {', '.join(known)}"
            )
        setattr(settings, name, value)
    for library in libraries:
        try:
            settings.register_custom_ops_library(str(library))
        except Exception as error:  # onnxruntime's errors have no common base
            raise _refused_library(library, error) from error
    source = model if isinstance(model, bytes) else str(model)
    try:
        return ort.InferenceSession(source, settings, providers=providers, provider_options=provider_options)
    except Exception as error:  # onnxruntime's errors have no common base
        what = "the model" if isinstance(model, bytes) else str(model)
        raise SessionError(f"ONNX Runtime does not load {what}: {error}") from error


def said_by_onnxruntime(error: Exception) -> str:
    """Returns the first line of ONNX Runtime's message, without its prefix, its code and the path of the model."""
    said = str(error).rpartition("[ONNXRuntimeError] : ")[2].strip().partition("\n")[0]
    return re.sub(r"^\d+ : [A-Z_]+ : (?:Load model from .* failed: ?)?(?:Fatal error: ?)?", "", said)


def _refused_library(library: str | Path, error: Exception) -> IgniterError:
    """Returns the error for a library that ONNX Runtime refuses: it is for another CPU, as its own message says, or for
    another system, or it is faulty."""
    message = f"ONNX Runtime does not load {library}: {error}"
    elsewhere = other_system(library)
    if elsewhere is not None:
        return LibraryElsewhere(elsewhere)
    if OTHER_CPU in str(error):
        return LibraryElsewhere(said_by_onnxruntime(error))
    return IgniterError(message)


def providers_of(libraries: Sequence[str | Path]) -> list[str]:
    """Returns the providers of libraries, and that of CPUs for the rest; raises `ProviderMissing` if none is
    available."""
    ort = onnxruntime_package()
    available: list[str] = ort.get_available_providers()
    wanted: list[str] = []
    for library in libraries:
        providers = [name or CPU_PROVIDER for name in library_providers(library)]
        found = next((name for name in providers if name in available), None)
        if found is None:
            raise ProviderMissing(
                f"{Path(library).name} is for ONNX Runtime's {' and '.join(providers)}, and the one that is installed "
                f"has only {', '.join(available)}: run it where there is a GPU and the package onnxruntime-gpu"
            )
        wanted.append(found)
    return [*dict.fromkeys((*wanted, CPU_PROVIDER))]
