"""The command line, `btdagg`: runs a command, and makes errors a line and an exit status."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 where it worked, 2 and one line on bad input, 130 on Ctrl-C."""
    try:
        status = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # while the libraries were being loaded
        _fail("interrupted")
        status = _INTERRUPTED
    sys.exit(status)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    try:
        import typer

        from btdagg.cli.app import app
    except ImportError as error:
        return _fail(f"the command line needs {error.name}: pip install 'btdagg[cli]'")
    try:
        status = typer.main.get_command(app)(
            list(arguments) or ["--help"], prog_name="btdagg", standalone_mode=False
        )
    except typer.TyperException as error:
        return _fail(error.format_message())
    except OSError as error:
        named = error.filename is not None and error.strerror
        return _fail(f"{error.filename}: {error.strerror}" if named else str(error))
    except MemoryError:
        return _fail("not enough memory for this much data")
    except (ValueError, ImportError) as error:  # InputError is a ValueError
        return _fail(str(error))
    if status == _INTERRUPTED:
        _fail("interrupted")
    return status if isinstance(status, int) else 0


def _fail(message: str) -> int:
    print(f"btdagg: {' '.join(message.split())}", file=sys.stderr)
    return 2
