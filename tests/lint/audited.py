# SPDX-License-Identifier: Apache-2.0
"""Each kind of change of the store (CHANGE in web/store/*/changes.def) has an action for the audit log, or is in unaudited.txt with
the reason why it needs none, or where its action comes from."""
import re

from table import Table
import tree

KIND = re.compile(r"^const struct change_ops (\w+) =(.*?);$|^CHANGE_(KIND|AUDITED)\((\w+),", re.M | re.S)


def main():
    listed = [(path, kind) for path in tree.files("changes.def") for kind in re.findall(r"^CHANGE\((\w+)\)", tree.read(path), re.M)]
    found = {}
    for path in tree.files(".c"):
        if path.startswith("web/store/"):
            for m in KIND.finditer(tree.read(path)):
                found[m[1] or m[4]] = ".action" in (m[2] or "") or m[3] == "AUDITED"
    table, bad = Table("unaudited.txt"), []
    for path, kind in listed:
        if kind not in found:
            bad.append(f"{path}: {kind}: its struct change_ops was not found")
        elif found[kind] == (kind in table.entries):
            bad.append(f"{table.path}: {kind}: has an action: delete the entry" if found[kind] else
                       f"{path}: {kind}: give it .action and .object for the audit log, or a reason in {table.path}")
    bad += [f"{table.path}: {kind}: there is no such kind: delete the entry" for kind in table.entries if kind not in {k for _, k in listed}]
    bad += [f"{table.path}: {kind}: no reason: write it after the colon" for kind, reason in table.entries.items() if not reason]
    print("\n".join(bad) if bad else f"audited: {len(listed)} kinds of changes, {len(table.entries)} without an action of their own")
    raise SystemExit(bool(bad))


main()
