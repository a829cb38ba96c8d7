"""Who may ask the dashboard what: hosts, tokens, and what a browser must refuse."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from midstream.model.errors import MidstreamError

TOKEN_HEADER = "x-midstream-token"
"""The header of a request that carries the token; a form of another site cannot set it."""

READ_ONLY = "this dashboard only shows; start it with --control to give commands from here"

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(
        ("default-src 'self'", "img-src 'self' data:", "object-src 'none'", "base-uri 'none'", "form-action 'none'",
         "frame-ancestors 'none'")
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}  # fmt: skip
"""With every answer: nothing is loaded from elsewhere, no page contains a script, no page frames this one."""


@dataclass(frozen=True)
class Access:
    """Where the dashboard listens, by which names it may be asked, and the token of control, if it gives any.

    >>> Access("127.0.0.1").permits("localhost:8765"), Access("127.0.0.1").permits("rebound.example:8765")
    (True, False)
    """

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()

    def permits(self, host: str) -> bool:
        """Return whether a request may name this host.

        An address may be named: only a name can be made to lead elsewhere than before (DNS rebinding), so names are
        those that were given.
        """
        name = host_name(host)
        return name in {"localhost", self.host.lower(), *map(str.lower, self.names)} or is_address(name)

    def controls(self, token: str) -> bool:
        """Return whether a request with this token may command."""
        return self.token is not None and secrets.compare_digest(token.encode(), self.token.encode())


def access(
    host: str = "127.0.0.1", *, control: bool = False, token: str | None = None, names: tuple[str, ...] = ()
) -> Access:
    """Decide the access that is asked for: with `control` but no `token` one is made, on this machine alone.

    Raises `MidstreamError` where control is asked for on a host that others reach, without a token of the user's.
    """
    if token is not None and not control:
        raise MidstreamError(
            "--token has no effect without --control", place="--token", remedy="add --control, or leave --token out"
        )
    if token is not None and len(token) < 8:
        raise MidstreamError("the token is too short", place="--token", remedy="use eight characters or more")
    if control and token is None and not is_loopback(host):
        raise MidstreamError(
            f"--control needs a token that you choose, because other machines reach {host}",
            place="--host",
            remedy="add a --token of eight characters or more, or leave --host out",
        )
    return Access(host, token or (secrets.token_urlsafe(18) if control else None), names)


def host_name(host: str) -> str:
    """Extract the name or address of a Host header, without its port.

    >>> host_name("[::1]:8765"), host_name("Example.org:80"), host_name("10.0.0.1")
    ('::1', 'example.org', '10.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


def is_address(host: str) -> bool:
    """Return whether a host is an address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)
