# SPDX-License-Identifier: Apache-2.0
"""schema/api/openapi.json and schema/api/routes.def describe the same routes. Each operation's example is sent to a
fresh server, in the order of x-example-order, and each reply is checked against its schema."""
import sys
sys.dont_write_bytecode = True
import hashlib
import json
import os
import re
import tempfile
import urllib.parse
import lib
sys.path.insert(0, os.path.join(lib.SOURCE, "tests", "tracker"))
from wire import field, record

SCOPES = {"OPEN": "open", "READ": "read", "WRITE": "write", "ADMIN": "admin"}


def load(name):
    with open(os.path.join(lib.SOURCE, "schema", "api", name), encoding="utf-8") as f:
        return f.read()


def routes():
    out = {}
    for method, path, handler, scope, limit in lib.routes(mlflow=False):
        key = (method.lower(), re.sub(r"/\*$", "/{asset}" if path == "/*" else "/{path}", path))
        lib.check(key not in out, f"{key}: duplicate in routes.def")
        out[key] = (handler, SCOPES[scope], limit)
    return out


def compare(doc):
    known, seen = routes(), {}
    for path, operations in doc["paths"].items():
        for method, op in operations.items():
            seen[method, path] = op
    for key in sorted(set(known) | set(seen)):
        if not lib.check(key in known, f"{key}: not in routes.def") or not lib.check(key in seen, f"{key}: not in openapi.json"):
            continue
        handler, scope, limit = known[key]
        op = seen[key]
        lib.equal(op["operationId"], handler, f"{key}: operationId")
        lib.equal(op["x-scope"], scope, f"{key}: scope")
        if "requestBody" in op:
            lib.check(limit > 0, f"{key}: has a body, but routes.def allows none")
        names = set(re.findall(r"\{(\w+)\}", key[1]))
        lib.equal({p["name"] for p in op.get("parameters", []) if p["in"] == "path"}, names, f"{key}: path parameters")
    codes = dict(re.findall(r"^API_ERROR\((\w+), (\d+), \w+\)", load("errors.def"), re.M))
    lib.check(len(codes) > 10, "errors.def has more than 10 errors")
    return seen


class Schema:
    """The subset of JSON Schema that openapi.json uses; any other keyword is an error."""
    KNOWN = {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "pattern", "minimum", "maximum", "minItems", "minLength", "maxLength",
             "description", "format", "$ref", "example"}
    TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}

    def __init__(self, doc):
        self.doc = doc

    def of_type(self, value, name):
        if name == "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        if name == "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        return isinstance(value, self.TYPES[name])

    def errors(self, schema, value, at="$"):
        if "$ref" in schema:
            return self.errors(self.doc["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], value, at)
        unknown = set(schema) - self.KNOWN
        if unknown:
            return [f"{at}: the schema uses {unknown}"]
        out = []
        if "anyOf" in schema and all(self.errors(s, value, at) for s in schema["anyOf"]):
            return [f"{at}: {value!r} matches no alternative: {self.errors(schema['anyOf'][0], value, at)[:2]}"]
        types = schema.get("type", [])
        types = types if isinstance(types, list) else [types]
        if types and not any(self.of_type(value, t) for t in types):
            return [f"{at}: {value!r} is not of type {types}"]
        if "enum" in schema and value not in schema["enum"]:
            out.append(f"{at}: {value!r} is not in {schema['enum']}")
        if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
            out.append(f"{at}: {value!r} does not match {schema['pattern']}")
        if isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                out += self.errors(schema["items"], item, f"{at}[{i}]")
        if isinstance(value, dict):
            out += self.object_errors(schema, value, at)
        return out

    def object_errors(self, schema, value, at):
        out = [f"{at}: {k} is missing" for k in schema.get("required", []) if k not in value]
        properties, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        for k, v in value.items():
            if k in properties:
                out += self.errors(properties[k], v, f"{at}.{k}")
            elif rest is False:
                out.append(f"{at}: {k} is not described")
            elif isinstance(rest, dict):
                out += self.errors(rest, v, f"{at}.{k}")
        return out


def example_request(path, op):
    """Returns (target, body, headers) from the examples of parameters and body."""
    query, headers, body = [], {}, None
    for p in op.get("parameters", []):
        if "example" not in p:
            continue
        values = p["example"] if isinstance(p["example"], list) else [p["example"]]
        if p["in"] == "path":
            path = path.replace("{%s}" % p["name"], urllib.parse.quote(str(values[0]), safe="/" if p["name"] == "path" else ""))
        elif p["in"] == "query":
            query += [(p["name"], v) for v in values]
        else:
            headers[p["name"]] = values[0]
    content = op.get("requestBody", {}).get("content", {})
    for media, what in content.items():
        headers["Content-Type"] = media
        body = what["example"] if media == "application/json" else what["example"].encode()
    return path + ("?" + urllib.parse.urlencode(query) if query else ""), body, headers


def check_reply(schema, op, status, headers, data, what):
    want, described = next((s, r) for s, r in op["responses"].items() if s != "default")
    if not lib.equal(str(status), want, f"{what}: status ({data[:300]!r})"):
        return
    known, got = described.get("content", {}), (headers["Content-Type"] or "").split(";")[0]
    lib.check(got in known or not known, f"{what}: type {got!r} is not in {list(known)}")
    for media, content in known.items():
        if media != got:
            continue
        if media == "application/json":
            documents = [json.loads(data)]
        elif media == "application/x-ndjson":
            documents = [json.loads(line) for line in data.decode().splitlines()]
        else:
            text = content.get("example")
            lib.check(text is None or data.decode() == text, f"{what}: {data[:100]!r}, want {text!r}")
            continue
        for d in documents:
            problems = schema.errors(content["schema"], d)
            lib.check(not problems, f"{what}: {problems[:5]}")


def refuses_unknown_arguments(server, schema, doc):
    """Every operation refuses an unknown argument, with the common form of errors."""
    for path, operations in doc["paths"].items():
        for method, op in operations.items():
            target, body, headers = example_request(path, op)
            if path == "/{asset}" or path.startswith("/docs") or path.endswith("/callback"):  # arguments are ignored
                continue
            target += ("&" if "?" in target else "?") + "no_such=1"
            status, _, data = server.request(method.upper(), target, body, headers)
            lib.equal(status, 400, f"{method} {target}: status")
            problems = schema.errors({"$ref": "#/components/schemas/Error"}, json.loads(data))
            lib.check(not problems, f"{method} {target}: {problems}")
            lib.equal(json.loads(data)["error"]["field"], "no_such", f"{method} {target}: field")
            known = [p["name"] for p in op.get("parameters", []) if p["in"] == "query"]
            said = json.loads(data)["error"]["message"].rpartition("expected ")[2].split(", ")
            lib.check(set(known) <= set(said), f"{method} {target}: the message lists {said}, the document {known}")


TEXT = field(8, field(1, 7) + field(2, field(2, field(1, 1))) + field(8, b"hello")) + field(9, field(1, field(1, b"text")))


def media_journal(run):
    """Returns path and body of a journal that holds one text."""
    writer = "ab" * 16
    header = b"".join(field(n, v) for n, v in ((1, 1), (2, run.encode()), (3, writer.encode()), (4, 0), (5, 1), (6, b"e"), (7, b"n"), (8, 0)))
    value = field(1, b"said") + TEXT
    payloads = [field(1, 1e9) + field(3, b"brain.Event:2") + field(1001, header), field(1, 1e9) + field(2, 3) + field(5, field(1, value))]
    return f"/api/v1/runs/{run}/journal?writer={writer}&offset=0", b"".join(map(record, payloads))


def docs_site(folder):
    """A site of one page for /docs."""
    with open(os.path.join(folder, "index.html"), "w", encoding="utf-8") as f:
        f.write("<title>docs</title>")
    return folder


def main():
    doc = json.loads(load("openapi.json"))
    schema = Schema(doc)
    operations = compare(doc)
    with tempfile.TemporaryDirectory() as docs, lib.fresh("--docs", docs_site(docs)) as server:
        server.token = server.owner_token()  # required once the example has added a token
        lib.equal(json.loads(server.request("GET", "/api/v1/openapi.json")[2]), doc, "openapi.json is served")
        for (method, path), op in sorted(operations.items(), key=lambda kv: kv[1]["x-example-order"]):
            target, body, headers = example_request(path, op)
            if path.endswith("/events"):
                continue  # never ends; events.py reads it
            if op["operationId"] == "media_list":  # no other operation creates media
                lib.equal(server.request("POST", *media_journal(target.split("/")[4]))[0], 200, "a journal with a text")
            if op["operationId"] == "notes_edition_delete":  # no other operation replaces notes
                server.json("PATCH", target.rpartition("/notes/")[0], {"notes": "second try"})
            if op["operationId"] == "media_get":
                lib.equal(target.rsplit("/", 1)[1], hashlib.sha256(TEXT).hexdigest(), "the example names that text")
            if lib.IN_DATABASE and op["operationId"] == "backup_post":  # a database has no folder for a backup
                body = {"path": os.path.join(server.logdir, body["path"])}
            status, got, data = server.request(method.upper(), target, body, headers)
            check_reply(schema, op, status, got, data, f"{method.upper()} {target}")
        refuses_unknown_arguments(server, schema, doc)
    print(f"{len(operations)} operations")
    lib.finish("openapi")


main()
