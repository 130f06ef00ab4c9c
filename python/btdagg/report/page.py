"""The page of a report: one HTML file that asks for nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

from btdagg import __version__
from btdagg.report.contents import Contents, Exhibit, Section, Status
from btdagg.report.decision_map import decision_map, decision_map_script
from btdagg.report.markup import asset, escaped, script_hash

_FORMATS = {"md": "Markdown", "csv": "CSV", "tex": "LaTeX", "svg": "SVG", "png": "PNG"}


# What is open in a section: so many figures, and tables of so many rows.
_FIGURES_OPEN = 3
_ROWS_OPEN = 80


def page(contents: Contents) -> str:
    """Return the page as HTML.

    Everything that is text in `contents` is escaped; `Exhibit.body` is taken as HTML. Of scripts
    the browser runs the page's own alone, and it fetches nothing: the content security policy
    names that one script by its hash and allows no address.
    """
    script = decision_map_script()
    policy = (
        f"default-src 'none'; script-src {script_hash(script)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    sections = [_section(section, f"section-{k}") for k, section in enumerate(contents.sections)]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="btdagg {escaped(__version__)}">
<link rel="icon" href="data:,">
<title>{escaped(contents.title)}</title>
<style>
{asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="masthead">
<h1>{escaped(contents.title)}</h1>
{_if(contents.subtitle, f'<p class="subtitle">{escaped(contents.subtitle)}</p>')}
{_status(contents)}
</header>
<div class="columns">
{_navigation(contents)}
<main id="content" tabindex="-1">
{_remarks(contents.remarks)}
{"".join(sections)}
<section id="explore" aria-labelledby="explore-title">
<h2 id="explore-title">Decision map</h2>
<p>How the calibrated model turns votes into a label, beside majority vote. Move its parameters, or
choose a fitted model: a low β asks for a wide margin before a side wins, a high ν favours ties, and
γ says how much tie votes count as evidence of a tie.</p>
{decision_map(contents.models, contents.n_votes)}
</section>
{_skipped(contents.skipped)}
{_provenance(contents)}
</main>
</div>
<script>{script}</script>
</body>
</html>
"""


def _if(condition: object, text: str) -> str:
    return text if condition else ""


def _status(contents: Contents) -> str:
    n_sections = len(contents.sections)
    listed = f"{n_sections} section{'' if n_sections == 1 else 's'}"
    if contents.skipped:
        listed += f', <a href="#skipped">{len(contents.skipped)} skipped</a>'
    if contents.status is Status.COMPLETE:
        said = f"<strong>Complete.</strong> {listed}."
    elif contents.status is Status.INTERRUPTED:
        reason = f": {escaped(contents.reason)}" if contents.reason else ""
        said = f"<strong>Interrupted</strong>{reason}. What was done by then is here: {listed}."
    else:
        said = (
            "<strong>Not complete.</strong> The run that writes this page is still going, or was "
            f"interrupted. So far: {listed}. Load it again for what is new."
        )
    return f'<p class="status {contents.status}">{said}</p>'


def _navigation(contents: Contents) -> str:
    links = [
        f'<li><a href="#section-{k}">{escaped(section.title)}</a></li>'
        for k, section in enumerate(contents.sections)
    ]
    links.append('<li><a href="#explore">Decision map</a></li>')
    if contents.skipped:
        links.append('<li><a href="#skipped">Skipped</a></li>')
    links.append('<li><a href="#provenance">How this was made</a></li>')
    return f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>'


def _section(section: Section, place: str) -> str:
    return f"""<section id="{place}" aria-labelledby="{place}-title">
<h2 id="{place}-title">{escaped(section.title)}</h2>
{_paragraphs(section.text)}{_remarks(section.remarks)}
{_exhibits(section.exhibits)}
</section>
"""


def _paragraphs(text: str) -> str:
    parts = [part.strip() for part in re.split(r"\n\s*\n", text)]
    return "".join(f"<p>{escaped(part)}</p>\n" for part in parts if part)


def _remarks(remarks: Iterable[str]) -> str:
    return "".join(f'<p class="remark">{escaped(remark)}</p>\n' for remark in remarks)


def _exhibits(exhibits: list[Exhibit]) -> str:
    """Exhibits in their order; long tables, and all figures but the first few, are folded up."""
    shown, n_figures = [], 0
    for exhibit in exhibits:
        n_figures += exhibit.kind == "figure"
        long = exhibit.body.count("<tr") > _ROWS_OPEN
        shown.append(
            _exhibit(
                exhibit, folded=long or (exhibit.kind == "figure" and n_figures > _FIGURES_OPEN)
            )
        )
    return "".join(shown)


def _exhibit(exhibit: Exhibit, *, folded: bool) -> str:
    place = f"{exhibit.kind}-{escaped(exhibit.stem)}"
    links = " · ".join(
        f'<a href="{escaped(quote(file))}">{_FORMATS[file.rpartition(".")[2]]}</a>'
        for file in exhibit.files
    )
    note = _if(exhibit.note, f'<p class="note">{escaped(exhibit.note)}</p>')
    region = f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{place}-title">'
    title = f'<h3 id="{place}-title">{escaped(exhibit.title)}</h3>'
    body = f"""{region}{exhibit.body}</div>
<figcaption>{note}<p class="files">{links}</p></figcaption>"""
    inner = f"<details><summary>{title}</summary>{body}</details>" if folded else title + body
    return f"""<figure class="exhibit {exhibit.kind}" id="{place}" aria-labelledby="{place}-title">
{inner}
</figure>
"""


def _skipped(skipped: list[tuple[str, str]]) -> str:
    if not skipped:
        return ""
    listed = "".join(
        f"<dt>{escaped(what)}</dt><dd>{escaped(reason)}</dd>" for what, reason in skipped
    )
    return f"""<section id="skipped" aria-labelledby="skipped-title">
<h2 id="skipped-title">Skipped</h2>
<p>What could be here and is not, and why.</p>
<dl>{listed}</dl>
</section>
"""


def _provenance(contents: Contents) -> str:
    settings = {"btdagg": __version__, **contents.settings}
    listed = "".join(
        f"<dt>{escaped(name)}</dt><dd>{escaped(_plain(value))}</dd>"
        for name, value in settings.items()
    )
    return f"""<section id="provenance" aria-labelledby="provenance-title">
<h2 id="provenance-title">How this was made</h2>
<p>The same settings on the same files give the same numbers. For machines they are in
<a href="report.json">report.json</a>.</p>
<dl class="settings">{listed}</dl>
</section>
"""


def _plain(value: object) -> str:
    """A setting as text."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    return str(value)
