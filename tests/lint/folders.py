# SPDX-License-Identifier: Apache-2.0
"""At most 25 modules per folder, so that a folder can be read as a list. A module is the code of one stem: x.c, x.h
and a script x with its x_test.mjs are one. Data, make fragments and the files of packages are not modules."""
import os

import tree

LIMIT = 25
CODE = (".c", ".h", ".cu", ".def", ".py", ".sh", ".mjs", ".ts", ".tsx", ".awk")


def stem(path):
    name = os.path.basename(path).split(".")[0]
    return name.removesuffix("_test")


def is_code(path):
    return path.endswith(CODE) or (os.path.splitext(path)[1] == "" and os.access(f"{tree.SRC}/{path}", os.X_OK))


def main():
    folders = {}
    for path in tree.files(""):
        if is_code(path):
            folders.setdefault(os.path.dirname(path), set()).add(stem(path))
    full = {f: s for f, s in folders.items() if len(s) > LIMIT}
    for folder in sorted(full):
        print(f"{folder}: {len(full[folder])} modules, {LIMIT} at most: move those of one subject into a folder of their own: "
              f"{' '.join(sorted(full[folder]))}")
    verdict = tree.Verdict("folders")
    verdict.rule("modules", len(full))
    verdict.end(f"{len(folders)} folders")


main()
