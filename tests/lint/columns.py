# SPDX-License-Identifier: Apache-2.0
"""C lines have at most 120 columns, with a tab to the next multiple of eight. Lists (.def) are tables with an entry
per line, and may be wider."""
import tree

LIMIT = 120


def main():
    wide = 0
    sources = tree.files(".c", ".h", ".cu", ".cuh")
    for path in sources:
        for at, line in enumerate(tree.read(path).split("\n"), 1):
            columns = len(line.expandtabs(8))
            if columns > LIMIT:
                print(f"{path}:{at}: {columns} columns, {LIMIT} at most: break the line")
                wide += 1
    verdict = tree.Verdict("columns")
    verdict.rule("columns", wide)
    verdict.end(f"{len(sources)} files")


main()
