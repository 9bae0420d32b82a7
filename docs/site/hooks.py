"""The hooks of MkDocs: pages that are no file under their name in docs/, and the anchors of headings.

The files of `RENAMED` become pages under other names, each notebook of docs/notebooks a page of its cells, and each
entry of `REFERENCE` a page of docstrings. Links within the repository become links within the site.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]

RENAMED = {
    "README.md": "index.md",
    # MkDocs takes README.md and index.md for the same page.
    "docs/README.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""The pages of the site by the path of their file in the repository, where the names differ."""

REFERENCE: dict[str, tuple[str, tuple[str, ...]]] = {
    "public": (
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
            "igniter.rewrite_budget",
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
"""The pages of the Python API: a title, and the modules and names that the page documents."""


def on_config(config: Any) -> Any:
    """Gives headings the anchors that forges give them, so that one link serves both."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def slug(heading: str, separator: str) -> str:
    """Returns the anchor of a heading: one separator for each space, and no punctuation."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_files(files: Files, *, config: Any) -> Files:
    """Adds the generated pages."""
    pages = {
        page: with_links_of_the_site((ROOT / file).read_text(encoding="utf-8"), posixpath.dirname(file))
        for file, page in RENAMED.items()
    }
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        pages[f"notebooks/{path.stem}.md"] = notebook(path)
    for name, (title, objects) in REFERENCE.items():
        pages[f"api/{name}.md"] = "\n\n".join([f"# {title}", *(f"::: {each}" for each in objects)])
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Points links at pages of the site, and puts empty lines before lists."""
    if page.file.src_uri not in RENAMED.values():
        folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))
        markdown = with_links_of_the_site(markdown, folder)
    return blank_before_lists(markdown)


def with_links_of_the_site(text: str, folder: str) -> str:
    """Returns a page from `folder` of the repository with links to pages of the site. A link to a file that is no page,
    such as the licence, becomes its name."""

    def link(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        file = posixpath.normpath(posixpath.join(folder, target))
        if not (ROOT / file).exists():
            # Another site, or code that looks like a link.
            return found[0]
        if file not in RENAMED and not file.startswith("docs/"):
            return f"{label} (`{target}`)"
        page = RENAMED.get(file, file.removeprefix("docs/")).replace(".ipynb", ".md")
        return f"[{label}]({posixpath.relpath(page, here)}{anchor})"

    # The site has the folders of docs/; pages of other folders are at its root.
    here = posixpath.relpath(folder, "docs") if folder.startswith("docs") else "."
    return re.sub(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)", link, text)


def notebook(path: Path) -> str:
    """Returns the cells of a notebook, one after the other; it is stored without outputs."""
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts)


def blank_before_lists(markdown: str) -> str:
    """Inserts an empty line before a list: forges need none behind a paragraph, Python's Markdown does."""
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
