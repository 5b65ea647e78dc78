#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dptrack mcp through the protocol: the client of its Python SDK (mcp on PyPI) lists and calls every tool, from a folder and from a
server, and a write without --write is refused; malformed lines end no session. Without the SDK, or with a Python without it, one
line says what to install. Without the network it is skipped."""
import json
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), place) for place in ("api", "bench")]
import agents  # noqa: E402
import interpreters  # noqa: E402
import lib  # noqa: E402
import packages  # noqa: E402
from lib import check, equal  # noqa: E402

CLIENT = """
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(program, words, calls):
    async with stdio_client(StdioServerParameters(command=program, args=['mcp', *words], env=dict(os.environ))) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            tools = [[tool.name, tool.annotations.read_only_hint, tool.input_schema] for tool in (await session.list_tools()).tools]
            results = []
            for name, arguments in calls:
                result = await session.call_tool(name, arguments)
                results.append([name, bool(result.is_error), ''.join(part.text for part in result.content)])
            print(json.dumps([hello.server_info.name, tools, results]))

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])))
"""
RUN, RUNS = {"run": "base"}, {"runs": ["base", "wide"]}
READS = [["list_runs", {}], ["best_run", {"key": "epoch/top1"}], ["why", RUNS], ["compare_runs", RUNS], ["get_series", {"run": "base", "key": "train/loss"}],
         ["diagnose", RUN], ["list_alerts", {}]]
WRITES = [["add_note", {"run": "base", "text": "seen → `x`"}], ["set_tag", {"run": "base", "key": "k", "value": "v"}], ["archive_run", {"run": "wide"}]]


def environment(python, **others):
    return {**os.environ, "DPTRACK_PYTHON": python, "PYTHONPATH": agents.PACKAGE, "PYTHONDONTWRITEBYTECODE": "1", **others}


def session(python, words, calls):
    done = subprocess.run([python, "-c", CLIENT, lib.PROGRAM, json.dumps(words), json.dumps(calls)], capture_output=True, text=True, timeout=240,
                          env=environment(python))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def check_client(python, folder):
    name, tools, results = session(python, ["--logdir", folder], READS + WRITES)
    equal((name, [tool[0] for tool in tools]), ("dptrack", agents.READS), "the tools that read")
    equal([tool[1:] for tool in tools], [[True, agents.TOOLS[tool[0]].schema()] for tool in tools], "their declarations")
    equal([(n, failed) for n, failed, _ in results], [(n, False) for n, _ in READS] + [(n, True) for n, _ in WRITES], f"calls: {results}")
    check(all(text for _, _, text in results), "every answer has a text")
    check(all("--write" in text for _, failed, text in results if failed), "what to do is said")
    server = lib.Serving(lib.PROGRAM, "--logdir", folder, "--port", "0")
    remote = session(python, ["--url", server.url, "--write"], READS + WRITES)
    server.stop()
    equal([tool[0] for tool in remote[1]], agents.READS + agents.WRITES, "all tools")
    equal([failed for _, failed, _ in remote[2]], [False] * 10, f"all calls: {remote[2]}")


def check_lines(python, folder):
    """The lines themselves: one answer a line and nothing else on stdout, whatever came before."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "best_run", "arguments": {"key": "epoch/top1"}}
    asked = [("initialize", hello), ("ping", None), ("tools/call", call), ("tools/call", {"name": "rm"}), ("resources/list", None)]
    process = subprocess.Popen([lib.PROGRAM, "mcp", f"--logdir={folder}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
                               env=environment(python))
    process.stdin.write("{\n\n[]\n\x7f\n")
    replies = {}
    for n, (method, params) in enumerate(asked):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": method, **({} if params is None else {"params": params})}) + "\n")
        process.stdin.write("" if n else '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        process.stdin.flush()
        while n not in replies:
            reply = json.loads(process.stdout.readline())
            replies[reply.get("id")] = reply
    process.stdin.close()
    equal((process.wait(60), process.stdout.read()), (0, ""), "exit at the end of the input")
    equal(replies[0]["result"]["protocolVersion"], "2025-06-18", "an older version")
    check(replies[2]["result"]["content"][0]["text"].startswith("wïde → 3 ("), "UTF-8")
    equal((replies[3]["error"]["code"], replies[4]["error"]["code"]), (-32602, -32601), "an unknown tool, an unknown method")


def check_missing(python, folder):
    """What is missing is said in one line with what to do; a folder of data has no say in what runs."""
    with open(folder + "/dptrack.py", "w", encoding="ascii") as f:
        f.write("print('this is not the package')\n")
    plain = environment("python3", PYTHONPATH="")
    for env, want in ((plain, "-….whl[mcp]'"), (dict(plain, DPTRACK_PYTHON="/none/python"), "cannot start /none/python"),
                      (environment(sys.executable), "the package mcp: pip install"), (environment(interpreters.interpreters().get("3.9", sys.executable)), "Python 3.10")):
        done = subprocess.run([lib.PROGRAM, "mcp", "--logdir", folder], env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), f"one line: {done}")
        check(done.stderr.startswith("dptrack: error: ") and want in done.stderr, f"{want}: {done.stderr}")
    done = subprocess.run([lib.PROGRAM, "mcp", "--logdir", folder + "/none"], env=environment(python), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    check(done.returncode == 2 and "no folder" in done.stderr and not done.stdout, f"a folder that is missing: {done}")


def main():
    try:
        python = packages.python(lib.BUILD, "mcp", ["mcp==2.3.0"])
    except packages.Unavailable as reason:
        print("skipped: %s" % reason)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        agents.record(folder)
        check_lines(python, folder)
        check_client(python, folder)
        check_missing(python, folder)
    lib.finish("agents_sdk")


if __name__ == "__main__":
    main()
