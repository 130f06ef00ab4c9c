"""Text from anywhere as HTML, as JSON within a script, and as the name of a file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import unicodedata
from importlib.resources import files

from btdagg.report.wording import shown

_LONGEST = 60  # characters of a stem: with four bytes each, less than any file system's 255


def escaped(text: object) -> str:
    """Text as it stands in HTML, between tags or in a quoted attribute."""
    return html.escape(shown(str(text)))


def script_json(value: object) -> str:
    """JSON that nothing in it can end early when it stands in a ``<script>``."""
    text = json.dumps(value, allow_nan=False)  # ASCII alone, so U+2028 is written as an escape
    return re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text)


def script_hash(script: str) -> str:
    """What a content security policy names a script, or a style, by."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def file_stem(name: str) -> str:
    """Name of a file without its ending: letters, digits, dots, dashes and underscores."""
    known = unicodedata.normalize("NFC", shown(name, ""))
    return re.sub(r"[^\w.-]+", "-", known)[:_LONGEST].strip("-.") or "unnamed"


def asset(name: str) -> str:
    """Text of a file that comes with the package."""
    return files("btdagg.report").joinpath(name).read_text(encoding="utf-8")
