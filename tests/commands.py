"""Commands as processes of their own, and what a command prints."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import textwrap
from pathlib import Path

from btdagg.evaluation.protocol import CROSS_FITTED, CrossFit


def started(*arguments, before="", **more):
    """The command as a process of its own, after some code."""
    code = f"{textwrap.dedent(before)}\nfrom btdagg.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more},
    )


def ended(*arguments, **more):
    """Exit status, standard output and standard error of such a process."""
    process = started(*arguments, **more)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def cross_fit_quickly(monkeypatch):
    """By 3 models and 3 refits, also in the protocol of before; a demo by 10 splits."""
    monkeypatch.setattr(CrossFit.__init__, "__defaults__", (3, 1, 3, 0))
    for name, number in vars(CrossFit()).items():
        monkeypatch.setitem(vars(CROSS_FITTED.splitter), name, number)
    monkeypatch.setattr("btdagg.cli.demo._N_SPLITS", 10)


# Code before a command in a process of its own: what the fixture `quick_commands` does in this one.
QUICK = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from btdagg.evaluation.protocol import CROSS_FITTED, CrossFit
from exhibits import PNG, Figure, ReportFigure
ReportFigure.png, ReportFigure.svg = lambda figure: PNG, lambda figure: Figure().svg()
CrossFit.__init__.__defaults__ = (3, 1, 3, 0)
vars(CROSS_FITTED.splitter).update(vars(CrossFit()))
"""


def one_line(status, out, err):
    """The message of a refusal: status 2, nothing on standard output, one line on the other."""
    assert status == 2, err
    assert out == ""
    assert err.startswith("btdagg: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.removeprefix("btdagg: ").removesuffix("\n")


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


def on_terminal(*arguments, columns=80, streams=("stdout", "stderr"), **environment):
    """What a command prints on a terminal, which has so many columns."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "btdagg", *map(str, arguments)],
        env={**clean, "TERM": "xterm-256color", **environment},
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        | dict.fromkeys(streams, writer),
    )
    os.close(writer)
    parts = []
    while True:
        try:
            part = os.read(reader, 1 << 16)
        except OSError:  # all of its writers are gone
            break
        if not part:
            break
        parts.append(part)
    os.close(reader)
    assert process.wait(timeout=60) == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


STYLE = re.compile(r"\x1b\[([\d;]*)m")


def plain(printed):
    return STYLE.sub("", printed)
