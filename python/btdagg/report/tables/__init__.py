"""Every table of the paper, from the results of `btdagg.evaluation`."""

from btdagg.report.tables.answers import answers_table, methods_table
from btdagg.report.tables.calibration import parameters_table, transfer_table
from btdagg.report.tables.estimates import differences_table, estimates_table
from btdagg.report.tables.judges import positional_bias_table, raters_table, tie_rate_table
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
    ablation_table,
    calibration_sweep_table,
    comparison_table,
    order_table,
    pvalue_table,
    score_tables,
    vote_sweep_table,
)
from btdagg.report.tables.systems import systems_table

__all__ = [
    "Ranks",
    "ablation_table",
    "answers_table",
    "calibration_sweep_table",
    "comparison_table",
    "confusion_table",
    "differences_table",
    "distribution_table",
    "estimates_table",
    "forecast_table",
    "gold_table",
    "methods_table",
    "model_table",
    "order_table",
    "panel_table",
    "parameters_table",
    "plan_table",
    "positional_bias_table",
    "pvalue_table",
    "raters_table",
    "rule_table",
    "score_tables",
    "systems_table",
    "tie_rate_table",
    "transfer_table",
    "vote_sweep_table",
]
