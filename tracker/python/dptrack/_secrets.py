"""What must not be recorded: values of settings, arguments and environment variables whose names say that they are secret,
and whatever looks like a well-known kind of key. Everything that is recorded as text goes through a Scrubber. Knows
neither runs nor where text comes from."""
import re

HIDDEN = '(hidden)'
SHORTEST = 6

_NAME = re.compile(r'(?:^|[^a-z])(?:api[_-]?key|apikey|access[_-]?key|private[_-]?key|secret(?:s|[_-]?key)?|[a-z]*passw(?:or)?d|passphrase|pwd'
                   r'|credentials?|token|auth|bearer|cookie|dsn|webhook(?:[_-]?url)?)(?:$|[^a-z])', re.I)
_CAMEL = re.compile(r'(?<=[a-z0-9])(?=[A-Z])')
# Prefixes that the services themselves chose so that keys can be found.
_SHAPE = re.compile(r'\b(?:sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}'
                    r'|glpat-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|dpt_[A-Za-z0-9_-]{16,}'
                    r'|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})')
# What stands before the host of an address: user and password, or a word so long that it is a token. A password holds no quotes.
_USERINFO = re.compile(r"""(?<=://)(?:[^/\s:@?#"'<>]*:([^/\s?#"'<>]+)|([^/\s:@?#"'<>]{20,}))(?=@)""")
# name=value and "name": value inside a word
_PAIR = re.compile(r"""([A-Za-z0-9_.-]+)["']?\s*[:=]\s*["']?([^"',;&{}\s]+)""")
LONG_WORD = 20
LONGEST_WORD = 8192


def is_secret_name(name):
    return bool(_NAME.search(_CAMEL.sub('_', name)))


def is_secret_value(value):
    """Whether a value beside a secret's name can be one: a tokenizer's pad_token or a number of tokens cannot."""
    return isinstance(value, str) and len(value) >= SHORTEST and value[0] not in '<[' and not re.search(r'\s', value)


def _parts(value):
    """What is to be hidden of a value that is secret: itself, and the long words of one that has several (a key in PEM)."""
    words = [] if value[:1] in ('<', '[') else value.split()  # no pad_token
    return [value] * (len(value) >= SHORTEST and bool(words)) + [word for word in words if len(words) > 1 and len(word) >= LONG_WORD]


def of_arguments(argv):
    """Values of arguments whose flags name a secret: --api-key X, --api-key=X, api_key=X, {"api_key": "X"}; passwords in addresses."""
    found = []
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


def of_environment(env):
    """Values of variables whose names call them secret, paths left out; passwords in addresses."""
    found = []
    for name, value in env.items():
        found += of_addresses(value)
        if is_secret_name(name) and not value.startswith('/'):
            found += _parts(value)
    return found


def of_addresses(text):
    """The passwords in https://user:password@host/, as they stand there and as they are meant."""
    if '://' not in text:
        return []
    found = [password or token for password, token in _USERINFO.findall(text)]
    if any('%' in one for one in found):
        from urllib.parse import unquote
        found += [unquote(one) for one in found]
    return [one for one in found if len(one) >= SHORTEST]


class Scrubber:
    """Replaces secrets in text."""

    def __init__(self, values=()):
        self._values, self._known = set(), None
        self.add(values)

    def add(self, values):
        if self._values.issuperset(values):
            return
        self._values.update(values)
        longest_first = sorted(self._values, key=len, reverse=True)
        self._known = re.compile('|'.join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text):
        """A password in an address is remembered, so that it is hidden elsewhere too."""
        if len(text) < SHORTEST:
            return text
        if '://' in text and '@' in text:
            self.add(of_addresses(text))
            text = _USERINFO.sub(HIDDEN, text)
        if self._known:
            text = self._known.sub(HIDDEN, text)
        return _SHAPE.sub(HIDDEN, text)

    def setting(self, name, value):
        """A param's value; one that its name calls secret is remembered, so that it is hidden elsewhere too."""
        if isinstance(value, str):
            if is_secret_name(name) and is_secret_value(value):
                self.add([value])
                return HIDDEN
            return self.text(value)
        return value


class Pieces:
    """A stream that is written in pieces: a word that may go on waits for its end, so that a secret in two pieces is one."""

    def __init__(self, scrubber):
        import _thread
        self._scrubber, self._word, self._lock = scrubber, '', _thread.RLock()

    def add(self, text):
        """What can be told by now."""
        with self._lock:
            text = self._word + text
            end = max(text.rfind(' '), text.rfind('\n'), text.rfind('\r'), text.rfind('\t')) + 1
            if len(text) - end > LONGEST_WORD:
                end = len(text)
            self._word = text[end:]
            return self._scrubber.text(text[:end])

    def rest(self):
        with self._lock:
            word, self._word = self._word, ''
            return self._scrubber.text(word)
