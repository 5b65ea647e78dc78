# SPDX-License-Identifier: Apache-2.0
"""Finds texts for users in the page's sources, line by line: words between tags, in attributes that are shown or read
out, counted nouns, and literals that are sentences or begin with a capital. And names of texts that stand alone."""
import re

HIDDEN = re.compile(r"\$\{[^{}]*\}|<code>[^<]*</code>|\b(?:class|rel|d|style)=(?:\"[^\"]*\"|\{[^{}]*\})|(?<!:)//.*$"
                    r"|/\*.*?\*/")
LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|`((?:[^`\\]|\\.)*)`")
BETWEEN = re.compile(r"(?<![=\s])>\s*(?![,:])([^<>{}()=&|;?]*[A-Za-z]{2}[^<>{}()=&|;?]*)(?:[<{]|$)"
                     r"|^\s*([A-Za-z][\w ,.:;]*)</")
WORDS = re.compile(r"^\s*(?!(?:return|void|else|case|default)\b)[A-Z]?[a-z]+(?: [a-zA-Z,.:]+)+$")
SHOWN = re.compile(r"\b(?:title|aria-label|aria-valuetext|placeholder|label|word|text|alt|hint|each|note)=\{?[\"'`]"
                   r"([^\"'`]*[A-Za-z]{2}[^\"'`]*)[\"'`]")
# Names of texts in lower case where a text stands alone: attributes that are read by themselves, and whole elements.
ALONE = re.compile(r"\b(?:title|aria-label|alt|placeholder|label|word)=\{(?:\w+(?:\.\w+)* \? )?(?:filled\()?Str\.([a-z]\w*)"
                   r"|<(?:button|h\d|option|th|summary|dt|caption)\b[^<]*>\{(?:parts\()?Str\.([a-z]\w*)")
COUNTED = re.compile(r"\bcount\(.*, ['\"]([a-z ]+)['\"]\)")
SENTENCE = re.compile(r"[A-Za-z’)%]{2}[,;:.]? +(?:[a-z(“0-9]|[A-Z][a-z])")
LABEL = re.compile(r"[A-Z][a-z]+$")
# What looks like a text but is not one: keys, elements, media queries, fonts, the syntax of SQL and of selectors.
SYNTAX = re.compile(r"(?:Enter|Escape|Home|End|Delete|Infinity|None|Tab|Backspace)$|Arrow|Page|[.(\[<\d]|M ? ?\d|cell c-"
                    r"|button, |minmax|.*\dpx|scale: |registered "
                    r"|.* DESC$|.*\b(?:ILIKE|NULL|IN|AND)\b|(?:num|card of-)(?: |$)")


def alone(line):
    return [a or b for a, b in ALONE.findall(line)]


def visible(literal):
    return (SENTENCE.search(literal) or LABEL.match(literal)) and not SYNTAX.match(literal)


def texts(path, lines):
    """Yields the line and the text of each."""
    if path.endswith("/report/offline.ts"):
        return  # a document and its styles
    marked = path.endswith(".tsx")
    for at, line in enumerate(lines, 1):
        if re.match(r"\s*(?://|/?\*|import |export .* from )", line):
            continue
        line = HIDDEN.sub(" ", line)
        bare = LITERAL.sub("''", line)
        between = BETWEEN.search(bare) or WORDS.match(bare) if marked else None
        found = between or SHOWN.search(line) or COUNTED.search(line)
        words = next((g for g in found.groups() if g), found[0]) if found else next(
            (text for text in map("".join, LITERAL.findall(line)) if visible(text)), None)
        if words:
            yield at, words.strip()
