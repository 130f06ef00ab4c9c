"""btdagg on votes with their strength."""

import btdagg

NAME, LEAST, WANTS = "btdagg, strength", 10, "strong"


def decide(seen, new):
    return btdagg.calibrate(seen.strong, seen.labels).model.predict_proba(new.strong)
