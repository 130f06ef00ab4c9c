"""The command line, `btdagg`: run a command, and turn errors into one line and an exit status.

Only fast imports stand here, because Ctrl-C prints a traceback until `main` runs.
"""

from __future__ import annotations

import os
import re
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
    """End at once while a module is loaded, where some libraries lose a KeyboardInterrupt."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os.write(2, b"btdagg: interrupted\n")
            os._exit(_INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def stop_writing(stream: str) -> None:
    """Drop what is still written to ``stdout`` or ``stderr``: its reader has left.

    The command goes on, for the files that it writes.
    """
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

            traceback.print_exception(error)
        message = _of_input(error, arguments)
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
            list(arguments or ["--help"]), prog_name="btdagg", standalone_mode=False
        )
    except typer.TyperException as error:
        raise InputError(_in_own_words(error.format_message(), arguments)) from None
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from None
    return status if isinstance(status, int) else 0


def _in_own_words(message: str, arguments: Sequence[str]) -> str:
    """Say a message of typer as the package says its own, with the value that came."""
    message = message.replace("Value error, ", "")
    range_error = re.fullmatch(r"Invalid value for '(\S+?)': Input should be (.*)", message)
    if range_error is None or range_error[1] not in arguments[:-1]:
        return message
    last = max(n for n, name in enumerate(arguments[:-1]) if name == range_error[1])
    value = arguments[last + 1]
    expected = range_error[2].split(",")[0].replace("greater than or equal to", "at least")
    return f"{range_error[1]} is {value}, expected {expected}"


def _of_input(error: BaseException, arguments: Sequence[str]) -> str | None:
    """Return the message for an error that the input caused, or None if it is a bug."""
    if isinstance(error, InputError):
        option = error.argument and _option(error.argument, arguments)
        return error.calling_it(option) if option else str(error)
    if isinstance(error, MissingExtraError):
        return str(error)
    if isinstance(error, MemoryError):
        return "not enough memory for this much data"
    if isinstance(error, OSError):
        named = error.filename is not None and error.strerror
        return f"{error.filename}: {error.strerror}" if named else error.strerror or str(error)
    return None


def _option(argument: str, arguments: Sequence[str]) -> str | None:
    """Return the option, or the name of the positional argument, that gives an argument."""
    import typer

    from btdagg.cli.app import app

    main: Any = typer.main.get_command(app)
    command = main
    for word in arguments:
        if hasattr(command, "get_command"):
            command = command.get_command(None, word) or command
    if argument in ("epsilon", "price", "budget") and "--stop" in arguments:
        return f"--stop {argument}"
    by_name = {parameter.name: parameter for parameter in command.params}
    # What the library calls n is -n.
    parameter = by_name.get(argument) or by_name.get(
        {"n": "n_votes", "scale": "grades"}.get(argument)
    )
    if parameter is None:
        # Files in a user's own words are imported.
        is_imported = argument in ("words", "order") and "import" not in arguments
        return f"btdagg import --{argument}" if is_imported else None
    is_option = parameter.param_type_name == "option"
    return str(parameter.opts[0] if is_option else parameter.metavar)


def _of_bug(error: BaseException) -> str:
    """Return the message for a bug in btdagg."""
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
    from btdagg.report.wording import visible

    with suppress(OSError):  # nobody reads standard error either
        print(f"btdagg: {visible(' '.join(message.split()))}", file=sys.stderr)
    return status
