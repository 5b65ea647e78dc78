# SPDX-License-Identifier: Apache-2.0
"""Real TensorBoard reads a run folder of dptrain directly: every run-level scalar and the hparams, with the values of
the CSV export. Needs tensorboard from PyPI (installed into build/venv/tensorboard); exits with 77 and the reason
without it."""
import csv
import io
import os
import subprocess
import sys
import tempfile

from serve import BUILD, Server, train

VENV = os.path.join(BUILD, "venv", "tensorboard")
PYTHON = os.path.join(VENV, "bin", "python")
READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
acc = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0, 'tensors': 0})
acc.Reload()
scalars = {t: [[e.step, e.value] for e in acc.Scalars(t)] for t in acc.Tags()['scalars']}
for t in acc.Tags()['tensors']:
    if acc.SummaryMetadata(t).plugin_data.plugin_name == 'scalars':
        scalars[t] = [[e.step, float(e.tensor_proto.float_val[0])] for e in acc.Tensors(t)]
content = acc.PluginTagToContent('hparams')['_hparams_/session_start_info']
start = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
def plain(v):
    return {'number_value': v.number_value, 'string_value': v.string_value, 'bool_value': v.bool_value}[v.WhichOneof('kind')]
print(json.dumps({'scalars': scalars, 'hparams': {k: plain(v) for k, v in start.hparams.items()}}))
"""


def install():
    if os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", "import tensorboard"], check=False).returncode == 0:
        return
    for command in ([sys.executable, "-m", "venv", VENV], [PYTHON, "-m", "pip", "install", "-q", "tensorboard==2.21.0", "setuptools<80"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            print(f"skipped: {' '.join(command)}: {done.stderr.strip().splitlines()[-1:]}")
            sys.exit(77)


def as_f32(text):
    import struct
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def main():
    import json
    install()
    with tempfile.TemporaryDirectory() as tmp:
        train("--model", "resnet20", "--synthetic", "--image-size", "8", "--in-channels", "1", "--classes", "10", "-b", "4",
              "--threads", "1", "--max-steps", "30", "--runs-dir", tmp, "--experiment", "tb", "--run-name", "r",
              "--report-to", "none")
        folder = os.path.join(tmp, "tb", os.listdir(os.path.join(tmp, "tb"))[0])
        done = subprocess.run([PYTHON, "-c", READ, folder], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        read = json.loads(done.stdout)
        with Server(tmp) as server:
            run = server.json("/runs?experiment=tb")["runs"][0]
            rows = list(csv.DictReader(io.StringIO(server.text(f"/export/series.csv?run={run['id']}"))))
        wanted = {}
        for row in rows:
            if row["rank"] == "-1":
                wanted.setdefault(row["key"], []).append([int(row["step"]), as_f32(row["value"])])
        for key, points in wanted.items():
            assert read["scalars"].get(key) == points, f"{key}: {read['scalars'].get(key)} instead of {points}"
        missing = set(run["params"]) - set(read["hparams"])
        assert not missing, f"params without hparam: {missing}"
        assert float(read["hparams"]["lr"]) == float(run["params"]["lr"])
        print(f"TensorBoard reads {sum(map(len, wanted.values()))} points of {len(wanted)} series and {len(read['hparams'])} hparams")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
