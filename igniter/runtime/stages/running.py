"""Running stages one after the other in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from igniter.errors import IgniterError
from igniter.runtime.session import make_session
from igniter.runtime.stages.manifest import Manifest, last_reader, read_manifest


class StageRunner:
    """The stages of a folder, each a session of ONNX Runtime. `options` are those of `make_session`."""

    def __init__(self, folder: str | Path | Manifest, **options: Any):
        self.manifest = folder if isinstance(folder, Manifest) else read_manifest(folder)
        if self.manifest.kind != "pipeline":
            raise IgniterError(f"{self.manifest.folder} holds the ranks of a model, not stages that run in turn")
        self.sessions = [make_session(self.manifest.path(s), **options) for s in self.manifest.stages]
        self._last = last_reader(self.manifest.stages, self.manifest.outputs)

    def run(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs of the whole model by name. A value that no later stage reads is let go."""
        values = dict(require_inputs(self.manifest, feed))
        for i, (stage, session) in enumerate(zip(self.manifest.stages, self.sessions, strict=True)):
            # An input with a default may be left out.
            given = {n: values[n] for n in stage.inputs if n in values}
            values.update(zip(stage.outputs, session.run(list(stage.outputs), given), strict=True))
            values = {n: v for n, v in values.items() if self._last.get(n, -1) > i}
        return {n: values[n] for n in self.manifest.outputs}


def require_inputs(manifest: Manifest, feed: Mapping[str, Any]) -> Mapping[str, Any]:
    """`IgniterError` for an input that the model does not have."""
    unknown = sorted(set(feed) - set(manifest.inputs))
    if unknown:
        raise IgniterError(f"the model has no input {', '.join(unknown)}; its inputs are {', '.join(manifest.inputs)}")
    return feed
