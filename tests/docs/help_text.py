"""The help of the verbs on their page: `python -m tests.docs.help_text` writes it anew."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO

from .transcripts import FENCE, ROOT

PAGE = ROOT / "docs" / "reference" / "cli.md"
HELP = re.compile(rf"^(\$ igniter(?: [a-z-]+)? --help)\n.*?(?=^(?:\$ |{FENCE}))", flags=re.MULTILINE | re.DOTALL)


def page_with_help(text: str) -> str:
    """The page with the help that the commands print."""
    from igniter.tools.main import app

    os.environ["COLUMNS"] = "100"

    def printed(found: re.Match[str]) -> str:
        words = shlex.split(found[1].removeprefix("$ igniter"))
        with redirect_stdout(StringIO()) as out:
            app(words, prog_name="igniter", standalone_mode=False)
        return f"{found[1]}\n{out.getvalue()}"

    return HELP.sub(printed, text)


if __name__ == "__main__":
    PAGE.write_text(page_with_help(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
