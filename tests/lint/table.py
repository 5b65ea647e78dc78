# SPDX-License-Identifier: Apache-2.0
"""The tables of the lints: files of lines "NAME: VALUE" in tests/lint, with # for comments."""
import tree


class Table:
    """The entries of a file by name, in order. An empty value is allowed."""

    def __init__(self, name):
        self.path = f"tests/lint/{name}"
        text = tree.read(self.path).splitlines()
        self.comments = [line for line in text if line.startswith("#")]
        pairs = [line.partition(":") for line in text if line and not line.startswith("#")]
        self.entries = {key.strip(): value.strip() for key, _, value in pairs}
        names = sorted(key.strip() for key, _, _ in pairs)
        if twice := {a for a, b in zip(names, names[1:]) if a == b}:
            raise SystemExit(f"{self.path}: listed twice: {', '.join(sorted(twice))}: keep one")

    def numbers(self):
        return {key: int(value) for key, value in self.entries.items()}

    def write(self, entries):
        """Replaces the entries and keeps the comments, which move to the top."""
        lines = self.comments + [f"{key}: {value}".rstrip() for key, value in entries.items()]
        with open(f"{tree.SRC}/{self.path}", "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
