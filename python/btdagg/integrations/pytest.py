"""A pytest plugin: the fixture `release_gate`, and what it found in JUnit, terminal and Markdown.

pytest loads it by itself; it imports nothing more until a test asks for the fixture.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from btdagg._core import InputError
from btdagg._util.extras import needs

with needs("pytest", "a release gate"):
    import pytest

if TYPE_CHECKING:
    from btdagg.estimates import NonInferiority
    from btdagg.report.table import ReportTable

__all__ = ["ReleaseGate", "release_gate"]

_OPTION = "--btdagg-summary"
_HEADING = "### Release gates\n"
_OURS = pytest.StashKey[list[tuple[str, Any]]]()  # properties that gates have added to a test
_NUMBERS = ("estimate", "lower", "upper", "margin", "level", "n_items", "n_labels")


class ReleaseGate(Protocol):
    """What the fixture `release_gate` is."""

    def __call__(
        self, votes: Any, labels: Any, *, name: str = "", **options: Any
    ) -> NonInferiority:
        """Fail the test unless B is not worse than A by more than a margin.

        Parameters
        ----------
        votes, labels
            As `btdagg.estimates.not_worse` takes them.
        name : str
            Of the gate; the test's unless given.
        **options
            Margin, level and others of `btdagg.estimates.not_worse`.
        """


@pytest.fixture
def release_gate(request: pytest.FixtureRequest) -> ReleaseGate:
    """Fail the test unless B is not worse than A by more than a margin."""
    ours = request.node.stash.setdefault(_OURS, [])

    def add(*properties: tuple[str, Any]) -> None:
        ours.extend(properties)
        request.node.user_properties.extend(properties)

    def gate(votes: Any, labels: Any, *, name: str = "", **options: Any) -> NonInferiority:
        from btdagg.estimates import not_worse

        add(("gate", name or request.node.name))
        try:
            result = not_worse(votes, labels, **options)
        except InputError as error:
            add(("outcome", "no answer"), ("message", str(error)))
            pytest.fail(str(error), pytrace=False)
        except Exception as error:
            why = f"{type(error).__name__}: {error}".partition("\n")[0]
            add(("outcome", "error"), ("message", why))
            raise
        add(*((number, getattr(result, number)) for number in _NUMBERS))
        if result.labels_wanted is not None:
            add(("labels_wanted", result.labels_wanted))
        if result.remarks:
            add(("remarks", "; ".join(result.remarks)))
        message = str(result).replace("\n", "; ")
        add(("outcome", result.outcome), ("message", message))
        if not result.passed:
            pytest.fail(message, pytrace=False)
        return result

    return gate


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget the gates of an earlier run of the test, which is the same item."""
    ours = item.stash.get(_OURS, [])
    item.user_properties[:] = [
        one for one in item.user_properties if not any(one is mine for mine in ours)
    ]
    ours.clear()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the table."""
    parser.getgroup("btdagg").addoption(
        _OPTION,
        metavar="FILE",
        help="write a Markdown table of the release gates to this file",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Follow the tests, but in workers of pytest-xdist, whose reports come here too."""
    if hasattr(config, "workerinput"):
        return
    file = config.getoption(_OPTION)
    config.pluginmanager.register(_Gates(None if file is None else Path(file)), "btdagg gates")


class _Gates:
    """The gates of a run, in the order of their tests."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._by_test: dict[str, list[dict[str, Any]]] = {}
        if file is None:
            return
        if not file.absolute().parent.is_dir():
            raise pytest.UsageError(f"{_OPTION} is {file}, and its folder is not there")
        if file.is_dir():
            raise pytest.UsageError(f"{_OPTION} is {file}, a folder, expected a file")
        if file.exists() and (text := file.read_bytes()) and not text.startswith(_HEADING.encode()):
            raise pytest.UsageError(
                f"{_OPTION} is {file}, a file that it did not write, expected another name"
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the gates of a test, those in its fixtures too; if it is re-run, of its last run."""
        found: list[dict[str, Any]] = []
        gate: dict[str, Any] = {}
        for name, value in report.user_properties:
            gate[name] = value
            if name == "gate":
                gate = {name: value}
            elif name == "message" and {"gate", "outcome"} <= gate.keys():  # the last of a gate
                found.append(gate)
                gate = {}
        self._by_test[report.nodeid] = found

    @property
    def _all(self) -> list[dict[str, Any]]:
        return [gate for found in self._by_test.values() for gate in found]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each gate."""
        if self._all:
            terminalreporter.section("release gates")
        for gate in self._all:
            terminalreporter.write_line(f"{gate['gate']}: {gate['message']}")

    def pytest_sessionfinish(self) -> None:
        """Write the table."""
        if self._file is None:
            return
        from btdagg._util.files import replacing

        gates = self._all
        text = _table(gates).markdown() if gates else f"{_HEADING}\nNo release gate was run.\n"
        with replacing(self._file) as file:
            file.write(text.encode())


def _table(gates: list[dict[str, Any]]) -> ReportTable:
    from btdagg.report.table import Entry, ReportTable, Row
    from btdagg.report.wording import MISSING, fixed

    rows = []
    for gate in gates:
        cells = {"outcome": Entry(gate["outcome"], True)}
        if "estimate" not in gate:
            cells["why"] = Entry(gate["message"])
        else:
            low, high = (fixed(gate[end], signed=True) for end in ("lower", "upper"))
            wanted = f"{gate['labels_wanted']:,}" if "labels_wanted" in gate else MISSING
            cells |= {
                "net win rate of A": Entry(fixed(gate["estimate"], signed=True)),
                "bounds": Entry(f"{low} to {high}, each at {100 * gate['level']:.4g}%"),
                "margin": Entry(f"{gate['margin']:g}"),
                "labels": Entry(f"{gate['n_labels']:,} of {gate['n_items']:,}"),
                "labels wanted": Entry(wanted),
            }
            if "remarks" in gate:
                cells["remarks"] = Entry(gate["remarks"])
        rows.append(Row((str(gate["gate"]),), cells, [gate]))
    return ReportTable.of_rows(
        "release-gates",
        _HEADING.removeprefix("### ").strip(),
        "B is not worse than A by more than the margin where the upper bound of the net win rate "
        "of A is below it, and worse where the lower bound is above. What is inconclusive has not "
        "passed. The bounds are one-sided.",
        ("gate",),
        rows,
    )
