"""What has left the package stays away: files, names, options and headings of pages.

Each theme is a dict of what is gone, with what to use instead.
"""

import importlib
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name

import pytest

from btdagg import DavidsonModel
from btdagg.result import Result
from btdagg.serve import create_app

ROOT = Path(__file__).parents[2]

PAPER_ALONE = {
    "files": (
        "python/btdagg/model/absolute_error.py",
        "python/btdagg/model/corners.py",
    ),
    "names": ("btdagg.model.calibrate_by_mae",),
    "arguments": ("btdagg.methods.Calibrated loss",),
    "instead": "btdagg.paper.calibrate_by_mae, DavidsonMae, and btdagg paper evaluate",
}
SECOND_BODIES_OF_THE_SERVICE = {
    "arguments": (
        "btdagg.serve.create_app models",
        "btdagg.serve.run models",
    ),
    "paths": ("/v1/models",),
    "instead": "one model a server; counts for votes with strength, and for lists of scores",
}
SQL_OVER_VOTES = {
    "files": (
        "python/btdagg/model/sql/queries.py",
        "python/btdagg/votes/histogram.py",
        "tests/promises/test_sql_words.py",
        "tests/votes/test_histogram.py",
    ),
    "names": (
        "btdagg.DavidsonModel.to_sql_query",
        "btdagg.GradeModel.to_sql_query",
        "btdagg.PanelModel.to_sql_query",
        "btdagg.model.LabelsTable",
        "btdagg.model.VotesTable",
        "btdagg.model.histogram_query",
        "btdagg.votes.read_histogram",
    ),
    "options": ("sql --votes", "sql --labels", "sql --filter"),
    "headings": (
        "docs/sql.md#The table of votes",
        "docs/sql.md#From a project file",
        "docs/sql.md#Only the decision",
    ),
    "instead": "a group-by in the database, `to_sql` over its counts, `sqlglot` for other dialects",
}
RULES_THAT_FORESEE_STRENGTH = {
    "names": (
        "btdagg.online.StrengthDistribution",
        "btdagg.Votes.strengths",
    ),
    "arguments": ("btdagg.online.fit_votes strengths",),
    "instead": "StoppingRule.lossless(model, n), or whole votes by strength=none",
}
FOUR_FITS = {
    "files": (
        *(
            f"python/btdagg/model/{name}.py"
            for name in (
                "calibration_set",
                "grade_fit",
                "labelled",
                "newton",
                "posterior",
                "refits",
            )
        ),
        "python/btdagg/votes/unequal.py",
        *(
            f"rust/btdagg/src/{name}.rs"
            for name in ("lattice", "panel_fit", "points", "profile", "vectors", "weak_prior")
        ),
    ),
    "names": (
        "btdagg.Calibration.cross_validated",
        "btdagg.Calibration.posterior",
        "btdagg._core.PanelItems",
        "btdagg._core.Posterior",
        "btdagg._core.PosteriorRefits",
        "btdagg.reference.few_labels",
        "btdagg.reference.grade_loss",
        "btdagg.reference.weak_density",
        "btdagg.reference.weak_grid",
        "btdagg.remarks.more_votes_than_prior",
        "btdagg.remarks.unequal_votes",
    ),
    "arguments": ("btdagg.calibrate_panel seed",),
    "instead": "one fit (`model/fit.py`, `posterior.rs`) over rows of a design",
}
BIT_PLANES = {
    "files": ("python/btdagg/report/davidson.js",),
    "names": ("btdagg._core.RunningTally.export",),
    "instead": "a tally of items and seen samples in hash maps; one JavaScript module",
}
RECORDED_BITS = {
    "files": (
        "tests/model/pins.json",
        "tests/model/test_pins.py",
        "tests/project/recording.json",
        "tests/project/test_recording.py",
    ),
    "instead": "tests/promises/test_same_seed.py, and doors that agree in test_product.py",
}
FIELDS_OF_ITEMS = {
    "names": (
        "btdagg.PanelModel.counts_of",
        "btdagg.votes.Items.of",
        *(
            f"btdagg.votes.Items.{name}"
            for name in (
                "alone",
                "by",
                "confidences",
                "decisions",
                "groups",
                "keys",
                "label_rows",
                "least_probability",
                "n_unlabelled",
                "n_without_votes",
                "no_confidences",
                "no_labels",
                "probabilities",
                "raters",
                "ratings",
                "remarks",
                "shares",
                "sides",
                "signs",
                "standings",
                "strata",
                "table",
                "units",
            )
        ),
    ),
    "instead": "nine fields: facts by name, the draw (`sampling`) and the origin",
}
SHOWN_BY_RESULTS = {
    "files": (
        "python/btdagg/report/exhibit.py",
        "python/btdagg/report/figures/bias.py",
        "python/btdagg/report/tables/__init__.py",
        "python/btdagg/report/tables/estimates.py",
        "python/btdagg/report/wording.py",
    ),
    "names": (
        "btdagg.DavidsonModel.in_words",
        "btdagg.GradeModel.in_words",
        "btdagg.PanelModel.in_words",
        "btdagg.cli.estimate._show",
        "btdagg.estimates.Certificate.answer",
        "btdagg.questions.change.Change.answer",
        "btdagg.questions.bias.JudgeBias.answer",
        "btdagg.questions.gate.NonInferiority.answer",
        "btdagg.questions.estimate.Estimates.answer",
        "btdagg.questions.estimate.Estimates.next_step",
        "btdagg.questions.estimate.with_remarks",
        "btdagg.questions.systems.SystemEstimates.answer",
        "btdagg.evaluation.Cell.answer",
        "btdagg.evaluation.Scores.answer",
        "btdagg.questions.compare.Comparison.answer",
        "btdagg.questions.recalibrate.Recalibration.answer",
        "btdagg.questions.recalibrate.Recalibration.next_step",
        "btdagg.report.renderers.parts_of",
        "btdagg.report.sections.write_bias",
        "btdagg.report.sections.write_certificate",
        "btdagg.report.sections.write_change",
        "btdagg.report.sections.write_estimates",
        "btdagg.report.sections.write_systems",
        "btdagg.votes.labels.OnRaters",
        "btdagg.votes.provenance.OtherValues",
        "btdagg.votes.unequal.UnequalVotes",
        "btdagg.votes.own_words.GuessedNumbers",
    ),
    "instead": "sentence(), tables(), remarks with a code, as_dict() and figure() of a Result",
}
ONE_READER = {
    "files": (
        "python/btdagg/check.py",
        "python/btdagg/data_check.py",
        "python/btdagg/file_check.py",
        "python/btdagg/votes/own_words.py",
        "python/btdagg/votes/panel.py",
    ),
    "names": (
        "btdagg.votes.grades.refuse_grades",
        "btdagg.votes.schema.PASS_WORDS",
        "btdagg.votes.schema.VOTE_WORDS",
        "btdagg.votes.schema.points_of",
        "btdagg.votes.schema.votes",
        "btdagg.votes.schema.votes_of",
        "btdagg.votes.schema.words_on",
        "btdagg.votes.votes.Votes.tally_of_part",
        "btdagg.votes.votes.Votes.with_labels",
        "btdagg.votes.words.in_own_orders",
        "btdagg.votes.words.in_own_words",
        "btdagg.votes.words.names_systems",
        "btdagg.votes.words.voted",
    ),
    "instead": "declared columns (`votes/schema.py`), `verdicts_on`, words of `votes/words.py`",
}
ONE_INFERENCE = {
    "files": (
        *(
            f"python/btdagg/estimates/{name}.py"
            for name in (
                "certificate",
                "change",
                "deciding",
                "disagreement",
                "frames",
                "judge_bias",
                "looks",
                "mean",
                "non_inferiority",
                "population",
                "prediction_powered",
                "regression",
                "sample_design",
                "strengths",
                "systems",
                "vote_profile",
                "weighted_bound",
            )
        ),
        *(
            f"python/btdagg/evaluation/{name}.py"
            for name in ("comparison", "evaluation", "recalibration", "significance")
        ),
    ),
    "names": (
        "btdagg.inference.intervals.t_pvalues",
        "btdagg.inference.regression.Regression.covariances",
        "btdagg.inference.strengths.FittedStrengths.intervals",
        "btdagg.evaluation.new_items.NewItems._ends",
        "btdagg.questions.change._half_width",
        "btdagg.questions.gate._bounds",
    ),
    "instead": "inference/estimate.py: an `Estimate`, its interval and its p-value",
}


def subclasses(cls):
    importlib.import_module("btdagg.report.sections")  # which knows most results
    importlib.import_module("btdagg.questions.recalibrate")
    importlib.import_module("btdagg.online.plans")
    return sorted(cls.__subclasses__(), key=lambda result: result.__name__)


THEMES = [
    theme for theme in [*globals().values()] if isinstance(theme, dict) and "instead" in theme
]


def of(kind):
    return [name for theme in THEMES for name in theme.get(kind, ())]


@pytest.mark.parametrize("path", of("files"))
def test_a_file_is_gone(path):
    assert not (ROOT / path).exists()


@pytest.mark.parametrize("name", of("names"))
def test_a_name_is_gone(name):
    parts, value = name.split("."), None
    while value is None:
        try:
            value = importlib.import_module(".".join(parts))
        except ModuleNotFoundError:
            parts.pop()
    *owners, last = name.split(".")[len(parts) :] or [""]
    for owner in owners:
        if not hasattr(value, owner):
            return
        value = getattr(value, owner)
    assert not hasattr(value, last)
    assert not (isinstance(value, dict) and last in value)


@pytest.mark.parametrize("argument", of("arguments"))
def test_an_argument_is_gone(argument):
    function, name = argument.split()
    assert name not in signature(resolve_name(function)).parameters


@pytest.mark.parametrize("path", of("paths"))
def test_a_path_of_the_service_is_gone(path):
    app = create_app(DavidsonModel(1.2, 2.0, 0.8))
    assert path not in app.openapi()["paths"]


@pytest.mark.parametrize("option", of("options"))
def test_an_option_is_gone(option, cli):
    command, name = option.rsplit(" ", 1)
    status, out, _ = cli(*command.split(), "--help")
    assert status == 0
    assert name not in out.split()


@pytest.mark.parametrize("heading", of("headings"))
def test_a_heading_of_a_page_is_gone(heading):
    page, _, text = heading.partition("#")
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert text not in {line.lstrip("# ") for line in lines if line.startswith("#")}


@pytest.mark.parametrize("result", subclasses(Result), ids=lambda result: result.__name__)
def test_a_result_has_no_dict_of_its_own(result):
    assert not {"as_dict", "__str__", "answer", "next_step", "in_words"} & {*vars(result)}
