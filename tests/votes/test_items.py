"""One table of items gives functions what tables of votes and labels give them."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import InputError, Scale, read_labels, read_votes
from btdagg.votes import Items, as_items
from refusals import refused

N = 40
THREE = Scale((1, 2, 3))


def strong(judges=("a",), seed=0):
    """Votes with a margin of each judge, in groups of two."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(N):
        for place, judge in enumerate(judges):
            for margin in rng.normal(item % 3 - 1, 1 + 2 * place, 4).round(1).tolist():
                vote = int(np.sign(margin))
                known = {"item": f"q{item}", "judge": judge, "vote": vote, "margin": margin}
                rows.append(known | {"confidence": 0.5, "group": f"g{item // 2}"})
    return read_votes(pl.DataFrame(rows))


def gold(n=N):
    label = [k % 3 - 1 for k in range(n)]
    columns = {"item": [f"q{k}" for k in range(n)], "label": label}
    return read_labels({**columns, "group": [f"g{k // 2}" for k in range(n)]})


def test_decisions_are_of_votes_as_the_model_reads_them():
    votes = strong()
    signs = btdagg.calibrate(votes.signs(), gold()).model
    expected = signs.decide(votes.signs().items().pooled)
    with pytest.warns(btdagg.votes.ProvenanceWarning):
        decided = btdagg.decisions(votes, signs)
    assert decided["label"].to_list() == expected.tolist()


def test_decisions_keep_tasks_and_ids():
    rows = {"item": [1, 2, 1], "task": ["x", "x", "y"], "vote": [1, 0, -1]}
    labels = read_labels({"item": [1, 2, 1], "task": ["x", "x", "y"], "label": [1, 0, -1]})
    items = read_votes(rows).items(labels)
    decided = btdagg.decisions(items, btdagg.DavidsonModel(2.0, 0.1, 0.1))
    assert decided.select("item", "task").rows() == [(1, "x"), (2, "x"), (1, "y")]


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_an_id_that_is_there_twice_has_its_own_decision():
    model = btdagg.calibrate([[3, 0, 0], [0, 3, 0], [0, 0, 3]], [1, 2, 3], scale=THREE).model
    frame = pl.DataFrame({"item": ["x", "x", "y"], "1": [3, 0, 0], "2": [0, 0, 0], "3": [0, 3, 0]})
    decided = btdagg.decisions(frame, model)
    assert decided.select("item", "label").rows() == [("x", 1), ("x", 3), ("y", None)]


def test_items_say_what_they_lack():
    bare = strong().items()
    for call in (lambda: btdagg.estimate(bare, None), lambda: btdagg.evaluate(bare)):
        with pytest.raises(InputError, match="no item has a label"):
            call()
    with pytest.raises(
        InputError, match="labels cannot be given with items, which already have it"
    ):
        btdagg.estimate(strong().items(gold()), gold())
    known = Items(counts=[[1, 0, 3], [2, 1, 1]], labels=[1, None])
    assert known.labels.tolist()[0] == [0, 0, 1]
    assert len(known[:1]) == len(known.labelled()) == 1
    with pytest.raises(InputError, match="no item has a label"):
        replace(known, labels=None).labelled()


def test_decisions_of_a_mirrored_scale_are_its_points():
    scale = Scale((0, 1, 2), mirrored=True)
    rows = {"item": ["a", "b", "c"], "vote": [2, 1, 0], "gsa": [2, 1, 0]}
    items = read_votes(rows, scale=scale).items(decisions=["gsa"])
    assert items.facts["decision gsa"].tolist() == [1, 0, -1]
    decided = btdagg.methods.Decided("gsa", scale=scale)
    assert decided.decide(items).tolist() == [2, 1, 0]


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_a_frame_whose_ids_are_of_two_columns_is_decided():
    frame = pl.DataFrame({"q": [1, 1, 2], "bot": ["x", "y", "x"], "who": ["A", "B", "tie"]})
    people = pl.DataFrame({"q": [1, 1], "bot": ["x", "y"], "label": ["A", "B"]})
    columns = {"item": ["q", "bot"], "vote": "who"}
    decided = btdagg.decide(frame, people, columns=columns)
    assert decided["label"].to_list()[:2] == [1, -1]


@pytest.mark.parametrize(
    ("more", "units"),
    [
        ({}, [" x", " y"]),
        ({"group": ["g", "g"]}, None),
        ({"group": ["g", "g"], "unit": ["item", "item"]}, [" x", " y"]),
        ({"group": ["g", "g"], "unit": ["group", None]}, ["g", "g"]),
        ({"group": ["g", "g"], "unit": ["group", "item"]}, None),
    ],
)
def test_items_say_what_was_drawn_as_a_whole(more, units):
    votes = read_votes({"item": ["x", "y"], "vote": ["A", "B"]})
    items = votes.labelled(read_labels({"item": ["x", "y"], "label": ["A", "tie"], **more}))
    assert (None if items.sampling.units is None else items.sampling.units.tolist()) == units


def test_a_fact_goes_through_every_selection():
    items = strong().items(gold()).with_facts({"language": np.array(["de", "en"] * (N // 2))})
    for some in (items[3:9], items[np.arange(3, 9)], items.labelled()[np.arange(N) // 3 == 1]):
        wanted = items.facts["language"][[int(name[1:]) for name in some.ids]]
        assert some.facts["language"].tolist() == wanted.tolist()
        assert some.column("language").to_list() == wanted.tolist()
    assert items.with_covariates({"x": np.arange(N)}).facts["language"][1] == "en"
    with pytest.raises(InputError, match="language has 3 rows, expected 40 as in counts"):
        items.with_facts({"language": ["de"] * 3})


def test_one_judge_is_a_panel_of_one():
    counts = np.array([[1, 2, 5], [4, 3, 1], [0, 8, 0], [7, 1, 0]] * 4)
    one, other = Items(counts=counts), Items(counts=counts[:, None])
    assert one.counts.tolist() == other.counts.tolist() == counts[:, None].tolist()
    assert one.pooled.tolist() == other.by_judge.tolist() == counts.tolist()
    model = btdagg.DavidsonModel(1.2, 2.0, 0.8)
    assert model.decide(one.counts).tolist() == model.decide(counts).tolist()
    of_one, of_rows = (btdagg.calibrate(c, [1, -1, 0, -1] * 4).model for c in (one.counts, counts))
    assert of_one == of_rows


@pytest.mark.parametrize("scale", [btdagg.PAIRS, Scale((1, 2, 3, 4)), Scale(range(1, 6))], ids=str)
def test_the_one_label_of_an_item_is_that_of_its_raters(scale):
    rng = np.random.default_rng(5)
    n_raters = rng.integers(1, 7, 300)
    given = [rng.choice(scale.points, n) for n in n_raters]
    rows = [(k, r, int(label)) for k, own in enumerate(given) for r, label in enumerate(own)]
    item, rater, label = zip(*rows, strict=True)
    labels = read_labels({"item": item, "rater": rater, "label": label}, scale=scale)
    votes = read_votes({"item": range(300), "vote": [int(scale.points[0])] * 300}, scale=scale)
    items = votes.items(labels)
    assert items.label.tolist() == labels.labels.tolist()
    for own, one in zip(given, items.label.tolist(), strict=True):
        if scale.mirrored:
            numbers = [(own == point).sum() for point in scale.points]
            most = max(numbers)
            wanted = scale.points[numbers.index(most)] if numbers.count(most) == 1 else 0
        else:
            low, high = (
                np.quantile(own, 0.5, method="lower"),
                np.quantile(own, 0.5, method="higher"),
            )
            wanted = min(max(scale.middle_point, low), high)
        assert one == wanted


def test_the_door_of_arrays_takes_no_argument_that_it_does_not_know():
    counts = np.ones((3, 3), dtype=np.int64)
    with pytest.raises(TypeError, match="unexpected keyword argument 'group'"):
        as_items(counts, [1, 0, -1], group=["a", "a", "b"])
    with refused("n_votes", got=2):
        as_items(counts, [1, 0, -1], n_votes=2)


@pytest.mark.parametrize(("name", "value"), [("by", "task"), ("systems", ("a", "b"))])
def test_what_only_labels_use_is_refused_without_them(name, value):
    votes = btdagg.read_votes({"item": ["x"], "task": ["t"], "vote": ["A"]})
    with refused(argument=name, got=value, expected="none without labels"):
        votes.items(**{name: value})


def test_columns_of_either_table_are_read_by_task_and_item():
    rows = {"item": ["x", "x", "y"], "task": ["m", "n", "m"], "vote": [1, 0, -1]}
    votes = read_votes({**rows, "language": ["de", "en", "fr"]})
    gold = {"item": ["x", "x"], "task": ["n", "m"], "label": [0, 1], "note": ["a", "b"]}
    items = votes.items(read_labels(gold))
    assert items.id_frame.rows() == [("x", "m"), ("y", "m"), ("x", "n")]
    assert items.label[[0, 2]].tolist() == [1, 0]
    assert items.column("language").to_list() == ["de", "fr", "en"]
    assert items.column("note").to_list() == ["b", None, "a"]
    assert items[2:].column("language").to_list() == ["en"]
    assert items.column("nothing") is None


def test_systems_are_an_error_only_of_who_asks_for_them():
    rows = {"item": ["x", "x", "y"], "score": [1, 2, 3], "system": ["a", "b", "a"]}
    gold = read_labels({"item": ["x", "y"], "label": [1, 3]}, scale=THREE)
    items = read_votes(rows, scale=THREE).items(gold)
    assert items.labelled().label.tolist() == [1, 3]
    with pytest.raises(InputError, match="item 'x' has 'a' and 'b', expected a column of items"):
        _ = items.systems
    some = read_votes({**rows, "system": ["a", "a", None]}, scale=THREE)
    assert some.items(gold).systems is None


def test_a_project_has_the_items_of_its_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    n = np.arange(N)
    votes = {"item": n, "vote": n % 3 - 1, "system_a": "xyz"[0], "task": np.where(n % 2, "m", "n")}
    frame = pl.DataFrame({**votes, "group": n // 4, "length": n}).with_columns(
        system_a=pl.Series(["xyz"[k % 3] for k in n]), system_b=pl.Series(["yzx"[k % 3] for k in n])
    )
    frame.write_csv("votes.csv")
    drawn = {"item": n, "label": n % 3 - 1, "probability": [0.5] * N, "task": votes["task"]}
    pl.DataFrame(drawn).write_csv("labels.csv")
    (tmp_path / "btdagg.toml").write_text('votes.file = "votes.csv"\nlabels.file = "labels.csv"')
    of_project = btdagg.Project.load().items()
    items = read_votes("votes.csv").items(read_labels("labels.csv"))
    for name in ("counts", "labels", "ids", "group", "systems", "names"):
        assert getattr(items, name).tolist() == getattr(of_project, name).tolist()
    assert items.systems[:2].tolist() == [["x", "y"], ["z", "x"]]
    assert items.facts["task"].tolist() == of_project.facts["task"].tolist()
    assert items.sampling.probabilities.tolist() == [0.5] * N
    assert items.origin.remarks == of_project.origin.remarks
    assert items.column("length").to_list()[:2] == ["0", "2"]


def test_groups_have_no_known_size_where_some_items_have_none():
    votes = {"item": ["x", "y", "z"], "vote": [1, 0, -1], "group": ["g", "g", None]}
    gold = read_labels({"item": ["x", "z"], "label": [0, 1]})
    assert not read_votes(votes).items(gold).has_all_groups
    whole = read_votes({**votes, "group": ["g", "g", "h"]}).items(gold)
    assert whole.has_all_groups


@pytest.mark.parametrize("more", [{}, {"task": ["s", "t", "t"]}])
def test_groups_of_two_runs_have_no_known_size_where_some_items_have_none(more):
    votes = {"item": ["x", "y", "z"], "vote": [1, 0, -1], **more}
    gold = read_labels({"item": ["x", "z"], "label": [0, 1]})

    def run(groups):
        return read_votes({**votes, **groups}).items(gold)

    whole, partly = run({"group": ["g", "g", "h"]}), run({"group": ["g", "g", None]})
    assert whole.than(whole, "new", "old").has_all_groups
    assert run({}).than(run({}), "new", "old").has_all_groups
    assert not partly.than(partly, "new", "old").has_all_groups
    assert not partly.than(whole, "new", "old").has_all_groups


def test_a_gate_takes_the_items_of_grades():
    rng = np.random.default_rng(0)
    rows = {"item": np.arange(80), "score": rng.integers(1, 4, 80), "system": ["x", "y"] * 40}
    gold = read_labels({"item": np.arange(60), "label": rng.integers(1, 4, 60)}, scale=THREE)
    votes = read_votes(rows, scale=THREE)
    pair = {"candidate": "x", "baseline": "y", "margin": 0.5}
    expected = btdagg.estimates.not_worse(votes, gold, **pair)
    assert str(btdagg.estimates.not_worse(votes.items(gold), **pair)) == str(expected)
