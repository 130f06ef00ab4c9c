"""Tables of a report: the numbers of the result, what is bold, and four formats that escape."""

import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from btdagg import Protocol, evaluate, read_labels, read_votes
from btdagg._util.wording import fixed, percent, stem
from btdagg.evaluation import RandomSplits, positional_bias, scores_table, sweep_table, with_error
from btdagg.evaluation.tables import positional_bias_table
from btdagg.inference.intervals import mean_interval
from btdagg.methods import MajorityVote
from btdagg.paper import (
    ablate,
    compare_orders,
    fitted_parameters,
    leave_one_rater_out,
    read_ratings,
    tie_rates,
)
from btdagg.paper.tables import (
    ablation_table,
    order_table,
    parameters_table,
    raters_table,
    tie_rate_table,
    transfer_table,
)
from btdagg.report import Entry, ReportTable
from btdagg.report.style import wrapped
from btdagg.votes import as_items
from draws import transfer_of

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")

HOSTILE = "a_b & 100% $x$ \\ ~ ^ # { } | <b>\n`*"


def made(n_items=60, tasks=("t1", "t2"), judges=("j", "k"), templates=("p",), seed=1):
    """Votes and labels of simulated judges that tend to see the gold label."""
    rng = np.random.default_rng(seed)
    votes, labels = [], []
    for task in tasks:
        for number in range(n_items):
            label = int(rng.choice([-1, 0, 0, 1]))
            item = f"{task}-{number}"
            labels.append({"item": item, "task": task, "label": label})
            for judge in judges:
                for template in templates:
                    for order in ("AB", "BA"):
                        for sample in range(3):
                            vote = int(rng.choice([label, label, -1, 0, 1]))
                            votes.append((item, task, judge, template, order, sample, vote))
    columns = ["item", "task", "judge", "template", "order", "sample", "vote"]
    return (
        read_votes(pl.DataFrame(votes, schema=columns, orient="row")),
        read_labels(pl.DataFrame(labels)),
    )


@pytest.fixture(scope="module")
def simulated():
    return made()


@pytest.fixture(scope="module")
def evaluation(simulated):
    return evaluate(
        *simulated, n_votes=[2, 4], protocol=Protocol(RandomSplits(n_splits=4, share=0.3))
    )


def small(entries=((HOSTILE, "1"),), name="t", note="", records=({"a": 1},), n=1):
    rows = tuple(tuple(Entry(text) for text in row) for row in entries)
    header = tuple(f"h{i}" for i in range(len(rows[0])))
    return ReportTable(name, "title", note, header, rows, records, n_label_columns=n)


def rows_of(table):
    return list(csv.DictReader(io.StringIO(ReportTable.of(table).csv())))


class Cells(HTMLParser):
    """Rows of a table, and how many cells each would fill."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self._span = [], [], 1
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.rstrip("\n")


# Numbers


def test_numbers_are_written_without_nan_or_a_negative_zero():
    assert fixed(-0.0004) == "0.000"
    assert fixed(-0.0126, signed=True) == "−0.013"
    assert fixed(0.0126, signed=True) == "+0.013"
    assert fixed(0.0, signed=True) == "0.000"
    assert fixed(float("nan")) == percent(float("nan")) == with_error(None) == "–"
    assert percent(0.1234) == "12.3%"
    assert with_error(mean_interval([0.4, 0.5])) == "0.450 ±.098"


def test_stems_are_plain_and_differ_where_texts_do():
    assert stem("confusion", "math") == "confusion-math"
    assert re.fullmatch(r"a-b-[0-9a-f]{6}", stem("A/b"))
    names = {stem("t", name) for name in ("a b", "a/b", "A b", "ä b", "a-b", "../a b", "")}
    assert len(names) == 7
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name) for name in names)
    assert len(stem("x" * 500)) < 80


# Formats


@pytest.mark.parametrize("letter", "\u202e\ufffe\x9b")
def test_what_turns_text_around_is_shown_instead(letter):
    table = small([(f"a{letter}b", "1")], note=f"c{letter}d")
    for text in (
        table.markdown(),
        table.latex(),
        table.html(),
        *wrapped([f"x{letter}y"], 9).values(),
    ):
        assert letter not in text
        assert "�" in text
    assert letter in rows_of(small(records=({"name": letter},)))[0]["name"]


def test_latex_escapes_every_special_character():
    text = small().latex()
    body = text.splitlines()[10]
    assert body == (
        r"a\_b \& 100\% \$x\$ \textbackslash{} \textasciitilde{} \textasciicircum{} \# \{ \} "
        r"\textbar{} \textless{}b\textgreater{} \textasciigrave{}* & 1 \\"
    )
    assert "\\toprule" in text
    assert "\\caption{title.}" in text
    assert "\\label{tab:t}" in text
    assert "\\begin{tabular}{lr}" in text


def test_markdown_escapes_and_stays_a_table():
    text = small([(HOSTILE, "1"), ("b", "2")], note="a note | <i>").markdown()
    lines = text.splitlines()
    assert lines[0] == "### title"
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 4
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {3}
    assert "<b>" not in text
    assert "&lt;b&gt; \\`\\*" in text
    assert r"a\_b &amp; 100% \$x\$ \\ \~ ^ \# \{ \} \|" in text
    assert "a note \\| &lt;i&gt;" in text


def test_html_escapes_and_leaves_out_labels_that_repeat():
    rows = [(HOSTILE, "4", "x", "1"), (HOSTILE, "4", "y", "2"), ("k", "4", "x", "3")]
    text = small(rows, n=3).html()
    found = Cells(text)
    assert found.rows[1] == [" ".join(HOSTILE.split()), "4", "x", "1"]
    assert found.rows[2] == ["", "", "y", "2"]
    assert found.rows[3] == ["k", "4", "x", "3"]
    assert set(found.tags) == {"table", "thead", "tbody", "tr", "th", "td"}
    assert text.count('<tr class="group">') == 2
    assert small([("<script>", '"\x00\x1b')]).html().count("�") == 2


def test_csv_holds_no_formula_and_numbers_stay_numbers():
    texts = ["=1+1", "+cot", "-x", "@sum", "\tx", "-1", "+0.5", "-1e-3", "a-1"]
    found = rows_of(small(records=[{"@name": text, "n": -0.5} for text in texts]))
    assert [row["'@name"] for row in found] == [
        "'=1+1", "'+cot", "'-x", "'@sum", "'\tx", "-1", "+0.5", "-1e-3", "a-1"
    ]  # fmt: skip
    assert {row["n"] for row in found} == {"-0.5"}


# Scores


def test_scores_equal_the_result_and_rank_1_is_bold(evaluation):
    table = ReportTable.of(scores_table(evaluation))
    assert table.header == (
        *("task", "judge", "votes", "items", "method"), "MAE", "accuracy", "rank"
    )  # fmt: skip
    cells = {(*cell.key, cell.n_votes): cell for cell in evaluation.cells}
    rows, records = list(table.rows), rows_of(table)
    for place, (key, compared) in enumerate(cells.items()):
        for number, method in enumerate(compared.methods):
            row, record = rows[2 * place + number], records[2 * place + number]
            rank = compared.rankings["mae"].ranks[number]
            assert [entry.text for entry in row] == [
                *map(str, key), "60", method.name, with_error(method.interval()),
                with_error(method.interval("accuracy")), str(rank),
            ]  # fmt: skip
            assert row[5].bold == row[7].bold == (rank == 1)
            assert float(record["mae"]) == method.mae.mean()
            assert (record["task"], record["rank"]) == (key[0], str(rank))
    assert len(rows) == len(records) == 2 * 2 * 2 * 2 + 2 * 2  # averages by votes and method
    expected = np.mean([cells[t, j, 2].methods[1].mae for t, j, n in cells if n == 2], axis=0)
    assert rows[17][5].text == with_error(mean_interval(expected))
    assert "nan" not in table.markdown() + table.latex() + table.html()


def test_a_task_that_is_called_average_is_not_the_average():
    votes, labels = made(tasks=("average", "t"), judges=("j",))
    found = evaluate(votes, labels, protocol=Protocol(RandomSplits(n_splits=3, share=0.3)))
    assert {line["key"] for line in found.averages} == {("average of all", "")}


# The others


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(3)
    labels = rng.choice([-1, 0, 1], 90)
    p = np.array([[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])[labels + 1]
    return as_items([rng.multinomial(6, row) for row in p], labels)


def test_parameters(items):
    found = fitted_parameters(items, protocol=Protocol(RandomSplits(n_splits=5, share=0.3)))
    table = parameters_table({"x": found})
    row = [entry.text for entry in table.rows[0]]
    low, high = np.quantile(found.beta, [0.25, 0.75])
    assert row[:3] == ["x", f"{np.median(found.beta):.2f}", f"[{low:.2f}, {high:.2f}]"]
    assert row[-1] == str(found.regime)
    assert row[-3] == f"{100 * found.gold_tie_share:.1f}%"
    assert row[-4] == f"{100 * found.at_bounds.any(axis=1).mean():.0f}%"
    assert [r["parameter"] for r in rows_of(table)] == ["beta", "nu", "gamma"]
    assert float(rows_of(table)[1]["mean"]) == found.nu.mean()
    assert float(rows_of(table)[1]["median"]) == np.median(found.nu)


def test_transfer():
    rng = np.random.default_rng(0)
    mae = rng.normal(0.4, 0.001, (2, 2, 6))
    mae[0, 1] -= 0.1  # far better than the own calibration
    mae[1, 0] += 0.1  # and far worse
    found = transfer_of("ab", mae)
    table, mae = transfer_table(found), found.mae
    change = mean_interval(mae[0, 1] - mae[1, 1])
    assert [e.text for e in table.rows[0]] == ["a", "0", with_error(change, signed=True)]
    assert table.rows[0][2].text.startswith("−0.1")
    assert [e.bold for row in table.rows for e in row].count(True) == 1
    assert table.rows[0][2].bold
    assert table.rows[2][2].text == with_error(mean_interval(mae[1, 1]))
    assert float(rows_of(table)[1]["change"]) == change.mean


def test_ablation_and_its_difference():
    votes, labels = made(n_items=40, tasks=("t1",), judges=("j",), templates=("p_1", "q"))
    found = ablate(
        votes,
        labels,
        "template",
        n_votes=[2],
        protocol=Protocol(RandomSplits(n_splits=4, share=0.3)),
    )
    table = ablation_table(found)
    assert table.name == "ablation-template"
    assert table.header == ("task", "judge", "votes", "method", "template p_1", "template q")
    davidson, majority, difference = table.rows
    assert difference[3].text == "Davidson − majority vote"
    for place, cell in enumerate(found.cells):
        one, other = cell.methods
        assert davidson[4 + place].text == with_error(one.interval())
        gain = mean_interval(one.mae - other.mae)
        assert difference[4 + place].text == with_error(gain, signed=True)
        assert davidson[4 + place].bold == (one.mae.mean() <= other.mae.mean())
        assert majority[4 + place].bold == (other.mae.mean() <= one.mae.mean())
    assert len(rows_of(table)) == 4
    alone = ablate(
        votes,
        labels,
        "template",
        aggregators=[MajorityVote()],
        protocol=Protocol(RandomSplits(n_splits=3, share=0.3)),
    )
    (row,) = ablation_table(alone).rows
    means = [cell.methods[0].mae.mean() for cell in alone.cells]
    assert [e.bold for e in row[4:]] == [mean == min(means) for mean in means]


def test_sweeps(simulated):
    votes, labels = simulated
    found = evaluate(
        votes, labels, n_votes=[2, 4], protocol=Protocol(RandomSplits(n_splits=3, share=0.3))
    )
    table = sweep_table(found)
    assert table.header == ("task", "judge", "method", "2", "4")
    assert len(table.rows) == 4 * 2
    curves = list(zip(*(cell.methods for cell in found.cells[:2]), strict=True))
    assert [e.text for e in table.rows[1][3:]] == [
        with_error(point.interval()) for point in curves[1]
    ]
    assert float(rows_of(table)[0]["accuracy"]) == curves[0][0].accuracy.mean()
    found = evaluate(
        votes, labels, n_labels=[10, 20], by=("task",), protocol=Protocol(RandomSplits(n_splits=3))
    )
    table = sweep_table(found)
    assert table.name == "sweep-calibration"
    assert [r["n_labels"] for r in rows_of(table)][:2] == ["10", "20"]
    bold = [[e.bold for e in row[2:]] for row in table.rows[:2]]
    means = np.array([[method.mae.mean() for method in cell.methods] for cell in found.cells[:2]]).T
    np.testing.assert_array_equal(bold, means == means.min(axis=0))


def test_orders(simulated):
    found = compare_orders(*simulated, 2, protocol=Protocol(RandomSplits(n_splits=3, share=0.3)))
    table = order_table(found)
    methods = [cell.methods[0] for cell in found.cells[:3]]
    assert [e.text for e in table.rows[0][4:]] == [with_error(m.interval()) for m in methods]
    means = [m.mae.mean() for m in methods]
    assert [e.bold for e in table.rows[0][4:]] == [mean == min(means) for mean in means]


def ratings(judge=True):
    rng = np.random.default_rng(4)
    rows, votes = [], []
    for item in range(50):
        truth = int(rng.choice([-1, 0, 1]))
        for rater in ("r1", "r_2", "r3"):
            rows.append({"item": item, "rater": rater, "vote": int(rng.choice([truth, truth, 0]))})
        votes += [{"item": item, "vote": int(rng.choice([truth, truth, 1]))} for _ in range(5)]
    return read_ratings(pl.DataFrame(rows)), read_votes(pl.DataFrame(votes)) if judge else None


def test_raters_with_and_without_a_judge():
    people, votes = ratings()
    found = leave_one_rater_out(
        people, votes, protocol=Protocol(RandomSplits(n_splits=4, share=0.3))
    )
    table = raters_table({None: found})
    first = found.raters[0]
    judge, human = first.compared.methods
    row = [e.text for e in table.rows[0]]
    assert row[:4] == [
        "r1",
        "50",
        f"{human.accuracy.mean():.3f}",
        f"{judge.accuracy.mean():.3f}",
    ]
    assert row[4:6] == [
        with_error(first.accuracy_gain, signed=True),
        "yes" if first.wins else "no",
    ]
    assert table.rows[-1][5].text == f"{found.n_wins}/3"
    assert table.rows[-1][9].text == f"{found.n_wins_by_mae}/3"
    assert float(rows_of(table)[0]["accuracy"]) == first.accuracy
    several = raters_table({2: found, 5: found})
    assert [row[0].text for row in several.rows] == ["2"] * 4 + ["5"] * 4
    alone = raters_table({None: leave_one_rater_out(people)})
    assert alone.header == ("rater", "items", "accuracy", "MAE")
    assert len(alone.rows) == 3


def test_positional_bias_and_tie_rates(simulated):
    votes, _ = simulated
    found = positional_bias(votes)
    table = positional_bias_table(found)
    one = found[0]
    assert [e.text for e in table.rows[0][:4]] == [
        "j",
        f"{one.first}",
        f"{one.second}",
        f"{one.tie}",
    ]
    half = 50 * (one.interval.high - one.interval.low)
    assert table.rows[0][5].text == f"{fixed(100 * one.bias, 1, signed=True)}% ±{half:.1f}"
    clear = one.interval.low > 0 or one.interval.high < 0
    assert table.rows[0][5].bold == clear

    rates = tie_rates(votes)
    table = tie_rate_table(rates)
    assert table.header == ("judge", "template p", "average")
    cell = rates.rate(0, 0)
    assert table.rows[0][1].text == f"{100 * cell.mean:.1f}% ±{50 * (cell.high - cell.low):.1f}"
    assert table.rows[2][2].text.startswith(f"{100 * rates.rate().mean:.1f}%")
    assert rows_of(table)[0]["ties"] == str(rates.ties[0, 0])
