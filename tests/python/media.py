#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures, histograms, texts, tables and sounds from Python: the server returns bytes and steps as they were logged,
a restart's repeated steps hide the older ones, equal contents are stored once and deleted with the last run that uses
them, and the export has the same messages. with_pictures.py tests them with TensorBoard's own reader."""
import glob
import hashlib
import json
import os
import struct
import subprocess
import sys
import urllib.request
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
import parallel  # noqa: E402
from told import Server  # noqa: E402



def png(seed, width=3, height=2):
    """Encodes a small RGB picture."""
    raw = b''.join(b'\0' + bytes((seed * 7 + x + y * width * 3) % 256 for x in range(width * 3)) for y in range(height))

    def chunk(name, data):
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b''))


WAV = b'RIFF' + struct.pack('<I', 40) + b'WAVEfmt ' + struct.pack('<IHHIIHH', 16, 1, 1, 8000, 16000, 2, 16) + b'data' + struct.pack('<I', 4) + b'\1\0\2\0'

PROGRAM = '''
    import base64, dptrack, json, sys
    first, last, seed = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    pictures, wav = [base64.b64decode(p) for p in json.loads(sys.argv[1])[:-1]], base64.b64decode(json.loads(sys.argv[1])[-1])
    run = dptrack.init(experiment='m', run_name='media', resume='auto')
    for step in range(first, last + 1):
        run.log({'loss': 1.0 / step, 'picture': dptrack.Image(pictures[step % len(pictures)])}, step=step)
    run.log({'weights': dptrack.Histogram(np_histogram=([1, 0, 4], [-1, 0, 0.5, 2])),
             'words': dptrack.Text('# said ' + 'ü' * 3), 'note of a step': 'plain words',
             'rows': dptrack.Table(columns=['a', 'b'], data=[[1, 'x'], [2.5]]),
             'page': dptrack.Html('<b>ü</b>'), 'figure': dptrack.Plotly({'data': [{'y': [1, 2]}]}), 'film': dptrack.Video(b'\\x1a\\x45\\xdf\\xa3film'),
             'sound': dptrack.Audio(wav), 'pair': [dptrack.Image(pictures[0]), dptrack.Image(pictures[1])]}, step=last)
    '''


def record(runs, first, last, seed=0):
    import base64
    given = json.dumps([base64.b64encode(b).decode() for b in (png(0), png(1), png(2), WAV)])
    lib.run(runs, PROGRAM, given, str(first), str(last), str(seed))


def fetch(server, run_id, content):
    with urllib.request.urlopen('%s/api/v1/runs/%s/media/%s' % (server.url, run_id, content)) as reply:
        return reply.headers['Content-Type'], reply.read()


def media_are_read_back(folder):
    runs = folder + '/runs'
    record(runs, 1, 6)
    run_id = lib.only(runs).header['run_id']
    with Server(runs) as server:
        listed = server.get(run_id, 'media')
        assert [(k['key'], k['kind'], k['count'], k['first_step'], k['last_step']) for k in listed['keys']] == [
            ('figure', 'text', 1, 6, 6), ('film', 'audio', 1, 6, 6), ('note of a step', 'text', 1, 6, 6), ('page', 'text', 1, 6, 6), ('pair/0', 'image', 1, 6, 6), ('pair/1', 'image', 1, 6, 6), ('picture', 'image', 6, 1, 6),
            ('rows', 'table', 1, 6, 6), ('sound', 'audio', 1, 6, 6), ('weights', 'histogram', 1, 6, 6), ('words', 'text', 1, 6, 6)]
        pictures = server.get(run_id, 'media', key='picture')['media']
        assert [m['step'] for m in pictures] == [1, 2, 3, 4, 5, 6]
        for m in pictures:
            assert (m['width'], m['height'], m['type'], m['rank'], m['bytes']) == (3, 2, 'image/png', -1, len(png(m['step'] % 3)))
            assert fetch(server, run_id, m['content']) == ('image/png', png(m['step'] % 3))
        assert len({m['content'] for m in pictures}) == 3, 'equal pictures are stored once'
        got = {m['key']: fetch(server, run_id, m['content']) for m in listed['media'] if m['step'] == 6}
        assert got['sound'] == ('audio/wav', WAV) and got['words'][1].decode() == '# said üüü'
        assert got['note of a step'][1] == b'plain words'
        assert got['page'] == ('text/html; charset=utf-8', '<!doctype html><meta charset="utf-8"><b>ü</b>'.encode())
        assert got['film'] == ('video/webm', b'\x1a\x45\xdf\xa3film') and json.loads(got['figure'][1]) == {'data': [{'y': [1, 2]}]}
        assert json.loads(got['weights'][1]) == {'edges': [-1, 0, 0.5, 2], 'counts': [1, 0, 4]}
        assert json.loads(got['rows'][1]) == {'rows': [['a', 'b'], ['1', 'x'], ['2.5', '']]}
        assert [m['key'] for m in server.get(run_id, 'media', kind='image', **{'from': 6})['media']] == ['pair/0', 'pair/1', 'picture']
        exported = export(folder, runs, run_id)
    wanted = [v for p in lib.only(runs).payloads for v in values(p)]
    assert sorted(v for p in exported for v in values(p)) == sorted(wanted) and len(wanted) == 16


def values(payload):
    """Yields (step, Summary.Value) of the media in an event."""
    event = dict(lib.journal.fields(payload))
    for _, value in lib.journal.fields(event.get(5, b'')):
        if not any(n == 2 for n, _ in lib.journal.fields(value)) and b'_hparams_' not in value and b'notes' not in value[:8]:
            yield event.get(2, 0), value


def export(folder, runs, run_id):
    out = subprocess.run([os.path.join(lib.BUILD, 'dptrack'), 'export', '--events', folder + '/out', '--logdir', runs, run_id], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    paths = glob.glob(folder + '/out/**/events*', recursive=True)  # the run's, and the machine's series of its rank
    return [payload for path in paths for payload in lib.journal.records(open(path, 'rb').read())[0]]


def restarts_hide_pictures(folder):
    runs = folder + '/runs'
    record(runs, 1, 6)
    record(runs, 5, 7)
    run_id = lib.journals(runs)[0].header['run_id']
    with Server(runs) as server:
        shown = server.get(run_id, 'media', key='picture')['media']
        assert [(m['step'], m['segment']) for m in shown] == [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (6, 1), (7, 1)], shown
        everything = server.get(run_id, 'media', key='picture', segments='all')['media']
        assert [m['step'] for m in everything] == [1, 2, 3, 4, 5, 5, 6, 6, 7]
        picture = [k for k in server.get(run_id, 'media', limit=0)['keys'] if k['key'] == 'picture']
        assert picture[0]['count'] == 7


def contents_are_deleted_with_the_last_run(folder):
    import sqlite3
    runs = folder + '/runs'
    record(runs, 1, 3)
    record(runs, 4, 6)
    lib.run(runs, PROGRAM.replace("run_name='media', resume='auto'", "run_name='other'"),
            json.dumps([__import__('base64').b64encode(b).decode() for b in (png(0), png(1), png(9), WAV)]), '1', '3', '0')
    program = os.path.join(lib.BUILD, 'dptrack')
    ids = {name: lib.journals(runs, name)[0].header['run_id'] for name in ('media', 'other')}

    def kept():
        with sqlite3.connect('file:%s/dptrack.db?mode=ro' % runs, uri=True) as db:
            return {row[0] for row in db.execute('SELECT digest FROM content')}
    subprocess.run([program, 'ls', '--logdir', runs], check=True, capture_output=True)
    both = kept()
    for name in ('media', 'other'):
        for words in (['rm', '--yes', ids[name]], ['gc']):
            done = subprocess.run([program, words[0], '--logdir', runs, *words[1:]], capture_output=True, text=True, input='y\n')
            assert done.returncode == 0, done.stderr
        now = kept()
        assert now < both and (len(now) == 11 if name == 'media' else not now), (name, len(now))


def main():
    sys.exit(parallel.run([media_are_read_back, restarts_hide_pictures, contents_are_deleted_with_the_last_run]))


if __name__ == '__main__':
    main()
