"""Commands as processes of their own, and what a command prints."""

import fcntl
import multiprocessing
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
from pathlib import Path

# Processes forked from one that has imported what takes longest; not polars, which starts threads.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["btdagg.judge.dialects", "pydantic_ai.direct", "sqlalchemy"])


def forked(function, *arguments):
    """Such a process, started, that calls a function with the environment of now."""
    given = dict(os.environ), function, arguments
    process = FORKS.Process(target=_call, args=given, daemon=True)  # no test's end waits for it
    process.start()
    return process


def _call(environment, function, arguments):
    os.environ.clear()
    os.environ.update(environment)
    function(*arguments)


class Fork:
    """The command as such a process, after some code, with the methods of `subprocess.Popen`."""

    def __init__(self, folder, *arguments, before=""):
        outputs = Path(tempfile.mkdtemp())
        self._outputs = outputs / "stdout", outputs / "stderr"
        for output in self._outputs:
            output.touch()
        words = [*map(str, arguments)]
        self._process = forked(_run, words, folder, self._outputs, before)
        self._waiting = threading.Lock()  # one thread may read how it ended
        self.pid, self.kill = self._process.pid, self._process.kill

    @property
    def returncode(self):
        return self.wait(0)

    def poll(self):
        return self.wait(0)

    def wait(self, timeout=None):
        with self._waiting:
            self._process.join(timeout)
            return self._process.exitcode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout=120):
        """Standard output and standard error, when it has ended."""
        ended = self.wait(timeout) is not None
        self.kill()
        texts = [output.read_text() for output in self._outputs]
        assert ended, texts
        return texts


def _run(arguments, folder, outputs, before):
    os.chdir(folder)
    for number, output in enumerate(outputs, 1):
        os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), number)
    exec(textwrap.dedent(before), {})
    from btdagg.cli import main

    sys.argv = ["btdagg", *arguments]
    main()


def ended(*arguments, before="", **more):
    """Exit status, standard output and standard error of the command, after some code."""
    code = f"{textwrap.dedent(before)}\nfrom btdagg.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more},
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def cross_fit_quickly(monkeypatch):
    """By 3 models and 3 refits, also in the protocol of before; a demo by 10 splits."""
    from btdagg.evaluation.protocol import CROSS_FITTED, CrossFit  # polars: forks import this file

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
