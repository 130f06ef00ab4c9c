"""Text from anywhere as HTML, as JSON within a script, and as the name of a file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import unicodedata
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from btdagg._util.extras import needs
from btdagg.report.wording import printable, shown

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_LONGEST = 60  # characters of a stem: with four bytes each, less than any file system's 255


def escaped(text: object) -> str:
    """Text as it stands in HTML, between tags or in a quoted attribute."""
    return html.escape(shown(str(text)))


def script_json(value: object) -> str:
    """JSON that nothing in it can end early when it stands in a ``<script>``."""
    text = json.dumps(value, allow_nan=False)  # ASCII alone, so U+2028 is written as an escape
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def script_hash(script: str) -> str:
    """What a content security policy names a script, or a style, by."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def file_stem(name: str) -> str:
    """Name of a file without its ending: letters, digits, dots, dashes and underscores."""
    text = unicodedata.normalize("NFC", shown(name, ""))
    return re.sub(r"[^\w.-]+", "-", text)[:_LONGEST].strip("-.") or "unnamed"


def asset(name: str) -> str:
    """Text of a file that comes with the package."""
    return files("btdagg.report").joinpath(name).read_text(encoding="utf-8")


def template(name: str) -> Template:
    """Template of HTML, in which all text is escaped and readable."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    with needs("report", "a page"):
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    environment = Environment(
        loader=FunctionLoader(lambda name: asset(f"templates/{name}")),
        autoescape=True,
        finalize=_readable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"plain": _plain, "printable": printable}
    return environment


def _readable(value: object) -> object:
    """Text as a reader can take it; what is markup already stays as it is."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return shown(str(value)) if is_text else value


def _plain(value: object) -> str:
    """A setting as text."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_plain(part)}" for name, part in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    return str(value)
