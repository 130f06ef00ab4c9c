"""Every kind of votes goes through every function, command and door, or there is a reason."""

import contextlib
import inspect
import itertools
import json
import re
import shlex
import shutil
import sqlite3
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fastapi.testclient import TestClient

import btdagg
from btdagg import estimates, evaluation, online
from btdagg.cli import app
from btdagg.evaluation import CrossFit, GroupTest, positional_bias
from btdagg.serve import create_app
from commands import one_line
from families import NAMES, family

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
QUICK = btdagg.Protocol(splitter=CrossFit(3, 1, 3, 0), test=GroupTest())
SIDES = {"candidate": "red", "baseline": "blue", "margin": 0.3}


class Given(NamedTuple):
    """A family as Python has it: of a panel, items have an axis of judges."""

    of: object
    votes: btdagg.Votes
    labels: btdagg.Labels

    def items(self, **more):
        panel = "judge" if self.of.panel else None
        return self.votes.items(self.labels, panel=panel, **more)

    def gate(self):
        """Grades of one response have a system; pairs have two."""
        return self.items(systems=self.votes.scale.systems)

    def periods(self):
        """Two halves of the items, with labels of half of each."""
        items, half = self.items(), np.arange(160) % 80 < 40
        return items[half], items[~half]

    @property
    def project(self):
        files = {"votes": str(self.of.votes), "labels": str(self.of.labels)}
        keys = {kind: {"file": file} for kind, file in files.items()}
        for option in self.of.options[1::2]:
            kind, _, scale = option.partition(".scale=")
            keys[kind]["scale"] = scale
        return btdagg.Project(keys)

    @property
    def scales(self):
        return {"scale": self.votes.scale, "label_scale": self.labels.scale}

    @property
    def model(self):
        fit = btdagg.calibrate_panel if self.of.panel else btdagg.calibrate
        return fit(self.votes, self.labels).model


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Each family, written once."""
    made = {}
    for name in NAMES:
        of = family(name, tmp_path_factory.mktemp("product") / name)
        scales = [btdagg.Scale(text.partition("=")[2]) for text in of.options[1::2]] or [None] * 2
        votes = btdagg.read_votes(of.votes, scale=scales[0])
        made[name] = Given(of, votes, btdagg.read_labels(of.labels, scale=scales[1]))
    return made


def with_systems(given):
    """The systems of pairs are in the votes; grades of one response come with an array."""
    if given.votes.scale.mirrored:
        return btdagg.estimate_systems(given.gate())
    items = given.items()
    system = np.where(items.ids.astype(int) % 2, "blue", "red")
    how = {"groups": items.group, **given.scales}
    return btdagg.estimate_systems(items.by_judge, items.labels, system, **how)


FUNCTIONS = {
    "calibrate": lambda given: btdagg.calibrate(given.votes, given.labels),
    "calibrate_panel": lambda given: btdagg.calibrate_panel(given.votes, given.labels),
    "decisions": lambda given: btdagg.decisions(given.items(), given.model),
    "decide": lambda given: btdagg.decide(given.votes, given.labels, agreement=0.7),
    "estimate": lambda given: btdagg.estimate(given.items()),
    "estimate_systems": with_systems,
    "certify": lambda given: btdagg.certify(given.items(), agreement=0.7),
    "compare": lambda given: btdagg.compare(
        given.votes, given.votes, given.labels, n_votes=(2, None), protocol=QUICK
    ),
    "evaluate": lambda given: btdagg.evaluate(given.votes, given.labels, protocol=QUICK),
    "not_worse": lambda given: estimates.not_worse(given.gate(), **SIDES),
    "bootstrap": lambda given: btdagg.bootstrap(given.votes, given.labels, n_refits=20),
    "choose": lambda given: estimates.choose(given.items(), 20, design="stratified"),
    "plan": lambda given: online.plan(
        given.votes, given.labels, n_items=100, n_votes=[4], n_labels=[25], population="finite"
    ),
    "forecast": lambda given: online.forecast(
        btdagg.fit_prior([(given.votes, given.labels)]),
        n_items=100, n_votes=[4], n_labels=[25], n_draws=2,
    ),
    "worth_a_look": lambda given: estimates.worth_a_look(given.items()),
    "fit_prior": lambda given: btdagg.fit_prior([(given.votes, given.labels)]),
    "bias": lambda given: btdagg.bias(given.gate()),
    "agreement": lambda given: btdagg.agreement(given.votes, given.labels),
    "recalibrate": lambda given: btdagg.recalibrate(
        given.votes, given.votes, given.labels, protocol=CrossFit(4, 1, 5)
    ),
    "change": lambda given: estimates.change(*given.periods()),
    "decide a project": lambda given: btdagg.decide(given.project, agreement=0.7),
}  # fmt: skip

GRADES = "grades", "grade counts"
SINGLE = "needs single votes, but these are counts"
NO_JUDGE = "no column 'judge'; found item, minus, tie, plus"
GRADED = "expected a mirrored scale, with two sides, for a"
PAIRS_ALONE = "expected votes of pairs; btdagg.calibrate takes grades"

TWO_SCALES = "expected that of the votes, .* so that slopes can be compared"

# Why a function is not for a family: its refusal.
NOT_BY_FUNCTION = {
    **dict.fromkeys([("calibrate_panel", name) for name in GRADES], f"{GRADED} panel"),
    ("calibrate_panel", "counts"): NO_JUDGE,
    **dict.fromkeys([("bootstrap", name) for name in GRADES], PAIRS_ALONE),
    **dict.fromkeys([("fit_prior", name) for name in GRADES], f"{GRADED} Davidson model"),
    **dict.fromkeys([("forecast", name) for name in GRADES], f"{GRADED} Davidson model"),
    ("compare", "counts"): SINGLE,
    ("compare", "grade counts"): SINGLE,
    ("bias", "grades"): TWO_SCALES,
    ("change", "grades"): "expected that of the votes, 1-5, to tell the judge's part",
    ("change", "panel"): "expected votes of one judge",
}


@pytest.mark.parametrize(("function", "name"), [*itertools.product(FUNCTIONS, NAMES)])
def test_functions_take_every_family(given, function, name):
    reason = NOT_BY_FUNCTION.get((function, name))
    if reason is None:
        result = FUNCTIONS[function](given[name])
        assert str(result)
    else:
        with pytest.raises(btdagg.InputError, match=reason):
            FUNCTIONS[function](given[name])


# A command's words, of which VOTES, LABELS and files of the family are filled in; OPTIONS are how
# both are read, GRADES how votes are, PANEL and SYSTEMS what the family has.
COMMANDS = {
    "check": "check VOTES LABELS",
    "votes": "votes VOTES GRADES",
    "import": "import VOTES -o imported.csv",
    "calibrate": "calibrate VOTES LABELS OPTIONS -o model.json",
    "sql": "sql model.json",
    "decide": "decide model.json VOTES OPTIONS -o decided.csv",
    "plan": "plan model.json VOTES LABELS OPTIONS -n N -o rule.json",
    "decide by a rule": "decide rule.json VOTES OPTIONS -o by_rule.csv",
    "certify": "certify VOTES LABELS OPTIONS PANEL --agreement 0.7 -o certificate.json",
    "decide by a certificate": "decide certificate.json VOTES OPTIONS -o trusted.csv",
    "decide with people": "decide certificate.json VOTES OPTIONS --labels LABELS -o people.csv",
    "estimate": "estimate VOTES LABELS OPTIONS PANEL SYSTEMS",
    "evaluate": "evaluate VOTES LABELS OPTIONS --methods METHODS -n 4",
    "compare": "compare VOTES LABELS OPTIONS --first n=2",
    "choose": "choose VOTES GRADES --items 20 --design stratified -o drawn.csv",
    "gate": "gate VOTES LABELS OPTIONS --candidate red --baseline blue --margin 0.9",
    "bias": "bias VOTES LABELS OPTIONS",
    "votes with people": "votes VOTES LABELS OPTIONS",
}

NOT_BY_COMMAND = {
    ("import", "counts"): "not in the format .* it has group, item, minus, plus",
    ("import", "grade counts"): "not in the format .* it has 1, 2, 3, 4, 5, group",
    **dict.fromkeys(itertools.product(("evaluate", "compare"), ("counts", "grade counts")), SINGLE),
    ("bias", "grades"): TWO_SCALES,
}


def filled(words, of):
    """The words of a command for a family; outputs of earlier commands are in its folder."""
    graded = bool(of.options)
    told = {
        "VOTES": [of.votes],
        "LABELS": [of.labels],
        "OPTIONS": of.options,
        "GRADES": of.options[:2],
        "PANEL": of.panel,
        "SYSTEMS": ["--systems", "system" if graded else "system_a,system_b"],
        "METHODS": ["median,mean" if graded else "weak,majority"],
        "N": [{"panel": 18}.get(of.name, 5 if graded else 6)],
    }
    for word in words.split():
        is_file = word.endswith((".json", ".csv"))
        yield from told.get(word, [of.votes.parent / word if is_file else word])


@pytest.mark.parametrize("name", NAMES)
def test_commands_take_every_family(given, name, cli, quick_commands):
    for command, words in COMMANDS.items():
        status, out, err = cli(*filled(words, given[name].of))
        reason = NOT_BY_COMMAND.get((command, name))
        if reason is None:
            assert status == 0, (command, err)
        else:
            assert re.search(reason, one_line(status, out, err)), (command, err)


@pytest.mark.parametrize("name", ["pairs", "counts"])
def test_check_advises_commands_that_these_votes_can_answer(
    given, name, cli, quick_commands, tmp_path, monkeypatch
):
    """Counts do not say which votes came first; single votes do, so that fewer are offered."""
    monkeypatch.chdir(tmp_path)
    for file in (given[name].of.votes, given[name].of.labels):
        shutil.copy(file, tmp_path)
    status, out, err = cli("check", "votes.csv", "labels.csv", "--save", "--json")
    assert status == 0, err
    commands = [shlex.split(text)[1:] for text in json.loads(out)["questions"].values()]
    assert ("compare" in [command[0] for command in commands]) == (name == "pairs")
    for command in commands:
        status, _, err = cli(*command)
        assert status == 0 or (command[0] == "gate" and status != 2), (command, err)


def test_a_demo_writes_votes_and_labels_of_eight_tasks_that_are_read(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = cli("demo", "--items", 60, "-o", "demo")
    assert status == 0, err
    said = re.search(r"btdagg evaluate (\S+) (\S+) -n", " ".join(out.split()))
    assert said, out
    read = btdagg.read_votes(said[1]), btdagg.read_labels(said[2])
    for frame in (read[0].frame, read[1].frame):
        assert frame.n_unique(["task", "item"]) == 8 * 60
        assert frame["task"].n_unique() == 8


def by_command(given, model, cli):
    """Labels of `btdagg decide`, by a model of `btdagg calibrate`."""
    for words in (COMMANDS["calibrate"] + " PANEL", COMMANDS["decide"]):
        assert cli(*filled(words, given.of))[0] == 0
    return pl.read_csv(given.of.votes.parent / "decided.csv")["label"]


def by_table(given, model, cli):
    return btdagg.decisions(given.votes, model)["label"]


def by_items(given, model, cli):
    return btdagg.decisions(given.items(), model)["label"]


def by_array(given, model, cli):
    return model.decide(given.items().by_judge)


def by_frame(given, frame):
    """Labels of a user's frame: of people where they gave one, which is none of the model's."""
    decided = btdagg.decide(frame(given.of.votes), frame(given.of.labels), **given.scales)
    assert type(decided).__module__.partition(".")[0] == frame.__module__.partition(".")[0]
    by_model = [source == "model" for source in decided["source"]]
    assert 0 < sum(by_model) < len(by_model)
    pairs = zip(decided["label"], by_model, strict=True)
    return [label if is_model else None for label, is_model in pairs]


def by_polars(given, model, cli):
    return by_frame(given, pl.read_csv)


def by_pandas(given, model, cli):
    return by_frame(given, pd.read_csv)


def by_sql(given, model, cli):
    """Labels of SQLite, by the expression over counts, or over the mean of grades."""
    items, scale = given.items(), given.votes.scale
    if given.of.panel:
        names = [f"{column} {judge}" for judge in model.judges for column in scale.columns]
        table = items.by_judge.reshape(len(items), -1)
    elif scale.mirrored:
        names, table = [*scale.columns], items.by_judge
    else:
        names, table = (
            ["mean"],
            items.by_judge @ scale.values[:, None] / items.by_judge.sum(1)[:, None],
        )
    columns = ", ".join(f'"{name}"' for name in names)
    places = ", ".join("?" * len(names))
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"create table votes ({columns})")
        base.executemany(f"insert into votes values ({places})", table.tolist())
        query = f"select {model.to_sql('sqlite')} from votes order by rowid"
        return [label for (label,) in base.execute(query)]


def by_service(given, model, cli):
    """Labels over HTTP, of counts."""
    with TestClient(create_app(model)) as client:
        answer = client.post("/v1/decide", json={"counts": given.items().by_judge.tolist()})
    if answer.status_code == 422:
        raise btdagg.InputError(answer.json()["detail"])
    return answer.json()["labels"]


DOORS = {
    "command": by_command,
    "table": by_table,
    "items": by_items,
    "array": by_array,
    "frame of polars": by_polars,
    "frame of pandas": by_pandas,
    "SQL": by_sql,
    "service": by_service,
}

# A door that refuses a family says so; one that takes it otherwise gives other labels.
NOT_BY_DOOR = {
    ("service", "panel"): r"counts\[0\]\[0\]: Input should be a valid number",
}
POOLED = {("frame of polars", "panel"), ("frame of pandas", "panel")}  # a frame has no panels


@pytest.mark.parametrize(("door", "name"), [*itertools.product(DOORS, NAMES)])
def test_doors_give_the_same_labels(given, door, name, cli):
    own = given[name]
    model = own.model
    if (door, name) in NOT_BY_DOOR:
        with pytest.raises(btdagg.InputError, match=NOT_BY_DOOR[door, name]):
            DOORS[door](own, model, cli)
        return
    labels = list(DOORS[door](own, model, cli))
    ids, counts = own.votes.counts()
    if (door, name) in POOLED:
        wanted = btdagg.calibrate(own.votes, own.labels).model.decide(counts)
    else:
        wanted = model.decide(own.items().by_judge)
    assert len(labels) == len(wanted) == len(ids)
    assert len(set(wanted.tolist())) > 1
    for label, of_python in zip(labels, wanted.tolist(), strict=True):
        assert label in (None, of_python)


# Which commands and functions have no row, since they get no votes, or columns and not tables.
WITHOUT_A_ROW = {
    "demo, paper, run, judge, batch, rejudge": "make votes or find them by themselves",
    "label, serve": "show pairs and answer requests; the service is a door",
    "standing, tally, align, majority_vote": "arrays",
    "cross_scores": "items of several parts; evaluate, which has a row, scores one part by it",
    "among_gold_ties": "votes of pairs and labels, which positional_bias takes",
    "share_interval": "a number",
    "positional_bias": "votes in both orders; a made-up scale below has them",
    "mean_absolute_error, pairwise_accuracy, krippendorff_alpha": "arrays of labels",
    "discrete_ranked_probability_score": "arrays of probabilities",
    "paired_permutation_test, pairwise_pvalues, rank_clusters": "arrays of errors",
    "difference, differences, read_scores": "losses or scores of items, and tables of these",
    "combine_pvalues, holm, benjamini_hochberg": "p-values",
    "scores_table, sweep_table, basis_of, not_evaluated, with_error": "what evaluate returns",
    "fit_votes, plan_anchors": "counts of pairs, and a distribution of votes",
    "read_votes, read_labels": "every cell begins with them",
}


def test_every_command_and_function_has_a_row_or_a_reason():
    named = [name for names in WITHOUT_A_ROW for name in names.split(", ")]
    of_tables = {*FUNCTIONS, *(words.split()[0] for words in COMMANDS.values())}
    public = {
        name
        for package in (btdagg, estimates, online, evaluation)
        for name in package.__all__
        if inspect.isfunction(getattr(package, name))
    }
    assert of_tables.isdisjoint(named)
    assert {*named, *of_tables} >= {*app.COMMANDS} | public
    assert {*named} <= {*app.COMMANDS} | public


def test_every_cell_runs_or_has_a_reason():
    for table, reasons in (
        (FUNCTIONS, NOT_BY_FUNCTION),
        (COMMANDS, NOT_BY_COMMAND),
        (DOORS, NOT_BY_DOOR | dict.fromkeys(POOLED, "pools")),
    ):
        cells = set(itertools.product(table, NAMES))
        assert reasons.keys() <= cells  # no reason for what is not there
        assert all(reasons.values())
        assert len(reasons) <= len(cells) // 10, "most of the product is for every kind of votes"


# Two kinds that the package has never heard of: sides with other points, and uneven grades.
SIDED = btdagg.Scale((-2, 0, 2), ("no", "same", "yes"), mirrored=True)
UNEVEN = btdagg.Scale((0, 1, 4))
MADE_UP = pytest.mark.parametrize("scale", [SIDED, UNEVEN], ids=["sided", "uneven"])


def made_up(pairs, scale):
    """Votes and labels of pairs, said anew on a scale of three points: tables of polars."""
    words = list(scale.names) if scale.mirrored else list(scale.points)
    column = pl.col("vote").replace_strict([-1, 0, 1], words)
    votes = pl.read_csv(pairs.votes).select("item", "group", column)
    label = pl.col("label").replace_strict([-1, 0, 1], list(scale.points))
    return votes, pl.read_csv(pairs.labels).with_columns(label)


def read(votes, labels, scale):
    return btdagg.read_votes(votes, scale=scale), btdagg.read_labels(labels, scale=scale)


@MADE_UP
def test_a_made_up_scale_goes_through_python(given, scale):
    votes, labels = read(*made_up(given["pairs"].of, scale), scale)
    items = votes.items(labels)
    own, gold = items.labelled(), items.labels @ scale.floats
    model = btdagg.calibrate(votes, labels).model
    of_arrays = btdagg.calibrate(own.by_judge, own.label, scale=scale).model
    chances = model.predict_proba(items.by_judge)
    assert chances.tolist() == of_arrays.predict_proba(items.by_judge).tolist()
    by_points = {*btdagg.decisions(votes, model)["label"]}
    assert by_points == {*btdagg.decisions(items.by_judge, of_arrays)["label"]} == {*scale.points}
    how = {"scale": scale, "groups": items.group}
    estimated = btdagg.estimate(items.by_judge, gold, **how).estimates
    assert btdagg.estimate(votes, labels).estimates == estimated
    assert btdagg.estimate(items).estimates == estimated
    certificate = btdagg.certify(votes, labels, agreement=0.6)
    of_arrays = btdagg.certify(items.by_judge, gold, agreement=0.6, **how)
    assert certificate.curve == of_arrays.curve
    scores = btdagg.evaluate(votes, labels, protocol=QUICK)
    arrays = btdagg.evaluate(own.by_judge, own.label, scale=scale, groups=own.group, protocol=QUICK)
    for cell, other in zip(scores.cells, arrays.cells, strict=True):
        assert cell.scale == cell.label_scale == scale
        for one, two in zip(cell.methods, other.methods, strict=True):
            np.testing.assert_array_equal(one.mae, two.mae)


def test_a_made_up_scale_of_two_sides_is_decided_as_pairs_are(given):
    own = given["pairs"]
    items = own.votes.labelled(own.labels)
    pairs = btdagg.calibrate(items.by_judge, items.label).model
    model = btdagg.calibrate(items.by_judge, 2 * items.label.astype(int), scale=SIDED).model
    every = own.votes.counts()[1]
    assert (model.decide(every) == 2 * pairs.decide(every).astype(int)).all()
    assert (model.predict_proba(every) == pairs.predict_proba(every)).all()
    votes, labels = made_up(own.of, SIDED)
    decided = btdagg.decide(votes, labels, scale=SIDED, label_scale=SIDED)
    of_pairs = btdagg.decide(pl.read_csv(own.of.votes), pl.read_csv(own.of.labels))
    assert decided["label"].to_list() == (2 * of_pairs["label"].cast(int)).to_list()
    assert decided.drop("label").equals(of_pairs.drop("label"))
    tables = read(votes, labels, SIDED)
    found, shares = (btdagg.estimate(*both).estimates for both in (tables, (own.votes, own.labels)))
    assert [*found.values()] == [*shares.values()]
    sides = votes.with_columns(pl.col("vote").replace({"yes": "A", "same": "Draw"}))
    in_words = btdagg.read_votes(sides, scale=SIDED, words={"draw": "tie", "no": "B"})
    assert in_words.frame.equals(tables[0].frame)
    assert [*found][:3] == ["yes", "same", "no"]
    errors, of_pairs = (
        btdagg.evaluate(*both, protocol=QUICK).cells[0].methods[0].mae
        for both in (tables, (own.votes, own.labels))
    )
    # In points of the scale; folds are dealt by the labels' values, and are not the same.
    assert errors.mean() == pytest.approx(2 * of_pairs.mean(), rel=0.15)


@MADE_UP
def test_a_made_up_scale_goes_through_commands(given, scale, cli, quick_commands, tmp_path):
    """Two sides of other points are said by a model, and uneven grades by options."""
    votes, labels = made_up(given["pairs"].of, scale)
    model = btdagg.calibrate(*read(votes, labels, scale)).model
    decided, by = tmp_path / "decided.csv", tmp_path / "model.json"
    files = tmp_path / "votes.csv", tmp_path / "labels.csv"
    votes.rename({} if scale.mirrored else {"vote": "score"}).write_csv(files[0])
    labels.write_csv(files[1])
    if scale.mirrored:
        model.save(by)
        told = ["--model", by]
    else:
        told = ["--set", "votes.scale=0,1,4", "--set", "labels.scale=0,1,4"]
        for command in (["calibrate", *files, *told, "-o", by], ["evaluate", *files, *told]):
            status, _, err = cli(*command)
            assert status == 0, err
    for command in (
        ["decide", by, files[0], "-o", decided],
        ["estimate", *files, *told],
        ["certify", *files, *told, "--agreement", "0.6"],
    ):
        status, _, err = cli(*command)
        assert status == 0, (command, err)
    of_command = pl.read_csv(decided)["label"].to_list()
    assert of_command == model.decide(btdagg.read_votes(votes, scale=scale).counts()[1]).tolist()


def test_two_sides_of_other_points_are_said_by_options(given, cli, quick_commands, tmp_path):
    """With two tasks, each the other's neighbour, and votes in both orders: as of pairs."""
    own, found = given["pairs"].of, []
    votes, labels = pl.read_csv(own.votes), pl.read_csv(own.labels)
    task = (pl.col("item") % 2).cast(pl.String).alias("task")
    order = pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("BA")).otherwise(pl.lit("AB"))
    for scale in (btdagg.PAIRS, btdagg.Scale((-2, 0, 2), mirrored=True)):
        of_votes, of_labels, by = (
            tmp_path / name for name in ("votes.csv", "labels.csv", "m.json")
        )
        size = scale.points[-1]
        votes.with_columns(task, pl.col("vote") * size, order=order).write_csv(of_votes)
        labels.with_columns(task, pl.col("label") * size).write_csv(of_labels)
        text = "pairs" if scale == btdagg.PAIRS else "-2,0,2 mirrored"
        told = ["--set", f"votes.scale={text}", "--set", f"labels.scale={text}"]
        for command in (
            ["calibrate", of_votes, of_labels, *told, "--filter", "task=1", "-o", by],
            ["evaluate", of_votes, of_labels, *told, "--methods", "weak,neighbours"],
            ["votes", of_votes, *told[:2]],
        ):
            status, _, err = cli(*command)
            assert status == 0, (command, err)
        tables = read(of_votes, of_labels, scale)
        bias = [positional_bias(tables[0], gold_ties=ties) for ties in (None, tables[1])]
        model = btdagg.DavidsonModel.load(by)
        found.append((bias, (model.beta, model.eta0, model.gamma)))
    assert found[0] == found[1]
    assert found[0][0][0][0].first > 100 > found[0][0][1][0].first > 0


def test_a_mirrored_scale_of_five_points_is_refused_everywhere(given, cli, tmp_path):
    reason = "expected three equally spaced points for a mirrored scale"
    for points in ((-2, -1, 0, 1, 2), (-1, 0, 2), (-1, 1)):
        with pytest.raises(btdagg.InputError, match=reason):
            btdagg.Scale(points, mirrored=True)
    path = tmp_path / "model.json"
    replace(given["pairs"].model, scale=SIDED, label_scale=SIDED).save(path)
    told = json.loads(path.read_text())
    told["scale"] |= {"points": [-2, -1, 0, 1, 2], "names": [*"abcde"]}
    path.write_text(json.dumps(told))
    refused = cli("decide", path, given["pairs"].of.votes)
    assert reason in one_line(*refused)
