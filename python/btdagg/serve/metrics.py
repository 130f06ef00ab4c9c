"""What the scorer counts, for Prometheus and for its last words."""

from __future__ import annotations

from collections import Counter as Tally

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATHS = (
    "/v1/decide",
    "/v1/tally",
    "/v1/model",
    "/v1/reload",
    "/healthz",
    "/readyz",
    "/metrics",
    "/docs",
)
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counters of one scorer, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.answered: Tally[str] = Tally()
        self.n_accepted = 0
        self._requests = Counter(
            "btdagg_requests",
            "Requests by path and status.",
            ["path", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "btdagg_request_seconds",
            "Seconds from the headers to the answer.",
            ["path"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.items = Counter("btdagg_items", "Items decided or tallied.", registry=self.registry)
        self.in_flight = Gauge("btdagg_requests_in_flight", "Now.", registry=self.registry)
        self.reloads = Counter(
            "btdagg_model_reloads",
            "Reloads of the model file.",
            ["outcome"],
            registry=self.registry,
        )

    def accept(self) -> None:
        """Count a request whose headers have come."""
        self.n_accepted += 1
        self.in_flight.inc()

    def answer(self, path: str, status: str, seconds: float) -> None:
        """Count its end: a status, or ``gone`` where the client left before its body was there."""
        known = path if path in PATHS else "other"
        self.answered[status] += 1
        self._requests.labels(known, status).inc()
        self.seconds.labels(known).observe(seconds)
        self.in_flight.dec()

    def text(self) -> bytes:
        """Return all of it in Prometheus's text format."""
        return generate_latest(self.registry)
