"""Which hosts a program may reach where the network is `vendor`: its vendor's, and those that are named."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

TLS_PORT = 443
PORT_MAX = 65_535

# What a CLI needs for its answers and to renew its login. Reports of use and updates are not on the list.
_ANTHROPIC = ("api.anthropic.com", "platform.claude.com", "console.anthropic.com", "claude.ai")
_OPENAI = ("api.openai.com", "chatgpt.com", "auth.openai.com")
_GOOGLE = (
    "generativelanguage.googleapis.com",
    "cloudcode-pa.googleapis.com",
    "aiplatform.googleapis.com",
    "oauth2.googleapis.com",
    "www.googleapis.com",
)
VENDORS: Mapping[str, tuple[str, ...]] = {"claude": _ANTHROPIC, "codex": _OPENAI, "gemini": _GOOGLE}
PROVIDERS: Mapping[str, tuple[str, ...]] = {  # whom a CLI for many vendors asks, by the model's first word
    "anthropic": _ANTHROPIC,
    "deepseek": ("api.deepseek.com",),
    "google": _GOOGLE,
    "groq": ("api.groq.com",),
    "mistral": ("api.mistral.ai",),
    "openai": _OPENAI,
    "opencode": ("opencode.ai",),
    "openrouter": ("openrouter.ai",),
    "xai": ("api.x.ai",),
}

_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_BASE_URL = re.compile(
    r"(?:base_?url|api_?base|(?<!otlp_)endpoint)[\"']?\s*[=:]\s*[\"']?(https?://[^\s\"'\\,}]+)", re.IGNORECASE
)


@dataclass(frozen=True)
class Target:
    """A host and port that may be reached. `*.example.com` is every name below that one."""

    host: str
    port: int
    tls: bool = False  # whether only TLS for this very name is let through

    def admits(self, host: str, port: int) -> bool:
        """Whether this is the target that is asked for."""
        if port != self.port:
            return False
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine alone."""
        address = _address(self.host)
        return self.host == "localhost" or (address is not None and address.is_loopback)


def plain_host(host: str) -> str:
    """One spelling for a host: no capitals, no brackets, no dot at the end."""
    return host.lower().removeprefix("[").removesuffix("]").removesuffix(".")


def is_host(host: str) -> bool:
    """Whether this is one host, plainly written: what a resolver reads as the same that we compared."""
    return _address(host) is not None or (not host.startswith("*") and bool(_NAME.fullmatch(host)))


def target(word: str) -> Target:
    """`example.com`, `*.example.com`, `example.com:8443`, `127.0.0.1:5432`; ValueError for what is none."""
    address = _address(plain_host(word))
    name, port = (word, "") if address else _split(word)
    host = plain_host(name)
    number = int(port) if re.fullmatch(r"\d{1,5}", port) else TLS_PORT if not port else 0
    if not 0 < number <= PORT_MAX or not (_address(host) or _NAME.fullmatch(host)):
        raise ValueError(f"{word!r} is no host such as example.com, *.example.com or example.com:8443")
    found = Target(host, number, tls=number == TLS_PORT and not _address(host))
    if found.is_loopback and not port:
        raise ValueError(f"{word!r} needs a port, such as {word}:5432")
    return found


def of_url(url: str) -> Target | None:
    """Where a URL leads; None where it leads nowhere."""
    try:
        parts = urlsplit(url)
        secure = parts.scheme.lower() == "https"
        host, port = plain_host(parts.hostname or ""), parts.port or (TLS_PORT if secure else 80)
    except ValueError:
        return None
    if not is_host(host):
        return None
    return Target(host, port, tls=secure and not _address(host))


def configured(texts: Iterable[str]) -> tuple[Target, ...]:
    """Where the base URLs lead that settings, variables and command lines name."""
    found = (of_url(url) for text in texts for url in _BASE_URL.findall(text))
    return tuple(dict.fromkeys(one for one in found if one is not None))


def lines(env: Mapping[str, str]) -> list[str]:
    """Variables as text."""
    return [f"{name}={value}" for name, value in env.items()]


def named(words: Iterable[str]) -> tuple[Target, ...]:
    """The targets of a list of hosts."""
    return tuple(map(target, words))


def _split(word: str) -> tuple[str, str]:
    host, colon, port = word.rpartition(":")
    return (host, port or "-") if colon else (word, "")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in host else ipaddress.ip_address(host)  # a zone may be any text
    except ValueError:
        return None
