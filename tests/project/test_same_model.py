"""The same files give the same model from the command line and from Python, to the last bit."""

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.datasets import simulate
from btdagg.estimates import Certificate

N = 60
JUDGE = simulate("rb2-focus", N, 6, seed=3)
SIGNS = [(item, vote) for item in range(N) for vote in np.repeat([-1, 0, 1], JUDGE.counts[item])]
RNG = np.random.default_rng(4)


def votes_of_pairs(**more):
    return pl.DataFrame(SIGNS, schema=["item", "vote"], orient="row").with_columns(**more)


def of_panel():
    noise = RNG.permuted(np.array(SIGNS)[:, 1])
    other = votes_of_pairs(vote=pl.Series(noise), judge=pl.lit("b"))
    return pl.concat([votes_of_pairs(judge=pl.lit("a")), other])


PAIRS = {"item": range(N), "label": JUDGE.labels}
SCORES = {"item": np.repeat(np.arange(N), 3), "score": RNG.integers(1, 6, 3 * N)}
GRADES = {"item": range(N), "label": RNG.integers(1, 6, N)}


def calibrated(votes, labels, **how):
    return btdagg.calibrate(votes, labels, **how).model


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
@pytest.mark.parametrize(
    ("votes", "labels", "n_labels", "options", "fit"),
    [
        (votes_of_pairs(), PAIRS, N, (), calibrated),
        (votes_of_pairs(), PAIRS, 8, (), calibrated),
        (votes_of_pairs(), PAIRS, 8, ("--prior", "none"),
         lambda *tables: calibrated(*tables, prior=None)),
        (votes_of_pairs(margin=pl.Series(RNG.integers(0, 5, len(SIGNS)))), PAIRS, 20, (),
         calibrated),
        (pl.DataFrame(SCORES), GRADES, 30, ("--set", "scale=1-5"),
         lambda *tables: btdagg.calibrate(*tables).model),
        (of_panel(), PAIRS, 40, ("--set", "panel=judge"),
         lambda *tables: btdagg.calibrate_panel(*tables).model),
    ],
    ids=["pairs", "few labels", "the paper's fit", "strength", "grades", "panel"],
)  # fmt: skip
def test_a_command_and_python_fit_the_same_model(
    tmp_path, monkeypatch, cli, votes, labels, n_labels, options, fit
):
    monkeypatch.chdir(tmp_path)
    votes.write_csv("votes.csv")
    pl.DataFrame(labels)[:n_labels].write_csv("labels.csv")
    command = "certify" if "panel=judge" in options else "calibrate"
    status, _, err = cli(command, "votes.csv", "labels.csv", *options, "-o", "file.json")
    assert status == 0, err
    scale = btdagg.Scale(range(1, 6)) if "score" in votes.columns else None
    read = (
        btdagg.read_votes("votes.csv", scale=scale),
        btdagg.read_labels("labels.csv", scale=scale),
    )
    own = fit(*read)
    own.save("own.json")
    certified = command == "certify"
    written = Certificate.load("file.json").model if certified else type(own).load("file.json")
    # With the votes and labels that they were fitted to.
    assert written.as_dict() == type(own).load("own.json").as_dict()
    assert written.provenance.n_labels == n_labels
