"""Panels: one label from the votes of several judges."""

import json
import warnings

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import InputError, PanelModel, calibrate_panel
from btdagg.datasets import simulate
from refusals import refused


def panel_of(n, n_judges=3, seed=0, absent=0.0):
    """Votes of judges of whom each is noisier than the one before, and labels."""
    first = simulate("rb2-math", n, 8, seed=seed)
    rng = np.random.default_rng([seed, n])
    shares = (first.counts + 0.5) / 9.5
    counts = [first.counts]
    for noise in range(1, n_judges):
        blurred = shares / (1 + noise) + noise / (1 + noise) / 3
        counts.append(rng.multinomial(8, blurred))
    found = np.stack(counts, axis=1)
    found[rng.random(found.shape[:2]) < absent] = 0
    return found, first.labels


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
        return calibrate_panel(*args, **options)


@pytest.mark.parametrize("n_labels", [8, 150])
def test_with_one_judge_it_is_the_fit_of_that_judge(n_labels):
    counts, labels = panel_of(n_labels, 1, 3)
    found = quiet(counts, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", btdagg.model.CalibrationWarning)
        one = btdagg.calibrate(counts[:, 0], labels)
    theta = (found.model.beta[0], found.model.eta0, found.model.gamma[0])
    assert theta == (one.model.beta, one.model.eta0, one.model.gamma)
    assert found.model.usual_votes == (one.model.usual_votes,)
    every = panel_of(500, 1, 9)[0]
    assert (found.model.decide(every) == one.model.decide(every[:, 0])).all()
    proba = one.model.predict_proba(every[:, 0])
    assert found.model.predict_proba(every) == pytest.approx(proba, abs=1e-12)


def test_judges_may_have_other_numbers_of_votes():
    """A judge asked less often is compared with its own usual number, as items with fewer are."""
    counts, labels = panel_of(80, 2, 4)
    rng = np.random.default_rng(0)
    few = counts.copy()
    few[:, 1] = [rng.multivariate_hypergeometric(row, 2) for row in counts[:, 1]]
    model = quiet(few, labels).model
    assert model.usual_votes == (8, 2)
    some = np.where(np.arange(80)[:, None] % 4, few[:, 0], [[0, 0, 3]])
    mixed = quiet(np.stack([some, few[:, 1]], axis=1), labels).model
    assert mixed.usual_votes == (8, 2)
    unanimous = np.array([[[0, 0, n], [0, 0, 2]] for n in (1, 3, 8, 5)])
    p = mixed.predict_proba(unanimous)
    assert p == pytest.approx(np.tile(p[2], (4, 1)), abs=1e-12)


def test_a_judge_who_is_never_there_changes_nothing():
    counts, labels = panel_of(80, 2, 5)
    two = calibrate_panel(counts, labels, judges=["a", "b"])
    three = np.concatenate([counts, np.zeros((80, 1, 3), dtype=int)], axis=1)
    with pytest.warns(
        btdagg.model.CalibrationWarning, match="judge 'c' has no votes on the labelled"
    ):
        found = calibrate_panel(three, labels, judges=["a", "b", "c"])
    assert (found.model.beta[:2], found.model.gamma[:2]) == (two.model.beta, two.model.gamma)
    assert (found.model.eta0, found.model.unheard) == (two.model.eta0, ("c",))
    new = panel_of(400, 3, 6, absent=0.2)[0]
    assert (found.model.decide(new) == two.model.decide(new[:, :2])).all()
    assert (found.model.predict_proba(new) == two.model.predict_proba(new[:, :2])).all()
    with pytest.warns(btdagg.model.CalibrationWarning):
        in_front = calibrate_panel(three[:, ::-1], labels, judges=["c", "b", "a"])
    assert in_front.model.beta[::-1] == pytest.approx(found.model.beta, abs=1e-6)


def test_an_absent_judge_says_neither_a_side_nor_a_tie():
    model = PanelModel(("a", "b", "c"), (0.9, 0.4, 0.7), 1.0, (0.8, -0.3, 0.5))
    votes = [0, 2, 6]
    together = model.predict_proba([[votes, votes, votes]])
    assert model.predict_proba([[votes, votes, [0, 0, 0]]]) == pytest.approx(together, abs=1e-12)
    assert model.predict_proba([[[0, 0, 0], votes, [0, 0, 0]]]) == pytest.approx(together)
    # Without any votes no side is likelier.
    (minus, _, plus), decided = model.predict_proba(np.zeros((1, 3, 3)))[0], model.decide
    assert minus == plus
    assert decided(np.zeros((1, 3, 3), dtype=int)).tolist() == [0]


def test_decisions_have_the_least_risk_and_swapping_sides_mirrors_all():
    counts, labels = panel_of(150, 3, 7, absent=0.15)
    found, mirrored = quiet(counts, labels), quiet(counts[:, :, ::-1], -labels)
    assert mirrored.model == found.model
    new = panel_of(2_000, 3, 8, absent=0.15)[0]
    decided = found.model.decide(new)
    assert set(decided.tolist()) == {-1, 0, 1}
    risks = found.model.risks(new)
    assert (risks[np.arange(2_000), decided + 1] <= risks.min(axis=1) + 1e-12).all()
    assert (found.model.decide(new[:, :, ::-1]) == -decided).all()
    assert (
        found.model.predict_proba(new[:, :, ::-1]) == found.model.predict_proba(new)[:, ::-1]
    ).all()
    assert found.model.predict_proba(new).sum(axis=1) == pytest.approx(np.ones(2_000))


def test_weights_count():
    counts, labels = panel_of(60, 2, 11)
    twice = quiet(np.concatenate([counts, counts]), np.concatenate([labels, labels]),
                  groups=np.tile(np.arange(60), 2))  # fmt: skip
    assert twice.n_labels == 120
    some = np.r_[np.ones(40), np.zeros(20)]
    assert quiet(counts, labels, weights=some).model == quiet(counts[:40], labels[:40]).model


def test_files_keep_every_bit(tmp_path):
    counts, labels = panel_of(50, 3, 13)
    model = calibrate_panel(counts, labels, judges=["x", "y", "z"]).model
    model.save(tmp_path / "panel.json")
    again = PanelModel.load(tmp_path / "panel.json")
    assert again == model
    assert again.provenance == model.provenance == btdagg.votes.Provenance(n_votes=8, n_labels=50)
    rounded = quiet(counts - 1e-10 * (counts > 0), labels)  # a rounding below whole votes
    assert rounded.model.provenance.n_votes == rounded.max_votes == 8
    saved = json.loads((tmp_path / "panel.json").read_text())
    assert (saved["format"], saved["version"]) == ("btdagg.panel", 1)
    for changed, text in [
        ({"format": "btdagg.davidson"}, 'not a btdagg panel, expected an object with "format"'),
        ({"beta": [1.0]}, "beta has 1 rows, expected 3 as in judges"),
        ({"more": 1}, "fields is ["),
        ({"eta0": None}, "eta0 is nothing"),
    ]:
        (tmp_path / "bad.json").write_text(json.dumps({**saved, **changed}))
        with pytest.raises(InputError) as raised:
            PanelModel.load(tmp_path / "bad.json")
        assert str(raised.value).startswith(f"{tmp_path}/bad.json: ")
        assert text in str(raised.value)
    with pytest.raises(InputError, match="not a btdagg model"):
        btdagg.DavidsonModel.load(tmp_path / "panel.json")
    with pytest.warns(
        btdagg.votes.ProvenanceWarning, match="items have up to 24 votes, but the model"
    ):
        again.decide(3 * counts)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"counts": np.zeros((4, 3), int)}, "counts has shape (4, 3), expected (n, judges, 3)"),
        ({"counts": np.full((4, 2, 3), -1)}, "judge '1': counts[0, 0] is -1"),
        ({"counts": np.zeros((4, 2, 3), int)}, "expected votes of at least one judge"),
        ({"weights": [1, 1, -1, 1]}, "weights[2] is -1.0, expected a finite number of at least 0"),
    ],
)  # fmt: skip
def test_bad_input_is_named(change, text):
    given = {"counts": np.ones((4, 2, 3), int), "labels": [1, 0, -1, 1], **change}
    with pytest.raises(InputError) as raised:
        calibrate_panel(given.pop("counts"), given.pop("labels"), **given)
    assert text in str(raised.value)


def long_votes(counts, judges, prefix="i", **more):
    """One row a vote."""
    rows = [
        {"item": f"{prefix}{item}", "judge": judges[judge], "vote": side - 1, **more}
        for item, judge, side in np.argwhere(counts > 0)
        for _ in range(counts[item, judge, side])
    ]
    return pl.DataFrame(rows)


def test_votes_and_labels_as_they_were_read():
    counts, labels = panel_of(60, 2, 14, absent=0.1)
    here = counts.sum(axis=(1, 2)) > 0
    votes = btdagg.read_votes(long_votes(counts, ["x", "y"]))
    gold = btdagg.read_labels({"item": [f"i{k}" for k in range(60)], "label": labels.tolist()})
    items = votes.items(panel="judge")
    assert items.judges == ("x", "y")
    place = [int(name[1:]) for name in items.ids]
    assert (items.counts == counts[place]).all()
    assert sorted(place) == np.flatnonzero(here).tolist()
    by_frame = calibrate_panel(votes, gold)
    by_array = calibrate_panel(counts[place], labels[place], judges=["x", "y"])
    assert by_frame.model == by_array.model
    assert by_frame.model.provenance.judge == ("x", "y")
    wanted = by_array.model.decide(counts[place]).tolist()
    assert btdagg.decisions(votes, by_frame.model)["label"].to_list() == wanted
    turned = votes.items(panel="judge", judges=["y", "x"])
    decided = [
        dict(btdagg.decisions(own, by_frame.model).select("item", "label").rows())
        for own in (items, turned)
    ]
    assert decided[0] == decided[1]
    assert by_frame.model.judges == ("x", "y")
    assert btdagg.DavidsonModel(1, 1, 1).judges == ()
    only = votes.filter({"judge": "y"})
    alone = only.items(panel="judge", judges=["x", "y"]).counts
    assert (alone[:, 0] == 0).all()
    decided = btdagg.decisions(only, by_frame.model)["label"].to_list()
    assert decided == by_frame.model.decide(alone).tolist()
    with pytest.raises(InputError, match=r"judge 'y' is not in the panel \(x, z\)"):
        votes.items(panel="judge", judges=["x", "z"])
    with refused("weights", got="ndarray"):
        calibrate_panel(votes, gold, weights=np.ones(60))


def test_counts_with_an_axis_of_judges_are_calibrated_as_a_panel():
    sample = simulate("rb2-math", 60, 8, seed=1)
    counts = np.stack([sample.counts, sample.counts[::-1]], axis=1)
    fitted = btdagg.calibrate(counts, sample.labels, alpha=0.5)
    assert fitted == btdagg.calibrate_panel(counts, sample.labels, alpha=0.5)
    for name, got in (("bounds", btdagg.Bounds()), ("prior", None)):
        with refused(name, got=got, expected="for a panel"):
            btdagg.calibrate(counts, sample.labels, **{name: got})
    sides = btdagg.Scale((-2, 0, 2), ("no", "even", "yes"), mirrored=True)
    other = btdagg.calibrate(counts, 2 * sample.labels, scale=btdagg.PAIRS, label_scale=sides)
    decided = btdagg.calibrate(counts, sample.labels).model.decide(counts)
    assert other.model.decide(counts).tolist() == (2 * decided).tolist()


def test_columns_of_sql_are_three_of_its_own_for_each_judge():
    model = PanelModel(("x", 'y"', "z z"), (0.5, 0.5, 0.5), 1.0, (0.4, 0.0, -0.2))
    names = ("a", "b", "c"), ("d", "e", "f"), ("g", "h", "i")
    for columns in (names[:1], (names[0], names[0], names[2]), (*names[:2], ("g", "h"))):
        with refused("columns", expected="three of its own for each"):
            model.to_sql("duckdb", columns=dict(zip(model.judges, columns, strict=False)))


def test_a_panel_and_grades_do_all_that_every_model_does():
    counts, labels = panel_of(60, 2, 4)
    panel = quiet(counts, labels).model
    grades = btdagg.GradeModel(2, cuts=(1.5, 2.5), scale=btdagg.Scale(range(1, 4)))
    for model, items in ((panel, counts), (grades, counts[:, 0])):
        decided, risks = model.decide(items), model.risks(items)
        assert [model.decide_one(*item) for item in items.tolist()] == decided.tolist()
        assert (model.decide(items, n_threads=2) == decided).all()
        assert (model.risks(items, n_threads=2) == risks).all()
        distances = np.abs(np.subtract.outer(*[model.label_scale.floats] * 2))
        expected = model.predict_proba(items, n_threads=2) @ distances
        assert risks == pytest.approx(expected, abs=1e-14)
    with refused("plus", got="a", expected="columns"):
        panel.to_sql("duckdb", plus="a")
    with refused("columns", got={}, expected="mean"):
        grades.to_sql("duckdb", columns={})
