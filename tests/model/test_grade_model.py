"""The model of grades, and its fit to few labels."""

import copy
import itertools
import json
import pickle
import sqlite3
import warnings

import numpy as np
import pytest
from scipy.stats import norm

import btdagg
from btdagg import PAIRS, PASS_FAIL, DavidsonModel, GradeModel, InputError, Scale, calibrate
from btdagg.model import CalibrationWarning
from refusals import refused

FIVE = Scale(range(1, 6))
MODEL = GradeModel(2, (1.5, 2.5, 3.5, 4.5), FIVE)
TEN = Scale(range(1, 11))
ODD = Scale((-1, 0, 2.5, 7)), Scale((0.5, 1, 10))  # of votes and of labels
SCALES = [(FIVE, FIVE), ODD, (TEN, PASS_FAIL)]


def quiet(counts, labels, scale=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return calibrate(counts, labels, scale=scale, **options)


def judged(n, scale, seed, shift=0.0, slope=1.0, noise=0.4, n_votes=6, label_scale=None):
    """Votes and labels of a latent quality, which is no model of this family."""
    grades = (label_scale or scale).values
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=n)

    def points(values, scale_points):
        ends = norm.ppf(np.arange(1, len(scale_points)) / len(scale_points)) * 1.2
        return np.searchsorted(ends, values)

    labels = grades[points(quality + noise * rng.normal(size=n), grades)]
    seen = slope * quality + shift + noise * rng.normal(size=n)
    votes = points(seen[:, None] + noise * rng.normal(size=(n, n_votes)), scale.points)
    return (votes[:, :, None] == np.arange(len(scale.points))).sum(axis=1), labels


def error_of(model, counts, labels):
    return np.abs(model.decide(counts) - labels).mean()


# The model


@pytest.mark.parametrize(("scale", "label_scale"), SCALES)
def test_decisions_are_medians_and_risks_are_distances(scale, label_scale):
    rng, grades = np.random.default_rng(1), label_scale.values
    counts = rng.dirichlet(np.ones(len(scale.points)), size=500) * rng.integers(1, 9, (500, 1))
    for _ in range(5):
        beta, cuts = rng.uniform(0.1, 3), rng.uniform(-1, 11, len(grades) - 1)
        model = GradeModel(beta, cuts, scale, label_scale)
        means = counts @ scale.points / counts.sum(axis=1)
        logits = np.cumsum(model.beta * (means[:, None] - model.cuts), axis=1)
        odds = np.exp(np.pad(logits, ((0, 0), (1, 0))))
        p = odds / odds.sum(axis=1, keepdims=True)
        assert model.predict_proba(counts) == pytest.approx(p, abs=1e-12)
        distances = np.abs(np.subtract.outer(grades, grades))
        assert model.risks(counts) == pytest.approx(p @ distances)
        best = grades[model.risks(counts).argmin(axis=1)]
        assert (model.decide(counts) == best).all()
        assert model.decide_one(*counts[0]) == best[0]
        assert model.means(counts) == pytest.approx(means)


def test_grades_keep_their_values_and_types():
    decided = MODEL.decide([[1, 0, 0, 0, 0], [0, 0, 0, 0, 9]])
    assert decided.dtype == np.int64
    assert (decided * 60).tolist() == [60, 300]
    assert type(MODEL.decide_one(0, 0, 0, 3, 0)) is int
    halves = GradeModel(2, (0, 2), *ODD)
    assert halves.decide([[5, 0, 0, 0], [0, 5, 1, 0], [0, 0, 0, 1]]).tolist() == [0.5, 1, 10]
    gaps = GradeModel(2, (0.5,), PASS_FAIL, Scale((-3, 90)))
    assert gaps.decide([[3, 1], [1, 3]]).tolist() == [-3, 90]
    assert gaps.decide([[3, 1]]).dtype == np.int64
    for grades in ((-1, 0, 1), (-1, 1), (0, 1)):
        cuts = np.linspace(0.2, 0.8, len(grades) - 1)
        decided = GradeModel(20, cuts, PASS_FAIL, Scale(grades)).decide([[3, 0], [0, 3]])
        assert (decided.dtype, decided.tolist()) == (np.int8, [grades[0], 1])
    large = GradeModel(2, (0.5,), PASS_FAIL, Scale((-3, 900)))
    assert large.decide([[3, 1], [1, 3]]).tolist() == [-3, 900]


def test_reversing_both_scales_mirrors_decisions_and_fits():
    mirrored = GradeModel(2, tuple(-cut for cut in MODEL.cuts[::-1]), Scale(range(-5, 0)))
    every = np.array([c for c in itertools.product(range(4), repeat=5) if sum(c) in (1, 3)])
    assert (mirrored.decide(every[:, ::-1]) == -MODEL.decide(every)).all()
    counts, labels = judged(40, FIVE, 3, shift=0.6)
    fit, other = quiet(counts, labels, FIVE), quiet(counts[:, ::-1], -labels, mirrored.scale)
    assert other.model.cuts[::-1] == pytest.approx([-cut for cut in fit.model.cuts], abs=1e-6)
    assert other.model.beta == pytest.approx(fit.model.beta, rel=1e-6)


def test_a_sentence_says_from_which_mean_on():
    expected = (
        "People say 1; from a mean of 1.44 on 2; from 2.5 on 3; from 3.5 on 4; from 4.56 on 5."
    )
    assert str(MODEL) == expected
    assert str(GradeModel(2, (9.0,), FIVE, PASS_FAIL)) == "People say 0, whatever the votes."
    assert str(GradeModel(9, (-5, -4, 2.5, 20), FIVE)) == "People say 3; from a mean of 2.5 on 4."
    assert str(GradeModel(2, (3.25,), FIVE, PASS_FAIL)) == "People say 0; from a mean of 3.25 on 1."


@pytest.mark.parametrize(
    ("model", "reached"),
    [
        (GradeModel(1, (5,), FIVE, PASS_FAIL), {0: 1}),
        (GradeModel(1, (1,), FIVE, PASS_FAIL), {0: 1, 1: 1}),
        (GradeModel(1000, (1, 3), Scale((1, 2, 3))), {2: 1}),
        (GradeModel(1000, (4.5, 4, 4, 3.5), FIVE), {1: 1, 3: 4, 5: 4}),
        (GradeModel(1, (0.1, 0.2), Scale((0, 0.1, 0.2)), Scale((1, 2, 3))), None),
    ],
)
def test_the_grades_that_are_reached_are_those_that_are_decided(model, reached):
    votes = model.scale.floats
    edges = [*votes[[0, -1]], *model.thresholds]
    means = [
        mean for edge in edges for mean in (edge, np.nextafter(edge, 9), edge + 1e-9, edge - 1e-9)
    ]
    means = np.clip([*means, *np.linspace(votes[0], votes[-1], 99)], votes[0], votes[-1])
    share = (means - votes[0]) / (votes[-1] - votes[0])
    counts = np.zeros((len(means), len(votes)))
    counts[:, 0], counts[:, -1] = 1 - share, share
    decided = set(model.decide(counts).tolist())
    assert decided == set(model.reachable)
    assert reached is None or model.reachable == pytest.approx(reached, abs=1e-3)


def test_a_sentence_names_no_grade_without_width_and_tells_far_means_apart():
    crossed = GradeModel(30, (2, 4.6, 3.7, 4.8), FIVE)
    assert len(crossed.reachable) == 5
    assert str(crossed) == "People say 1; from a mean of 2 on 2; from 4.15 on 4; from 4.8 on 5."
    far = GradeModel(9, (1_000_001.5,), Scale(range(1_000_001, 1_000_006)), PASS_FAIL)
    assert str(far) == "People say 0; from a mean of 1000001.5 on 1."


def test_a_model_is_a_value_that_is_saved(tmp_path):
    path = tmp_path / "grades.json"
    model = calibrate(
        *judged(60, ODD[0], 1, label_scale=ODD[1]),
        scale=ODD[0],
        label_scale=ODD[1],
        provenance=btdagg.votes.Provenance(judge="a"),
    ).model
    model.save(path)
    loaded = GradeModel.load(path)
    assert loaded == model == pickle.loads(pickle.dumps(model)) == copy.deepcopy(model)
    assert hash(loaded) == hash(model)
    assert loaded.provenance == model.provenance
    assert (loaded.provenance.judge, loaded.provenance.n_votes, loaded.provenance.n_labels) == (
        ("a",),
        6,
        60,
    )
    saved = json.loads(path.read_text())
    assert saved["format"] == "btdagg.grades"
    assert saved["scale"]["points"] == [-1, 0, 2.5, 7]
    assert saved["label_scale"] == {
        "points": [0.5, 1, 10],
        "names": ["0.5", "1", "10"],
        "mirrored": False,
    }
    for field, value in {
        "beta": -1,
        "cuts": [1],
        "scale": {"points": [1]},
        "label_scale": {"points": [0, 1]},
    }.items():
        path.write_text(json.dumps({**saved, field: value}))
        with pytest.raises(InputError, match=r"grades\.json: "):
            GradeModel.load(path)
    with pytest.raises(InputError, match="not a btdagg model of grades"):
        GradeModel.from_json(DavidsonModel(1, 2, 3).to_json())


def test_sql_decides_means_that_rounding_has_put_past_the_ends():
    model = GradeModel(1, (0.05,), Scale((0, 0.1)), PASS_FAIL)
    database = sqlite3.connect(":memory:")
    query = f"SELECT {model.to_sql('sqlite', mean='m')} FROM (SELECT ? AS m)"
    mean = database.execute(
        "SELECT AVG(score) FROM (SELECT 0.1 AS score UNION ALL SELECT 0.1 UNION ALL SELECT 0.1)"
    ).fetchone()[0]
    for value in (mean, (0.1 + 0.1 + 0.1) / 3, 0.1):
        assert database.execute(query, (value,)).fetchone() == (1,)
    assert database.execute(query, (-1e-17,)).fetchone() == (0,)
    for value in (0.1 + 1e-12, -1e-12):
        assert database.execute(query, (value,)).fetchone() == (None,)


def test_tables_of_grades_have_their_scale():
    counts, labels = judged(40, FIVE, 5)
    rows = [(f"q{n}", vote) for n, own in enumerate(counts) for vote in np.repeat(FIVE.points, own)]
    votes = btdagg.read_votes(
        {
            "item": [item for item, _ in rows],
            "score": [int(vote) for _, vote in rows],
            "judge": ["j"] * len(rows),
        },
        scale=FIVE,
    )
    gold = btdagg.read_labels(
        {"item": votes.counts()[0].tolist(), "grade": labels.tolist()}, scale=FIVE
    )
    fit, plain = quiet(votes, gold), quiet(counts, labels, FIVE)
    assert fit.model == plain.model == quiet(votes, gold, FIVE).model
    assert fit.model.provenance.judge == ("j",)
    assert (
        btdagg.decisions(votes, fit.model)["label"].to_list() == plain.model.decide(counts).tolist()
    )
    for name in ("scale", "label_scale"):
        with refused(name, got="1,2", expected="1-5"):
            quiet(votes, gold, **{"scale": None, name: Scale((1, 2))})
    pairs = btdagg.read_votes({"item": ["a"], "vote": [1]})
    with refused("scale", got="1-5"):
        quiet(votes, gold, "1-5")
    with refused("items", got="those of -1..1 (B, tie, A, mirrored)", expected="those of 1-5"):
        btdagg.decisions(pairs, fit.model)
    three = btdagg.read_votes({"item": ["a"], "score": [3]}, scale=Scale((1, 2, 3)))
    with refused("items", got="those of 1-3"):
        btdagg.decisions(three, DavidsonModel(1, 2, 3))
    for tables in (three, three.items()):
        with refused("counts", got=type(tables).__name__):
            fit.model.decide(tables)


def test_bad_numbers_of_a_model_are_errors():
    three = Scale((1, 2, 3))
    for beta in (1e300, 4e299):
        with refused("beta", expected="at most 3.33333e+299, for cuts"):
            GradeModel(beta, (1.5, 2.5), three)
    sharp = GradeModel(3e299, (1.5, 2.5), three)
    assert sharp.predict_proba([[0, 2, 1]]).tolist() == [[0, 1, 0]]
    for cuts in (1.5, None, np.array(1.5)):
        with refused("cuts", expected="2 numbers"):
            GradeModel(2, cuts, three)
    for beta in (0, -1, np.nan, "2"):
        with refused("beta", got=beta):
            GradeModel(beta, MODEL.cuts, FIVE)
    with refused("cuts", got=(1.0,), expected="4 numbers"):
        GradeModel(1, (1,), FIVE)
    with refused("cuts", row=1, got=np.nan):
        GradeModel(1, (1, np.nan, 2, 3), FIVE)
    with refused("scale", got=5):
        GradeModel(1, (1,), 5)
    for scales, message in (
        ((PAIRS,), "expected scales of grades; for pairs use DavidsonModel"),
        ((three, PAIRS), "votes are grades, but labels compare pairs"),
    ):
        with pytest.raises(InputError, match=message):
            GradeModel(1, (0, 1), *scales)
    with pytest.raises(InputError, match=r"counts\[1\] holds no votes, expected at least one"):
        MODEL.decide([[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    with pytest.raises(InputError, match=r"shape \(1, 3\), expected \(n, 5\)"):
        MODEL.predict_proba([[1, 0, 0]])


# The fit


@pytest.mark.parametrize(("scale", "label_scale"), [*SCALES[:2], (TEN, PASS_FAIL)])
def test_a_flat_prior_gives_the_least_loss(scale, label_scale):
    counts, labels = judged(300, scale, 4, label_scale=label_scale)
    weights = np.random.default_rng(6).uniform(0.5, 2, 300)
    scales = {"scale": scale, "label_scale": label_scale}
    fit = calibrate(counts, labels, **scales, prior=None, weights=weights)
    assert fit.converged
    assert fit.shares == {}
    gold = labels[:, None] <= label_scale.values[:-1]

    def loss(beta, cuts):
        p = GradeModel(beta, cuts, scale, label_scale).predict_proba(counts)
        return weights @ ((p.cumsum(axis=1)[:, :-1] - gold) ** 2).sum(axis=1) / weights.sum()

    best = loss(fit.model.beta, fit.model.cuts)
    assert fit.drps == pytest.approx(best)
    rng = np.random.default_rng(5)
    for size in (1e-2, 3e-2, 0.1) * 20:
        beta = fit.model.beta * np.exp(size * rng.normal())
        cuts = fit.model.cuts + size * rng.normal(size=len(fit.model.cuts))
        assert loss(beta, cuts) >= best - 1e-6


@pytest.mark.parametrize("setting", [{}, {"shift": 1.5}, {"noise": 0.3}])
def test_many_labels_outweigh_the_prior(setting):
    for scale, label_scale in SCALES[::2]:
        scales = {"scale": scale, "label_scale": label_scale}
        counts, labels = judged(2000, **scales, seed=1, **setting)
        fit, flat = (quiet(counts, labels, **scales, prior=prior) for prior in ("weak", None))
        assert fit.drps < flat.drps + 3e-4
        assert fit.model.beta == pytest.approx(flat.model.beta, rel=0.15)


def test_votes_that_say_nothing_become_a_constant():
    rng = np.random.default_rng(7)
    counts = rng.multinomial(6, np.ones(5) / 5, size=400)
    labels = rng.choice([3, 4, 5], p=[0.2, 0.6, 0.2], size=400)
    with pytest.warns(CalibrationWarning) as caught:
        fit = calibrate(counts, labels, scale=FIVE)
    assert tuple(str(warning.message) for warning in caught) == fit.warnings
    assert (
        "no label is 1 or 2: the thresholds of grades that no label uses rest on the prior"
        in fit.warnings
    )
    assert "the fitted model says 4 whatever the votes" in fit.warnings[1]
    assert fit.shares["nothing"] > 0.9
    assert np.mean(fit.model.decide(counts) == 4) > 0.98


def test_neighbours_are_taken_where_they_fit():
    counts, labels = judged(2000, FIVE, 8, shift=1.0)
    neighbour = calibrate(counts[:1000], labels[:1000], scale=FIVE).model
    alone = quiet(counts[1000:1006], labels[1000:1006], FIVE)
    near = quiet(counts[1000:1006], labels[1000:1006], FIVE, prior=neighbour)
    test = counts[1200:], labels[1200:]
    assert near.shares["neighbours"] > 0.8
    assert error_of(near.model, *test) < error_of(alone.model, *test)
    assert error_of(near.model, *test) < error_of(neighbour, *test) + 0.06
    unlike = GradeModel(5, (4.2, 4.4, 4.6, 4.8), FIVE)
    own = quiet(counts[1000:1060], labels[1000:1060], FIVE)
    both = quiet(counts[1000:1060], labels[1000:1060], FIVE, prior=[unlike, neighbour])
    assert error_of(both.model, *test) < error_of(own.model, *test) + 0.02
    assert sum(both.shares.values()) == pytest.approx(1)
    for bad, row in (
        ([], None),
        ("votes", None),
        ([DavidsonModel(1, 2, 3)], 0),
        (GradeModel(2, (0,), Scale((0, 1))), 0),
        (3, None),
    ):
        with refused("prior", row=row):
            calibrate(counts, labels, scale=FIVE, prior=bad)


def test_weights_are_scaled_to_the_effective_number_of_labels():
    counts, labels = judged(30, FIVE, 9)
    alone, doubled = (
        quiet(counts, labels, FIVE),
        quiet(counts, labels, FIVE, weights=np.full(30, 2.0)),
    )
    assert doubled.model == alone.model
    weights = np.repeat([1.0, 0.0], 15)
    fit = quiet(counts, labels, FIVE, weights=weights)
    assert fit.n_labels == 15
    assert fit.model.cuts == pytest.approx(
        quiet(counts[:15], labels[:15], FIVE).model.cuts, abs=1e-6
    )


def test_the_order_of_items_and_fractions_of_votes_do_not_matter():
    counts, labels = judged(40, FIVE, 10)
    order = np.random.default_rng(0).permutation(40)
    fit, again = quiet(counts, labels, FIVE), quiet(counts[order] / 6, labels[order], FIVE)
    assert again.model.cuts == pytest.approx(fit.model.cuts, abs=1e-6)


@pytest.mark.parametrize("prior", ["weak", None])
@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([(0, 3), (4, 3), (2, 3)], "every label is 3"),
        ([(2, 3)], "every label is 3"),
        ([(0, 1), (4, 5)], "no label is 2, 3 or 4"),
        ([(1, 2), (2, 3), (3, 4)], "no label is 1 or 5"),
        ([(2, 1), (2, 2), (2, 3), (2, 4), (2, 5)], "the same mean vote"),
        ([(0, 5), (1, 4), (2, 3), (3, 2), (4, 1)], None),
        ([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], None),
    ],
)
def test_few_labels_have_an_answer_and_a_remark(rows, note, prior):
    counts = np.eye(5, dtype=int)[[vote for vote, _ in rows]]
    fit = quiet(counts, [label for _, label in rows], FIVE, prior=prior)
    assert fit.converged
    p = fit.model.predict_proba(np.eye(5))
    assert np.isfinite(p).all()
    assert np.isfinite(fit.model.cuts).all()
    if note is not None:
        assert any(note in text for text in fit.warnings)
    elif prior is None:
        assert fit.warnings
    if prior == "weak":
        assert p.min() > 0  # nothing is impossible after a few labels


def test_what_a_flat_prior_cannot_tell_is_said():
    counts = np.eye(5, dtype=int)
    separable = quiet(counts, [1, 2, 3, 4, 5], FIVE, prior=None)
    assert "separate the labels" in separable.warnings[0]
    falling = quiet(counts, [5, 4, 3, 2, 1], FIVE, prior=None)
    assert "do not go with higher grades" in falling.warnings[0]
    assert "whatever the votes" in falling.warnings[1]


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 0), (3, 0), (4, 1), (9, 1)],
        [(4, 0), (5, 1)],
        [(0, 0), (4, 0), (4, 0), (4, 1), (9, 1)],  # with a doubt at one mean
    ],
)
def test_votes_that_separate_pass_from_fail_are_said(rows):
    counts = np.eye(10, dtype=int)[[vote for vote, _ in rows]]
    labels = [label for _, label in rows]
    fit = quiet(counts, labels, TEN, label_scale=PASS_FAIL, prior=None)
    assert any("beta has no finite estimate" in text for text in fit.warnings)
    counts, labels = np.concatenate([counts, counts]), [*labels, *(1 - np.array(labels))]
    fit = quiet(counts, labels, TEN, label_scale=PASS_FAIL, prior=None)
    assert not any("beta has no finite estimate" in text for text in fit.warnings)


def test_means_that_differ_by_rounding_or_say_little_separate_nothing():
    rows = [[0.1, 0.2, 0.3, 0.2, 0.1], [1, 2, 3, 2, 1], [0.7, 1.4, 2.1, 1.4, 0.7]] * 4
    scales = {"scale": FIVE, "label_scale": Scale((1, 2))}
    fit = quiet(rows, [1, 2, 2, 1, 2, 1] * 2, **scales, prior=None)
    assert fit.model.beta < 1
    counts = np.eye(5, dtype=int)[[0, 4] * 2000]
    labels = np.array([1, 2, *[1, 2, 2, 1] * 999, 1, 2])
    fit = quiet(counts, labels, **scales, prior=None)
    assert not any("beta has no finite estimate" in text for text in fit.warnings)


def test_a_flat_prior_does_not_depend_on_the_unit_of_the_votes():
    counts, labels = judged(60, FIVE, 12)
    fit = quiet(counts, labels, FIVE, prior=None)
    wide = np.zeros((60, 9), dtype=int)
    wide[:, 2:7] = counts
    scale = Scale((-1e6, -1e5, 1, 2, 3, 4, 5, 1e5, 1e6))
    again = quiet(wide, labels, scale, label_scale=FIVE, prior=None)
    # It is wide, not flat, around numbers in grades.
    assert again.model.beta == pytest.approx(fit.model.beta, rel=2e-3)
    assert again.model.cuts == pytest.approx(fit.model.cuts, abs=2e-3)


def test_items_without_weight_are_as_if_absent():
    counts = np.array([[0, 1, 1, 0, 0]] * 4 + [[0, 0, 0, 0, 9]])
    fit = quiet(counts, [2, 3, 2, 3, 5], FIVE, weights=[1, 1, 1, 1, 0])
    assert fit.model == quiet(counts[:4], [2, 3, 2, 3], FIVE).model
    assert fit.model.provenance.n_votes == 2
    assert any("the same mean vote" in text for text in fit.warnings)


def test_other_bad_input_is_an_error():
    counts, labels = judged(4, FIVE, 11)
    with refused("labels", expected="at least one item"):
        quiet(counts[:0], labels[:0], FIVE)
    with refused("counts", row=0, got=[0] * 5):
        quiet(counts * 0, labels, FIVE)


def test_a_judge_that_is_right_stays_so_and_one_that_is_off_is_corrected():
    for seed in range(4):
        counts, labels = judged(1000, FIVE, seed, noise=0.2)
        right = quiet(counts[:10], labels[:10], FIVE)
        rounded = np.floor(counts @ np.arange(1, 6) / 6 + 0.5)
        assert error_of(right.model, counts, labels) < np.abs(rounded - labels).mean() + 0.02
        counts, labels = judged(1000, FIVE, seed, noise=0.2, shift=1.2)
        off = quiet(counts[:20], labels[:20], FIVE)
        rounded = np.floor(counts @ np.arange(1, 6) / 6 + 0.5)
        assert error_of(off.model, counts, labels) < 0.75 * np.abs(rounded - labels).mean()


def test_few_labels_of_a_long_scale_are_not_drawn_to_its_middle():
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(6, np.ones(10) / 10, size=210)
        labels = rng.choice([10, 9, 8], p=[0.8, 0.1, 0.1], size=210)
        fit = quiet(counts[:10], labels[:10], TEN)
        errors.append(error_of(fit.model, counts[10:], labels[10:]))
    assert np.mean(errors) < 0.4  # a constant has 0.3


def test_a_judge_that_uses_a_part_of_its_scale_is_corrected_by_few_labels():
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        quality = rng.normal(size=400)
        gold = np.rint(5.5 + 4 * quality).clip(1, 10).astype(int)
        votes = np.rint(7.5 + quality[:, None] + 0.8 * rng.normal(size=(400, 6))).clip(1, 10)
        counts = (votes[:, :, None] == TEN.values).sum(axis=1)
        fit = quiet(counts[:10], gold[:10], TEN)
        errors.append(error_of(fit.model, counts[10:], gold[10:]))
    assert np.mean(errors) < 1.0  # 1.13 where cuts are only shifted and stretched
