# SPDX-License-Identifier: Apache-2.0
"""Reads the YAML that MLflow writes with PyYAML's safe_dump: a mapping of scalars and of mappings of scalars. Not general YAML:
sequences and deeper mappings are skipped, and everything else is refused."""
from __future__ import annotations

import re

from dptrack.importers import Skipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union
    Scalar = Optional[str]
    Mapping = dict[str, Union[Scalar, dict[str, Scalar]]]

ESCAPES = {'0': '\0', 'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': '\x1b', '"': '"', '/': '/',
           '\\': '\\', ' ': ' ', 'N': '\x85', '_': '\xa0', 'L': '\u2028', 'P': '\u2029', '\t': '\t'}
BREAK = r'[ \t]*\n(?:[ \t]*\n)*[ \t]*'
DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)
SINGLE = re.compile(r"'((?:[^']|'')*)'")
INSIDE = re.compile(r'\\(\n[ \t]*|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|' + BREAK, re.S)
BLANKS = re.compile(' *')
PLAIN_KEY = re.compile(r'([^\n]*?)(?=:(?:[ \n]|$))')


def folded(breaks: str) -> str:
    """A line break in a scalar: the first is a blank, each further one a line feed."""
    count = breaks.count('\n')
    return ' ' if count == 1 else '\n' * (count - 1)


class Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self, what: str, at: int | None = None) -> Skipped:
        return Skipped('line %d: %s' % (self.text.count('\n', 0, self.at if at is None else at) + 1, what))

    def indent(self) -> int:
        """Of the line at which the reader is."""
        found = BLANKS.match(self.text, self.at)
        return found.end() - self.at if found else 0

    def end_of_line(self) -> int:
        at = self.text.find('\n', self.at)
        return len(self.text) if at < 0 else at

    def skip_line(self) -> None:
        self.at = min(self.end_of_line() + 1, len(self.text))

    def quoted(self) -> str | None:
        """A quoted scalar; None for a plain one."""
        mark = self.text[self.at:self.at + 1]
        if mark not in ('"', "'") or not mark:
            return None
        found = (DOUBLE if mark == '"' else SINGLE).match(self.text, self.at)
        if not found:
            raise self.fail('a quoted string has no end', len(self.text))
        self.at = found.end()
        if mark == "'":
            return re.sub(BREAK, lambda m: folded(m[0]), found[1]).replace("''", "'")
        return INSIDE.sub(self.unescaped, found[1])

    def unescaped(self, found: re.Match[str]) -> str:
        word = found[1]
        if word is None:
            return folded(found[0])
        if word[0] == '\n':
            return ''
        if len(word) > 1:
            code = int(word[1:], 16)
            return chr(code) if code < 0x110000 and not 0xd800 <= code < 0xe000 else '\ufffd'
        if word not in ESCAPES:
            raise self.fail('unknown escape after a backslash')
        return ESCAPES[word]

    def plain(self, indent: int) -> str | None:
        """A plain scalar: it ends with the last line that is indented further than its key."""
        found = re.compile(r'[^\n]*(?:\n(?:[ \t]*\n)* {%d}[^\n]*)*' % (indent + 1)).match(self.text, self.at)
        assert found
        self.at = found.end()
        text = re.sub(BREAK, lambda m: folded(m[0]), found[0].strip(' '))
        return None if text in ('', 'null', '~') else text

    def literal(self, indent: int) -> str:
        """A literal block: its lines without their indentation."""
        head = self.text[self.at:self.end_of_line()]
        self.skip_line()
        lines: list[str] = []
        while self.at < len(self.text) and (self.indent() > indent or self.end_of_line() == self.at):
            lines.append(self.text[self.at:self.end_of_line()])
            self.skip_line()
        own = min((len(line) - len(line.lstrip(' ')) for line in lines if line.strip(' ')), default=0)
        text = ''.join(line[own:] + '\n' for line in lines)
        self.at -= 1  # the scalar ends before its line feed
        return text if '+' in head else text.rstrip('\n') + ('' if '-' in head else '\n')

    def scalar(self, indent: int) -> str | None:
        if self.text[self.at:self.at + 1] == '|':
            return self.literal(indent)
        text = self.quoted()
        return self.plain(indent) if text is None else text

    def key(self) -> str:
        """Up to the blanks after its colon."""
        key = self.quoted()
        if key is None:
            found = PLAIN_KEY.match(self.text, self.at)
            if not found:
                raise self.fail('expected a key and a colon')
            key, self.at = found[1], found.end()
        if self.text[self.at:self.at + 1] != ':':
            raise self.fail('expected a key and a colon')
        self.at += 1
        while self.text[self.at:self.at + 1] == ' ':
            self.at += 1
        return key

    def is_item(self, indent: int) -> bool:
        """Whether the line is an item of a sequence."""
        return self.text[self.at + indent:self.at + indent + 2] in ('- ', '-\n')

    def nested(self, indent: int, deep: bool) -> dict[str, Scalar] | None:
        """The mapping below a key; None: something else was skipped."""
        self.skip_line()
        inner = self.indent()
        if self.at < len(self.text) and inner > indent and not deep and not self.is_item(inner):
            return {k: v for k, v in self.mapping(inner, True).items() if not isinstance(v, dict)}
        while self.at < len(self.text) and (self.indent() > indent or self.is_item(indent) or self.at == self.end_of_line()):
            self.skip_line()
        return None

    def mapping(self, indent: int, deep: bool = False) -> Mapping:
        found: Mapping = {}
        while self.at < len(self.text):
            inner = self.indent()
            if self.text[self.at + inner:self.at + inner + 1] in ('\n', '#', '') or self.text.startswith('---', self.at):
                self.skip_line()
                continue
            if inner < indent:
                break
            if inner > indent:
                raise self.fail('unexpected indentation')
            self.at += inner
            key = self.key()
            if self.at == self.end_of_line():
                below = self.nested(indent, deep)
                if below is not None:
                    found[key] = below
            elif self.text[self.at] in '[{':  # empty ones; others span several lines
                self.skip_line()
            else:
                found[key] = self.scalar(indent)
                self.skip_line()
        return found


def read_yaml(text: str) -> Mapping:
    """Raises Skipped, which names the line."""
    found = Reader(text).mapping(0)
    if not found:
        raise Skipped('empty')
    return found
