"""The HTTP scorer: decisions and tallies of a model over JSON and Arrow."""

from btdagg.extras import needs

with needs("serve", "serving"):
    from btdagg.serve.app import create_app
    from btdagg.serve.server import run
    from btdagg.serve.settings import Settings

__all__ = ["Settings", "create_app", "run"]
