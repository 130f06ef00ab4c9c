"""Tables of results."""

from btdagg.report.tables.bias import judge_bias_table as judge_bias_table
from btdagg.report.tables.bias import positional_bias_table as positional_bias_table
from btdagg.report.tables.estimates import certificate_table as certificate_table
from btdagg.report.tables.estimates import change_table as change_table
from btdagg.report.tables.estimates import differences_table as differences_table
from btdagg.report.tables.estimates import estimates_table as estimates_table
from btdagg.report.tables.estimates import systems_table as systems_table
from btdagg.report.tables.models import grades_table as grades_table
from btdagg.report.tables.models import parameters_table as parameters_table
from btdagg.report.tables.models import plan_table as plan_table
from btdagg.report.tables.scores import answers_table as answers_table
from btdagg.report.tables.scores import pvalue_table as pvalue_table
from btdagg.report.tables.scores import scores_table as scores_table
from btdagg.report.tables.scores import sweep_table as sweep_table
