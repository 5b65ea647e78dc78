# SPDX-License-Identifier: Apache-2.0
"""Hides secrets: values of params, arguments and environment variables with secret names, and text in the form of well-known
keys. All recorded text passes through a Scrubber."""
from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

HIDDEN = '(hidden)'
SHORTEST = 6

_NAME = re.compile(r'(?:^|[^a-z])(?:api[_-]?key|apikey|access[_-]?key|private[_-]?key|secret(?:s|[_-]?key)?|[a-z]*passw(?:or)?d|passphrase|pwd'
                   r'|credentials?|token|auth|bearer|cookie|dsn|webhook(?:[_-]?url)?)(?:$|[^a-z])', re.I)
_CAMEL = re.compile(r'(?<=[a-z0-9])(?=[A-Z])')
# Key prefixes that services publish for secret scanners.
_SHAPE = re.compile(r'\b(?:sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}'
                    r'|glpat-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|dpt[_-][A-Za-z0-9_-]{16,}'
                    r'|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})')
# User and password before the host of a URL, or a word long enough to be a token. A password contains no quotes.
_USERINFO = re.compile(r"""(?<=://)(?:[^/\s:@?#"'<>]*:([^/\s?#"'<>]+)|([^/\s:@?#"'<>]{20,}))(?=@)""")
# name=value and "name": value inside a word
_PAIR = re.compile(r"""([A-Za-z0-9_.-]+)["']?\s*[:=]\s*["']?([^"',;&{}\s]+)""")
LONG_WORD = 20
LONGEST_WORD = 8192


def is_secret_name(name: str) -> bool:
    return bool(_NAME.search(_CAMEL.sub('_', name)))


def is_secret_value(value: object) -> bool:
    """Returns false for values under a secret name that cannot be secret: a tokenizer's pad_token, a number of tokens."""
    return isinstance(value, str) and len(value) >= SHORTEST and value[0] not in '<[' and not re.search(r'\s', value)


def _parts(value: str) -> list[str]:
    """Parts of a secret to hide: the whole, and the long words of a text with several (a PEM key)."""
    words = [] if value[:1] in ('<', '[') else value.split()  # no pad_token
    return [value] * (len(value) >= SHORTEST and bool(words)) + [word for word in words if len(words) > 1 and len(word) >= LONG_WORD]


def of_arguments(argv: Sequence[str]) -> list[str]:
    """Values of arguments whose flags name a secret: --api-key X, --api-key=X, api_key=X, {"api_key": "X"}; passwords in URLs."""
    found: list[str] = []
    for at, word in enumerate(argv):
        found += of_addresses(word)
        found += [value for name, value in _PAIR.findall(word) if is_secret_name(name) and is_secret_value(value)]
        name, equals, value = word.partition('=')
        if not is_secret_name(name):
            continue
        if equals:
            found += _parts(value)
        elif word.startswith('-') and at + 1 < len(argv) and not argv[at + 1].startswith('-'):
            found += _parts(argv[at + 1])
    return found


def of_environment(env: Mapping[str, str]) -> list[str]:
    """Values of variables with secret names, except paths; passwords in URLs."""
    found: list[str] = []
    for name, value in env.items():
        found += of_addresses(value)
        if is_secret_name(name) and not value.startswith('/'):
            found += _parts(value)
    return found


def of_addresses(text: str) -> list[str]:
    """Passwords in https://user:password@host/, percent-encoded and decoded."""
    if '://' not in text:
        return []
    found = [password or token for password, token in _USERINFO.findall(text)]
    if any('%' in one for one in found):
        from urllib.parse import unquote
        found += [unquote(one) for one in found]
    return [one for one in found if len(one) >= SHORTEST]


class Scrubber:
    """Replaces secrets in text."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        if self._values.issuperset(values):
            return
        self._values.update(values)
        longest_first = sorted(self._values, key=len, reverse=True)
        self._known = re.compile('|'.join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        """Adds passwords of URLs to the secrets, so they are hidden in all text."""
        if len(text) < SHORTEST:
            return text
        if '://' in text and '@' in text:
            self.add(of_addresses(text))
            text = _USERINFO.sub(HIDDEN, text)
        if self._known:
            text = self._known.sub(HIDDEN, text)
        return _SHAPE.sub(HIDDEN, text)

    def setting(self, name: str, value: Any) -> Any:
        """Scrubs a param's value; a value with a secret name is added to the secrets."""
        if isinstance(value, str):
            if is_secret_name(name) and is_secret_value(value):
                self.add([value])
                return HIDDEN
            return self.text(value)
        return value


class Pieces:
    """Buffers the last word of a stream until its end, so that a secret written in two pieces is found."""

    def __init__(self, scrubber: Scrubber) -> None:
        import _thread
        self._scrubber, self._word, self._lock = scrubber, '', _thread.RLock()

    def add(self, text: str) -> str:
        """Adds text and returns what is complete."""
        with self._lock:
            text = self._word + text
            end = max(text.rfind(' '), text.rfind('\n'), text.rfind('\r'), text.rfind('\t')) + 1
            if len(text) - end > LONGEST_WORD:
                end = len(text)
            self._word = text[end:]
            return self._scrubber.text(text[:end])

    def rest(self) -> str:
        with self._lock:
            word, self._word = self._word, ''
            return self._scrubber.text(word)
