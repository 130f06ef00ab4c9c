"""The OpenAPI description as a page that needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem}
code,pre{font-family:ui-monospace,monospace;font-size:.9em}
pre{background:#8881;padding:.8rem;overflow-x:auto}
h2 b{background:#246;color:#fff;border-radius:.2rem;padding:.1rem .5rem;font-size:.8em}
td{padding:.1rem 1rem .1rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}a{color:#8bf}}
"""


def page(description: dict[str, Any], model: str) -> str:
    """Return the page of an OpenAPI description and a line on the model in use."""
    info = description["info"]
    parts = [
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{escape(info.get('description', ''))}</p><p>{escape(model)}</p>"
        '<p>For machines: <a href="openapi.json">openapi.json</a>.</p>'
    ]
    for path, methods in description["paths"].items():
        parts += [_operation(path, method, of) for method, of in methods.items()]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>"
    )


def _operation(path: str, method: str, of: dict[str, Any]) -> str:
    rows = [
        (f"{each['name']} ({each['in']})", each.get("description", ""))
        for each in of.get("parameters", ())
    ]
    rows += [(status, each["description"]) for status, each in sorted(of["responses"].items())]
    table = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(text)}</td></tr>"
        for name, text in rows
    )
    bodies = of.get("requestBody", {}).get("content", {})
    shown = "".join(
        f"<details><summary><code>{escape(kind)}</code></summary>"
        f"<pre>{escape(json.dumps(each.get('schema', {}), indent=1))}</pre></details>"
        for kind, each in bodies.items()
    )
    text = "".join(
        f"<p>{_code(escape(line))}</p>" for line in of.get("description", "").split("\n\n")
    )
    return (
        f"<h2><b>{escape(method.upper())}</b> <code>{escape(path)}</code></h2>"
        f"{text}{shown}<table>{table}</table>"
    )


def _code(text: str) -> str:
    return re.sub("`([^`]*)`", r"<code>\1</code>", text)
