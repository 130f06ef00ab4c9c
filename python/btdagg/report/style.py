"""How figures look: one place for colours, markers, sizes and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from btdagg.report.wording import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Page(NamedTuple):
    """How much room figures have.

    Attributes
    ----------
    width : float
        Of a figure across the page, in inches; sizes of type are those in print.
    beside : int
        Square panels side by side across it.
    """

    width: float
    beside: int


PRINT = Page(6.8, 4)
NARROW = Page(3.5, 2)

_page = ContextVar("page", default=PRINT)


@contextmanager
def page_of(page: Page) -> Iterator[None]:
    """Draw figures for another page."""
    token = _page.set(page)
    try:
        yield
    finally:
        _page.reset(token)


def page_width() -> float:
    """Width of a figure across the page, in inches."""
    return _page.get().width


def panels_beside(most: int | None = None) -> int:
    """Panels side by side across the page; at most so many in print, and half on a narrow one."""
    page = _page.get()
    if most is None:
        return page.beside
    return most if page is PRINT else max(1, most // 2)


INK = "#333333"
FAINT = "#BBBBBB"

# Of the palette of Okabe and Ito, which the colour-blind can tell apart, three that also differ in
# lightness, so that print without colour shows them: the labels B, tie and A.
LABEL_COLOURS = ("#E69F00", "#DDDDDD", "#0072B2")
LABEL_INK = ("black", "black", "white")

SETTINGS = MappingProxyType(
    {
        "font.size": 8,
        "font.family": "DejaVu Sans",
        "axes.titlesize": 8.5,
        "axes.labelsize": 8,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
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


Dashes = Literal["-"] | tuple[int, tuple[float, ...]]


class MethodStyle(NamedTuple):
    """What tells a method's line from others, in colour and without."""

    colour: str
    marker: str
    line: Dashes


_DASHES: tuple[Dashes, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1.2)),
    (0, (5, 1.5, 1.2, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)

_KNOWN = MappingProxyType(
    {
        "Davidson": MethodStyle("#0072B2", "o", _DASHES[0]),
        "Davidson, weak prior": MethodStyle("#009E73", "o", _DASHES[0]),
        "Davidson, neighbours": MethodStyle("#000000", "o", _DASHES[0]),
        "majority vote": MethodStyle("#D55E00", "s", _DASHES[1]),
        "Soft-SC mean": MethodStyle("#E69F00", "^", _DASHES[0]),
        "Soft-SC min": MethodStyle("#E69F00", "v", _DASHES[1]),
        "Soft-SC product": MethodStyle("#E69F00", "<", _DASHES[2]),
        "CI-SC": MethodStyle("#009E73", "D", _DASHES[3]),
        "rounded median": MethodStyle("#CC79A7", "P", _DASHES[1]),
        "Davidson MAE": MethodStyle("#56B4E9", "X", _DASHES[2]),
        "isotonic": MethodStyle("#000000", "p", _DASHES[4]),
        "GSA": MethodStyle("#777777", "h", _DASHES[1]),
        "USC": MethodStyle("#777777", ">", _DASHES[2]),
    }
)

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#777777")
_MARKERS = "osD^vPX<>ph*"


def method_styles(names: Sequence[str]) -> dict[str, MethodStyle]:
    """Style of each method: always the same for those that btdagg has, others in turn.

    Parameters
    ----------
    names : sequence of str
        The methods of a figure.
    """
    styles: dict[str, MethodStyle] = {name: _KNOWN[name] for name in names if name in _KNOWN}
    for name in dict.fromkeys(names):
        if name not in styles:
            styles[name] = _unlike(list(styles.values()))
    return {name: styles[name] for name in dict.fromkeys(names)}


def _unlike(taken: Sequence[MethodStyle]) -> MethodStyle:
    """Style with the colour, marker and line that are least used, the first of these."""

    def rarest(values: Sequence[Any], used: Sequence[Any]) -> Any:
        return min(values, key=used.count)

    return MethodStyle(
        rarest(_COLOURS, [style.colour for style in taken]),
        rarest(_MARKERS, [style.marker for style in taken]),
        rarest(_DASHES, [style.line for style in taken]),
    )


def series_styles(names: Sequence[str]) -> dict[str, MethodStyle]:
    """Style of each of some series that are no methods, in turn."""
    styles: dict[str, MethodStyle] = {}
    for name in names:
        styles[name] = _unlike(list(styles.values()))
    return styles


def wrapped(names: Iterable[str], width: int, lines: int = 2) -> dict[str, str]:
    """Names on at most so many lines of so many letters, each still different from the others.

    What does not fit loses its middle; where two would then look alike they get a number.
    """
    found: dict[str, str] = {}
    used: dict[str, int] = {}
    for name in dict.fromkeys(names):
        text = _broken(_shortened(printable(name), width, lines), width)
        used[text] = used.get(text, 0) + 1
        found[name] = text if used[text] == 1 else f"{text} ({used[text]})"
    return found


def abridged(names: Iterable[str], width: int, lines: int = 2) -> str:
    """Say which names `wrapped` has shortened, as the end of a note."""
    pairs = [
        f"{' '.join(shown.split())} is {printable(name)}"
        for name, shown in wrapped(names, width, lines).items()
        if "…" in shown and "…" not in name
    ]
    return f" Shortened: {'; '.join(pairs)}." if pairs else ""


def _shortened(text: str, width: int, lines: int) -> str:
    """Take letters out of the middle until it fits."""
    head, tail = text, ""
    while len(_broken(head + tail, width).splitlines()) > lines:
        kept = len(head.rstrip("…")) + len(tail) - 1
        head, tail = text[: (kept + 1) // 2] + "…", text[len(text) - kept // 2 :]
    return head + tail


def _broken(text: str, width: int) -> str:
    """Break lines at blanks and after hyphens and the like, or anywhere in what is too long."""
    lines = [""]
    for piece in re.findall(r"[^\s/_,:-]*[/_,:-]+|[^\s/_,:-]+|\s", text):
        rest = piece
        if lines[-1] and len(lines[-1]) + len(rest.rstrip()) > width:
            lines.append("")
        while len(rest) > width:
            lines[-1], rest = rest[:width], rest[width:]
            lines.append("")
        lines[-1] += rest
    return "\n".join(line.strip() for line in lines if line.strip())


def without_frame(axis: Axes) -> None:
    """Leave out frame and ticks of an axis whose names say it all."""
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)


def grid_of(n_panels: int, most: int) -> tuple[int, int]:
    """Rows and columns of panels, at most so many side by side and rows about equally long."""
    n_rows = -(-n_panels // most)
    return n_rows, -(-n_panels // n_rows)


def square_panels(
    titles: Iterable[str], more: float, *, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """Figure of square panels with these titles, in rows, and so many inches besides."""
    from matplotlib.figure import Figure

    names = list(titles)
    n_rows, beside = grid_of(len(names), panels_beside())
    height = more + (2.05 if any("\n" in name for name in names) else 1.9) * n_rows
    figure = Figure(
        figsize=(page_width() * max(beside, 2) / panels_beside(), height), layout="constrained"
    )
    axes = figure.subplots(n_rows, beside, sharey=sharey, squeeze=False).ravel()
    for axis, name in zip(axes, names, strict=False):
        axis.set_title(name)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    return figure, list(axes[: len(names)])


def legend_columns(names: Iterable[str]) -> int:
    """How many columns of these names a legend across the page has room for."""
    longest = max(len(name) for name in names)
    return max(1, int(page_width() / (0.6 + 0.068 * longest)))
