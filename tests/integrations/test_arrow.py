"""Record batches are decided as arrays are, alone and by the engines that hand them over."""

import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import btdagg
from btdagg import Covariate, DavidsonModel, GradeModel, InputError, Scale, decisions
from btdagg.integrations.arrow import BatchDecider
from btdagg.online import StoppingRule, fit_votes
from draws import triples

MODEL = DavidsonModel(1.2, 0.5, 0.8)
TRIPLES = np.array(list(triples(30)))
RANDOM = np.random.default_rng(5).integers(0, 60, (100_000, 3))
COUNTS = np.vstack([TRIPLES, RANDOM])
DECIDE = BatchDecider(MODEL, probabilities=True)
ADDED = ["label", "p_minus", "p_tie", "p_plus"]


def batch_of(counts, kinds=("int64", "int64", "int64"), **more):
    columns = {
        name: pa.array(counts[:, place].astype(kind))
        for place, (name, kind) in enumerate(zip(("minus", "tie", "plus"), kinds, strict=True))
    }
    return pa.record_batch({"item": pa.array(np.arange(len(counts))), **columns, **more})


def check(columns, counts=COUNTS):
    """Check what was added to columns whose rows may have been reordered."""
    order = np.argsort(columns["item"])
    np.testing.assert_array_equal(np.asarray(columns["label"])[order], MODEL.decide(counts))
    shares = np.column_stack([columns[name] for name in ADDED[1:]])[order]
    np.testing.assert_array_equal(shares, MODEL.predict_proba(counts))


@pytest.mark.parametrize("kind", ["uint8", "float64"])
@pytest.mark.parametrize("as_table", [False, True])
def test_labels_and_probabilities_are_those_of_arrays(kind, as_table):
    batch = batch_of(COUNTS, [kind] * 3)
    if as_table:
        batch = pa.Table.from_batches([batch.slice(0, 777), batch.slice(777)])
    found = DECIDE(batch)
    assert type(found) is type(batch)
    assert found.schema.names == [*batch.schema.names, *ADDED]
    assert found.select(batch.schema.names).equals(batch)
    check(found.to_pydict())


def test_columns_may_have_offsets():
    batch = batch_of(COUNTS[:500]).slice(100, 300)
    assert DECIDE(batch)["label"].to_pylist() == MODEL.decide(COUNTS[100:400]).tolist()
    assert len(DECIDE(batch.slice(0, 0))) == 0


@pytest.mark.parametrize("with_risk", [False, True])
def test_a_rule_says_where_it_stops(with_risk):
    rule = StoppingRule.lossless(MODEL, n=8)
    if with_risk:
        full = TRIPLES[TRIPLES.sum(axis=1) == 8]
        votes = fit_votes(full, MODEL.decide(full))
        rule = StoppingRule.risk_bounded(MODEL, 8, votes, epsilon=0.1)
    counts = TRIPLES[TRIPLES.sum(axis=1) <= 8]
    decide = BatchDecider(rule, probabilities=True)
    found = decide(batch_of(counts))
    assert found["label"].to_pylist() == rule.decide(counts).tolist()
    settled = rule.stops(counts)
    assert found["settled"].to_pylist() == settled.tolist()
    chances = zip(MODEL.predict_proba(counts)[:, 1].tolist(), counts.sum(axis=1) == 8, strict=True)
    assert found["p_tie"].to_pylist() == [chance if full else None for chance, full in chances]
    decided = btdagg.decisions(counts, rule)
    for name in {*found.schema.names} - {"minus", "tie", "plus"}:
        assert found[name].to_pylist() == decided[name].to_list()
    assert ("change_risk" in found.schema.names) is (rule.votes is not None)
    if rule.votes is not None:
        risks = rule.change_risk(counts)
        wanted = [
            float(risk) if stops else None for risk, stops in zip(risks, settled, strict=True)
        ]
        assert found["change_risk"].to_pylist() == wanted


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tie": [1, None]}, r"counts\[1, 1\] \(tie\) is NaN, expected a finite number"),
        (
            {"label": [1, 1]},
            "batch already has a column 'label', which decisions would add; rename it",
        ),
    ],
)
def test_what_is_wrong_in_a_batch_is_named(change, message):
    columns = {"minus": [1, 2], "tie": [0, 0], "plus": [3, 1]}
    with pytest.raises(InputError, match=message):
        DECIDE(pa.record_batch(columns | change))


@pytest.mark.parametrize("grades", [(0, 1), (1, 2.5, 90)])
def test_grades_are_decided_by_columns_of_their_points(grades):
    cuts = np.linspace(1.5, 2.5, len(grades) - 1)
    model = GradeModel(2, cuts, Scale((1, 2, 3.5)), Scale(grades))
    counts = TRIPLES[TRIPLES.any(axis=1)]
    columns = dict(zip(("3.5", "1", "2"), counts[:, [2, 0, 1]].T, strict=True))
    found = BatchDecider(model, probabilities=True)(pa.record_batch(columns))
    assert found.schema.names == [*columns, "label", *(f"p_{grade}" for grade in grades)]
    decided = model.decide(counts)
    assert found["label"].type == pa.from_numpy_dtype(decided.dtype)
    assert found["label"].to_pylist() == decided.tolist()
    assert found[f"p_{grades[-1]}"].to_pylist() == model.predict_proba(counts)[:, -1].tolist()


KNOWN = (
    Covariate("standing", 0.6, 0.5, standings={"x": 0.4, "y": -0.2}),
    Covariate("length", -0.3, 2.0),
)


@pytest.mark.parametrize("mirrored", [True, False])
def test_covariates_are_columns_or_made_of_those_that_say_them(mirrored):
    model = replace(MODEL, covariates=KNOWN)
    if not mirrored:
        model = GradeModel(2, (1.5, 2.5), Scale((1, 2, 3)), covariates=KNOWN)
    counts = TRIPLES[TRIPLES.any(axis=1)]
    rng, n, names = np.random.default_rng(1), len(counts), [*model.scale.columns]
    sides = ["_a", "_b"] if mirrored else [""]
    systems = [rng.choice(["x", "y"], n) for _ in sides]
    chars = [rng.integers(0, 999, n) for _ in sides]
    told = np.array([[KNOWN[0].standings[name] for name in own] for own in systems])
    logs = np.log1p(np.array(chars, dtype=float))
    known = {"standing": np.subtract.reduce(told), "length": np.subtract.reduce(logs)}
    made = {f"system{side}": own for side, own in zip(sides, systems, strict=True)}
    made |= {f"chars{side}": own for side, own in zip(sides, chars, strict=True)}
    decide, by_name = (
        BatchDecider(model, probabilities=True),
        dict(zip(names, counts.T, strict=True)),
    )
    for columns in (known, made, {**made, "length": known["length"]}):
        found = decide(pa.record_batch({**by_name, **columns}))
        labels = model.decide(counts, covariates=known)
        assert found["label"].to_pylist() == labels.tolist()
        shares = [found[f"p_{name}"] for name in model.label_names]
        np.testing.assert_array_equal(
            np.column_stack(shares), model.predict_proba(counts, covariates=known)
        )
        frame = pl.DataFrame({"item": np.arange(n), **by_name, **columns})
        assert decisions(frame, model)["label"].to_list() == labels.tolist()
    rule = StoppingRule.lossless(model, 30)
    found = BatchDecider(rule)(pa.record_batch({**by_name, **made}))
    assert found["settled"].to_pylist() == rule.stops(counts, covariates=known).tolist()
    assert found["label"].to_pylist() == rule.decide(counts, covariates=known).tolist()
    # What is not known: null, as NaN is, and a system that the model has not met.
    bare = pa.record_batch(
        {**by_name, "standing": pa.nulls(n, pa.int8()), "length": known["length"]}
    )
    nothing = known | {"standing": np.full(n, np.nan)}
    wanted = model.decide(counts, covariates=nothing).tolist()
    with pytest.warns(UserWarning, match=f"standing is missing for {n} items"):
        assert decide(bare)["label"].to_pylist() == wanted
    strange = made | {f"system{sides[0]}": ["new"] * n}
    with pytest.warns(UserWarning, match=f"standing is missing for {n} items"):
        found = decide(pa.record_batch({**by_name, **strange}))
    assert found["label"].to_pylist() == wanted


@pytest.mark.parametrize(
    ("own", "change", "message"),
    [
        (KNOWN, {"length": None}, "batch: expected length, or chars_a and chars_b, or response_a "),
        (
            KNOWN,
            {"standing": None},
            "batch: expected standing, or system_a and system_b, a covariate",
        ),
        (
            (Covariate("standing", 1, 1),),
            {"standing": None},
            "batch: expected standing, a covariate",
        ),
        (KNOWN, {"length": ["long"]}, r"covariates\['length'\]"),
        (KNOWN, {"length": [np.inf]}, r"covariates\['length'\]\[0\] is inf, expected a number"),
    ],
)
def test_a_batch_without_covariates_is_refused_by_name(own, change, message):
    columns = {"minus": [1], "tie": [0], "plus": [3], "standing": [0.1], "length": [0.2]} | change
    columns |= {"system_a": ["x"], "system_b": ["y"]} if len(own) == 1 else {}
    batch = pa.record_batch({name: own for name, own in columns.items() if own is not None})
    with pytest.raises(InputError, match=message):
        BatchDecider(replace(MODEL, covariates=own))(batch)


def test_it_can_be_sent_to_workers():
    for by in (MODEL, StoppingRule.lossless(MODEL, n=6)):
        decide = BatchDecider(by)
        assert pickle.loads(pickle.dumps(decide)) == decide


@pytest.mark.integration
def test_spark_hands_over_its_batches(spark):
    frame = spark.createDataFrame(pa.Table.from_batches([batch_of(COUNTS)]).to_pandas())
    schema = "item long, minus long, tie long, plus long, label byte, " + ", ".join(
        f"{name} double" for name in ADDED[1:]
    )
    found = frame.repartition(3).mapInArrow(DECIDE.batches, schema).toArrow()
    check(found.to_pydict())


@pytest.mark.integration
def test_ray_data_hands_over_its_batches():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        data = ray.data.from_arrow(pa.Table.from_batches([batch_of(COUNTS)]))
        found = data.map_batches(DECIDE, batch_format="pyarrow", batch_size=10_000).to_pandas()
    finally:
        ray.shutdown()
    check(found.to_dict("list"))


@pytest.mark.integration
def test_dask_hands_over_its_partitions():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(batch_of(COUNTS).to_pandas(), npartitions=3)

    def decided(part):
        return DECIDE(pa.RecordBatch.from_pandas(part, preserve_index=False)).to_pandas()

    check(frame.map_partitions(decided).compute(scheduler="threads").to_dict("list"))
