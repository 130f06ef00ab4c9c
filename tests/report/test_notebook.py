"""How results look in a notebook: tables and figures, text escaped, nothing run or fetched."""

import os
import subprocess
import sys
import warnings
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import estimate
from btdagg.report import ReportFigure, ReportTable
from commands import WITHOUT
from gallery import gallery, simulated, tables_of
from pages import ROOT
from refusals import refused

SHOWN = (
    "model", "calibration", "with a prior", "panel", "panel's calibration", "bootstrap",
    "comparison", "random splits", "scores", "scores at one number", "labels swept",
    "estimates", "estimates by", "certificate", "systems", "plan",
)  # fmt: skip
DRAWN = (
    "model", "calibration", "with a prior", "comparison", "random splits", "scores",
    "scores at one number", "labels swept", "estimates", "estimates by", "certificate", "systems",
    "plan",
)  # fmt: skip
HARMLESS = {"p", "strong", "div", "table", "thead", "tbody", "tr", "th", "td"}
OF_FIGURES = {"figure", "img", "figcaption", "strong"}
EVIL = '<script>alert("x")</script><img src=http://x onerror=alert(1)>'


@pytest.fixture(scope="module")
def results():
    return gallery()


class Elements(HTMLParser):
    """Elements, attributes and text of some HTML; every element that is opened is closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = set(), [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes += attributes
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_every_result_of_the_page_is_shown_as_tables(results):
    shown = {name for name, found in results.items() if hasattr(found, "_repr_html_")}
    assert shown - {"method isotonic"} == set(SHOWN)
    for name in SHOWN:
        found = Elements(results[name]._repr_html_())
        assert "table" in found.tags, name
        assert found.tags <= HARMLESS, name
        assert {kind for kind, _ in found.attributes} <= {"style", "scope", "class"}
        # The colours are those of the notebook.
        assert {value for kind, value in found.attributes if kind == "style"} == {
            "overflow-x: auto"
        }


def test_every_result_with_a_picture_draws_it(results):
    drawn = {name for name, found in results.items() if hasattr(found, "plot")}
    assert drawn - {"panel's calibration"} == set(DRAWN)
    with pytest.raises(btdagg.InputError, match="no figure of a PanelModel"):
        results["panel's calibration"].plot()
    for name in DRAWN:
        figure = results[name].plot()
        assert isinstance(figure, ReportFigure)
        found = Elements(figure._repr_html_())
        assert found.tags == OF_FIGURES, name
        assert figure.title in " ".join(found.text)
        (image,) = (value for kind, value in found.attributes if kind == "src")
        assert image.startswith("data:image/svg+xml;base64,")
        assert len(repr(figure)) < 400


def test_numbers_are_those_of_the_result(results):
    def cells(name):
        return Elements(results[name]._repr_html_()).text

    model = results["calibration"].model
    assert f"{model.beta:.4g}" in cells("model")
    interval = results["with a prior"].intervals()["gamma"]
    ends = f"{interval.low:.4g} to {interval.high:.4g}"
    assert any(ends in one for one in cells("with a prior"))
    refits = results["bootstrap"].nu
    assert any(f"{refits.low:.4g} to {refits.high:.4g}" in one for one in cells("bootstrap"))
    scores = [f"{method.interval().mean:.3f}" for method in results["comparison"].methods]
    assert set(scores) <= {text.split(" ±")[0] for text in cells("comparison")}
    net = results["estimates"].estimates["net win rate"]
    assert f"{net.low:.3f} to {net.high:.3f}".replace("-", "−") in cells("estimates")
    assert all(f"{row.mae:.4f}" in cells("plan") for row in results["plan"].budgets)
    panel = results["panel"]
    assert {f"{value:.4g}" for value in (*panel.beta, *panel.gamma)} <= set(cells("panel"))


def test_names_of_users_are_escaped():
    counts, labels = simulated(120)
    partly = np.where(np.arange(120) < 60, labels, np.nan)
    by = np.where(np.arange(120) % 2 == 0, EVIL, "plain")
    votes, gold = tables_of(counts, labels)
    judged = btdagg.read_votes(votes.frame.with_columns(judge=pl.lit(EVIL)))
    panel = btdagg.PanelModel((EVIL,), (1.0,), 0.5, (1.0,))
    model = btdagg.DavidsonModel(
        1, 1, 1, provenance=btdagg.votes.Provenance(judge=EVIL, task="\u202e")
    )
    several = [
        estimate(counts, partly, by=by),
        btdagg.estimate_systems(counts, partly, by, np.where(by == EVIL, "plain", EVIL)),
        btdagg.evaluate(
            judged, gold, protocol=btdagg.Protocol(btdagg.evaluation.RandomSplits(n_splits=2))
        ),
        panel,
        model,
    ]
    for found in several:
        html = Elements(found._repr_html_())
        assert html.tags <= HARMLESS
        assert EVIL in "".join(html.text)
        assert "\u202e" not in "".join(html.text)  # which would turn the text around it
        if hasattr(found, "plot"):
            assert Elements(found.plot()._repr_html_()).tags == OF_FIGURES
    table = ReportTable.of_rows("t", EVIL, EVIL, (EVIL,), [])
    assert Elements(table._repr_html_()).tags <= HARMLESS
    figure = ReportFigure("f", EVIL + '" onload="x', EVIL, model.plot().draw)
    found = Elements(figure._repr_html_())
    assert found.tags == OF_FIGURES
    assert {name for name, _ in found.attributes} == {"style", "alt", "src"}


def test_a_picture_takes_options(results):
    model = results["model"]
    assert model.plot().title == "Decisions for 8 votes"  # as it was fitted for
    assert model.plot(n_votes=3).title == "Decisions for 3 votes"
    assert btdagg.DavidsonModel(1, 1, 1).plot().title == "Decisions for 8 votes"
    with refused("n_votes", got=-1):
        results["calibration"].plot(n_votes=-1)
    assert "number of votes" in results["scores"].plot().title
    assert "labels calibrated on" in results["labels swept"].plot().title
    assert results["scores at one number"].plot().title == "Label distributions by judge"
    with refused("choice", got="k", expected="one of 'j'"):
        results["scores"].plot("k")


WITHOUT_THE_EXTRA = """
import btdagg
counts, labels = [[0, 2, 6], [1, 6, 1], [7, 1, 0]] * 9, [1, 0, -1] * 9
calibration = btdagg.calibrate(counts, labels, prior="weak")
assert not [m for m in sys.modules if "btdagg.report" in m]
for found in (calibration, calibration.model, btdagg.evaluate(counts, labels)):
    assert found._repr_html_() is None and repr(found)
calibration.plot()
"""


def test_without_the_extra_a_notebook_shows_the_repr_and_a_picture_names_it():
    missing = ["jinja2", "matplotlib", "polars", "narwhals", "typer", "rich", "pyarrow"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(modules=missing) + WITHOUT_THE_EXTRA],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == (
        "btdagg._util.extras.MissingExtraError: drawing figures needs matplotlib: "
        "pip install 'btdagg[report]'"
    )


@pytest.mark.integration
def test_the_notebook_of_the_examples_runs_and_shows_tables_and_pictures():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if os.environ.get("CI") != "true":
            pytest.importorskip("nbclient")
            pytest.importorskip("ipykernel")
        import nbclient
        import nbformat

        read = nbformat.read(ROOT / "examples" / "votes_to_win_rate.ipynb", 4)
        code = [cell for cell in read.cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in code)
        nbclient.NotebookClient(read, timeout=300, kernel_name="python3").execute()
    shown = [output.data for cell in code for output in cell.outputs if "data" in output]
    assert all("text/plain" in data for data in shown)
    pictures = [data for data in shown if "<img" in data.get("text/html", "")]
    tables = [data for data in shown if "<table>" in data.get("text/html", "")]
    assert (len(pictures), len(tables)) == (4, 4)
    for data in (*pictures, *tables):
        assert Elements(data["text/html"]).tags <= HARMLESS | OF_FIGURES
        assert "\n" not in data["text/plain"]
