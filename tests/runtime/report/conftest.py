"""A page that is made once, and the browser that it is looked at with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from igniter.tools.main import app

from .models import odd_model

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on `odd_model`."""
    folder = tmp_path_factory.mktemp("report")
    model, out = folder / "odd<b>.onnx", folder / "page.html"
    model.write_bytes(odd_model())
    done = CliRunner().invoke(app, ["report", str(model), "-o", str(out), "--shape", "n=4", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["sizes"] == {"n": 4}
    return out


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; without one the tests that need it are skipped, which they say."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser ({', '.join(BROWSERS)}) is installed: apt-get install chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()
