# SPDX-License-Identifier: Apache-2.0
"""W&B's own package from PyPI, in the build folder, in several versions; runs scripts with it against a server. Skips
the test where it cannot be installed."""
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "api"), os.path.join(os.path.dirname(HERE), "bench")]
import lib  # noqa: E402
import packages  # noqa: E402

VERSIONS = ("0.22.0", "0.28.2", "0.31.0")
NEWEST = VERSIONS[-1]
KEY = "0123456789abcdef0123456789abcdef01234567"  # any key is taken while the server has no tokens


def client(version=NEWEST):
    """The Python interpreter with W&B's package."""
    return python("wandb-" + version, ["wandb==" + version, "numpy", "pillow"])


def python(name, wanted):
    try:
        return packages.python(lib.BUILD, name, wanted)
    except packages.Unavailable as e:
        print(f"skipped: {e}")
        sys.exit(77)


def environment(server, folder, key=KEY, **more):
    """Variables of a script: without those of another server, and with a home of its own."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    return dict(found, HOME=folder, WANDB_BASE_URL=server.url if server else "http://127.0.0.1:9", WANDB_API_KEY=key, WANDB_DIR=folder,
                WANDB_CACHE_DIR=folder + "/cache", WANDB_DATA_DIR=folder + "/data", WANDB_ERROR_REPORTING="false", PYTHONDONTWRITEBYTECODE="1", **more)


def script(server, text, version=NEWEST, code=0, folder=None, timeout=180, key=KEY, python=None, **more):
    """Runs a script; its output. It must end with the code and complain of nothing. python: another interpreter, with libraries
    that may complain of other things."""
    with tempfile.TemporaryDirectory() as own:
        place = folder or own
        done = subprocess.run([python or client(version), "-c", text], env=environment(server, place, key, **more), cwd=place, capture_output=True, text=True, timeout=timeout)
        said = done.stdout + done.stderr
        lib.equal(done.returncode, code, f"the exit code with {version}; it said {said[-3000:]}")
        harmless = ("WARNING Symlinked", "already exists with the same content", "UnsupportedFieldAttributeWarning", "The anonymous setting has no effect",
                    "experimental arg `incremental`")
        complaints = "\n".join(line for line in said.split("\n") if not any(word in line for word in harmless) and (not python or line.startswith("wandb:")))
        for word in ("ERROR", "WARN", "Traceback", "error:", "rror while"):
            lib.check(code or word not in complaints, f"{version} complains: {said[-2000:]}")
        return said


def sync(server, folder, *options):
    """wandb sync of the runs in a folder."""
    command = [os.path.join(os.path.dirname(client()), "wandb"), "sync", "--yes", *options, *glob.glob(folder + "/wandb/*run-*")]
    done = subprocess.run(command, env=environment(server, folder), cwd=folder, capture_output=True, text=True, timeout=180)
    lib.equal(done.returncode, 0, f"wandb sync: {done.stdout[-1000:]} {done.stderr[-1000:]}")


def together(*calls):
    """Calls functions at the same time, since a script mostly waits; raises what one of them raised."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def run_of(server, experiment, name):
    """The run of that name, as REST v1 gives it."""
    runs = server.json("GET", "/api/v1/runs?experiment=" + experiment)[1]["runs"]
    found = [run for run in runs if run["name"] == name]
    lib.equal(len(found), 1, f"runs named {name} in {experiment} ({[r['name'] for r in runs]})")
    return server.json("GET", "/api/v1/runs/" + found[0]["id"])[1]


def points(server, run, key):
    """[(step, value)] of a series."""
    rows = server.request("GET", f"/api/v1/export/series.json?run={run['id']}&key={key}")
    return [(row["step"], row["value"]) for row in json.loads(rows[2]) if row["rank"] == -1]
