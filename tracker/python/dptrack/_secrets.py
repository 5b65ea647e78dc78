"""What must not be recorded: values of settings, arguments and environment variables whose names say that they are secret,
and whatever looks like a well-known kind of key. Everything that is recorded as text goes through a Scrubber. Knows
neither runs nor where text comes from."""
import re

HIDDEN = '(hidden)'
SHORTEST = 6

_NAME = re.compile(r'(?:^|[^a-z])(?:api[_-]?key|apikey|access[_-]?key|private[_-]?key|secret(?:s|[_-]?key)?|passw(?:or)?d|passphrase|pwd'
                   r'|credentials?|token|auth|bearer|cookie|dsn|webhook(?:[_-]?url)?)(?:$|[^a-z])', re.I)
_CAMEL = re.compile(r'(?<=[a-z0-9])(?=[A-Z])')
# Prefixes that the services themselves chose so that keys can be found.
_SHAPE = re.compile(r'\b(?:sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}'
                    r'|glpat-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|dpt_[A-Za-z0-9_-]{16,}'
                    r'|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})')
_USERINFO = re.compile(r'(?<=://)[^/\s:@]*:[^/\s@]+(?=@)')


def is_secret_name(name):
    return bool(_NAME.search(_CAMEL.sub('_', name)))


def is_secret_value(value):
    """Whether a value beside a secret's name can be one: a tokenizer's pad_token or a number of tokens cannot."""
    return isinstance(value, str) and len(value) >= SHORTEST and value[0] not in '<[' and not re.search(r'\s', value)


def of_arguments(argv):
    """Values of arguments whose flags name a secret: --api-key X, --api-key=X, api_key=X."""
    found = []
    for at, word in enumerate(argv):
        name, equals, value = word.partition('=')
        if not is_secret_name(name):
            continue
        if equals:
            found.append(value)
        elif word.startswith('-') and at + 1 < len(argv) and not argv[at + 1].startswith('-'):
            found.append(argv[at + 1])
    return [value for value in found if is_secret_value(value)]


def of_environment(env):
    return [value for name, value in env.items() if is_secret_name(name) and is_secret_value(value) and '/' != value[0]]


class Scrubber:
    """Replaces secrets in text."""

    def __init__(self, values=()):
        self._values, self._known = set(), None
        self.add(values)

    def add(self, values):
        self._values.update(values)
        longest_first = sorted(self._values, key=len, reverse=True)
        self._known = re.compile('|'.join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text):
        if len(text) < SHORTEST:
            return text
        if self._known:
            text = self._known.sub(HIDDEN, text)
        if '://' in text:
            text = _USERINFO.sub(HIDDEN, text)
        return _SHAPE.sub(HIDDEN, text)

    def setting(self, name, value):
        """A param's value; one that its name calls secret is remembered, so that it is hidden elsewhere too."""
        if isinstance(value, str):
            if is_secret_name(name) and is_secret_value(value):
                self.add([value])
                return HIDDEN
            return self.text(value)
        return value
