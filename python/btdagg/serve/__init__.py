"""The HTTP scorer: decisions of a model over JSON and Arrow."""

from btdagg._util.extras import needs

with needs("serve", "serving"):
    from btdagg.serve.app import create_app
    from btdagg.serve.server import run

__all__ = ["create_app", "run"]
