"""Clients of endpoints, by the name of their protocol."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from btdagg._core import InputError

if TYPE_CHECKING:
    from btdagg.judge.endpoint_client import EndpointClient

# Modules and classes, which are loaded when they are asked for, as the libraries they need are.
_CLIENTS = {
    "openai": ("openai_client", "OpenAIClient"),
    "anthropic": ("anthropic_client", "AnthropicClient"),
    "gemini": ("gemini_client", "GeminiClient"),
}
PROTOCOLS = tuple(_CLIENTS)


def client_of(
    protocol: str,
    base_url: str | None = None,
    *,
    key_variable: str | None = None,
    stream: bool = False,
    timeout: float = 600.0,
) -> EndpointClient:
    """Return the client of a protocol.

    Parameters
    ----------
    protocol : ``openai``, ``anthropic`` or ``gemini``
    base_url, stream, timeout
        See its class.
    key_variable : str, optional
        Environment variable that holds the key; the one of the protocol's library unless given.

    Raises
    ------
    InputError
        If there is no such protocol, or no key; or the address is none.
    """
    if protocol not in _CLIENTS:
        raise InputError(f"client is {protocol!r}, want one of {', '.join(_CLIENTS)}")
    module, name = _CLIENTS[protocol]
    found = import_module(f"btdagg.judge.{module}")
    client: EndpointClient = getattr(found, name)(
        base_url,
        key_variable=key_variable or found.KEY_VARIABLE,
        stream=stream,
        timeout=timeout,
    )
    return client
