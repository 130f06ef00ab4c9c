"""The part of the page where a reader moves the model's parameters and sees what it decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from btdagg._util.wording import shown
from btdagg.report.markup import asset, script_json, template

if TYPE_CHECKING:
    from btdagg.model.davidson import DavidsonModel

FEWEST, MOST = 2, 40  # votes that are shown


class _Control(NamedTuple):
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
_VOTES = _Control("n", "n", "votes per item", FEWEST, MOST, 1)


def decision_map(models: Mapping[str, DavidsonModel], n_votes: int) -> str:
    """Return the decision map as HTML: presets by name, the first shown, `n_votes` in 2 to 40."""
    return template("decision_map.html.jinja").render(
        start=min(max(n_votes, FEWEST), MOST),
        controls=[*(_reaching(control, models) for control in _CONTROLS), _VOTES],
        presets=script_json(
            [
                {"name": shown(name), **model.numbers, "usual_votes": model.usual_votes}
                for name, model in models.items()
            ]
        ),
    )


def decision_map_script() -> str:
    """Return the script that computes and draws the map, without its tag."""
    module = files("btdagg").joinpath("js", "btdagg.mjs").read_text(encoding="utf-8")
    # A page is one file, whose scripts are no modules.
    plain = module.replace("export ", "")
    names = "return { decide, majority, probabilities, risks };"
    return f"const davidson = (() => {{\n{plain}{names}\n}})();\n{asset('decision_map.js')}"


def _reaching(control: _Control, models: Mapping[str, DavidsonModel]) -> _Control:
    low, high = control.low, control.high
    for model in models.values():
        value = model.eta0 / math.log(10) if control.name == "nu" else getattr(model, control.name)
        low, high = min(low, math.floor(value)), max(high, math.ceil(value))
    return control._replace(low=low, high=high)
