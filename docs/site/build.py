"""Build the site into a folder: `build.py build` writes `build/site`; any warning is an error.

`build.py build linkcheck` looks up the links that lead out of the site, which needs the network.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from command_pages import write_commands
from links import broken_links
from python_pages import write_reference
from sources import FRONT, ROOT, write_pages

HERE = Path(__file__).parent
# Help and settings of rustdoc link to a page of several crates, which it does not write for one.
_TO_THE_CRATE = """<!doctype html>
<meta charset="utf-8"><meta http-equiv="refresh" content="0; url=btdagg/index.html">
<title>btdagg</title><a href="btdagg/index.html">The crate btdagg</a>
"""


def write_source(folder: Path) -> None:
    """Write what Sphinx reads."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "reference").mkdir(parents=True)
    write_pages(folder)
    write_commands(folder / "reference")
    write_reference(folder / "reference")


def write_report(folder: Path, site: Path) -> None:
    """Write the report of the first page's commands, whose judge is simulated."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    front = (ROOT / "docs" / FRONT).read_text(encoding="utf-8")
    for command in re.findall(r"^btdagg ((?:demo|run) .*)$", front, flags=re.MULTILINE):
        code = f"from btdagg.cli import main; main({shlex.split(command)})"
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    shutil.copytree(folder / "out" / "report", site)


def build(folder: Path, builder: str = "html") -> int:
    """Build the site, and return the exit status."""
    if builder == "html" and shutil.which("cargo") is None:
        print(
            "no cargo: the site has the reference of Rust, expected Rust 1.88 or later",
            file=sys.stderr,
        )
        return 1
    source, site = folder / "source", folder / ("site" if builder == "html" else builder)
    write_source(source)
    shutil.rmtree(site, ignore_errors=True)
    strict = ["--fail-on-warning", "--keep-going", "--nitpicky", "--fresh-env"]
    where = ["--conf-dir", str(HERE), "--doctree-dir", str(folder / "doctrees")]
    status = build_main(["-q", "-b", builder, *strict, *where, str(source), str(site)])
    if status or builder != "html":
        return status
    write_report(folder / "demo", site / "report")
    shutil.copytree(ROOT / "docs" / "schemas", site / "schemas")
    rust = folder / "rustdoc"
    command = ["cargo", "doc", "-p", "btdagg", "--no-deps", "--locked", "--quiet"]
    if status := subprocess.call([*command, "--target-dir", str(rust.resolve())], cwd=ROOT):
        return status
    shutil.copytree(rust / "doc", site / "rust")
    (site / "rust" / "index.html").write_text(_TO_THE_CRATE, encoding="utf-8")
    broken = broken_links(site)
    print("\n".join(f"broken link: {one}" for one in broken), file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]), *sys.argv[2:]))
