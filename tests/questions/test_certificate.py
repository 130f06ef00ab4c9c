"""Which labels can be trusted without a look: bounds, groups, thresholds, SQL, saved files."""

import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from btdagg import (
    DavidsonModel,
    GradeModel,
    InputError,
    PanelModel,
    Scale,
    certify,
    read_labels,
    read_votes,
)
from btdagg.estimates import Certificate
from refusals import refused

MODEL = DavidsonModel(1.5, 0.5, 0.8)
PANEL = PanelModel(("a", "b"), (1.0, 0.4), 0.3, (0.5, 0.2))
FIVE = Scale(range(1, 6))
GRADES = GradeModel(2.0, (1.5, 2.5, 3.5, 4.5), FIVE)


def votes_and_labels(n=600, n_labels=150, seed=0, noise=0.6):
    """A judge of eight votes an item, and people's labels of some items."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=n)
    votes = np.clip(np.round(quality[:, None] + rng.normal(size=(n, 8))), -1, 1)
    counts = np.stack([(votes == side).sum(axis=1) for side in (-1, 0, 1)], axis=1)
    gold = np.clip(np.round(1.3 * quality + noise * rng.normal(size=n)), -1, 1)
    labels = np.where(np.arange(n) < n_labels, gold, np.nan)
    return counts, labels, gold


def of_model(model, threshold, **options):
    return Certificate(model, threshold, 0.5, 0.8, 0.9, 10, 10, (), None, True, **options)


@pytest.fixture
def items():
    return votes_and_labels()


def test_the_bound_of_a_model_of_before_is_exact(items):
    counts, labels, _ = items
    certificate = certify(counts, labels, agreement=0.7, model=MODEL)
    assert certificate.is_exact
    agrees = MODEL.decide(counts) == labels
    confidence = MODEL.predict_proba(counts)[np.arange(600), MODEL.decide(counts) + 1]
    for point in certificate.curve:
        inside = confidence >= point.threshold
        assert inside.mean() == point.coverage
        among = agrees[inside & ~np.isnan(labels)]
        assert len(among) == point.n_labels
        exact = stats.binomtest(int(among.sum()), len(among), alternative="greater")
        assert point.low == pytest.approx(exact.proportion_ci(0.9, "exact").low)
    passed = [point.low >= 0.7 for point in certificate.curve]
    last = certificate.curve[passed.index(False) - 1]
    assert (certificate.threshold, certificate.coverage) == (last.threshold, last.coverage)
    trusted = certificate.trusted(counts)
    assert trusted.mean() == certificate.coverage == pytest.approx((confidence >= last[-1]).mean())


def test_bounds_begin_at_a_fifth_of_the_items_and_thirty_labels(items):
    counts, labels, gold = items
    counts = counts + np.random.default_rng(1).random(counts.shape)  # no two alike
    for n_labels, first in ((600, 0.2), (100, 0.3), (40, 0.75), (30, 1.0)):
        labels = np.where(np.arange(600) < n_labels, gold, np.nan)
        assert certify(counts, labels, model=MODEL).curve[0].coverage == pytest.approx(
            first, abs=2e-3
        )


def test_a_later_bound_that_holds_does_not_help(items):
    counts, _, _ = items
    decided = MODEL.decide(counts)
    confidence = MODEL.predict_proba(counts)[np.arange(600), decided + 1]
    # Among the surest 20% of the items none agrees.
    labels = np.where(confidence >= np.quantile(confidence, 0.8), (decided + 2) % 3 - 1, decided)
    certificate = certify(counts, labels, agreement=0.6, model=MODEL)
    assert certificate.curve[-1].low > 0.6
    assert certificate.threshold is None
    assert not certificate.trusted(counts).any()


def test_few_labels_certify_nothing_and_say_how_many_would(items):
    counts, _, gold = items
    labels = np.where(np.arange(600) < 29, MODEL.decide(counts), np.nan)
    certificate = certify(counts, labels, agreement=0.8, model=MODEL)
    assert certificate.threshold is None
    assert 30 <= certificate.labels_wanted <= 60
    assert f"it would take about {certificate.labels_wanted} labels" in str(certificate)
    labels = np.where(np.arange(600) < 100, -gold, np.nan)
    hopeless = certify(counts, labels, agreement=0.95, model=MODEL)
    assert hopeless.labels_wanted is None
    assert "cannot show how many it would take" in str(hopeless)


@pytest.mark.soak
def test_the_forecast_number_of_labels_is_mostly_enough():
    counts, _, gold = votes_and_labels(4000, noise=0.3)
    labels = np.where(np.arange(4000) < 40, gold, np.nan)
    certificate = certify(counts, labels, agreement=0.85, model=MODEL)
    wanted = certificate.labels_wanted
    assert certificate.threshold is None
    passed = []
    for seed in range(40):
        rows = np.random.default_rng(seed).permutation(4000)[:wanted]
        labels = np.full(4000, np.nan)
        labels[rows] = gold[rows]
        passed.append(certify(counts, labels, agreement=0.85, model=MODEL).threshold is not None)
    assert np.mean(passed) > 0.6


def test_groups_are_worth_their_effective_number_of_labels(items):
    counts, labels, _ = items
    single = certify(counts, labels, model=MODEL)
    apart = certify(counts, labels, model=MODEL, groups=np.arange(600))
    # Each item six times over, in a group.
    often = certify(
        np.repeat(counts, 6, axis=0), np.repeat(labels, 6), model=MODEL, groups=np.arange(3600) // 6
    )
    assert not apart.is_exact
    for own, alone, copied in zip(single.curve, apart.curve, often.curve, strict=True):
        assert own.agreement == pytest.approx(alone.agreement)
        assert own.agreement == pytest.approx(copied.agreement)
        assert own.low - 0.02 < alone.low <= own.low
        assert copied.low == pytest.approx(alone.low, abs=0.01)


def test_groups_never_make_a_bound_better(items):
    counts, labels, _ = items
    # Groups whose agreement varies less than by chance.
    order = np.argsort(MODEL.decide(counts)[:150] == labels[:150])
    groups = np.append(np.argsort(order) % 15, np.arange(15, 465))
    single, grouped = (certify(counts, labels, model=MODEL, groups=g) for g in (None, groups))
    assert all(g.low < s.low for s, g in zip(single.curve, grouped.curve, strict=True))


@pytest.mark.parametrize("large", [9, 300])
def test_fewer_than_ten_groups_of_a_like_size_certify_nothing(items, large):
    counts, _, _ = items
    labels = np.where(np.arange(600) % 2, MODEL.decide(counts), np.nan)
    groups = np.arange(600) % 9 if large == 9 else np.maximum(np.arange(600) - 300, 0)
    certificate = certify(counts, labels, model=MODEL, groups=groups)
    assert certificate.threshold is None
    assert any("a certificate needs 10" in remark for remark in certificate.remarks)
    assert certify(counts, labels, model=MODEL).threshold is not None


def test_a_calibrated_model_trusts_the_share_that_was_certified(items):
    counts, labels, gold = items
    panel = np.stack([counts, votes_and_labels(seed=0)[0][:, ::1]], axis=1)
    for votes in (counts, panel, counts * 0.75 + 0.25):
        certificate = certify(votes, labels, agreement=0.7)
        assert not certificate.is_exact
        trusted = certificate.trusted(votes)
        assert trusted.mean() == pytest.approx(certificate.coverage)
        assert (certificate.model.decide(votes) == gold)[trusted].mean() > 0.65
        assert any("approximate" in remark for remark in certificate.remarks)
    first = certify(counts, labels, agreement=0.7)
    order = np.random.default_rng(2).permutation(600)
    again = certify(counts[order], labels[order], agreement=0.7)
    assert (again.coverage, again.threshold) == (first.coverage, pytest.approx(first.threshold))


def test_agreement_of_several_raters_is_their_share(items):
    counts, _, _ = items
    decided = MODEL.decide(counts)
    shares = np.eye(3)[decided + 1] * 0.75 + np.eye(3)[(decided + 2) % 3] * 0.25
    certificate = certify(counts, shares, model=MODEL, agreement=0.7)
    assert not certificate.is_exact
    assert [point.agreement for point in certificate.curve] == pytest.approx(
        [0.75] * len(certificate.curve)
    )


def test_probabilities_weigh_labels_and_equal_ones_change_nothing(items):
    counts, labels, _ = items
    plain = certify(counts, labels, model=MODEL)
    equal = certify(counts, labels, model=MODEL, probabilities=np.full(600, 0.25))
    assert equal.is_exact
    assert equal.curve == plain.curve
    wrong = MODEL.decide(counts) != labels
    rare = certify(counts, labels, model=MODEL, probabilities=np.where(wrong, 0.1, 0.4))
    assert rare.curve[-1].agreement < plain.curve[-1].agreement
    assert not rare.is_exact


@pytest.mark.parametrize("copies", [1, 3])
def test_bounds_of_probabilities_that_are_nearly_equal_are_clopper_and_pearsons(items, copies):
    """Of items that came several times, in a group, as of each once."""
    counts, labels, _ = items
    plain = certify(counts, labels, model=MODEL)
    rows = np.repeat(np.arange(600), copies)
    probabilities = np.where(np.arange(600) % 2, 0.25, 0.250001)[rows]
    groups = {"groups": rows} if copies > 1 else {}
    near = certify(counts[rows], labels[rows], model=MODEL, probabilities=probabilities, **groups)
    assert not near.is_exact
    lows = {round(point.coverage, 9): point.low for point in plain.curve}
    shared = [point for point in near.curve if round(point.coverage, 9) in lows]
    assert len(shared) > 0.8 * len(plain.curve)  # which may begin elsewhere
    for point in shared:
        assert point.low == pytest.approx(lows[round(point.coverage, 9)], abs=2e-3)


def test_strata_of_equal_probabilities_are_a_simple_sample(items):
    counts, labels, _ = items
    drawn = ~np.isnan(labels)
    sides = dict(zip(("minus", "tie", "plus"), counts.T, strict=True))
    votes = {"item": np.arange(len(counts)), **sides}
    frame = {"item": np.flatnonzero(drawn), "label": labels[drawn].astype(int)}
    plain = read_labels(frame)
    designed = read_labels(
        frame
        | dict.fromkeys(("stratum", "design"), ["whole"] * drawn.sum())
        | {"probability": [drawn.mean()] * drawn.sum(), "seed": [0] * drawn.sum()}
        | {"least_probability": [drawn.mean()] * drawn.sum()}
    )
    known = read_votes(votes).items(designed)
    assert known.sampling.strata is not None
    alone, found = (certify(read_votes(votes), own, agreement=0.7) for own in (plain, designed))
    assert (found.threshold, found.coverage) == (alone.threshold, alone.coverage)


def test_the_probability_of_every_item_or_the_least_one_is_needed(items):
    counts, labels, _ = items
    known = np.where(np.isnan(labels), np.nan, 0.4)
    for options, field in (
        ({"probabilities": known}, "probabilities"),
        ({"probabilities": known, "least_probability": 0.5}, "least_probability"),
        ({"probabilities": known, "least_probability": 0.0}, "least_probability"),
        ({"least_probability": 0.5}, "least_probability"),
    ):
        with pytest.raises(InputError) as error:
            certify(counts, labels, model=MODEL, **options)
        assert error.value.argument == field
    plain = certify(counts, labels, model=MODEL)
    equal = certify(counts, labels, model=MODEL, probabilities=known, least_probability=0.4)
    assert equal.to_json() == plain.to_json()
    # Labels of one probability are no simple sample if others had less of it.
    least = certify(counts, labels, model=MODEL, probabilities=known, least_probability=0.04)
    whole = np.where(np.arange(600) < 580, 0.4, 0.04)
    every = certify(counts, labels, model=MODEL, probabilities=whole)
    assert least.curve[-1].low < every.curve[-1].low < plain.curve[-1].low


def test_rare_items_that_were_not_drawn_lower_the_bound(items):
    counts, _, _ = items
    decided = MODEL.decide(counts)
    rare = np.arange(600) % 6 == 0
    labels = np.where(~rare & (np.arange(600) < 200), decided, np.nan)
    low = (
        certify(counts, labels, model=MODEL, probabilities=np.where(rare, 0.02, 0.4)).curve[-1].low
    )
    assert 0.8 < low < 1 - rare.mean()


def test_grades_agree_within_one_grade():
    rng = np.random.default_rng(3)
    quality = rng.uniform(1, 5, 400)
    votes = np.clip(np.round(quality[:, None] + 0.7 * rng.normal(size=(400, 6))), 1, 5)
    counts = (votes[:, :, None] == np.arange(1, 6)).sum(axis=1)
    gold = np.clip(np.round(quality + 0.7 * rng.normal(size=400)), 1, 5)
    labels = np.where(np.arange(400) < 150, gold, np.nan)
    exact, near = (certify(counts, labels, scale=FIVE, within=w, agreement=0.88) for w in (0, 1))
    assert exact.coverage < near.coverage
    decided = near.model.decide(counts)
    assert (np.abs(decided - gold) <= 1)[near.trusted(counts)].mean() > 0.87
    with pytest.raises(InputError) as error:
        certify(*votes_and_labels()[:2], within=1)
    assert error.value.argument == "within"


@pytest.mark.parametrize(
    ("model", "counts"),
    [
        (MODEL, [[0, 1, 4], [0, 0, 6], [1, 4, 1], [0, 0, 8], [0, 0, 5]]),
        (DavidsonModel(2.5, 0.3, -0.4), [[0, 1, 4], [0, 0, 6], [1, 4, 1], [0, 0, 8]]),
        (MODEL, [[0.25, 0.5, 4.25], [0, 0.5, 5.5]]),
        (GRADES, [[0, 0, 0, 0, 5], [6, 0, 0, 0, 0], [0, 7, 0, 0, 0], [0, 0, 3, 4, 1]]),
    ],
)
def test_an_item_that_was_stopped_early_is_trusted_if_no_votes_could_change_that(model, counts):
    counts = np.array(counts)
    for threshold in (0.3, 0.5, 0.6, 0.7, 0.8):
        certificate = of_model(model, threshold, scale=model.scale, label_scale=model.label_scale)
        trusted = certificate.trusted(counts, n_votes=8)
        for own, is_trusted in zip(counts, trusted, strict=True):
            ends = [own]
            for _ in range(8 - round(own.sum())):
                ends = np.unique(np.concatenate([ends + vote for vote in np.eye(len(own))]), axis=0)
            ends = np.concatenate([[own], ends])
            labels = model.decide(ends)
            survives = certificate.trusted(ends).all() and (labels == labels[0]).all()
            assert is_trusted == survives
    assert replace(certificate, threshold=0.3).trusted(counts, n_votes=8).any()


def test_items_have_as_many_votes_as_those_that_were_certified(items):
    counts, labels, _ = items
    certificate = certify(counts, labels, model=MODEL, agreement=0.7)
    fewer = np.zeros_like(counts)
    fewer[np.arange(600), counts.argmax(axis=1)] = 1
    trusted = certificate.trusted(fewer)
    assert trusted.tolist() == certificate.trusted(fewer, n_votes=8).tolist()
    assert trusted.sum() < certificate.trusted(fewer, n_votes=0).sum()
    with refused("n_votes", got=-1):
        certificate.trusted(counts, n_votes=-1)
    with refused("n_votes", got=[8, 8]):
        certificate.trusted(counts, n_votes=[8, 8])


def test_the_share_that_is_certified_is_trusted_where_items_differ_in_votes(items):
    counts, labels, _ = items
    rng = np.random.default_rng(2)
    counts = rng.binomial(counts, rng.uniform(0.6, 1, (600, 1)))
    counts[:5] *= 3
    certificate = certify(counts, labels, model=MODEL, agreement=0.65)
    assert certificate.n_votes == np.quantile(counts.sum(axis=1), 0.05, method="lower")
    assert 0.95 * certificate.coverage <= certificate.trusted(counts).mean()
    assert certificate.trusted(counts).mean() <= certificate.coverage


def test_more_labels_are_forecast_for_a_simple_sample_alone(items):
    counts, _, _ = items
    labels = np.where(np.arange(600) < 29, MODEL.decide(counts), np.nan)
    simple = certify(counts, labels, model=MODEL, agreement=0.8)
    drawn = np.linspace(0.2, 0.6, 600)
    weighted = certify(counts, labels, model=MODEL, agreement=0.8, probabilities=drawn)
    assert simple.threshold is weighted.threshold is weighted.labels_wanted is None
    assert simple.labels_wanted


def test_votes_of_another_judge_look_unlike(items):
    counts, labels, _ = items
    own = certify(counts, labels, model=MODEL)
    panel = certify(np.stack([counts, counts[::-1]], axis=1), labels)
    graded = GRADES.scale
    stars = np.random.default_rng(3).multinomial(8, (0.05, 0.05, 0.1, 0.3, 0.5), size=600)
    of_stars = certify(stars, np.where(labels == labels, 5, np.nan), scale=graded, model=GRADES)
    rng = np.random.default_rng(2)
    noise = rng.multinomial(8, np.full(3, 1 / 3), size=100)
    always = np.tile([0, 0, 8], (100, 1))
    for other in (noise, always):
        assert own.likeness(other) < 1e-4
        assert panel.likeness(np.stack([counts[:100], other], axis=1)) < 1e-4
    assert of_stars.likeness(rng.multinomial(8, np.full(5, 0.2), size=100)) < 1e-4
    # Not so for fewer votes of the same judge.
    fewer = np.stack([rng.multivariate_hypergeometric(row, 3) for row in counts])
    assert own.likeness(fewer) > 0.05
    assert own.likeness(noise[:9]) is None
    one = certify(fewer // 2 + [0, 1, 0], labels, model=MODEL)
    assert len(one.profile.means) == 3


def test_of_a_panel_no_item_that_was_stopped_early_is_trusted():
    counts = np.array([[[0, 0, 8], [0, 0, 8]], [[0, 0, 8], [0, 0, 7]]])
    assert of_model(PANEL, 0.5).trusted(counts).tolist() == [True, True]
    assert of_model(PANEL, 0.5).trusted(counts, n_votes=8).tolist() == [True, False]


@pytest.mark.parametrize("threshold", [None, 0.35, 0.5, 0.7, 0.9])
@pytest.mark.parametrize(
    ("model", "within"),
    [
        *((model, 0) for model in (MODEL, DavidsonModel(4, 2, -3), PANEL, GRADES)),
        (GradeModel(3.0, (3.5, 2.5, 2.0, 4.5), FIVE), 0),
        (GRADES, 1),
    ],
)
def test_sql_trusts_as_the_certificate_does(model, within, threshold):
    rng = np.random.default_rng(5)
    if isinstance(model, GradeModel):
        counts = rng.multinomial(1, np.full(5, 0.2), size=(300, 2)).sum(axis=1) * [1, 2, 3, 2, 1]
        columns = {"mean": model.means(counts)}
    elif isinstance(model, PanelModel):
        counts = rng.multinomial(5, (0.2, 0.3, 0.5), size=(300, 2))
        names = [f"{side} {judge}" for judge in "ab" for side in ("minus", "tie", "plus")]
        columns = dict(zip(names, counts.reshape(300, 6).T, strict=True))
    else:
        counts = rng.multinomial(8, (0.2, 0.3, 0.5), size=300)
        columns = dict(zip(("minus", "tie", "plus"), counts.T, strict=True))
    scales = {"scale": model.scale, "label_scale": model.label_scale}
    certificate = of_model(model, threshold, **scales, within=within)
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE t ({', '.join(f'`{name}` REAL' for name in columns)})")
    rows = [*zip(*(column.tolist() for column in columns.values()), strict=True)]
    rows.append((None,) * len(columns))
    marks = ", ".join("?" * len(columns))
    database.executemany(f"INSERT INTO t VALUES ({marks})", rows)
    query = f"SELECT {certificate.to_sql('sqlite')} FROM t"
    *trusted, missing = [value for (value,) in database.execute(query)]
    assert trusted == certificate.trusted(counts).tolist()
    # An item without votes of any judge is decided by a panel alone.
    assert (missing is None) == (model is not PANEL)


def test_a_certificate_is_saved_whole(items, tmp_path):
    counts, labels, _ = items
    for options in ({}, {"model": MODEL, "agreement": 0.99}):
        certificate = certify(counts, labels, **options)
        certificate.save(tmp_path / "c.json")
        loaded = Certificate.load(tmp_path / "c.json")
        assert loaded.to_json() == certificate.to_json()
        assert loaded.curve == certificate.curve
        assert (loaded.trusted(counts) == certificate.trusted(counts)).all()
        assert str(loaded) == str(certificate)


def test_of_many_items_some_stand_for_all():
    counts, _, gold = votes_and_labels(1000, noise=0.3)
    counts = np.tile(counts, (40, 1)) * 0.5 + 0.5 * np.random.default_rng(6).random((40_000, 3))
    labels = np.where(np.arange(40_000) < 300, np.tile(gold, 40), np.nan)
    certificate = certify(counts, labels, agreement=0.7)
    trusted = certificate.trusted(counts)
    assert trusted.mean() == pytest.approx(certificate.coverage, abs=0.02)
    assert certificate.n_items == 40_000
