# SPDX-License-Identifier: Apache-2.0
"""Alert rules: what each finds, exactly once whatever is killed; signed posts to a webhook that is down for a while;
and no connection to any network address without --webhook."""
import sys
sys.dont_write_bytecode = True
import collections
import hashlib
import hmac
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import lib

sys.path.append(os.path.join(lib.SOURCE, "tests"))
import strace

WAIT_S = 60
SECRET = "0123456789abcdef-the-secret"


def ask(server, method, path, body=None, want=200):
    code, reply = server.json(method, "/api/v1" + path, body)
    lib.equal(code, want, f"{method} {path} {body}: {reply}")
    return reply


def refused(server, body, status, word):
    code, reply = server.json("POST", "/api/v1/alerts/rules", body)
    lib.equal(code, status, f"{body}: {reply}")
    lib.check(word in reply.get("error", {}).get("message", ""), f"{body}: {reply}, expected {word!r}")


def until(look, test, what):
    end = time.monotonic() + WAIT_S
    while True:
        seen = look()
        if test(seen) or time.monotonic() > end:
            lib.check(test(seen), f"{what}: {seen!r}")
            return seen
        time.sleep(0.05)


def rule(server, **body):
    return ask(server, "POST", "/alerts/rules", body, 201)["id"]


def run(server, experiment, name, points=(), status=None):
    made = ask(server, "POST", "/runs", {"experiment": experiment, "name": name}, 201)["id"]
    log(server, made, points)
    if status:
        ask(server, "PATCH", "/runs/" + made, {"status": status})
    return made


def log(server, made, points):
    if points:
        ask(server, "POST", f"/runs/{made}/metrics", {"points": [{"key": k, "step": s, "value": v} for k, s, v in points]})


def found(server, query=""):
    return sorted((a["rule"], a["run"], a["text"]) for a in ask(server, "GET", "/alerts" + query)["alerts"])


def rules_are_checked(server):
    refused(server, {"kind": "other"}, 400, "kind")
    refused(server, {"kind": "metric", "above": 1}, 400, "metric")
    refused(server, {"kind": "metric", "metric": "loss"}, 400, "above")
    refused(server, {"kind": "metric", "metric": "loss", "above": 1, "below": 2}, 400, "above")
    refused(server, {"kind": "metric", "metric": "loss", "above": "NaN"}, 400, "number")
    refused(server, {"kind": "silent"}, 400, "seconds")
    refused(server, {"kind": "silent", "seconds": 1}, 400, "expected 10 to 31536000")
    refused(server, {"kind": "silent", "seconds": "Infinity"}, 400, "year")
    refused(server, {"kind": "done", "metric": "loss"}, 400, "metric")
    refused(server, {"kind": "done", "experiment": "none"}, 404, "none")
    refused(server, {"kind": "done", "url": "http://127.0.0.1:1/"}, 400, "url")
    lib.equal(server.json("DELETE", "/api/v1/alerts/rules/77")[0], 404, "a missing rule")
    lib.equal(ask(server, "GET", "/alerts/rules")["rules"], [], "no rule was created")


def each_kind(server):
    """Every kind finds what it describes, in its experiment, in runs that change after the rule was created."""
    old = run(server, "a", "old", [("loss", 1, 99.0)], "failed")
    ask(server, "POST", "/experiments", {"name": "b"}, 201)
    above = rule(server, kind="metric", experiment="a", metric="loss", above=5)
    below = rule(server, kind="metric", metric="acc", below=-1)
    nan = rule(server, kind="nan")
    failed = rule(server, kind="failed", experiment="a")
    done = rule(server, kind="done", experiment="b")
    created = ask(server, "GET", "/alerts/rules")["rules"]
    lib.equal([(r["id"], r["experiment"], r["kind"], r.get("above"), r.get("below")) for r in created[:2]],
              [(above, "a", "metric", 5, None), (below, None, "metric", None, -1)], "the rules as created")
    one = run(server, "a", "one", [("loss", 1, 5.0), ("loss", 7, 6.5), ("acc", 3, -1.5)])
    two = run(server, "b", "two", [("loss", 1, 1e9), ("x", 2, 1.0), ("x", 4, "NaN")], "finished")
    three = run(server, "a", "three", [("loss", 1, 1.0)], "killed")
    want = sorted([(above, one, "loss is 6.5 at step 7, above 5"), (below, one, "acc is -1.5 at step 3, below -1"),
                   (nan, two, "x is not finite at step 4"), (failed, three, "the run was killed"), (done, two, "the run finished")])
    until(lambda: found(server), lambda seen: seen == want, "what the rules found")
    lib.equal(found(server, "?experiment=b"), [w for w in want if w[1] == two], "of one experiment")
    log(server, one, [("loss", 9, 50.0), ("acc", 9, -9.0)])
    log(server, two, [("x", 9, "NaN")])
    mark = run(server, "b", "mark", [], "finished")
    until(lambda: [f[1] for f in found(server)], lambda runs: mark in runs, "a later run")
    lib.equal([f for f in found(server) if f[1] != mark], want, "a rule reports a run once")
    ask(server, "PATCH", "/runs/" + old, {"notes": "looked at"})
    until(lambda: found(server), lambda seen: (failed, old, "the run failed") in seen, "a changed old run")
    page = ask(server, "GET", "/alerts?limit=2")["alerts"]
    rest = ask(server, "GET", f"/alerts?limit=1000&before={page[-1]['id']}")["alerts"]
    lib.equal(len(page) + len(rest), len(found(server)), "the pages hold all alerts")
    lib.check(all(a["due_time"] is None and a["tries"] == 0 for a in page + rest), "nothing is queued for posting")
    for r in created:
        ask(server, "DELETE", "/alerts/rules/" + r["id"])
    lib.equal(ask(server, "GET", "/alerts/rules")["rules"], [], "the rules are deleted")
    lib.check(len(found(server)) > 5, "their alerts remain")


class Webhook:
    """A receiver of posts on a port of its own: a thread each, which calls self.take(request, body)."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.server.owner.take(self, self.rfile.read(int(self.headers["Content-Length"])))

            def answer(self, status, **headers):
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "0"}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.owner = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Receiver(Webhook):
    """Counts posts and checks their signatures; while it is away, connections end without an answer."""

    def __init__(self):
        self.taken, self.wrong, self.away = collections.Counter(), [], False
        super().__init__()

    def take(self, request, body):
        request.close_connection = True
        if self.away:
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        mac = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        payload = json.loads(body)
        if request.headers["X-Dptrack-Signature"] != "sha256=" + mac or request.headers["X-Dptrack-Delivery"] != payload["id"]:
            self.wrong.append((dict(request.headers), body))
        status = 503 if "busy" in payload["run_name"] and not self.taken[payload["text"] + " refused"] else 200
        self.taken[payload["text"] + (" refused" if status == 503 else "")] += 1
        request.answer(status)


def posted(folder):
    """Posts are signed and sent once each, to a receiver that is busy or down, by a server that is killed."""
    logdir, secret = os.path.join(folder, "runs"), os.path.join(folder, "secret")
    with open(secret, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
        f.write(SECRET + "\n")
    receiver = Receiver()
    flags = ("--webhook", f"http://127.0.0.1:{receiver.port}/hook", "--webhook-secret-file", secret)
    server = lib.Server(logdir, *flags)
    rule(server, kind="done")
    run(server, "a", "first", [], "finished")
    run(server, "a", "busy", [], "finished")
    want = {"a / first: the run finished": 1, "a / busy: the run finished": 1, "a / busy: the run finished refused": 1}
    until(lambda: dict(receiver.taken), lambda seen: seen == want, "posts")
    receiver.away = True
    run(server, "a", "second", [], "finished")
    until(lambda: [a["tries"] for a in ask(server, "GET", "/alerts?limit=1")["alerts"]], lambda t: t and t[0] > 0, "a failed attempt while the receiver is down")
    server.stop(signal.SIGKILL)
    server = lib.Server(logdir, *flags)
    run(server, "a", "third", [], "finished")
    receiver.away = False
    want.update({"a / second: the run finished": 1, "a / third: the run finished": 1})
    until(lambda: dict(receiver.taken), lambda seen: seen == want, "posts after the receiver's restart")
    until(lambda: ask(server, "GET", "/alerts")["alerts"], lambda l: all(a["posted_time"] and a["due_time"] is None for a in l), "no post is pending")
    for _ in range(2):
        lib.equal(server.stop(), 0, "exit code")
        server = lib.Server(logdir, *flags)
    run(server, "a", "fourth", [], "finished")
    want["a / fourth: the run finished"] = 1
    until(lambda: dict(receiver.taken), lambda seen: len(seen) == len(want), "after restarts")
    lib.equal(dict(receiver.taken), want, "each post was received once")
    lib.equal(receiver.wrong, [], "every post is signed")
    lib.equal(server.stop(), 0, "exit code")
    receiver.close()


HOSTILE = "<!channel> @everyone **b** _i_ [x](http://evil) & <http://evil|y> \\"
# Per format: the flags, and how the receiver's documentation says that the body becomes a text.
CHATS = {
    "slack": lambda body: body["text"].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"),
    "discord": lambda body: re.sub(r"\\([^0-9A-Za-z\s])", r"\1", body["content"]),
    "teams": lambda body: body["attachments"][0]["content"]["body"][0]["inlines"][0]["text"],
}
SHAPES = {
    "slack": {"text": str, "mrkdwn": False, "unfurl_links": False},
    "discord": {"content": str, "allowed_mentions": {"parse": []}, "flags": 4},
    "teams": {"type": "message", "attachments": [{
        "contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
            "body": [{"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": str}]}]}}]},
}


def shape(value, like):
    """The value, with `str` in place of texts that differ from those of `like`."""
    if isinstance(value, dict):
        return {k: shape(v, like.get(k) if isinstance(like, dict) else None) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(v, like[i] if isinstance(like, list) and i < len(like) else None) for i, v in enumerate(value)]
    return str if isinstance(value, str) and value != like else value


def plain_markup(chat, text):
    """What of a message the chat would take as a mention, a link or markup."""
    if chat == "slack":
        return re.findall(r"[<>]|&(?!amp;|lt;|gt;)", text)
    return re.findall(r"(?<!\\)(?:\\\\)*[*_~`|<>@\[\]#]", text) if chat == "discord" else []


class Chat(Webhook):
    """Keeps the bodies of posts; a first one is answered as Discord and Slack do when too many arrive."""

    def __init__(self):
        self.bodies, self.headers, self.busy = [], [], True
        super().__init__()

    def take(self, request, body):
        if self.busy:
            self.busy = False
            request.answer(429, Retry_After="1")
            return
        self.bodies.append(json.loads(body))
        self.headers.append(dict(request.headers, path=request.path))
        request.answer(204)


def chats(folder):
    """Messages of chats have the documented shape, and names in them cannot mention, link or format."""
    for chat in CHATS:
        receiver = Chat()
        path = "/T0/pass word?api-version=1&sig=s3cret".replace(" ", "%20")
        server = lib.Server(os.path.join(folder, chat), "--webhook", f"http://127.0.0.1:{receiver.port}{path}", "--webhook-format", chat)
        rule(server, kind="done")
        run(server, "a", HOSTILE, [], "finished")
        run(server, "a", "ü" * 140, [], "finished")
        run(server, "a", "*" * 140, [], "finished")
        until(lambda: len(receiver.bodies), lambda n: n == 3, f"messages of {chat}")
        for body in receiver.bodies:
            lib.equal(shape(body, SHAPES[chat]), SHAPES[chat], f"the shape of {chat}")
            message = body.get("content", body.get("text", ""))
            lib.equal(plain_markup(chat, message), [], f"markup for {chat} in {message!r}")
            lib.check(len(message) <= 2000, f"{chat}: {len(message)} characters")
        texts = sorted(CHATS[chat](body) for body in receiver.bodies)
        lib.equal(texts, sorted(f"a / {name}: the run finished" for name in (HOSTILE, "ü" * 140, "*" * 140)), f"texts of {chat}")
        lib.equal({h["path"] for h in receiver.headers}, {path}, "the whole address")
        lib.check(not any("X-Dptrack-Signature" in h for h in receiver.headers), "no signature without a secret")
        server.stop()
        lib.check("s3cret" not in server.stderr() and "pass" not in server.stderr(), f"the log shows the address: {server.stderr()}")
        receiver.close()


def flags_are_checked(folder):
    short = os.path.join(folder, "short")
    with open(short, "w", encoding="utf-8") as f:
        f.write("short\n")
    for flags, word in ((("--webhook", "http://127.0.0.1:1/"), "--webhook-secret-file"), (("--webhook-format", "slack"), "--webhook URL"),
                        (("--webhook", "http://127.0.0.1:1/", "--webhook-format", "fax"), "expected json, slack, discord or teams"), (("--webhook", "ftp://x/", "--webhook-secret-file", short), "expected 16 to 255"),
                        (("--webhook", "http://127.0.0.1:1/", "--webhook-secret-file", folder + "/none"), "none")):
        done = subprocess.run([lib.PROGRAM, "serve", "--logdir", os.path.join(folder, "other"), "--port", "0", *flags], capture_output=True,
                              text=True, timeout=WAIT_S, env={**os.environ, **lib.in_database(folder)})
        lib.check(done.returncode != 0 and word in done.stderr, f"{flags}: {done.returncode} {done.stderr}")


def connects_to_nobody(folder):
    """Without --webhook the server never calls connect() with a network address, as seen by strace."""
    why = strace.reason(folder)
    if why:
        print(f"skipped: connections of a server without --webhook ({why})")
        return
    program, trace = lib.PROGRAM, strace.Traced(lib.PROGRAM, folder)
    lib.PROGRAM = trace.program
    server = lib.Server(os.path.join(folder, "alone"))
    lib.PROGRAM = program
    rule(server, kind="done")
    run(server, "a", "x", [], "finished")
    until(lambda: found(server), lambda seen: len(seen) == 1, "an alert under strace")
    lib.equal(server.stop(), 0, "exit code under strace")
    until(trace.ended, bool, "the end of the trace")
    lib.equal(trace.reached(), set(), "addresses to which a server without --webhook connects")


def main():
    with lib.fresh() as server:
        rules_are_checked(server)
        each_kind(server)
    with tempfile.TemporaryDirectory(prefix="dptrack-test.") as folder:
        posted(folder)
        chats(folder)
        flags_are_checked(folder)
        connects_to_nobody(folder)
    lib.finish("alerts")


main()
