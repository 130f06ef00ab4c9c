from .drift import DriftMonitor as DriftMonitor
from .plans import forecast as forecast
from .plans import plan as plan
from .predictive import VoteDistribution as VoteDistribution
from .predictive import fit_votes as fit_votes
from .rule import StoppingRule as StoppingRule
from .strengths import StrengthDistribution as StrengthDistribution
from .tally import OnlineTally as OnlineTally
