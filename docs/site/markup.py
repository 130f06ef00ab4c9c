"""What Sphinx lacks here: a role, formulas without a script or a font, names of languages."""

from __future__ import annotations

import pydoc
import re
from html import escape
from typing import Any

import ziamath
from docutils import nodes
from latex2mathml.converter import convert
from pygments.lexers import BashLexer, JsonLexer, RustLexer, TextLexer
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole
from sphinx.util import logging

from python_pages import public_name

_LOGGER = logging.getLogger(__name__)


class _CodeRole(PyXRefRole):
    """Text in single backticks of a docstring: code, and a link where it names something public.

    A single word in lower case is an argument or a column more often than a function.
    """

    def run(self) -> tuple[list[Any], list[Any]]:
        if "." in self.text or self.text[:1].isupper():
            return super().run()
        return [nodes.literal(self.rawtext, self.text)], []

    def process_link(
        self, env: Any, refnode: Any, has_explicit_title: bool, title: str, target: str
    ) -> tuple[str, str]:
        refnode["reftype"] = "obj"
        refnode["code"] = True
        return super().process_link(env, refnode, has_explicit_title, title, target)


def _found(app: Sphinx, env: Any, node: Any, text: nodes.TextElement) -> Any:
    """A link to where a name is described, or code for one that is not public.

    None, which Sphinx reports, if there is nothing of that name.
    """
    name = node["reftarget"]
    if not name.startswith("btdagg."):
        return text if node.get("code") else None
    value = pydoc.locate(name)
    if value is None:
        return None
    public = public_name(value, name.rpartition(".")[2])
    if public is None:
        return text
    python = env.get_domain("py")
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", public, node, text)


def _skipped(
    app: Sphinx, kind: str, name: str, value: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out methods that another library has put into a class."""
    return (
        True if (getattr(value, "__module__", None) or "btdagg").split(".")[0] != "btdagg" else None
    )


def _formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Draw a formula in the colour of the text: browsers have no fonts in common for MathML."""
    block = isinstance(node, nodes.math_block)
    text = node.astext()
    unknown = re.search(r">(\\\w+)", convert(text))
    if unknown:
        _LOGGER.warning("%s is not known in formulas", unknown[1], location=node)
    drawn = ziamath.Latex(text, size=17 if block else 16, inline=not block, color="currentColor")
    tag, style = (
        ("div", "") if block else ("span", f' style="vertical-align: {drawn.getyofst()}px"')
    )
    translator.body.append(
        f'<{tag} class="math" role="img" aria-label="{escape(text.strip())}"{style}>'
        f"{drawn.svg()}</{tag}>"
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register all of it."""
    app.add_role_to_domain("py", "code", _CodeRole())
    app.connect("missing-reference", _found)
    app.connect("autodoc-skip-member", _skipped)
    ziamath.config.svg2 = False  # whose symbols would share their names
    app.add_html_math_renderer("drawn", (_formula, None), (_formula, None))
    app.add_lexer("console", BashLexer)  # commands without a prompt
    app.add_lexer("jsonl", JsonLexer)
    app.add_lexer("csv", TextLexer)
    app.add_lexer("rust,no_run", RustLexer)
