"""A model with covariates decides alike by every door."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

import btdagg
import engines
from btdagg import Covariate, DavidsonModel, GradeModel, Scale
from btdagg.integrations.arrow import BatchDecider
from btdagg.serve import create_app
from btdagg.serve.bodies import ARROW, write_stream

STANDINGS = {"ant": 0.5, "bee": 0.1, "cat": -0.6}
KNOWN = (
    Covariate("standing", 0.8, 0.5, 0.0, STANDINGS),
    Covariate("length", 0.4, 1.3),
    Covariate("price", -0.3, 2.0, 0.5),
)
KNOWING = [
    DavidsonModel(1.2, 0.5, 0.8, covariates=KNOWN),
    GradeModel(2, (1.5, 2.5), Scale((1, 2, 3)), covariates=KNOWN),
]


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore:.* is missing for")
@pytest.mark.parametrize("model", KNOWING, ids=["pairs", "grades"])
def test_a_model_with_covariates_decides_alike_by_every_door(tmp_path, cli, postgres, model):
    rng, n, names = np.random.default_rng(0), 100_000, [*model.scale.columns]
    counts = rng.multinomial(2, [0.3, 0.3, 0.4], n)
    told = {name: rng.choice([*STANDINGS, "new"], n, p=[0.4, 0.3, 0.29, 0.01])
            for name in model.scale.systems}  # fmt: skip
    numbers = {"length": rng.normal(size=n), "price": np.where(rng.random(n) < 0.01, np.nan, 2.5)}
    numbers["price"] *= rng.normal(size=n)
    columns = {"item": np.arange(n), **dict(zip(names, counts.T, strict=True)), **told, **numbers}
    of_systems = [np.array([STANDINGS.get(s, np.nan) for s in own]) for own in told.values()]
    known = {"standing": np.subtract.reduce(of_systems), **numbers}
    labels = model.decide(counts, covariates=known)
    shares = model.predict_proba(counts, covariates=known)
    chances = [f"p_{name}" for name in model.label_names]

    def same(frame, rows=slice(None)):
        if "item" in frame.columns:
            frame = frame.sort(pl.col("item").cast(pl.Int64))
        np.testing.assert_array_equal(frame["label"].to_numpy(), labels[rows])
        np.testing.assert_allclose(frame[chances].to_numpy(), shares[rows], rtol=1e-9, atol=1e-12)

    # Votes in a file, as Python and the command read them.
    vote = "vote" if model.scale.mirrored else "score"
    facts = {name: values.repeat(2) for name, values in (told | numbers).items()}
    facts[vote] = np.tile(model.scale.points, n).repeat(counts.ravel())
    votes = pl.DataFrame({"item": np.arange(n).repeat(2), **facts}, nan_to_null=True)
    votes.write_csv(tmp_path / "votes.csv")
    model.save(tmp_path / "model.json")
    same(btdagg.decisions(btdagg.read_votes(tmp_path / "votes.csv", scale=model.scale), model))
    out = tmp_path / "decided.csv"
    status, _, err = cli("decide", tmp_path / "model.json", tmp_path / "votes.csv", "-o", out)
    assert status == 0, err
    same(pl.read_csv(out))
    # Counts in a frame, in a batch and in a body, which holds no missing number.
    same(btdagg.decisions(pl.DataFrame(columns), model))
    decided = BatchDecider(model, probabilities=True)(pa.table(columns))
    same(pl.from_arrow(decided))
    client, rows = TestClient(create_app(model)), ~np.isnan(numbers["price"])
    body = write_stream({name: values[rows] for name, values in columns.items()}, "")
    path, headers = "/v1/decide?probabilities=1", {"content-type": ARROW}
    same(pl.read_ipc_stream(client.post(path, content=body, headers=headers).content), rows)
    rows = np.flatnonzero(rows)[:20_000]
    body = {name: values[rows].tolist() for name, values in columns.items()}
    answer = client.post(path, json=body).json()
    np.testing.assert_array_equal(answer["labels"], labels[rows])
    np.testing.assert_array_equal(answer["probabilities"], shares[rows])
    # Three databases, where a standing is joined.
    joins = [f"LEFT JOIN standings {name} ON {name}.system = votes.{name}" for name in told]
    less = " - ".join(f"{name}.standing" for name in told)
    if model.scale.mirrored:
        each = [
            f"COUNT(CASE WHEN {vote} = {point} THEN 1 END) AS {name}"
            for name, point in zip(names, model.scale.points, strict=True)
        ]
    else:
        each = [f"AVG({vote}) AS mean"]
    counted = f"SELECT item, {', '.join([*told, *numbers, *each])} FROM votes"
    counted = f"({counted} GROUP BY {', '.join(['item', *told, *numbers])}) AS votes"
    kinds = {"item": "int", **dict.fromkeys(told, "text"), "length": "real", "price": "real"}
    for engine in (
        engines.SqliteEngine(tmp_path),
        engines.DuckDbEngine(tmp_path),
        engines.PostgresEngine(tmp_path, postgres),
    ):
        engine.table("votes", {**kinds, vote: "int"}, votes.rows())
        engine.table("standings", {"system": "text", "standing": "real"}, [*STANDINGS.items()])
        columns = model.to_sql(engine.dialect, probabilities=True)
        source = f"SELECT votes.*, {less} AS standing FROM {' '.join([counted, *joins])}"
        found = engine.rows(f"SELECT item, {columns} FROM ({source}) AS q")
        same(pl.DataFrame(found, schema=["item", "label", *chances], orient="row"))
