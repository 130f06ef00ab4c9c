"""The command line, `btdagg`: run a command, and turn errors into one line and an exit status."""
# Only fast imports stand here, because Ctrl-C prints a traceback until `main` runs.

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from btdagg._core import InputError
from btdagg._util.extras import MissingExtraError, needs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

_BAD_INPUT = 2
_BUG = 70  # EX_SOFTWARE of sysexits.h
_INTERRUPTED = 130  # 128 + SIGINT
_NOT_READ = 141  # 128 + SIGPIPE

_DEBUG = "--debug"
_ISSUES = "https://github.com/btdagg/btdagg/issues"

_unread: set[str] = set()  # streams whose readers have left


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its status, which `btdagg --help` lists."""
    if sys.stdout is None:  # closed by the caller: writing then fails, instead of losing the output
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # not ignored, as under nohup
        signal.signal(signal.SIGINT, _interrupt)
    status = run(sys.argv[1:] if arguments is None else arguments)
    signal.signal(signal.SIGINT, usual)
    try:
        sys.stdout.flush()
    except OSError:  # already reported; Python would report it again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def _interrupt(_: int, frame: FrameType | None) -> None:
    # Some libraries lose a KeyboardInterrupt while they are loaded.
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os.write(2, b"btdagg: interrupted\n")
            os._exit(_INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def stop_writing(stream: str) -> None:
    """Drop output whose reader has left; the command goes on, for the files that it writes."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, getattr(sys, stream).fileno())
    os.close(nowhere)
    _unread.add(stream)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    _unread.clear()
    try:
        status = _run([argument for argument in arguments if argument != _DEBUG])
    except KeyboardInterrupt:  # while the libraries were being loaded
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        return _NOT_READ
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer and rich make it an exit
            return _NOT_READ
        raise
    except BaseException as error:
        if _DEBUG in arguments:
            import traceback

            from btdagg._util.wording import visible

            print(visible("".join(traceback.format_exception(error))), end="", file=sys.stderr)
        message = _of_input(error)
        if message is None:
            return _fail(_of_bug(error), _BUG)
        return _fail(message, _BAD_INPUT)
    if status == _INTERRUPTED:
        _fail("interrupted", status)
    return status or (_NOT_READ if "stdout" in _unread else 0)


def _run(arguments: Sequence[str]) -> int:
    with needs("cli", "the command line"):
        import typer

        from btdagg.cli.app import app
    try:
        status = typer.main.get_command(app)(
            _with_project_first(arguments) or ["--help"], prog_name="btdagg", standalone_mode=False
        )
    except typer.TyperException as error:
        raise InputError(_in_own_words(error)) from None
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None
    return status if isinstance(status, int) else 0


def _with_project_first(arguments: Sequence[str]) -> list[str]:
    words, first = list(arguments), []
    for place, word in enumerate(words):
        if word == "--":
            break
        if word == "--project" or word.startswith("--project="):
            end = place + 1 + (word == "--project")
            first, words[place:end] = words[place:end], []
            break
    return [*first, *words]


def _in_own_words(error: Any) -> str:
    from pydantic import ValidationError

    from btdagg.cli.flags import name_of

    if not isinstance(error.__cause__, ValidationError):
        return str(error.format_message())
    fault, name = error.__cause__.errors()[0], name_of(error.param)
    limits = fault.get("ctx", {})
    if "ge" in limits:
        return f"{name} is {fault['input']}, expected at least {limits['ge']}"
    return f"{name}: {limits.get('error', fault['msg'])}"


def _of_input(error: BaseException) -> str | None:
    if isinstance(error, InputError | MissingExtraError):
        return str(error)
    if isinstance(error, MemoryError):
        return "these data do not fit into memory"
    if isinstance(error, OSError):
        named = error.filename is not None and error.strerror
        return f"{error.filename}: {error.strerror}" if named else error.strerror or str(error)
    return None


def _of_bug(error: BaseException) -> str:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = ""
    if place is not None:
        file = os.path.basename(place.tb_frame.f_code.co_filename)
        where = f" ({file}, line {place.tb_lineno})"
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return (
        f"this is a bug in btdagg, not in your input: {what}{where}; please report it at "
        f"{_ISSUES} with the command and what it prints with {_DEBUG} added"
    )


def _fail(message: str, status: int) -> int:
    from btdagg._util.wording import visible

    with suppress(OSError):  # nobody reads standard error either
        print(f"btdagg: {visible(' '.join(message.split()))}", file=sys.stderr)
    return status
