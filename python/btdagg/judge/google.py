"""Google's models, but for damaged chunks of a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.genai.types import GenerateContentResponse
from pydantic_ai.models.google import GoogleModel


class StrictGoogleModel(GoogleModel):
    """A model that fails at a damaged chunk, over which the library passes, losing words."""

    async def _process_streamed_response(
        self, response: AsyncIterator[GenerateContentResponse], *options: Any
    ) -> Any:
        return await super()._process_streamed_response(_whole(response), *options)


async def _whole(
    chunks: AsyncIterator[GenerateContentResponse],
) -> AsyncIterator[GenerateContentResponse]:
    async for chunk in chunks:
        candidates = chunk.candidates or ()
        has_words = candidates and all(c.content or c.finish_reason for c in candidates)
        is_aside = chunk.candidates is None and (chunk.usage_metadata or chunk.prompt_feedback)
        if not (has_words or is_aside):
            raise ValueError("not a chunk of an answer")
        yield chunk
