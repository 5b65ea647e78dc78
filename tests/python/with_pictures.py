# SPDX-License-Identifier: Apache-2.0
"""Pictures, sounds, histograms and texts compared with TensorBoard 2.21.0: our server returns those written by
torch.utils.tensorboard, with equal bytes and steps; TensorBoard's own reader reads those of our journals. Run by
tests/python/all."""
import glob
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
import media  # noqa: E402
from told import Server  # noqa: E402

WRITER = '''
import hashlib, json, sys
import numpy, torch
from torch.utils.tensorboard import SummaryWriter
from tensorboard.compat.proto import event_pb2
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
import glob

torch.manual_seed(0)
with SummaryWriter(sys.argv[1] + '/tb/written') as writer:
    for step in range(4):
        writer.add_image('picture', torch.rand(3, 4, 5), step)
        writer.add_scalar('loss', 1 / (step + 1), step)
    writer.add_images('pair', torch.rand(2, 3, 4, 5), 7)
    writer.add_audio('sound', torch.zeros(1, 80), 2, sample_rate=8000)
    writer.add_text('words', 'said *so*', 3)
    writer.add_histogram('weights', numpy.array([-1.0, 0.25, 0.25, 2.0]), 5, bins=[-1, 0, 1, 2])
out = []
for raw in RawEventFileLoader(glob.glob(sys.argv[1] + '/tb/written/events*')[0]).Load():
    event = event_pb2.Event.FromString(raw)
    for value in event.summary.value:
        kind = value.WhichOneof('value')
        if kind in ('image', 'audio'):
            made = value.image.encoded_image_string if kind == 'image' else value.audio.encoded_audio_string
            out.append([value.tag, kind, event.step, hashlib.sha256(made).hexdigest()])
print(json.dumps(out))
'''


def of_tensorboard(folder):
    runs = folder + '/runs'
    out, err = lib.run(runs, WRITER, runs)
    want = sorted(json.loads(out.strip().split('\n')[-1]))
    assert len(want) == 6, (out, err)
    with Server(runs) as server:
        run_id = lib.ask(server.url, 'runs', limit=10)['runs'][0]['id']
        listed = server.get(run_id, 'media', limit=100)['media']
        got = [(m, media.fetch(server, run_id, m['content'])[1]) for m in listed]
        assert sorted([m['key'], m['kind'], m['step'], hashlib.sha256(b).hexdigest()] for m, b in got if m['kind'] in ('image', 'audio')) == want, got
        said = {m['kind']: (m['key'], m['step'], b) for m, b in got if m['kind'] in ('text', 'histogram')}
        assert said['text'][1:] == (3, b'said *so*') and said['histogram'][:2] == ('weights', 5), said
        counts = json.loads(said['histogram'][2])
        assert sum(counts['counts']) == 4, counts
    return '%d pictures and sounds' % len(want)


READER = '''
import hashlib, json, sys
from tensorboard.backend.event_processing import event_accumulator as ea
from tensorboard.util import tensor_util
a = ea.EventAccumulator(sys.argv[1], size_guidance={k: 0 for k in ea.DEFAULT_SIZE_GUIDANCE})
a.Reload()
tags = a.Tags()
print(json.dumps({'images': {t: [[e.step, hashlib.sha256(e.encoded_image_string).hexdigest(), e.width, e.height] for e in a.Images(t)] for t in tags['images']},
                  'audio': {t: [hashlib.sha256(e.encoded_audio_string).hexdigest() for e in a.Audio(t)] for t in tags['audio']},
                  'tensors': {t: [tensor_util.make_ndarray(e.tensor_proto).tolist() for e in a.Tensors(t)] for t in tags['tensors'] if 'hparams' not in t}}, default=lambda b: b.decode()))
'''


def read_by_tensorboard(folder):
    runs = folder + '/runs'
    media.record(runs, 1, 4)
    path, = glob.glob(runs + '/m/media-*')
    out, err = lib.run(folder + '/none', READER, path)
    got = json.loads(out.strip().split('\n')[-1])
    assert got['images']['picture'] == [[s, hashlib.sha256(media.png(s % 3)).hexdigest(), 3, 2] for s in range(1, 5)], got['images']
    assert got['audio']['sound'] == [hashlib.sha256(media.WAV).hexdigest()]
    assert got['tensors']['weights'] == [[[-1, 0, 1], [0, 0.5, 0], [0.5, 2, 4]]] and got['tensors']['words'] == [['# said üüü']], got['tensors']
    assert got['tensors']['rows'] == [[['a', 'b'], ['1', 'x'], ['2.5', '']]], got['tensors']['rows']
    return 'pictures, sounds, histograms, texts and tables'


if __name__ == '__main__':
    lib.choose(of_tensorboard, read_by_tensorboard)
