"""Commands as processes of their own, and what a command prints."""

import subprocess
import sys
import textwrap


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


def one_line(status, out, err):
    """The message of a refusal: status 2, nothing on standard output, one line on the other."""
    assert status == 2, err
    assert out == ""
    assert err.startswith("btdagg: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.removeprefix("btdagg: ").removesuffix("\n")
