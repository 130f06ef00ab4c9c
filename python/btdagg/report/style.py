"""How figures look: one place for colours, markers, sizes and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from btdagg._util.wording import wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.8  # inches of a figure across the page; sizes of type are those in print
BESIDE = 4  # square panels side by side across it
IN_LEGEND = 24  # letters of a name

INK = "#333333"
FAINT = "#BBBBBB"

# Of the palette of Okabe and Ito, which the colour-blind can tell apart, three that also differ in
# lightness, so that print without colour shows them: the labels B, tie and A.
LABEL_COLOURS = ("#E69F00", "#DDDDDD", "#0072B2")
LABEL_INK = ("black", "black", "white")


def colours_of_labels(n: int) -> list[tuple[str, str]]:
    """Return the colour of each label, and of text on it; grades go from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if n == len(LABEL_COLOURS):
        return list(zip(LABEL_COLOURS, LABEL_INK, strict=True))
    ramp = colormaps["cividis"]
    return [(to_hex(ramp(k / (n - 1))), "white" if 2 * k < n else "black") for k in range(n)]


SETTINGS = MappingProxyType(
    {
        "font.size": 8,
        "font.family": "DejaVu Sans",
        "axes.titlesize": 8.5,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "text.color": INK,
        "lines.linewidth": 1.4,
        "lines.markersize": 4.5,
        "text.parse_math": False,  # names come from users' files
        "svg.fonttype": "none",
        "svg.hashsalt": "btdagg",
    }
)
"""Settings of matplotlib under which figures are drawn."""

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#777777")
_MARKERS = "osD^vPX<>ph*"
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (3, 1, 1, 1, 1, 1)))


def series_styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and line of each series, as `plot` takes them; they differ without colour."""
    return {
        name: {
            "color": _COLOURS[place % len(_COLOURS)],
            "marker": _MARKERS[place % len(_MARKERS)],
            "linestyle": _DASHES[place % len(_DASHES)],
        }
        for place, name in enumerate(dict.fromkeys(names))
    }


def without_frame(axis: Axes) -> None:
    """Leave out frame and ticks of an axis whose names say it all."""
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)


def small_axis() -> tuple[Figure, Axes]:
    """Figure of one axis, beside which a page has room."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(min(WIDTH, 4.6), 2.8), layout="constrained")
    return figure, figure.subplots()


def square_panels(titles: Iterable[str], more: float) -> tuple[Figure, list[Axes]]:
    """Figure of square panels with these titles, in rows, and so many inches besides."""
    from matplotlib.figure import Figure

    names = list(titles)
    n_rows = -(-len(names) // BESIDE)
    n_columns = -(-len(names) // n_rows)
    height = more + (2.05 if any("\n" in name for name in names) else 1.9) * n_rows
    figure = Figure(figsize=(WIDTH * max(n_columns, 2) / BESIDE, height), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    for axis, name in zip(axes, names, strict=False):
        axis.set_title(name)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    return figure, list(axes[: len(names)])


def draw_legend(figure: Figure, styles: Mapping[str, Mapping[str, Any]], title: str = "") -> None:
    """Name the lines below the panels."""
    from matplotlib.lines import Line2D

    names = list(wrapped(styles, IN_LEGEND, 1).values())
    room = int(WIDTH / (0.6 + 0.068 * max(map(len, names))))
    figure.legend(
        [Line2D([], [], **style) for style in styles.values()],
        names,
        title=title,
        loc="outside lower center",
        ncols=max(1, min(len(names), room)),
        handlelength=3.2,
        columnspacing=1.2,
    )
