#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Migrations apply in order to an empty file, the connection settings run, and every named query prepares, as far as
SQLite supports it, and is used; a query only for PostgreSQL is only checked to be used."""
import os
import re
import sqlite3
import sys

os.chdir(os.environ.get("srcdir", "."))
FIRST_POSTGRESQL = 11  # older migrations were never released for PostgreSQL


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def migrations():
    """Applies schema/sql/NNNN_*.sql; returns the store and what is wrong."""
    store, wrong, folder = sqlite3.connect(":memory:", isolation_level=None), [], "schema/sql"
    names = sorted(name for name in os.listdir(folder) if re.match(r"\d+_.*\.sql$", name))
    store.executescript(read(f"{folder}/open_writer.sql"))
    for number, name in enumerate(names, 1):
        text = read(f"{folder}/{name}")
        if int(name.split("_")[0]) != number:
            wrong.append(f"{name} follows number {number - 1}")
        if f"user_version = {number};" not in text:
            wrong.append(f"{name} does not set user_version {number}")
        store.executescript(text)
        step = f"{folder}/postgresql/{name}"
        if number >= FIRST_POSTGRESQL and not (
                os.path.exists(step) and re.search(f"value = '{number}'.* WHERE name = 'version'", read(step))):
            wrong.append(f"{name} has no {step} that sets its version")
    last = len(names)
    if f"('version', '{last}')" not in read(f"{folder}/postgresql.sql") or not re.search(
            rf"^#define DB_VERSION {last}\b", read("web/store/db/db.h"), re.M):
        wrong.append(f"postgresql.sql and DB_VERSION in web/store/db/db.h are not of version {last}")
    store.executescript(read(f"{folder}/open_reader.sql"))
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
    store, wrong = migrations()
    ours, used = queries("schema/sql/queries.sql"), words_below("web/store", "DB")
    wrong += [f"query {name} does not prepare: {said}" for name, text in ours.items() if (said := problem_of(store, text))]
    wrong += [f"query {name} is used nowhere" for name in ours if name not in used]
    # Queries on other programs' files prepare on sample files, in tests/cli/import.
    used = words_below("web", "FOREIGN")
    wrong += [f"query {name} of mlflow.sql is used nowhere" for name in queries("schema/sql/mlflow.sql") if name not in used]
    print("\n".join(f"sql: {line}" for line in wrong) or f"sql: {len(ours)} named queries prepare")
    return bool(wrong)


sys.exit(main())
