"""An endpoint that keeps scores as Langfuse's API documents it."""

import datetime as dt
import json

from annotated import NOON


class LangfuseEndpoint:
    """Keeps scores as Langfuse's API documents it, and gives them back in pages."""

    def __init__(self):
        self.scores, self.calls, self.page, self.rejected = {}, [], 3, []

    def client(self):
        """The SDK's client of it, which nothing leaves."""
        import httpx
        from langfuse.api import LangfuseAPI

        http = httpx.Client(transport=httpx.MockTransport(self))
        return LangfuseAPI(
            base_url="http://localhost", username="u", password="p", httpx_client=http
        )

    def __call__(self, request):
        import httpx

        self.calls.append((request.method, request.url.path))
        if request.method == "POST":
            return self._create(json.loads(request.content))
        asked = dict(request.url.params)
        assert asked["fields"] == "details,subject,annotation"
        assert int(asked["limit"]) <= 100
        found = list(self.scores.values())
        if "id" in asked:
            found = [each for each in found if each["id"] in asked["id"].split(",")]
        if "name" in asked:
            found = [each for each in found if each["name"] in asked["name"].split(",")]
        start = int(asked.get("cursor", 0))
        more = {"cursor": str(start + self.page)} if len(found) > start + self.page else {}
        body = {"data": found[start : start + self.page], "meta": {"limit": self.page} | more}
        return httpx.Response(200, json=body)

    def _create(self, asked):
        import httpx
        from langfuse.api import CreateScoreRequest
        from langfuse.api.core.pydantic_utilities import parse_obj_as

        for each in asked:
            parse_obj_as(CreateScoreRequest, each)
            self._keep(self.score(each))
        if self.rejected:
            errors = [{"message": why} for why in self.rejected]
            body = {"accepted": 0, "rejected": len(errors), "errors": errors}
            return httpx.Response(207, json=body)
        return httpx.Response(202, json={"message": "Accepted"})

    def score(self, asked):
        """A score as it is given back, of one as it is sent."""
        trace, observation = asked.get("traceId"), asked.get("observationId")
        subject = {"kind": "trace", "id": trace}
        if observation is not None:
            subject = {"kind": "observation", "id": observation, "traceId": trace}
        now = NOON.isoformat()
        if asked["dataType"] == "BOOLEAN":
            asked = asked | {"value": bool(asked["value"])}
        same = {key: asked[key] for key in ("id", "name", "value", "dataType", "metadata")}
        return same | {
            "subject": asked.get("subject", subject),
            "projectId": "p",
            "source": asked.get("source", "API"),
            "timestamp": asked.get("timestamp") or now,
            "environment": "default",
            "createdAt": now,
            "updatedAt": now,
            **({"comment": asked["comment"]} if asked.get("comment") else {}),
            **({"authorUserId": asked["authorUserId"]} if "authorUserId" in asked else {}),
        }

    def add(self, number, value, kind, **other):
        """Add a score that somebody else has written."""
        asked = {"id": f"score-{number}", "name": "better", "value": value, "dataType": kind,
                 "traceId": "t1", "metadata": {}}  # fmt: skip
        self._keep(self.score(asked | other))

    def _keep(self, score):
        # Langfuse: "To update an existing score, send it again with the same id and timestamp."
        self.scores[score["id"], dt.datetime.fromisoformat(score["timestamp"])] = score
