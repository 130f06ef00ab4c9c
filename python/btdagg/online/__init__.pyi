from .anchor_plan import plan_anchors as plan_anchors
from .drift import DriftMonitor as DriftMonitor
from .plans import forecast as forecast
from .plans import plan as plan
from .predictive import VoteDistribution as VoteDistribution
from .predictive import fit_votes as fit_votes
from .rule import StoppingRule as StoppingRule
from .tally import OnlineTally as OnlineTally
