"""`python -m tests.installed.sbom [-o FILE]`: the software bill of materials of the wheel, as CycloneDX 1.6 JSON.

The components are the packages that the wheel requires, and those that they require, as installed beside this program,
each with its version, its licence and its package URL; and the scripts of others that the wheel holds, for reports.
Optional extras are not part of it. `make sbom` writes
`build/igniter.cdx.json`. The same environment gives the same bytes: there is no time and no random number in the file.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement

from igniter import __version__

ROOT = Path(__file__).parents[2]
OWN = "Apache-2.0"
IDENTIFIERS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License v2.0 with LLVM Exceptions": "Apache-2.0 WITH LLVM-exception",
    "ISC License": "ISC",
    "Apache License 2.0": "Apache-2.0",
    "Apache License v2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD-3-Clause License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
"""The SPDX identifiers of licences that packages state in words."""


def licence_of(found: Distribution) -> str:
    """The licence in the metadata of a package: its expression, its field, or its classifier; "" if it states none."""
    metadata = found.metadata
    stated = str(metadata.get("License-Expression") or metadata.get("License") or "").strip()
    if not stated or "\n" in stated or len(stated) > 60:
        # Some packages have the whole text of the licence there.
        names = [c.rpartition(" :: ")[2] for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
        stated = names[0] if names else stated.partition("\n")[0]
    return IDENTIFIERS.get(stated, stated)


def required(lines: list[str]) -> dict[str, Distribution]:
    """The packages that requirements name, and theirs in turn, by normalized name; without extras."""
    found: dict[str, Distribution] = {}
    pending = [Requirement(line) for line in lines]
    while pending:
        asked = pending.pop()
        name = re.sub(r"[-_.]+", "-", asked.name).lower()
        if name in found or (asked.marker is not None and not asked.marker.evaluate({"extra": ""})):
            continue
        try:
            found[name] = distribution(asked.name)
        except PackageNotFoundError as error:
            raise SystemExit(f"{asked.name} is not installed: run this where Igniter is") from error
        pending += [Requirement(line) for line in found[name].requires or ()]
    return dict(sorted(found.items()))


def scripts() -> list[Component]:
    """The scripts in reports, as the file of their licences lists them."""
    listed = (ROOT / "igniter" / "toolbox" / "report" / "assets" / "LICENSES.txt").read_text(encoding="utf-8")
    assert "each under the MIT licence" in listed
    found = re.findall(r"^== ([\w.-]+) ([\d.]+) ", listed, re.MULTILINE)
    return [component(name.lower().removesuffix(".js"), version, "MIT", source="npm") for name, version in found]


def component(
    name: str, version: str, licence: str, kind: ComponentType = ComponentType.LIBRARY, source: str = "pypi"
) -> Component:
    stated = LicenseFactory().make_from_string(licence) if licence else License(name="not stated")
    purl = PackageURL(source, None, name, version)
    return Component(name=name, version=version, type=kind, licenses=[stated], purl=purl, bom_ref=str(purl))


def bom() -> Bom:
    """The bill of this checkout's wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    made = Bom()
    own = component(project["name"], __version__, OWN, ComponentType.APPLICATION)
    made.metadata.component = own
    made.metadata.timestamp = None  # type: ignore[assignment]
    packages = required(project["dependencies"])
    components = {name: component(name, d.version, licence_of(d)) for name, d in packages.items()}
    held = scripts()
    made.components.update([*components.values(), *held])
    direct = names(project["dependencies"])
    made.register_dependency(own, [*(components[n] for n in components if n in direct), *held])
    for name, found in packages.items():
        made.register_dependency(
            components[name], [components[n] for n in names(found.requires or ()) if n in components]
        )
    return made


def names(lines: list[str]) -> set[str]:
    return {re.sub(r"[-_.]+", "-", Requirement(line).name).lower() for line in lines}


def text() -> str:
    """The bill as JSON, valid by CycloneDX's schema."""
    made = JsonV1Dot6(bom()).output_as_string(indent=2)
    made = re.sub(r'^ *"(serialNumber|timestamp)": .*\n', "", made, flags=re.MULTILINE)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(made)
    if wrong is not None:
        raise SystemExit(f"the bill of materials is not valid: {wrong}")
    return made + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, help="the file; standard output by default")
    args = parser.parse_args()
    if args.output is None:
        sys.stdout.write(text())
    else:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(text(), encoding="utf-8")
        print(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
