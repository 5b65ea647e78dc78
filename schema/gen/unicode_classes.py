#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes trainer/data/tokenizer/unicode.def: letters (category L*), numbers (N*) and White_Space of Unicode as ranges, for the splitting
of text into words. Run it in the top folder; the version of Unicode is that of the Python that runs it."""
import sys
import unicodedata

SPACE = set(list(range(9, 14)) + [0x20, 0x85, 0xA0, 0x1680] + list(range(0x2000, 0x200B)) + [0x2028, 0x2029, 0x202F, 0x205F, 0x3000])


def kind(c):
    if c in SPACE:
        return "SPACE"
    return {"L": "LETTER", "N": "NUMBER"}.get(unicodedata.category(chr(c))[0])


def ranges():
    first, last = 0, None
    for c in range(sys.maxunicode + 2):
        now = kind(c) if c <= sys.maxunicode else None
        if now != last:
            if last:
                yield first, c - 1, last
            first, last = c, now


def main():
    with open("trainer/data/tokenizer/unicode.def", "w", encoding="ascii") as out:
        out.write("/* Letters, numbers and white space of Unicode %s as RANGE(first, last, kind), ascending; written by\n"
                  " * schema/gen/unicode_classes.py. */\n" % unicodedata.unidata_version)
        for first, last, name in ranges():
            out.write("RANGE(0x%X, 0x%X, %s)\n" % (first, last, name))


main()
