"""What MkDocs is told besides `mkdocs.yml`: the pages that are no file in docs/, and how headings are called.

The README becomes the first page, each notebook of docs/notebooks a page of its cells, and each entry of `REFERENCE` a
page of docstrings. Links that lead somewhere in the repository lead to the page of the site.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]

REFERENCE: dict[str, tuple[str, tuple[str, ...]]] = {
    "api": (
        "The public API",
        (
            "igniter.load",
            "igniter.parse",
            "igniter.compile",
            "igniter.shape_engine",
            "igniter.Module",
            "igniter.Artifact",
            "igniter.CompileOptions",
            "igniter.IgniterError",
            "igniter.VerificationFailed",
        ),
    ),
    "models": (
        "What the toolbox returns",
        (
            "igniter.model_tools",
            "igniter.model_edits",
            "igniter.toolbox.shapes.shapes",
            "igniter.toolbox.shapes.shape_engine",
            "igniter.toolbox.profile.profile",
            "igniter.toolbox.plan.plan",
            "igniter.toolbox.plan.compiled",
            "igniter.toolbox.diff.diff",
            "igniter.toolbox.edit.verified",
            "igniter.toolbox.quantize.calibration.quantizer",
            "igniter.toolbox.split.stages.manifest",
            "igniter.verification.report",
            "igniter.toolbox.doctor",
        ),
    ),
    "torch": ("PyTorch", ("igniter.torch",)),
    "schedules": (
        "Schedules",
        ("igniter.Schedule", "igniter.dialects.loop.schedule", "igniter.schedules.author"),
    ),
    "passes": (
        "Passes, pipelines and what they say",
        (
            "igniter.passes",
            "igniter.pipelines",
            "igniter.registry",
            "igniter.rewrites",
            "igniter.remarks",
            "igniter.context",
            "igniter.dialects.sym.expr",
        ),
    ),
    "fusion": ("Fusion", ("igniter.analysis.fusion.author", "igniter.analysis.fusion.cost")),
    "backends": ("Backends and machines", ("igniter.targets", "igniter.analysis.machine", "igniter.backend")),
    "runtime": (
        "Libraries, sessions, the cache and timing",
        (
            "igniter.runtime.session",
            "igniter.runtime.library",
            "igniter.runtime.linker",
            "igniter.runtime.cache",
            "igniter.runtime.timing",
            "igniter.runtime.files",
        ),
    ),
}
"""The pages of the reference: a title, and what stands on it."""


def on_config(config: Any) -> Any:
    """Have headings called as forges call them, so that one link serves both."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading: spaces become separators, one for one, and punctuation goes."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are made."""
    pages = {"index.md": home((ROOT / "README.md").read_text(encoding="utf-8"))}
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        pages[f"notebooks/{path.stem}.md"] = notebook(path)
    for name, (title, objects) in REFERENCE.items():
        pages[f"reference/{name}.md"] = "\n\n".join([f"# {title}", *(f"::: {each}" for each in objects)])
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A link to a notebook leads to its page."""
    return blank_before_lists(re.sub(r"\]\(([\w./-]+)\.ipynb\)", r"](\1.md)", markdown))


def home(readme: str) -> str:
    """The README with its links as they are from docs/."""
    text = re.sub(r"\]\(docs/", "](", readme)
    return re.sub(r"\[(LICENSE)\]\(LICENSE\)", r"`\1`", text)


def notebook(path: Path) -> str:
    """The cells of a notebook, one after the other; it is stored without outputs."""
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts)


def blank_before_lists(markdown: str) -> str:
    """Forges begin a list right behind a paragraph; Python's Markdown wants an empty line between them."""
    lines: list[str] = []
    inside = False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            inside = not inside
        before = lines[-1] if lines else ""
        item = re.match(r"(\*|-|\d+\.) ", line)
        if not inside and item and before.strip() and not re.match(r"(\*|-|\d+\.) |\s", before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)
