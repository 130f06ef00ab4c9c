"""What several test modules share."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

import engines
from btdagg.cli import run
from commands import cross_fit_quickly
from databases import PostgreSQL, postgres_programs
from exhibits import PNG, Figure
from judge_dialects import DIALECTS, KEY
from judge_endpoints import Endpoint
from simulated_judge import SimulatedJudge
from trace_servers import MLflowServer, PhoenixServer, has_mlflow, phoenix_program

# Libraries that report how they are used; nothing that tests do leaves this machine.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = os.environ["DO_NOT_TRACK"] = "true"
# Spark's queries run once or twice: Java's second compiler takes longer than it saves.
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS",
    '--driver-java-options "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" pyspark-shell',
)

# Examples of a property; `make soak` tries the second.
settings.register_profile("btdagg", deadline=None, max_examples=50)
settings.register_profile("soak", deadline=None, max_examples=400)
settings.load_profile("btdagg")


# With several workers one of them makes what takes long, or waits for limits of requests.
TOGETHER = {"spark": "spark", "scale.md": "spark", "integrations.md": "spark",
            "mlflow": "traces", "phoenix": "traces", "traces.md": "traces",
            "test_judge_foreign": "limits", "test_inspect": "inspect",
            "test_release_gate": "gate", "test_schemas": "schemas"}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What a test is given says whether it needs a server or a browser."""
    for item in items:
        servers = {"postgres", "browser", "spark", "mlflow_server", "phoenix_server"}
        if servers & set(item.fixturenames):
            item.add_marker("integration")
        for name, group in TOGETHER.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.xdist_group(group))
    # The longest come first, so that no worker is left with one of them at the end.
    items.sort(key=lambda item: "/project/" not in item.nodeid)


@pytest.fixture(scope="session")
def shared():
    """Folder that holds the public votes, as `data`; BTDAGG_SHARED, or beside the checkout."""
    folder = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("the public votes are not here: set BTDAGG_SHARED")
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, and a key to judge with; modules that override it fill it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests-0123456789")
    return tmp_path


@pytest.fixture
def cli(capsys):
    """Run a command; exit status, standard output and standard error."""

    def call(*arguments):
        capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def small_pngs(monkeypatch):
    """PNGs of a pixel: drawing is most of a report's time, and every figure is drawn as SVG too."""
    monkeypatch.setattr("btdagg.report.figure.ReportFigure.png", lambda figure: PNG)


@pytest.fixture
def figures_not_drawn(small_pngs, monkeypatch):
    """The same of SVGs, for commands that write reports."""
    monkeypatch.setattr("btdagg.report.figure.ReportFigure.svg", lambda figure: Figure().svg())


@pytest.fixture
def quick_commands(figures_not_drawn, monkeypatch):
    """No figures, and cross-fitting by 3 models and 3 refits instead of 50 and 100."""
    cross_fit_quickly(monkeypatch)


@pytest.fixture
def judge_server(tmp_path):
    """Start simulated judges, by their command-line options; they are stopped after the test."""
    started = []

    def start(*arguments):
        folder = tmp_path / f"judge-{len(started)}"
        folder.mkdir()
        started.append(SimulatedJudge(folder, *arguments))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def endpoint():
    """Start endpoints that answer as a function says; they are stopped after the test."""
    started = []

    def start(answer, tls=None):
        started.append(Endpoint(answer, tls))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def keys(monkeypatch):
    """A key of each protocol that judges are asked by."""
    for dialect in DIALECTS:
        monkeypatch.setenv(dialect.variable, KEY)


@pytest.fixture(params=DIALECTS, ids=repr)
def dialect(request, keys):
    """Each protocol that judges are asked by."""
    return request.param


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server; tests are skipped where there is none, but not where CI runs."""
    programs = postgres_programs()
    if programs is None:
        if os.environ.get("CI") == "true":
            pytest.fail("PostgreSQL is not installed: apt-get install postgresql")
        pytest.skip("PostgreSQL is not installed")
    server = PostgreSQL(programs)
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def store_place(request, tmp_path):
    """Where a vote store goes: a file, and a database of a server."""
    if request.param == "sqlite":
        return str(tmp_path / "votes.db")
    return request.getfixturevalue("postgres").database(f"votes_{os.urandom(6).hex()}")


@pytest.fixture(scope="session")
def cargo():
    """Cargo; tests are skipped without it, but not where CI runs."""
    if shutil.which("cargo") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("cargo is not installed")
        pytest.skip("cargo is not installed")


@pytest.fixture(scope="session")
def spark():
    """A Spark session; tests are skipped without Spark or Java, but not where CI runs."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("Java is not installed: apt-get install default-jre-headless")
    session = engines.spark_session()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def mlflow_server():
    """URL of MLflow's server; tests are skipped without it, but not where CI runs."""
    if os.environ.get("CI") != "true" and not has_mlflow():
        pytest.skip("MLflow is not installed: make integrations installs it")
    server = MLflowServer()
    yield server.url
    server.stop()


@pytest.fixture(scope="session")
def phoenix_server():
    """URL of Phoenix's server; tests are skipped without it, but not where CI runs."""
    if os.environ.get("CI") != "true" and not phoenix_program().exists():
        pytest.skip("Phoenix is not installed: make integrations installs it")
    server = PhoenixServer()
    yield server.url
    server.stop()


@pytest.fixture(params=engines.NAMES)
def engine(request, tmp_path):
    """A database that queries are run in."""
    name = request.param
    if name == "postgresql":
        yield engines.PostgresEngine(tmp_path, request.getfixturevalue("postgres"))
    elif name == "spark":
        yield engines.SparkEngine(tmp_path, request.getfixturevalue("spark"))
    elif name == "clickhouse":
        if os.environ.get("CI") != "true":
            pytest.importorskip("chdb")
        opened = engines.ClickHouseEngine(tmp_path)
        yield opened
        opened.close()
    else:
        kind = engines.SqliteEngine if name == "sqlite" else engines.DuckDbEngine
        yield kind(tmp_path)
