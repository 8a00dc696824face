"""Addresses without their passwords, for messages, logs and files.

A password is hidden wherever it stands: before the host, as a parameter, or anywhere in a malformed address.
"""

from __future__ import annotations

import re
import traceback
from urllib.parse import unquote, unquote_plus

HIDDEN = "***"

_NAMES = r"\w*(?:passw(?:or)?d|passphrase|pwd|secret|token)\w*|pass|api_?key|access_?key"
_PARAMETER = re.compile(rf"(?i)\b({_NAMES})(\s*=\s*|%3D)('[^']*'|\"[^\"]*\"|\{{[^}}]*\}}|[^&;\s'\"]+)")
_USER = re.compile(r"""([\w+.-]+:/{0,3})?[^\s:/@'"]*:[^\s'"]*@""")
# Only an address of this form is shown with its host. In any other, each part may be a password.
_WELL_FORMED = re.compile(
    r"(?P<scheme>[\w+.-]+)://(?:[^/?#@]*@)?(?P<host>[\w.-]*|\[[\da-fA-F:.]+\])(?P<port>:\d+)?(?P<path>/[^?#@;=]*)?"
    r"(?:[?#;][^@]*)?"
)


def shown_address(address: str) -> str:
    """Scheme, host and path of an address, or the scheme alone where it is malformed; a path as it is."""
    if re.fullmatch(r"[\w./ -]+", address):
        return address
    match = _WELL_FORMED.fullmatch(address)
    if match:
        # Where a user is missing, a host may be missing too: its "port" is then a password.
        port = match["port"] if "@" in address or match["scheme"] in ("http", "https") else None
        return f"{match['scheme']}://{match['host']}{port or ''}{match['path'] or ''}"
    scheme = re.match(r"[\w+.-]+://", address)
    return f"{scheme[0] if scheme else ''}..."


def hide_secrets(text: str, address: str = "") -> str:
    """A text without the passwords of addresses in it, and without those of `address` wherever they stand."""
    for secret in sorted(_secrets_of(address), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _USER.sub(rf"\1{HIDDEN}@", _PARAMETER.sub(rf"\1\2{HIDDEN}", text))


def tells_secrets(error: BaseException, address: str) -> bool:
    """Whether the messages of an error, or of those that it came from, hold a password of this address."""
    text = "".join(traceback.format_exception(error))
    return any(secret in text for secret in _secrets_of(address))


def _secrets_of(address: str) -> set[str]:
    """Every part of an address that may be a password, as written and decoded."""
    secrets = set()
    for text in {address, unquote(address), unquote_plus(address)}:
        for match in _PARAMETER.finditer(text):
            value = match[3].strip("'\"{}")
            secrets |= {
                form for part in (value, value.partition("#")[0]) for form in (part, unquote_plus(part))
            }
        rest = re.sub(r"^[\w+.-]+://", "", text)
        before_host = rest.rpartition("@")[0]
        if not before_host and not re.match(r"[^/?#]*:\d+([/?#]|$)", rest):
            before_host = re.split("[/?#]", rest)[0]  # the host is missing, or the colon starts a port
        while ":" in before_host:  # a password may have colons, and `//` may be missing
            before_host = before_host.partition(":")[2].lstrip("/")
            secrets |= {before_host, *before_host.split("@")}
    return secrets - {""}
