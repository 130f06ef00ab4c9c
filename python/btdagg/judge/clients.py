"""Clients of endpoints, by the name of their protocol."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from btdagg._core import InputError

if TYPE_CHECKING:
    from btdagg.judge.client import ChatClient

# Modules and classes, which are loaded when they are asked for, as the libraries they need are.
_CLIENTS = {
    "openai": ("openai_client", "OpenAIClient"),
    "anthropic": ("anthropic_client", "AnthropicClient"),
    "gemini": ("gemini_client", "GeminiClient"),
}
SIMULATED = "simulated"  # asks no endpoint
PROTOCOLS = (*_CLIENTS, SIMULATED)


def client_of(
    protocol: str,
    base_url: str | None = None,
    *,
    key_variable: str | None = None,
    stream: bool = False,
    timeout: float = 600.0,
) -> ChatClient:
    """Return the client of a protocol.

    Parameters
    ----------
    protocol : ``openai``, ``anthropic``, ``gemini`` or ``simulated``
    base_url, stream, timeout
        See its class; the simulated judge has none of them.
    key_variable : str, optional
        Environment variable that holds the key; the one of the protocol's library unless given.

    Raises
    ------
    InputError
        If there is no such protocol, or no key; or the address is none, or one for the simulated
        judge.
    """
    if protocol == SIMULATED:
        from btdagg.judge.simulated.client import SimulatedClient

        if base_url is not None or key_variable is not None:
            name, value = (
                ("key_variable", key_variable) if base_url is None else ("base_url", base_url)
            )
            raise InputError(
                f"{name} is {value!r}, and client is {SIMULATED}, which asks no endpoint"
            )
        return SimulatedClient()
    if protocol not in _CLIENTS:
        raise InputError(f"client is {protocol!r}, want one of {', '.join(PROTOCOLS)}")
    module, name = _CLIENTS[protocol]
    found = import_module(f"btdagg.judge.{module}")
    client: ChatClient = getattr(found, name)(
        base_url,
        key_variable=key_variable or found.KEY_VARIABLE,
        stream=stream,
        timeout=timeout,
    )
    return client
