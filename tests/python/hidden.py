#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Secrets in a program's environment, arguments, settings, addresses, git files and output are not in the records, in
any reply of the server, or in any export. Text that only resembles a secret stays readable."""
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lib  # noqa: E402
import parallel  # noqa: E402
from told import Server  # noqa: E402

PROGRAM = os.path.join(lib.BUILD, 'dptrack')
PEM = '-----BEGIN PRIVATE KEY-----\nMIIEvplantedAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nBBBBplantedBBBBBBBBBBBBBBBBBBBBBBBBBB\n-----END PRIVATE KEY-----\n'
ENVIRONMENT = {'WANDB_API_KEY': 'planted-wandb-0123', 'AWS_SECRET_ACCESS_KEY': 'planted/aws+4567', 'PGPASSWORD': 'planted-pg-pass', 'DPTRACK_TOKEN': 'planted-dptrack-token',
               'DATABASE_URL': 'postgres://joe:planted-db-pw@db/x', 'HTTPS_PROXY': 'http://joe:planted%2Dproxy@proxy:3128', 'SERVICE_KEY': PEM.replace('\n', ' '),
               'DEPLOY_PRIVATE_KEY': PEM}
ARGUMENTS = ['--api-key', 'planted-arg-one', '--hub_token=planted-arg-two', 'db.password=planted-arg-three', '--data', 'https://joe:planted-arg-four@host/set',
             '--conf', '{"secret_key": "planted-arg-five", "lr": 0.1}', '--proxy', 'http://planted-arg-token-that-is-long@host/', '--mail', 'joe@host.org', '--url', 'http://h:80/?to=a@b',
             '--max-tokens', '60']

SAYING = '''
    import dptrack, json, logging, os, sys
    secrets = json.loads(os.environ.pop('ALL_OF_THEM'))
    class Settings:
        def __init__(self):
            self.optimizer, self.remote = 'sgd', 'https://joe:planted-setting-one@host/r.git'
    run = dptrack.init(experiment='h', run_name='hides', config={'hub': {'auth_token': 'planted-setting-two', 'mirrors': ['ftp://a:planted-setting-3@h/', 'ftp://h/']},
                                                                'settings': vars(Settings()), 'argv': sys.argv[1:], 'pad_token': '<pad>', 'max_tokens': 60},
                       tags={'webhook_url': 'https://h/planted-tag-one'}, notes='with ' + secrets[0])
    run.config.update({'later': {'password': 'planted-setting-four'}})
    for secret in secrets:
        print('out', secret)
        print('err', repr({'value': secret}), file=sys.stderr)
        logging.warning('logged %s', secret)
        for cut in (1, len(secret) // 2, len(secret) - 1):
            sys.stdout.write('cut <' + secret[:cut])
            sys.stdout.flush()
            sys.stdout.write(secret[cut:] + '> end\\n')
        for character in 'by characters ' + secret + '\\n':
            sys.stderr.write(character)
        sys.stdout.write('\\r' + secret + '\\r100%\\n')
        run.log({'said': 'text ' + secret, 'rows': dptrack.Table(columns=['a ' + secret], data=[[secret], ['fine']]), 'words': dptrack.Text(secret)}, step=1)
        run.alert('alert ' + secret, 'text ' + secret)
        run.tag('plain', secret)
        run.summary['word'] = secret
    run.code('own', 'x = %r' % secrets)
    run.log({'loss': 1.0}, step=2)
    print('the end of', secrets[-1], end='')
    raise RuntimeError('cannot reach %s with %s' % (secrets[0], secrets[1]))
    '''


def planted():
    """Every secret alone, as a program might print it."""
    found = [v for k, v in ENVIRONMENT.items() if '://' not in v and not v.startswith('-')]
    found += [w for w in PEM.split() if 'planted' in w] + ['planted-db-pw', 'planted%2Dproxy', 'planted-proxy']
    return found + ['planted-arg-one', 'planted-arg-two', 'planted-arg-three', 'planted-arg-four', 'planted-arg-five', 'planted-arg-token-that-is-long',
                    'planted-setting-one', 'planted-setting-two', 'planted-setting-3', 'planted-setting-four', 'hf_plantedplantedplanted', 'sk-plantedplantedplanted']


def commit(folder):
    """A program under git whose remote has a password, and whose change contains a secret."""
    git = ['git', '-C', folder, '-c', 'user.name=n', '-c', 'user.email=e@x']
    path = os.path.join(folder, 'settings.py')
    with open(path, 'w', encoding='ascii') as f:
        f.write('KEY = None\n')
    for words in (['init', '-q'], ['add', 'settings.py'], ['commit', '-qm', 'first'], ['remote', 'add', 'origin', 'https://joe:planted-remote-pw@h/r.git']):
        subprocess.run(git + words, check=True)
    with open(path, 'w', encoding='ascii') as f:
        f.write("KEY = 'planted-wandb-0123'\nREMOTE = 'https://joe:planted-diff-pw@h/'\n")


def holds(what, data, words):
    for word in words:
        assert word not in data, (word, what, data[max(0, data.index(word) - 200):][:400])


def in_files(folder, words):
    paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    assert paths
    for path in paths:
        with open(path, 'rb') as f:
            holds(path, f.read(), words)


def replies(server, run_id):
    """Every reply of the server about a run."""
    listed = lib.ask(server.url, 'runs/%s/media' % run_id, limit=1000)['media']
    routes = ['runs', 'runs/%s' % run_id, 'runs/%s/code' % run_id, 'runs/%s/alerts' % run_id, 'runs/%s/console?limit=50000' % run_id, 'runs/%s/artifacts' % run_id,
              'runs/%s/files' % run_id, 'runs/%s/diagnosis' % run_id, 'export/runs.csv?experiment=h', 'export/runs.json?experiment=h', 'export/series.csv?run=' + run_id,
              'compare?run=%s&run=%s' % (run_id, run_id), 'experiments'] + ['runs/%s/media/%s' % (run_id, m['content']) for m in listed]
    for route in routes:
        try:
            with urllib.request.urlopen('%s/api/v1/%s' % (server.url, route), timeout=60) as reply:
                yield route, reply.read()
        except urllib.error.HTTPError as error:
            assert error.code == 404 and ('alerts' in route or 'diagnosis' in route), (route, error)


def by_python(folder):
    runs, words = folder + '/runs', [w.encode() for w in planted()]
    commit(folder)
    lib.run(runs, SAYING, *ARGUMENTS, status=1, ALL_OF_THEM=json.dumps(planted()), **ENVIRONMENT)
    j = lib.only(runs)
    assert j.params['pad_token'] == '<pad>' and j.params['max_tokens'] == 60 and j.params['settings.optimizer'] == 'sgd', j.params
    assert j.params['hub.mirrors'].endswith('ftp://h/"]') and 'joe@host.org' in j.params['argv'] and 'http://h:80/?to=a@b' in j.params['argv'], j.params
    assert '--max-tokens 60' in j.env['command'] and '--mail joe@host.org' in j.env['command'] and '"lr": 0.1' in j.env['command'], j.env['command']
    every = [*words, b'planted-remote-pw', b'planted-diff-pw', b'planted-tag-one', b'planted']
    in_files(runs, every)
    n = 0
    with Server(runs) as server:
        for route, data in replies(server, j.header['run_id']):
            holds(route, data, every)
            n += 1
        lines = [x['text'] for x in lib.ask(server.url, 'runs/%s/console' % j.header['run_id'], limit=50000)['lines']]
    assert lines.count('cut <(hidden)> end') == 3 * len(words) and lines.count('by characters (hidden)') == len(words), lines[:20]
    assert [x for x in lines if x.startswith('the end of')] == ['the end of (hidden)'], lines[-3:]
    subprocess.run([PROGRAM, 'export', '--events', folder + '/out', '--logdir', runs, j.header['run_id']], check=True, capture_output=True)
    in_files(folder + '/out', every)
    return '%d secrets, %d replies' % (len(words) + 3, n)


def by_dptrain(folder):
    """dptrain records its command and settings, and not its environment."""
    runs, far, words = folder + '/runs', folder + '/far', [b'planted']
    os.makedirs(far)
    with Server(far) as server:
        address = server.url.replace('://', '://joe:planted-report-pw@')
        done = subprocess.run([os.path.join(lib.BUILD, 'dptrain'), '--model', 'resnet20', '--synthetic', '--classes', '2', '--image-size', '8', '-b', '2', '--max-steps', '2',
                           '--threads', '1', '--experiment', 'h', '--runs-dir', runs, '--report-to', address],
                              env=dict(lib.environment(runs), **ENVIRONMENT), cwd=folder, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    in_files(runs, words)
    in_files(far, words)
    j = next(j for j in lib.journals(runs) if 'command' in j.env)
    assert j.env['command'].endswith('--report-to ' + server.url) and 'planted' not in str(j.env), j.env
    holds('its output', done.stdout + done.stderr, words)
    return j.env['command'][-40:]


def main():
    sys.exit(parallel.run([by_python, by_dptrain]))


if __name__ == '__main__':
    main()
