"""The providers of models: where they are, and what they need."""

from __future__ import annotations

from typing import NamedTuple

SIMULATED = "simulated"  # the model that asks no endpoint


class Provider(NamedTuple):
    """Where a provider is, and what a client of it needs."""

    address: str
    path: str  # which its library adds to a base URL
    library: str  # module that is imported
    extra: str  # of btdagg, which installs it
    key_variables: tuple[str, ...]  # the first that is set
    needs_key: bool = True
    address_variable: str = ""


_CHAT = "/chat/completions"
PROVIDERS = {
    "openai": Provider(
        "https://api.openai.com/v1", _CHAT, "openai", "judge", ("OPENAI_API_KEY",),
        address_variable="OPENAI_BASE_URL",
    ),
    "anthropic": Provider(
        "https://api.anthropic.com", "/v1/messages", "anthropic", "anthropic",
        ("ANTHROPIC_API_KEY",),
    ),
    "google": Provider(
        "https://generativelanguage.googleapis.com", "/v1beta", "google.genai", "google",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    "bedrock": Provider("", "", "boto3", "bedrock", ("AWS_BEARER_TOKEN_BEDROCK",), needs_key=False),
    "ollama": Provider(
        "http://localhost:11434/v1", _CHAT, "openai", "judge", ("OLLAMA_API_KEY",),
        needs_key=False, address_variable="OLLAMA_BASE_URL",
    ),
}  # fmt: skip


def provider_of(model: str) -> tuple[str, str]:
    """Return the provider and the name of a model; a bare name is one of an OpenAI-like endpoint.

    Examples
    --------
    >>> provider_of("anthropic:claude-sonnet-5"), provider_of("llama3:8b")
    (('anthropic', 'claude-sonnet-5'), ('openai', 'llama3:8b'))
    """
    prefix, colon, name = model.partition(":")
    return (prefix, name) if colon and name and prefix in PROVIDERS else ("openai", model)
