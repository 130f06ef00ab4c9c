"""The providers of models: where they are, and what they need."""

from __future__ import annotations

from typing import NamedTuple

SIMULATED = "simulated"  # the model that asks no endpoint


class KnownProvider(NamedTuple):
    """What is known of a provider."""

    address: str  # its own
    path: str  # what its library adds to a base URL
    extra: str  # what is to be installed
    key_variables: tuple[str, ...]  # the first that is set
    needs_key: bool = True


PROVIDERS = {
    "openai": KnownProvider(
        "https://api.openai.com/v1", "/chat/completions", "judge", ("OPENAI_API_KEY",)
    ),
    "anthropic": KnownProvider(
        "https://api.anthropic.com", "/v1/messages", "anthropic", ("ANTHROPIC_API_KEY",)
    ),
    "google": KnownProvider(
        "https://generativelanguage.googleapis.com", "/v1beta", "google",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    "bedrock": KnownProvider("", "", "bedrock", ("AWS_BEARER_TOKEN_BEDROCK",), needs_key=False),
    "ollama": KnownProvider(
        "http://localhost:11434/v1", "/chat/completions", "judge", ("OLLAMA_API_KEY",),
        needs_key=False,
    ),
}  # fmt: skip
ADDRESS_VARIABLES = {"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_BASE_URL"}


def provider_of(model: str) -> tuple[str, str]:
    """Return the provider and the name of a model; a bare name is one of an OpenAI-like endpoint.

    Examples
    --------
    >>> provider_of("anthropic:claude-sonnet-5"), provider_of("llama3:8b")
    (('anthropic', 'claude-sonnet-5'), ('openai', 'llama3:8b'))
    """
    prefix, colon, name = model.partition(":")
    return (prefix, name) if colon and name and prefix in PROVIDERS else ("openai", model)
