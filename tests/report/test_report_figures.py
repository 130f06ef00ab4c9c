"""Figures of a report: what is in the files, that names do no harm, and the same bytes again."""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from btdagg import InputError
from btdagg.datasets import simulate
from btdagg.evaluation import (
    Cell,
    Interval,
    Scores,
)
from btdagg.evaluation.bias import PositionalBias
from btdagg.evaluation.cells import MethodScores
from btdagg.methods import Calibrated, MajorityVote, SoftSelfConsistency
from btdagg.paper.figures import tie_rate_figure, transfer_figure
from btdagg.paper.ties import TieRates
from btdagg.report import condition_figure, sweep_figures
from btdagg.report.figures import (
    behaviour_figure,
    confusion_figure,
    distribution_figure,
    positional_bias_figure,
)
from btdagg.report.style import LABEL_COLOURS, SETTINGS
from btdagg.votes import as_items
from draws import distributions as confusions
from draws import transfer_of

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

HOSTILE = ["$x_1$ & <script>", "_hidden", "中 judge\x00\x1b"]
LONG = [f"internal-model v{i} with a really very long name, tuned ({i})" for i in range(3)]
NAMES = ["Davidson", *HOSTILE, *LONG, "isotonic"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def items():
    judge = simulate("rb2-factuality", 150, 6, seed=0)
    return as_items(judge.counts, judge.labels)


def compared(names, rng, n_splits=3):
    """Methods with confusion matrices drawn at random."""
    matrices = rng.integers(1, 2000, (len(names), n_splits, 3, 3))
    methods = tuple(MethodScores(*of_method) for of_method in zip(names, matrices, strict=True))
    return Cell(methods, n_items=2000, n_calibration=100)


def sweeps(names=("Davidson", "majority vote"), keys=(("t", "j"),), points=(2, 4, 8)):
    rng = np.random.default_rng(0)
    cells = [replace(compared(names, rng, 5), key=key, n_votes=n) for key in keys for n in points]
    return Scores(("task", "judge"), tuple(cells))


def distributions(names):
    return compared(names, np.random.default_rng(0))


def biases(names):
    interval = Interval(0.1, -0.1, 0.3)
    return [PositionalBias((n,), 50, 40, 10, 0, 50, 50, 50, 0.1, interval) for n in names]


def rates(rows, columns):
    shape = (len(rows), len(columns))
    ties = np.random.default_rng(0).integers(1, 49, shape)
    full = np.full(shape, 50)
    return TieRates(tuple(rows), tuple(columns), ties, full, full, np.zeros(shape, int))


def every_figure(names):
    """One figure of each kind, with these names for methods, tasks, judges and templates."""
    found = distributions(names)
    mae = np.random.default_rng(0).normal(0.4, 0.02, (len(names), len(names), 4))
    return [
        *sweep_figures(sweeps(names)).values(),
        transfer_figure(transfer_of(names, mae)),
        distribution_figure("t", found),
        confusion_figure("t", found),
        condition_figure("template", dict.fromkeys(names[:3], found)),
        behaviour_figure(dict.fromkeys(names, MajorityVote()), 8),
        tie_rate_figure(rates(names, names[:4])),
        positional_bias_figure(biases(names)),
    ]


def texts(figure):
    """Pieces of text of the SVG, one blank for each run of blanks."""
    tree = ElementTree.fromstring(figure.svg())
    return [" ".join("".join(node.itertext()).split()) for node in tree.iter(f"{SVG}text")]


def axes_of(figure):
    drawn = figure.draw()
    assert isinstance(drawn, Figure)
    return [axis for axis in drawn.axes if axis.get_visible()]


@pytest.fixture(scope="module")
def all_figures():
    return every_figure(NAMES)


# Files


@pytest.mark.soak
def test_svg_is_self_contained(all_figures):
    for figure in all_figures:
        svg = figure.svg()
        for absent in ("<script", "<image", "dc:date"):
            assert absent not in svg, (figure.name, absent)
        tree = ElementTree.fromstring(svg)
        for node in tree.iter():
            for key, value in node.attrib.items():
                if key.endswith("href"):
                    assert value.startswith("#")
                assert "url(" not in value or "url(#" in value
                assert not key.startswith("on")


def test_the_same_input_gives_the_same_bytes_whatever_the_settings():
    def drawn():
        (figure,) = sweep_figures(sweeps()).values()
        return figure.svg(), figure.png()

    before = drawn()
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert drawn() == before
        assert matplotlib.rcParams["font.size"] == 20
    assert drawn() == before


def test_threads_that_draw_leave_settings_and_warnings_as_they_were(monkeypatch):
    """Each gives way while its settings hold."""
    (figure,) = sweep_figures(sweeps()).values()
    alone = figure.svg()
    before = list(warnings.filters), dict(matplotlib.rcParams)
    saved = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda *of, **how: (time.sleep(0.1), saved(*of, **how)))
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: figure.svg(), range(8))) == {alone}
    assert (warnings.filters, dict(matplotlib.rcParams)) == before


# Names


@pytest.mark.soak
def test_every_figure_shows_every_name_that_is_not_long(all_figures):
    votes, *others, ties, bias = all_figures
    for figure in (votes, *others, bias):
        shown = "".join("".join(texts(figure)).split())
        for name in NAMES[:3] if "template" in figure.title else {*NAMES} - {*LONG}:
            seen = "".join(name.replace("\x00", "�").replace("\x1b", "�").split())
            assert seen in shown, (figure.name, name)
    assert "$x_1$ & <script>" in texts(votes)  # no mathematics
    assert "_hidden" in texts(votes)
    assert {"template", *HOSTILE[:2]} <= set(texts(ties))


@pytest.mark.soak
def test_no_two_labels_overlap_and_none_is_cut(all_figures):
    for figure in all_figures:
        found, width, height = labels_of(figure)
        assert len(found) > 5
        for place, (one, a) in enumerate(found):
            assert min(a.x0, a.y0) > -1, (figure.name, one)
            assert a.x1 < width + 1, (figure.name, one)
            assert a.y1 < height + 1, (figure.name, one)
            for other, b in found[place + 1 :]:
                wide = min(a.x1, b.x1) - max(a.x0, b.x0)
                high = min(a.y1, b.y1) - max(a.y0, b.y0)
                assert min(wide, high) < 2, (figure.name, one, other)


def labels_of(figure):
    """Texts that a reader sees with their boxes, and the size of the figure, all in points."""
    with matplotlib.rc_context(dict(SETTINGS)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        drawn = figure.draw()
        drawn.set_dpi(72)
        FigureCanvasAgg(drawn).draw()
        found = [*drawn.texts, *(text for legend in drawn.legends for text in legend.get_texts())]
        for axis in drawn.axes:
            if axis.get_visible():
                found += [axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label]
                found += axis.texts
                for side in (axis.xaxis, axis.yaxis):
                    low, high = sorted(side.get_view_interval())
                    for tick in side.get_major_ticks():
                        if low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                            found += [tick.label1, tick.label2]
        seen = [text for text in found if text.get_visible() and text.get_text().strip()]
        assert min(text.get_fontsize() for text in seen) >= 8
        boxes = [(text.get_text(), text.get_window_extent()) for text in seen]
    return boxes, *drawn.bbox.size


# What is drawn


def test_curves_have_the_means_and_their_bands():
    found = sweeps()
    (figure,) = sweep_figures(found).values()
    curves = list(zip(*(cell.methods for cell in found.cells), strict=True))
    left, right = axes_of(figure)
    for axis, score in ((left, "mae"), (right, "accuracy")):
        for line, curve in zip(axis.lines, curves, strict=False):
            np.testing.assert_array_equal(line.get_xdata(), (2, 4, 8))
            np.testing.assert_allclose(
                line.get_ydata(), [getattr(point, score).mean() for point in curve]
            )
        band = axis.collections[0].get_paths()[0].vertices
        intervals = [p.interval(score) for p in curves[0]]
        assert band[:, 1].min() == pytest.approx(min(i.low for i in intervals))
        assert band[:, 1].max() == pytest.approx(max(i.high for i in intervals))


def test_there_is_a_figure_for_each_judge_and_a_row_for_each_task():
    keys = [(task, judge) for task in ("a", "b", "c") for judge in ("j", "k")]
    figures = sweep_figures(sweeps(keys=keys))
    assert {key: figure.name for key, figure in figures.items()} == {"j": "votes-j", "k": "votes-k"}
    assert [axis.get_title(loc="left") for axis in axes_of(figures["k"])[::2]] == ["a", "b", "c"]
    with pytest.raises(InputError, match="there is no sweep"):
        sweep_figures(Scores((), ()))


def test_heat_map_is_centred_and_has_the_numbers():
    mae = np.full((2, 2, 3), 0.4)
    mae[0, 1] += 0.1
    mae[1, 0] -= 0.025
    figure = transfer_figure(transfer_of("ab", mae))
    axis = axes_of(figure)[0]
    assert [text.get_text() for text in axis.texts] == ["0", "+0.100", "−0.025", "0"]
    low, high = axis.collections[0].get_clim()
    assert low == -high
    assert high == pytest.approx(0.1)


def test_bars_have_the_shares(items):
    found = confusions(items, n_splits=3)
    axis = axes_of(distribution_figure("x", found))[0]
    widths = np.array([bar.get_width() for bar in axis.patches]).reshape(3, 3).T
    np.testing.assert_allclose(widths[0], 100 * found.gold)
    np.testing.assert_allclose(widths[1], 100 * found.methods[0].predicted)
    np.testing.assert_allclose(axis.lines[0].get_xdata(), 100 * found.gold[0])
    panels = axes_of(condition_figure("template", {"p": found, "q": found}))
    assert [axis.get_title(loc="left") for axis in panels] == ["template p", "template q"]


def test_confusion_has_counts_and_percentages(items):
    found = confusions(items, n_splits=3)
    first = axes_of(confusion_figure("x", found))[0]
    confusion = found.methods[0]
    assert first.texts[4].get_text() == (
        f"{confusion.counts[1, 1]:.0f}\n{confusion.percentages[1, 1]:.0f}%"
    )
    empty = MethodScores("m", np.array([[[1, 0, 0], [0, 0, 0], [0, 0, 1]]]))
    empty = Cell((empty,), n_items=3, n_calibration=1)
    shown = [text.get_text() for text in axes_of(confusion_figure("x", empty))[0].texts]
    assert shown[3:6] == ["–", "–", "–"]


def test_maps_show_every_decision_and_name_what_cannot_be_drawn(items):
    fitted = Calibrated().fit(items.pooled, items.label)
    methods = {"one": MajorityVote(), "two": fitted, "CI-SC": SoftSelfConsistency("sum")}
    figure = behaviour_figure(methods, 8)
    axes = axes_of(figure)
    assert [axis.get_title() for axis in axes] == ["one", "two"]
    assert "Not drawn: CI-SC (" in figure.note
    # Votes for A alone, for B alone, and none for either.
    by_colour = {
        matplotlib.colors.to_hex(patch.get_facecolor()).upper(): patch.get_path()
        for patch in axes[0].patches
    }
    for colour, point in zip(LABEL_COLOURS, ((0.5, 8.5), (0.5, 0.5), (8.5, 0.5)), strict=True):
        corners = by_colour[colour].vertices
        assert any(np.array_equal(corner + 0.5, point) for corner in corners)
    cells = sum(len(path.vertices) // 5 for path in by_colour.values())
    assert cells == 9 * 10 // 2
    with pytest.raises(InputError, match="CI-SC needs a confidence"):
        behaviour_figure({"c": SoftSelfConsistency("sum")}, 8)


def test_points_have_their_intervals():
    full, ties = np.array([[50, 50]]), np.array([[1, 49]])
    rates = TieRates(("j",), ("p", "q"), ties, full, full, 0 * full)
    axis = axes_of(tie_rate_figure(rates))[0]
    mean, low, high = rates.rate(0, 0)
    first, second = axis.lines[:2]
    assert first.get_xdata() == pytest.approx([100 * low, 100 * mean, 100 * high])
    assert second.get_xdata()[1] == pytest.approx(98)
