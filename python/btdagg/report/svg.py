"""A figure's SVG as part of a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from btdagg.report.markup import escaped

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = ("href", "{http://www.w3.org/1999/xlink}href")
# What figures are drawn with. Scripts, links, styles of the whole page and frames are not in it.
_ELEMENTS = frozenset(
    (
        *("svg", "g", "defs", "use", "symbol", "clipPath", "mask", "pattern", "marker", "stop"),
        *("linearGradient", "radialGradient", "path", "rect", "line", "polyline", "polygon"),
        *("circle", "ellipse", "text", "tspan", "image"),
    )
)
_ELSEWHERE = re.compile(r"url\((?!\s*['\"]?#)|@import|expression\(|\\", re.IGNORECASE)
_PLAIN = re.compile(r"(?!on|class$)[a-zA-Z][a-zA-Z0-9-]*", re.IGNORECASE)  # no name space, no event
_ID = re.compile(r"url\(\s*['\"]?#([^'\")]+)['\"]?\s*\)")


def inline_svg(text: str, prefix: str, label: str) -> str:
    """Return an SVG file as an element of an HTML page.

    Only shapes, text and embedded PNG images are kept; nothing that runs, or asks for something
    from elsewhere, gets through. Identifiers begin with `prefix`, so that several figures share a
    page.

    Parameters
    ----------
    text : str
        The file.
    prefix : str
        Letters, digits and dashes.
    label : str
        What a screen reader says of the figure.

    Raises
    ------
    ElementTree.ParseError
        If the text is no XML.
    """
    root = ElementTree.fromstring(text)
    attributes = _attributes(root, prefix)
    # Matplotlib says these two of every element in a style sheet, which would reach the page's.
    attributes |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    attributes |= {"role": "img", "aria-label": label}
    return _element("svg", attributes, root, prefix)


def _element(tag: str, attributes: dict[str, str], node: ElementTree.Element, prefix: str) -> str:
    inside = [escaped(node.text or "")]
    for child in node:
        name = child.tag.removeprefix(_SVG) if isinstance(child.tag, str) else ""
        if name in _ELEMENTS:
            inside.append(_element(name, _attributes(child, prefix), child, prefix))
        inside.append(escaped(child.tail or ""))
    listed = "".join(f' {name}="{escaped(value)}"' for name, value in attributes.items())
    return f"<{tag}{listed}>{''.join(inside)}</{tag}>"


def _attributes(node: ElementTree.Element, prefix: str) -> dict[str, str]:
    """Attributes that are safe on a page, with the identifiers in them made unique."""
    kept = {}
    for name, value in node.attrib.items():
        if name == "id":
            kept["id"] = prefix + value
        elif name in _HREF:
            if value.startswith("#"):
                kept["href"] = f"#{prefix}{value[1:]}"
            elif value.startswith("data:image/png;base64,"):
                kept["href"] = value
        elif _PLAIN.fullmatch(name) and not _ELSEWHERE.search(value):
            kept[name] = _ID.sub(lambda found: f"url(#{prefix}{found[1]})", value)
    return kept
