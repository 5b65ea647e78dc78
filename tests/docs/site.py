#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The static site of the documents: it builds without a warning, has every page, needs no other host, and its search answers the questions
of a newcomer (tests/docs/questions) in two clicks: search, then one of the first five results. Exits with 77 and the reason where its
packages cannot be installed or node is missing."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
HERE = os.path.join(SRC, "tests", "docs")
RESULTS = 5


def skip(reason):
    print("skipped: " + reason)
    sys.exit(77)


def build(out):
    done = subprocess.run([sys.executable, os.path.join(SRC, "web", "site", "make_site.py"), os.path.join(BUILD, "venv", "site"), out],
                          capture_output=True, text=True, check=False, timeout=500)
    if done.returncode and re.search("cannot (make|install)", done.stderr):
        skip(done.stderr.splitlines()[0])
    assert not done.returncode, done.stderr


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check_pages(site):
    """Every document is a page, and each page is in the navigation or linked from it."""
    for folder, _, names in os.walk(os.path.join(SRC, "docs")):
        for name in names:
            if name.endswith(".md"):
                path = os.path.relpath(os.path.join(folder, name[:-3]), os.path.join(SRC, "docs"))
                path = os.path.join(os.path.dirname(path), "index") if name == "README.md" else path
                assert os.path.exists(f"{site}/{path}.html"), f"{path}: no page of the site"
    guides = {name[:-3] for name in os.listdir(os.path.join(SRC, "docs", "guides"))} - {"README"}
    listed = set(re.findall(r"^\| \[.*?\]\(([\w-]+)\.md\)", read(os.path.join(SRC, "docs", "guides", "README.md")), flags=re.M))
    assert guides == listed, f"docs/guides/README.md does not list {guides ^ listed}"
    return len(listed)


def check_hosts(site):
    """A page loads nothing from another host and has no script or style of its own: the server's policy would refuse it."""
    for folder, _, names in os.walk(site):
        for name in names:
            if name.endswith(".html"):
                page = read(os.path.join(folder, name))
                foreign = re.findall(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=\"?(?:https?:)?//[^>]*>", page)
                inline = re.findall(r"<script>|<style|<[^>]* style=|<[^>]* on\w+=", page)
                assert not foreign and not inline, f"{name}: {foreign} {inline}"


def check_questions(site):
    with open(os.path.join(HERE, "questions"), encoding="utf-8") as f:
        questions = [line.rstrip("\n").split(" | ", 1) for line in f if not line.startswith("#")]
    assert len(questions) == 10, len(questions)
    asked = subprocess.run(["node", os.path.join(HERE, "search.mjs"), site], input="\n".join(q for q, _ in questions), capture_output=True, text=True,
                           check=True, timeout=100)
    failed = []
    for (question, answer), line in zip(questions, asked.stdout.splitlines(), strict=True):
        found = json.loads(line)[:RESULTS]
        texts = {path: re.sub(r"<[^>]*>", "", read(f"{site}/{path}").split("<article", 1)[1].split("</article>")[0]) for path in found}
        at = next((n for n, path in enumerate(found, 1) if re.search(answer, texts[path])), None)
        print(f"{question} {f'result {at}: {found[at - 1]}' if at else 'NOT FOUND in ' + ', '.join(found)}")
        failed += [] if at else [question]
    assert not failed, failed


def main():
    if not shutil.which("node"):
        skip("node is missing: install nodejs")
    with tempfile.TemporaryDirectory(prefix="dptrack-site-") as folder:
        build(f"{folder}/site")
        pages = check_pages(f"{folder}/site")
        check_hosts(f"{folder}/site")
        check_questions(f"{folder}/site")
    print(f"site: ok, {pages} guides")


main()
