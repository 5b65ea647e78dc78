# SPDX-License-Identifier: Apache-2.0
"""Two authors edit one note, one report, one view, in 100 random interleavings of reads and writes, some of them by scripts that send no
If-Match. A model says what each write must answer: nothing is lost, a write over a newer text is refused, and every edition is kept."""
import sys
sys.dont_write_bytecode = True
import json
import os
import random
import tempfile
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lib

INTERLEAVINGS = 100
STEPS = 14


class Item:
    """A text on the server, and what a model knows of it."""

    def __init__(self, server, kind):
        self.server, self.kind = server, kind
        self.name = {"runs": "notes", "reports": "text", "views": "query"}[kind]
        self.text = "" if kind == "runs" else "?"
        body = {"experiment": "two", "name": f"item {random.random()}", **({} if kind == "runs" else {self.name: self.text})}
        self.path = f"/api/v1/{kind}/{self.call('POST', f'/api/v1/{kind}', body)[1]['id']}"
        self.history = [self.text] if self.text else []     # one text for each edition
        self.last_editing = None

    def call(self, method, path, body=None, etag=None):
        headers = {"Content-Type": "application/json", **({"If-Match": etag} if etag else {})}
        status, headers, data = self.server.request(method, path, body, headers)
        return status, json.loads(data), headers.get("ETag")

    def read(self):
        """What is stored, and its entity tag."""
        _, reply, etag = self.call("GET", self.path)
        return reply[self.name] or "", reply["notes_etag"] if self.kind == "runs" else etag

    def write(self, text, etag, editing, expected):
        """Writes and compares the answer with the model; returns the tag of what is stored then."""
        body = {self.name: text, **({"editing": editing} if editing else {})}
        status, reply, now = self.call("PATCH", self.path, body, etag)
        lib.equal(status, expected, f"{self.path}: {text!r} with {etag}: {reply}")
        if status == 409:
            lib.equal(reply["stored"][self.name], self.text, f"{self.path}: the refused author gets what is stored")
            return now
        if editing and editing == self.last_editing:
            self.history[-1] = text
        else:
            self.history.append(text)
        self.text, self.last_editing = text, editing
        return now

    def check(self):
        lib.equal(self.read()[0], self.text, f"{self.path}: the last accepted text")
        place = self.path + ("/notes" if self.kind == "runs" else "")
        kept = [e["edition"] for e in self.call("GET", place)[1]["editions"]]
        texts = [self.call("GET", f"{place}?edition={e}")[1][self.name] for e in kept]
        lib.equal(texts, self.history, f"{self.path}: every text that was replaced is an edition")


def interleave(item, order):
    """Each author reads, or adds a word to what he has read; refused, he adds it to what is stored. Returns the refusals."""
    known, refused, words = {}, 0, []
    editing = {"A": "tab A", "B": "tab B"} if order.random() < 0.5 else {}
    for n in range(STEPS):
        author = order.choice("AB")
        act = order.choices(["read", "write", "script"], [4, 6, 1])[0]
        if act == "script":
            item.write(f"?script{n}", None, None, 200)
            words = [f"script{n}"]
        elif act == "read" or author not in known:
            known[author] = item.read()
            lib.equal(known[author][0], item.text, f"{item.path}: what {author} reads")
        else:
            text, tag = known.pop(author)
            stale = text != item.text
            stored = item.text
            tag = item.write(f"{text}+{author}{n}", tag, editing.get(author), 409 if stale else 200)
            if stale:
                refused += 1
                item.write(f"{stored}+{author}{n}", tag, editing.get(author), 200)
            words.append(f"{author}{n}")
    lib.equal([w for w in item.text.lstrip("?").split("+") if w], words, f"{item.path}: every word since a script replaced all")
    item.check()
    return refused


def main():
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as logdir:
        server = lib.Server(logdir)
        lib.make_run(server, "two")
        refused = {}
        for seed in range(INTERLEAVINGS):
            for kind in ("runs", "reports", "views"):
                refused[kind] = refused.get(kind, 0) + interleave(Item(server, kind), random.Random(f"{seed} {kind}"))
        for kind, count in refused.items():
            lib.check(count > INTERLEAVINGS, f"{kind}: {count} writes were refused: the interleavings test nothing")
        server.stop()
    lib.finish("interleaved")


main()
