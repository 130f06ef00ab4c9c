"""Fewer votes for the same labels: stopping rules, plans, running tallies, drift.

>>> from btdagg import DavidsonModel
>>> from btdagg.online import StoppingRule
>>> rule = StoppingRule.lossless(DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8), n=12)
>>> rule.stops_one(minus=0, tie=1, plus=10), rule.decide_one(minus=0, tie=1, plus=10)
(True, 1)
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
