"""Calibrated labels from the noisy votes and grades of LLM judges.

>>> import btdagg
>>> counts = [[0, 2, 10], [1, 10, 1], [11, 1, 0], [4, 3, 5], [2, 1, 9], [6, 2, 4]]
>>> calibration = btdagg.calibrate(counts, labels=[1, 0, -1, 0, 1, 0])
>>> calibration.model.decide_one(minus=0, tie=1, plus=11)
1
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
