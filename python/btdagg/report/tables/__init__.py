"""Tables of the results of `btdagg.evaluation`."""

from btdagg.report.tables.answers import answers_table, methods_table
from btdagg.report.tables.calibration import calibrations_table
from btdagg.report.tables.estimates import differences_table, estimates_table
from btdagg.report.tables.judges import positional_bias_table
from btdagg.report.tables.labels import confusion_table, distribution_table, gold_table
from btdagg.report.tables.models import (
    forecast_table,
    model_table,
    panel_table,
    plan_table,
    rule_table,
)
from btdagg.report.tables.scores import (
    Ranks,
    calibration_sweep_table,
    comparison_table,
    pvalue_table,
    score_tables,
    vote_sweep_table,
)
from btdagg.report.tables.systems import systems_table

__all__ = [
    "Ranks",
    "answers_table",
    "calibration_sweep_table",
    "calibrations_table",
    "comparison_table",
    "confusion_table",
    "differences_table",
    "distribution_table",
    "estimates_table",
    "forecast_table",
    "gold_table",
    "methods_table",
    "model_table",
    "panel_table",
    "plan_table",
    "positional_bias_table",
    "pvalue_table",
    "rule_table",
    "score_tables",
    "systems_table",
    "vote_sweep_table",
]
