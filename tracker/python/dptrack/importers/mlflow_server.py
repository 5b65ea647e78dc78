# SPDX-License-Identifier: Apache-2.0
"""Reads a server of MLflow by its REST API, with the variables MLFLOW_TRACKING_TOKEN, MLFLOW_TRACKING_USERNAME and _PASSWORD and
MLFLOW_TRACKING_SERVER_CERT_PATH of MLflow's client. Files are downloaded until the import ends."""
from __future__ import annotations

import base64
import json
import os
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from operator import itemgetter
from urllib.parse import quote, urlencode

from dptrack.importers import Refused, Skipped, WriteFailed, is_below, number
from dptrack.importers.mlflow import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dptrack.importers import RunWriter

PAGE = 1000
MODEL_ID = re.compile('m-[0-9a-f]{32}')
TRIES = 4
TIMEOUT_S = 60


def tag_map(pairs: Any) -> dict[str, str]:
    return {pair['key']: pair.get('value') or '' for pair in pairs or ()}


class Client:
    """Sends requests; repeats what a busy server or a broken connection refused."""

    def __init__(self, url: str) -> None:
        self.url, self.secret = url.rstrip('/'), ''
        token, user = os.environ.get('MLFLOW_TRACKING_TOKEN'), os.environ.get('MLFLOW_TRACKING_USERNAME')
        if user:
            password = os.environ.get('MLFLOW_TRACKING_PASSWORD', '')
            self.secret = 'Basic ' + base64.b64encode(('%s:%s' % (user, password)).encode()).decode()
        elif token:
            self.secret = 'Bearer ' + token
        self.tls = ssl.create_default_context(cafile=os.environ.get('MLFLOW_TRACKING_SERVER_CERT_PATH'))

    def open(self, path: str, body: Any = None) -> Any:
        """The reply. Skipped: the server refused the request; Refused: there is no server."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {'Content-Type': 'application/json'} if data else {})
        if self.secret:
            request.add_unredirected_header('Authorization', self.secret)  # another host must not see it
        for attempt in range(TRIES):
            try:
                return urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self.tls if self.url.startswith('https:') else None)
            except urllib.error.HTTPError as error:
                if error.code in (401, 403):
                    raise Refused('%s: %s: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN' % (self.url, error)) from None
                if error.code not in (429, 500, 502, 503, 504) or attempt == TRIES - 1:
                    raise Skipped('%s%s: %s' % (self.url, path, error)) from None
            except OSError as error:
                if attempt == TRIES - 1:
                    raise Refused('%s: %s' % (self.url, getattr(error, 'reason', error)), 1) from None
            time.sleep(0.5 * 4 ** attempt)

    def ask(self, route: str, body: Any = None, **query: Any) -> Any:
        path = '/api/2.0/mlflow/%s%s' % (route, '?' + urlencode(query) if query else '')
        with self.open(path, body) as reply:
            data = reply.read()
        try:
            return json.loads(data)
        except ValueError:
            raise Refused('%s%s: the reply is not JSON: is it a server of MLflow?' % (self.url, path)) from None

    def pages(self, route: str, name: str, body: Any = None, **query: Any) -> Iterator[Any]:
        """The items `name` of all pages; body: of a POST."""
        token = ''
        while True:
            more = {'page_token': token} if token else {}
            reply = self.ask(route, {**body, **more}) if body is not None else self.ask(route, **query, **more)
            yield from reply.get(name) or ()
            token = reply.get('next_page_token') or ''
            if not token:
                return


class ServerStore(Store):
    def __init__(self, out: RunWriter, url: str) -> None:
        super().__init__(out, '')
        self.client = Client(url)

    def download(self, path: str, to: str) -> None:
        """Raises Skipped if the server has no such file, or its name leads elsewhere."""
        if not is_below(self.out.folder, to):
            raise Skipped('a file whose name leads out of its run: %s' % path)
        try:
            part = os.path.join(self.out.folder, 'part')
            with self.client.open(path) as reply:
                with open(part, 'wb') as f:
                    shutil.copyfileobj(reply, f, 1 << 20)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            os.replace(part, to)
        except urllib.error.URLError as error:
            raise Skipped('%s: %s' % (path, error)) from None
        except OSError as error:
            raise WriteFailed('%s: %s' % (to, error)) from error

    def run_files(self, run: str, path: str = '') -> Iterator[str]:
        for item in self.client.pages('artifacts/list', 'files', run_id=run, **({'path': path} if path else {})):
            if item.get('is_dir'):
                yield from self.run_files(run, item['path'])
            else:
                yield item['path']

    def model_files(self, model: str, path: str = '') -> Iterator[str]:
        for item in self.client.pages('logged-models/%s/artifacts/directories' % quote(model), 'files',
                                      **({'artifact_directory_path': path} if path else {})):
            if item.get('is_dir'):
                yield from self.model_files(model, item['path'])
            else:
                yield item['path']

    def points(self, run: str, keys: list[str]) -> Iterator[tuple[str, Any]]:
        found: list[Any] = []
        for key in keys:
            for m in self.client.pages('metrics/get-history', 'metrics', run_id=run, metric_key=key, max_results=25000):
                found.append([key, int(m.get('step') or 0), int(m['timestamp']) / 1e3, number(m['value'])])
        found.sort(key=itemgetter(2))
        for row in found:
            yield 'points', row

    def run(self, run: Any, experiment: str) -> None:
        out, info, data = self.out, run['info'], run.get('data') or {}
        name = self.check_id(info.get('run_id'), self.client.url)
        with out.one_run(name):
            out.run(name, experiment, info.get('run_name'), int(info.get('start_time') or 0) / 1e3)
            out.events(self.points(name, [m['key'] for m in data.get('metrics') or ()]))
            out.flush()
            for key, value in tag_map(data.get('params')).items():
                out.param(key, value)
            self.tags(iter(tag_map(data.get('tags')).items()))
            for item in (run.get('inputs') or {}).get('dataset_inputs') or ():
                out.input({**item['dataset'], 'tags': tag_map(item.get('tags'))})
            for item in (run.get('outputs') or {}).get('model_outputs') or ():
                out.output(item['model_id'], int(item.get('step') or 0))
            self.places[name] = info.get('artifact_uri') or ''
            with out.part():
                for path in self.run_files(name):
                    with out.part():
                        to = os.path.join(out.folder, name, path)
                        self.download('/get-artifact?' + urlencode({'run_uuid': name, 'path': path}), to)
                        out.file(path, to)
            if info.get('lifecycle_stage') == 'deleted':
                out.deleted()
            out.end(self.status(info.get('status'), name), int(info.get('end_time') or 0) / 1e3)

    def model(self, model: Any, experiment: str) -> None:
        info, data = model['info'], model.get('data') or {}
        id, folder = info['model_id'], os.path.join(self.out.folder, 'models', info['model_id'])
        if not MODEL_ID.fullmatch(id):
            raise Skipped("'%.60s': not the id of a logged model" % id)
        os.makedirs(folder, exist_ok=True)
        with self.out.part():
            for path in self.model_files(id):
                with self.out.part():
                    self.download('/ajax-api/2.0/mlflow/logged-models/%s/artifacts/files?%s' % (quote(id), urlencode({'artifact_file_path': path})),
                                  os.path.join(folder, path))
        self.logged_model({'model_id': id, 'experiment': experiment, 'name': info.get('name') or '', 'model_type': info.get('model_type') or '',
                           'source_run_id': info.get('source_run_id') or '', 'status': info.get('status') or 'LOGGED_MODEL_READY', 'deleted': False,
                           'params': tag_map(data.get('params')), 'tags': tag_map(info.get('tags')),
                           'points': [[m['run_id'], m['key'], int(m.get('step') or 0), int(m['timestamp']) / 1e3, number(m['value']),
                                       *((m['dataset_name'], m.get('dataset_digest') or '') if m.get('dataset_name') else ())]
                                      for m in data.get('metrics') or ()]}, '', folder)

    def experiment(self, experiment: Any) -> None:
        name, id = experiment['name'], experiment['experiment_id']
        for run in self.client.pages('runs/search', 'runs', {'experiment_ids': [id], 'run_view_type': 'ALL', 'max_results': PAGE}):
            with self.out.part():
                self.run(run, name)
        try:
            for model in self.client.pages('logged-models/search', 'models', {'experiment_ids': [id], 'max_results': 50}):
                with self.out.part():
                    self.model(model, name)
        except Skipped as why:
            if '404' not in str(why):  # MLflow 2 has none
                self.out.left_out(str(why))
        self.out.experiment(name, tag_map(experiment.get('tags')), experiment.get('lifecycle_stage') == 'deleted')

    def registered(self, model: Any) -> None:
        name = model['name']
        found = [self.version({'version': v['version'], 'description': v.get('description'), 'stage': v.get('current_stage') or 'None',
                               'run_id': v.get('run_id'), 'source': v.get('source'), 'tags': tag_map(v.get('tags'))})
                 for v in self.client.pages('model-versions/search', 'model_versions', filter="name='%s'" % name.replace("'", "''"))]
        self.out.registered_model({'name': name, 'description': model.get('description') or '', 'tags': tag_map(model.get('tags')),
                                   'aliases': {a['alias']: a['version'] for a in model.get('aliases') or ()},
                                   'versions': sorted((v for v in found if v), key=lambda v: int(v['version']))})

    def all(self) -> None:
        for experiment in self.client.pages('experiments/search', 'experiments', {'view_type': 'ALL', 'max_results': PAGE}):
            with self.out.part():
                self.experiment(experiment)
        for model in self.client.pages('registered-models/search', 'registered_models', max_results=100):
            with self.out.part():
                self.registered(model)
