#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables are created, scripts for changes of them are numbered, the connection settings run, and every named query prepares, as far as
SQLite supports it, and is used; a query only for PostgreSQL is only checked to be used."""
import os
import re
import sqlite3
import sys

os.chdir(os.environ.get("srcdir", "."))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def tables():
    """Creates the tables of sqlite.sql; returns the store and what is wrong, also with the numbers of schema/sql/NNNN_*.sql."""
    store, wrong, folder = sqlite3.connect(":memory:", isolation_level=None), [], "schema/sql"
    first, last = (int(re.search(rf"^#define {name} (\d+)", read("web/store/db/db.h"), re.M)[1]) for name in ("DB_VERSION_FIRST", "DB_VERSION"))
    for below, version in ((folder, "user_version = {};"), (folder + "/postgresql", "value = '{}'.* WHERE name = 'version'")):
        names = sorted(name for name in os.listdir(below) if re.match(r"\d+_", name)) if os.path.isdir(below) else []
        if [int(name.split("_")[0]) for name in names] != list(range(first + 1, last + 1)):
            wrong.append(f"{below} has not one script for each version after {first}, up to {last}: {names}")
        wrong += [f"{below}/{name} does not set its version" for name in names
                  if not re.search(version.format(int(name.split("_")[0])), read(f"{below}/{name}"))]
    if f"('version', '{last}')" not in read(f"{folder}/postgresql.sql") or f"user_version = {last};" not in read(f"{folder}/sqlite.sql"):
        wrong.append(f"sqlite.sql or postgresql.sql is not of version {last}")
    for script in ("open_writer", "sqlite", "open_reader"):
        store.executescript(read(f"{folder}/{script}.sql"))
    return store, wrong


def queries(path):
    """{name: SQLite's text}, empty where a query is for PostgreSQL alone."""
    found = {}
    for part in re.split(r"^-- name: ", read(path), flags=re.M)[1:]:
        name, _, text = part.partition("\n")
        text = text.split("-- postgresql:")[0]
        found[name.split()[0]] = "\n".join(line for line in text.split("\n") if not line.strip().startswith("--")).strip()
    return found


def problem_of(store, text):
    """What SQLite says of a query, "" if it prepares. Statements that EXPLAIN does not take are left out."""
    if not re.match(r"SELECT|INSERT|UPDATE|DELETE|WITH", text):
        return ""
    parameters = max(map(int, re.findall(r"\?(\d+)", text)), default=0)
    try:
        store.execute("EXPLAIN " + text, [None] * parameters)
    except (sqlite3.Error, sqlite3.Warning) as e:
        return str(e)
    return ""


def words_below(folder, prefix):
    """Every PREFIX_name in a folder's sources, without the prefix."""
    return {word for path, _, names in os.walk(folder) for name in names if name.endswith((".c", ".h", ".def"))
            for word in re.findall(prefix + r"_(\w+)", read(os.path.join(path, name)))}


def main():
    store, wrong = tables()
    ours, used = queries("schema/sql/queries.sql"), words_below("web/store", "DB")
    wrong += [f"query {name} does not prepare: {said}" for name, text in ours.items() if (said := problem_of(store, text))]
    wrong += [f"query {name} is used nowhere" for name in ours if name not in used]
    print("\n".join(f"sql: {line}" for line in wrong) or f"sql: {len(ours)} named queries prepare")
    return bool(wrong)


sys.exit(main())
