#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dptrack mcp through the protocol's own Python SDK (mcp on PyPI): its client lists and calls every tool, from a folder and
from a server, and a write without --write is refused. Without the network it is skipped."""
import json
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), place) for place in ("api", "bench")]
import agents  # noqa: E402
import lib  # noqa: E402
import packages  # noqa: E402
from lib import check, equal  # noqa: E402

CLIENT = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(program, words, calls):
    async with stdio_client(StdioServerParameters(command=program, args=['mcp', *words])) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
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
WRITES = [["add_note", {"run": "base", "text": "seen"}], ["set_tag", {"run": "base", "key": "k", "value": "v"}], ["archive_run", {"run": "wide"}]]


def session(python, words, calls):
    done = subprocess.run([python, "-c", CLIENT, lib.PROGRAM, json.dumps(words), json.dumps(calls)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def main():
    try:
        python = packages.python(lib.BUILD, "mcp", ["mcp==2.3.0"])
    except packages.Unavailable as reason:
        print("skipped: %s" % reason)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        agents.record(folder)
        name, tools, results = session(python, ["--logdir", folder], READS + WRITES)
        equal((name, tools), ("dptrack", agents.READS), "the tools that read")
        equal([(n, failed) for n, failed, _ in results], [(n, False) for n, _ in READS] + [(n, True) for n, _ in WRITES], f"calls: {results}")
        check(all(text for _, _, text in results), "every answer has a text")
        check(all("--write" in text for _, failed, text in results if failed), "what to do is said")
        server = lib.Serving(lib.PROGRAM, "--logdir", folder, "--port", "0")
        remote = session(python, ["--url", server.url, "--write"], READS + WRITES)
        server.stop()
        equal(remote[1], agents.READS + agents.WRITES, "all tools")
        equal([failed for _, failed, _ in remote[2]], [False] * 10, f"all calls: {remote[2]}")
    lib.finish("agents_sdk")


if __name__ == "__main__":
    main()
