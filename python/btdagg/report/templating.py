"""Templates of HTML, in which all text is escaped and readable. Needs jinja2."""

from __future__ import annotations

from btdagg._util.extras import needs
from btdagg.report.markup import asset
from btdagg.report.wording import printable, shown

with needs("report", "a page"):
    from jinja2 import Environment, FunctionLoader, StrictUndefined


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
        return ", ".join(f"{name}: {_plain(one)}" for name, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    return str(value)


TEMPLATES = Environment(
    loader=FunctionLoader(lambda name: asset(f"templates/{name}")),
    autoescape=True,
    finalize=_readable,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {"plain": _plain, "printable": printable}
