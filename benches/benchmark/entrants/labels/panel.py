"""btdagg with a weight for each judge."""

import btdagg

NAME, LEAST, WANTS = "btdagg, panel", 10, "by_judge"


def decide(seen, new):
    return btdagg.calibrate_panel(seen.by_judge, seen.labels).model.predict_proba(new.by_judge)
