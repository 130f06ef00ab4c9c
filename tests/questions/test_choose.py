"""Items chosen to be labelled: inclusion probabilities, top-ups, and estimates from them."""

import itertools

import numpy as np
import pytest
from scipy import stats

import btdagg
from btdagg.estimates import choose

DESIGNS = ("simple", "stratified")
# Two items lead to A clearly, two to B divided, three have no votes: strata of sizes 2, 2 and 3.
SMALL = [[0, 0, 8], [1, 0, 7], [5, 2, 1], [4, 3, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


def many(n_items=200, seed=0):
    """Counts of items with names."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet([0.5, 0.5, 0.8], n_items)
    return rng.multinomial(8, chances), np.array([f"q{number}" for number in range(n_items)])


def test_groups_are_drawn_whole_with_equal_probabilities():
    groups = np.array(["x", "x", "y", "y", "y", "z", "w"])
    included = np.zeros(7, dtype=int)
    for seed in range(600):
        found = choose(SMALL, 2, groups=groups, seed=seed)
        drawn = {*groups[found.rows]}
        assert sorted(found.rows) == np.flatnonzero(np.isin(groups, [*drawn])).tolist()
        assert (len(drawn), found.n, found.n_units) == (2, 2, 4)
        included[found.rows] += 1
    assert set(found.probabilities) == {0.5}
    assert included / 600 == pytest.approx(0.5, abs=0.08)  # four standard errors


def test_strata_of_grades_are_fifths_of_the_scale_by_the_mean_vote():
    scale = btdagg.Scale(range(1, 6))
    means = {1: 0, 1.5: 0, 2: 1, 3: 2, 4: 3, 4.5: 4, 5: 4}
    counts = np.zeros((len(means) + 1, 5))
    for row, mean in enumerate(means):
        counts[row, int(mean) - 1] += 1
        counts[row, int(np.ceil(mean)) - 1] += 1
    counts = np.tile(counts, (30, 1))
    found = choose(counts, 60, design="stratified", scale=scale)
    names = ["1 to 1.8", "1.8 to 2.6", "2.6 to 3.4", "3.4 to 4.2", "4.2 to 5"]
    expected = [*(f"mean {names[part]}" for part in means.values()), "no votes"]
    assert found.strata.tolist() == 30 * expected
    assert found.probabilities == pytest.approx(0.25, abs=0.02)
    half = choose([[3, 0], [1, 1], [0, 4]], 2, design="stratified", scale=btdagg.PASS_FAIL)
    assert half.strata.tolist() == ["mean 0 to 0.5", "mean 0.5 to 1", "mean 0.5 to 1"]
    simple = choose(counts, 60, scale=scale)
    assert set(simple.strata) == {"all"}
    assert len(simple.rows) == 60


def test_hashes_of_seeds_and_names_are_random_enough():
    """Every pair of five items is as likely as any other, over seeds and over names."""
    pairs = list(itertools.combinations(range(5), 2))
    by_seed = [tuple(sorted(choose(SMALL[:5], 2, seed=seed).rows)) for seed in range(500)]
    by_name = [
        tuple(sorted(choose(SMALL[:5], 2, ids=[f"{k}-{item}" for item in range(5)]).rows))
        for k in range(500)
    ]
    for drawn in (by_seed, by_name):
        counted = [drawn.count(pair) for pair in pairs]
        assert sum(counted) == 500
        assert stats.chisquare(counted).pvalue > 1e-4


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("by_group", [False, True])
def test_a_larger_sample_begins_with_the_smaller(design, by_group):
    counts, ids = many()
    given = {"ids": ids, "design": design, "seed": 3}
    if by_group:
        given["groups"] = [f"g{number // 3}" for number in range(200)]
    before = np.empty(0, dtype=int)
    for n in range(7, 67, 4):
        found = choose(counts, n, **given)
        assert found.rows[: len(before)].tolist() == before.tolist()
        assert len(np.unique(found.units[found.rows])) == n
        for stratum in set(found.strata):
            inside = found.strata == stratum
            units = found.units[inside]
            share = len(set(units) & set(found.units[found.rows])) / len(set(units))
            assert found.probabilities[inside] == pytest.approx(share, abs=1e-15)
        before = found.rows


def test_shares_of_strata_are_the_best_there_are():
    """Of all ways to share out seven units, those with the least variance for like strata."""
    counts = np.repeat([[0, 0, 8], [8, 0, 0], [4, 2, 2]], [11, 5, 2], axis=0)
    sizes = np.array([11, 5, 2])
    for n in range(3, 19):
        found = choose(counts, n, design="stratified")
        numbers = np.bincount(np.repeat([0, 1, 2], sizes)[found.rows])
        ways = [
            way
            for way in itertools.product(*(range(1, size + 1) for size in sizes))
            if sum(way) == n
        ]
        least = min(sum(sizes**2 / np.array(way)) for way in ways)
        assert sum(sizes**2 / numbers) == pytest.approx(least)


def test_strata_mirror_when_sides_are_swapped():
    counts, _ = many()
    counts = np.vstack([counts, [[0, 0, 0], [4, 0, 4], [1, 6, 1], [6, 1, 1]]])
    found = choose(counts, 10, design="stratified").strata
    assert found[-4:].tolist() == ["no votes", "tie divided", "tie clear", "B clear"]
    mirrored = choose(counts[:, ::-1], 10, design="stratified").strata
    other = {"A": "B", "B": "A"}
    assert mirrored.tolist() == [
        " ".join([other.get(name.split()[0], name.split()[0]), name.split()[1]]) for name in found
    ]


def test_the_order_of_rows_and_the_type_of_ids_change_nothing():
    counts, _ = many()
    ids, groups = np.arange(200), np.arange(200) // 3
    order = np.random.default_rng(1).permutation(200)
    for design in DESIGNS:
        for group in (None, groups):
            found = choose(counts, 40, ids=ids, groups=group, design=design)
            moved = choose(
                counts[order],
                40,
                ids=ids[order],
                groups=None if group is None else group[order],
                design=design,
            )
            assert ids[order][moved.rows].tolist() == ids[found.rows].tolist()
            assert moved.probabilities.tolist() == found.probabilities[order].tolist()
    as_text = choose(counts, 40, ids=[str(one) for one in ids])
    assert as_text.rows.tolist() == choose(counts, 40, ids=ids).rows.tolist()
    assert choose(counts, 40, seed=1).rows.tolist() != choose(counts, 40).rows.tolist()


def test_votes_bring_their_names():
    votes = btdagg.read_votes({"item": ["a", "b", "c", "a"], "vote": [1, 0, -1, 1]})
    found = choose(votes, 2)
    assert found.rows.tolist() == choose([[0, 0, 2], [0, 1, 0], [1, 0, 0]], 2, ids=list("abc")
    ).rows.tolist()  # fmt: skip
    panel = np.stack([SMALL, SMALL], axis=1)
    strata = choose(SMALL, 4, design="stratified").strata
    assert choose(panel, 4, design="stratified").strata.tolist() == strata.tolist()


@pytest.mark.parametrize(
    ("given", "argument", "expected"),
    [
        ({"n": 8}, "n", "at most 7, as many as there are items"),
        ({"n": 2, "design": "stratified"}, "n", "at least 3, one of the items in each stratum"),
        ({"n": 3, "design": "best"}, "design", "simple or stratified"),
        ({"n": 3, "ids": list("abcdeag")}, "ids", "each once"),
        ({"n": 5, "groups": list("aabbccd")}, "n", "at most 4, as many as there are groups"),
    ],
)
def test_what_cannot_be_chosen_is_named(given, argument, expected):
    with pytest.raises(btdagg.InputError) as error:
        choose(SMALL, **given)
    assert (error.value.argument, error.value.expected) == (argument, expected)


def test_strata_by_a_model_are_of_the_label_that_it_expects_of_an_item():
    rng = np.random.default_rng(8)
    x = rng.normal(size=60)
    model = btdagg.DavidsonModel(1.0, 0.5, 0.5, covariates=[btdagg.Covariate("length", 1.5, 1.0)])
    counts = np.tile([1, 2, 1], (60, 1))  # equal votes, which only the covariate tells apart
    found = choose(counts, 20, design="stratified", model=model, covariates={"length": x})
    expected = model.predict_proba(counts, covariates={"length": x}) @ [-1, 0, 1]
    parts = np.digitize(expected, [-0.6, -0.2, 0.2, 0.6])
    assert len(set(parts)) == 5
    names = ["-1 to -0.6", "-0.6 to -0.2", "-0.2 to 0.2", "0.2 to 0.6", "0.6 to 1"]
    assert found.strata.tolist() == [f"expected {names[part]}" for part in parts]
    for part in range(5):
        share = np.isin(found.rows, np.flatnonzero(parts == part)).sum() / (parts == part).sum()
        np.testing.assert_allclose(found.probabilities[parts == part], share)
    groups = np.arange(60) // 3
    means = expected.reshape(-1, 3).mean(axis=1)
    grouped = choose(
        btdagg.votes.Items(counts=counts).known_by({"length": x}),
        12,
        design="stratified",
        groups=groups,
        model=model,
    )
    of_groups = np.digitize(means, [-0.6, -0.2, 0.2, 0.6])[groups]
    assert grouped.strata.tolist() == [f"expected {names[part]}" for part in of_groups]


def test_strata_by_a_model_of_grades_have_no_label_where_there_is_no_vote():
    model = btdagg.GradeModel(3.0, (1.5, 2.5), scale=btdagg.Scale((1, 2, 3)))
    counts = [[5, 0, 0], [0, 5, 0], [0, 0, 5], [0, 0, 0]]
    found = choose(counts, 4, design="stratified", scale=btdagg.Scale((1, 2, 3)), model=model)
    wanted = ["1 to 1.4", "1.8 to 2.2", "2.6 to 3"]
    assert found.strata.tolist() == [*(f"expected {part}" for part in wanted), "no votes"]


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"model": btdagg.DavidsonModel(1.0, 0.5, 0.5)}, "design"),
        ({"covariates": {"x": [1.0] * 7}, "design": "stratified"}, "model"),
    ],
)
def test_a_model_is_of_strata_and_weighs_covariates(options, argument):
    with pytest.raises(btdagg.InputError) as error:
        choose(SMALL, 3, **options)
    assert error.value.argument == argument
