"""The folder of a report: whole at every moment, and what it refuses."""

import json
import re

import pytest

from btdagg import InputError
from btdagg._util.outputs import MANIFEST
from btdagg.report import ReportFolder
from exhibits import PNG, Figure, Table


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def files(folder):
    """Files of a folder but its manifest, by path from it."""
    found = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    return sorted(str(file) for file in found if file.name != MANIFEST)


def text(folder):
    return (folder / "index.html").read_text(encoding="utf-8")


def described(folder):
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def status(folder):
    return re.search('<p class="status ([a-z]+)">(.*?)</p>', text(folder)).groups()


def small_report(folder, *names, tables=(), error=None):
    with ReportFolder(folder, "Title") as report:
        report.section("one", "One")
        report.add(*(Table(name) for name in names), *tables)
        if error is not None:
            raise error


def test_tables_and_figures_are_files_and_on_the_page(out):
    with ReportFolder(out, "Title", settings={"seed": 7, "path": out}) as report:
        report.section("scores", "Scores", "First.")
        report.add(Table(), Figure())
        report.remark("a remark")
        report.skipped("Transfer", "there is one task")
    assert files(out) == [
        *("figures/scaling.png", "figures/scaling.svg", "index.html", "report.json"),
        *("tables/mae.csv", "tables/mae.md", "tables/mae.tex"),
    ]
    assert (out / "tables/mae.csv").read_text() == Table().csv()
    assert (out / "tables/mae.md").read_text() == Table().markdown()
    assert (out / "tables/mae.tex").read_text() == Table().latex()
    assert (out / "figures/scaling.svg").read_text() == Figure().svg()
    assert (out / "figures/scaling.png").read_bytes() == PNG
    page = text(out)
    for wanted in (
        "<title>Title</title>",
        "<p>First.</p>",
        '<p class="remark">a remark</p>',
        "<dt>Transfer</dt><dd>there is one task</dd>",
        "<dt>seed</dt><dd>7</dd>",
        '<a href="tables/mae.csv">CSV</a>',
        '<a href="figures/scaling.png">PNG</a>',
        Table().html(),
        '<p class="note">Bands are 95% intervals.</p>',
    ):
        assert wanted in page
    found = described(out)
    assert found["status"] == "complete"
    assert found["settings"] == {"seed": 7, "path": str(out)}
    assert found["sections"][0]["exhibits"][0]["files"] == [
        *("tables/mae.md", "tables/mae.csv", "tables/mae.tex"),
    ]
    assert found["skipped"] == [{"what": "Transfer", "reason": "there is one task"}]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "stopped by the user"),
        (InputError("votes.csv <b>: row 3"), "votes.csv &lt;b&gt;: row 3"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_an_interruption_is_on_the_page_and_goes_on(out, error, said):
    with pytest.raises(type(error)):
        small_report(out, "mae", error=error)
    assert status(out)[0] == described(out)["status"] == "interrupted"
    assert f"<strong>Interrupted</strong>: {said}. Finished by then" in status(out)[1]
    assert '<a href="tables/mae.csv">' in text(out)


def test_names_that_are_the_same_have_files_of_their_own(out):
    small_report(out, "a-b", "a-b", "../../x")
    csvs = files(out / "tables")[::3]
    assert csvs[:2] == ["a-b-2.csv", "a-b.csv"]
    assert re.fullmatch(r"x-[0-9a-f]{6}\.csv", csvs[2])


@pytest.mark.parametrize("marker", [None, '{"files": 1}'])
def test_a_folder_with_something_else_is_refused_and_untouched(out, marker):
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    if marker is not None:
        (out / "report.json").write_text(marker)
    before = {name: (out / name).read_text() for name in files(out)}
    wanted = f"^{re.escape(str(out))} is not empty and has no earlier report; expected a new or an"
    with pytest.raises(InputError, match=wanted):
        ReportFolder(out, "Title")
    assert {name: (out / name).read_text() for name in files(out)} == before


def test_an_earlier_report_gives_way_file_by_file(out):
    small_report(out, "a", "b")
    (out / "notes.txt").write_text("mine")
    (out / "tables" / "own.txt").write_text("mine")
    with ReportFolder(out, "Title") as report:
        report.section("one", "One")
        report.add(Table("b", note="new"), Table("c"))
        # Until the new one is complete the earlier one is as it was.
        assert "tables/a.csv" in files(out)
        assert "tables/c.csv" not in files(out)
        assert "tables/a.csv" in text(out)
    assert files(out) == [
        *("index.html", "notes.txt", "report.json", "tables/b.csv", "tables/b.md", "tables/b.tex"),
        *("tables/c.csv", "tables/c.md", "tables/c.tex", "tables/own.txt"),
    ]


def test_a_manifest_cannot_make_it_remove_other_files(out, tmp_path):
    small_report(out, "a")
    (tmp_path / "mine.txt").write_text("mine")
    (out / "tables" / ".hidden").write_text("mine")
    found = json.loads((out / MANIFEST).read_text())
    for name in ("../mine.txt", "tables/../../mine.txt", "tables/.hidden", "/etc/x", "tables/.."):
        found["files"].append(name)
    found["files"] += ["tables\\..\\..\\mine.txt", "tables/a.csv/x"]
    (out / MANIFEST).write_text(json.dumps(found))
    small_report(out, "b")
    assert (tmp_path / "mine.txt").exists()
    assert files(out / "tables") == [".hidden", "b.csv", "b.md", "b.tex"]
