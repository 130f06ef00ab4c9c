"""The page of a report: one HTML file that asks for nothing from elsewhere."""

from __future__ import annotations

from btdagg import __version__
from btdagg.report.contents import Contents
from btdagg.report.decision_map import decision_map, decision_map_script
from btdagg.report.markup import asset, script_hash
from btdagg.report.templating import TEMPLATES

_PAGE = TEMPLATES.get_template("page.html.jinja")


def page(contents: Contents) -> str:
    """Return the page as HTML.

    Everything that is text in `contents` is escaped; `Exhibit.body` is taken as HTML. Of scripts
    the browser runs the page's own alone, and it fetches nothing: the content security policy
    names that one script by its hash and allows no address.
    """
    script = f'"use strict";\n{asset("choices.js")}{decision_map_script()}'
    return _PAGE.render(
        contents=contents,
        version=__version__,
        policy=f"default-src 'none'; script-src {script_hash(script)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        css=asset("colours.css") + asset("page.css"),
        formats={"md": "Markdown", "csv": "CSV", "tex": "LaTeX", "svg": "SVG", "png": "PNG"},
        decision_map=decision_map(contents.models, contents.n_votes),
        script=script,
    )
