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
    from btdagg.questions.gate import NonInferiority

__all__ = ["ReleaseGate", "release_gate"]

_OPTION = "--btdagg-summary"


class ReleaseGate(Protocol):
    """The fixture `release_gate`."""

    def __call__(
        self, votes: Any, labels: Any = None, *, name: str = "", **options: Any
    ) -> NonInferiority:
        """Fail the test unless a candidate is not worse than a baseline by more than a margin.

        Votes (or items of a project), labels and options are as in `btdagg.estimates.not_worse`;
        `name` is the gate's, by default the test's.
        """


@pytest.fixture
def release_gate(request: pytest.FixtureRequest) -> ReleaseGate:
    """Fail the test unless a candidate is not worse than a baseline by more than a margin."""

    def gate(votes: Any, labels: Any = None, *, name: str = "", **options: Any) -> NonInferiority:
        from btdagg.estimates import not_worse
        from btdagg.questions.gate import gate_properties

        # The properties of a gate, from `gate` to `message`: pytest-xdist hands these over.
        properties: dict[str, Any] = {"gate": name or request.node.name}
        try:
            result = not_worse(votes, labels, **options)
        except Exception as error:
            is_input = isinstance(error, InputError)
            message = str(error) if is_input else f"{type(error).__name__}: {error}".split("\n")[0]
            properties |= {"outcome": "no answer" if is_input else "error", "message": message}
            if is_input:
                pytest.fail(message, pytrace=False)
            raise
        else:
            properties |= gate_properties(result.as_dict())
            message = properties["message"]
        finally:
            request.node.user_properties.extend(properties.items())
        if not result.passed:
            pytest.fail(message, pytrace=False)
        return result

    return gate


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
    config.pluginmanager.register(_Gates(config.getoption(_OPTION)), "btdagg gates")


class _Gates:
    """The gates of a run, in the order of their tests."""

    def __init__(self, file: str | None) -> None:
        self._file = file
        self._by_test: dict[str, list[dict[str, Any]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        gates: list[dict[str, Any]] = []
        for name, value in report.user_properties:
            if name == "gate":
                gates.append({})
            if gates:
                gates[-1].setdefault(name, value)
        self._by_test[report.nodeid] = [gate for gate in gates if "message" in gate]

    @property
    def _all(self) -> list[dict[str, Any]]:
        return [gate for gates in self._by_test.values() for gate in gates]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._all:
            terminalreporter.section("release gates")
        for gate in self._all:
            terminalreporter.write_line(f"{gate['gate']}: {gate['message']}")

    def pytest_sessionfinish(self) -> None:
        if self._file is None:
            return
        from btdagg.report.gates import gates_in_markdown

        file = Path(self._file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(gates_in_markdown(self._all), encoding="utf-8")
