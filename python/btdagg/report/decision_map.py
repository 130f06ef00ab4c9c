"""The part of the page where a reader moves the model's parameters and sees what it decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from btdagg.report.markup import asset, escaped, script_json
from btdagg.report.wording import shown

if TYPE_CHECKING:
    from btdagg.model import DavidsonModel

FEWEST, MOST = 2, 40  # votes that are shown


class _Control(NamedTuple):
    """A slider and the field beside it."""

    name: str
    symbol: str
    meaning: str
    low: float
    high: float
    step: float


# What calibration is bounded by, unless it is told otherwise. The slider of nu is logarithmic.
_CONTROLS = (
    _Control("beta", "β", "margin sensitivity", 0.0, 5.0, 0.01),
    _Control("nu", "ν", "tie baseline", -4.0, 3.0, 0.01),
    _Control("gamma", "γ", "tie-count sensitivity", -10.0, 10.0, 0.05),
)


def decision_map(models: Mapping[str, DavidsonModel], n_votes: int) -> str:
    """Return the decision map as HTML; `decision_map_script` brings it to life.

    Parameters
    ----------
    models : mapping of str to DavidsonModel
        Presets, by the name that the reader selects them by. The first is shown at the start.
    n_votes : int
        Votes per item at the start; brought to 2 ... 40.
    """
    start = min(max(n_votes, FEWEST), MOST)
    presets = [{"name": shown(name), **model.numbers} for name, model in models.items()]
    controls = [_control(control, models) for control in _CONTROLS]
    votes = _Control("n", "n", "votes per item", FEWEST, MOST, 1)
    controls.append(_field(votes, f'min="{FEWEST}" max="{MOST}" step="1"'))
    return f"""
<noscript><p class="remark">The decision map is computed in the browser and needs JavaScript, which
is switched off. Everything else on this page is complete without it.</p></noscript>
<div id="decision-map" class="explorer" hidden data-votes="{start}">
<form class="controls" aria-label="Parameters of the model" autocomplete="off">
<p class="control preset"><label for="preset">Model</label>
<select id="preset"></select><span id="smoothing" class="hint"></span></p>
{"".join(controls)}
</form>
<div class="maps">{_map("model", "Calibrated model")}{_map("majority", "Majority vote")}</div>
<ul class="key" aria-label="Key">
<li><span class="swatch b"></span>B</li><li><span class="swatch t"></span>tie</li>
<li><span class="swatch a"></span>A</li>
<li><span class="swatch fade"></span>the stronger, the more probable (model) or the
more votes for it (majority)</li>
<li><span class="dot"></span>majority vote decides otherwise</li></ul>
<p id="summary" class="summary" role="status"></p>
<p class="hint">Point at a cell, or focus a map and use the arrow keys.</p>
<div class="cell"><p id="cell" role="status"></p>
<table><thead><tr><th scope="col">Label</th><th scope="col">Probability</th>
<th scope="col">Expected error if chosen</th></tr></thead>
<tbody id="cell-numbers">{_label_rows()}</tbody></table></div>
<details id="all-cells"><summary>Every way as a table</summary>
<div class="scroll" role="region" tabindex="0" aria-label="Every way in which the votes can fall">
<table><thead><tr><th scope="col">A</th><th scope="col">tie</th><th scope="col">B</th>
<th scope="col">P(A)</th><th scope="col">P(tie)</th><th scope="col">P(B)</th>
<th scope="col">model</th><th scope="col">majority</th></tr></thead><tbody></tbody></table></div>
</details>
</div>
<script type="application/json" id="presets">{script_json(presets)}</script>
"""


def decision_map_script() -> str:
    """Return the script that computes and draws the map, without its tag."""
    return f'"use strict";\n{asset("davidson.js")}{asset("decision_map.js")}'


def _control(control: _Control, models: Mapping[str, DavidsonModel]) -> str:
    """A control that reaches every preset."""
    low, high = control.low, control.high
    for model in models.values():
        value = model.eta0 / math.log(10) if control.name == "nu" else getattr(model, control.name)
        low, high = min(low, math.floor(value)), max(high, math.ceil(value))
    return _field(control, f'min="{low:g}" max="{high:g}" step="{control.step:g}"')


def _field(control: _Control, slider: str) -> str:
    name, label = control.name, f"{control.symbol}, {control.meaning}"
    return f"""<p class="control">
<label for="{name}"><i>{control.symbol}</i> {control.meaning}</label>
<input type="range" id="{name}" {slider}>
<input type="number" id="{name}-number" step="any" aria-label="{escaped(label)}: exact value"></p>
"""


def _map(name: str, title: str) -> str:
    return f"""<figure><figcaption id="{name}-title">{title}</figcaption>
<svg id="{name}-map" viewBox="0 0 360 356" tabindex="0" role="application"
aria-roledescription="decision map" aria-labelledby="{name}-title" aria-describedby="cell"></svg>
</figure>"""


def _label_rows() -> str:
    return "".join(
        f'<tr><th scope="row"><span class="swatch {style}"></span>{name}</th>'
        "<td></td><td></td></tr>"
        for name, style in (("A (+1)", "a"), ("tie (0)", "t"), ("B (−1)", "b"))
    )
