"""Text from anywhere as HTML and as JSON within a script."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from btdagg._util.extras import needs
from btdagg._util.wording import printable, shown

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def escaped(text: object) -> str:
    """Text as it stands in HTML, between tags or in a quoted attribute."""
    return html.escape(shown(str(text)))


def script_json(value: object) -> str:
    """JSON that nothing in it can end early when it stands in a ``<script>``."""
    text = json.dumps(value, allow_nan=False)  # ASCII alone, so U+2028 is written as an escape
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def script_hash(script: str) -> str:
    """Hash by which a content security policy names a script, or a style."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


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
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
