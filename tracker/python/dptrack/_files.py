"""Files that are kept with a run: copied into its folder, where the server that follows the folder lists them, and with a server's
address sent there, where they are artifacts. Knows of a run its folder and its id only."""
import os
import shutil
import threading
import time
from urllib.parse import quote

from dptrack._run import say

FOLDER = 'files'
RETRY_S = 0.5


def wrong_name(name):
    """Why a file cannot be called so, or None."""
    if any(part in ('', '.', '..') for part in name.split('/')) or '\\' in name or not name.isprintable():
        return 'parts divided by single slashes, none of them "." or ".."'
    return None


def copy(source, run_dir, name):
    """The path of the copy, which is there whole or not at all."""
    to = os.path.join(run_dir, FOLDER, *name.split('/'))
    os.makedirs(os.path.dirname(to), exist_ok=True)
    part = '%s.%d.part' % (to, os.getpid())
    try:
        shutil.copyfile(source, part)
        os.replace(part, to)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)
        raise
    return to


class Sender:
    """Sends copies to a server, from a thread of its own; what it has not yet taken is tried again."""

    def __init__(self, url, run_id):
        self._to = '%s/api/v1/runs/%s/artifacts/' % (url.rstrip('/'), run_id)
        self._waiting, self._changed, self._until, self._why = [], threading.Condition(), None, ''
        self._thread = threading.Thread(target=self._work, name='dptrack-files', daemon=True)
        self._thread.start()

    def send(self, path, name):
        """path: a copy, which nobody changes."""
        with self._changed:
            self._waiting.append((path, name))
            self._changed.notify()

    def finish(self, wait_s):
        """Waits for what is under way; None, or a line about what the server lacks."""
        with self._changed:
            self._until = time.monotonic() + wait_s
            self._changed.notify()
        self._thread.join(wait_s + 1)
        with self._changed:
            return '%d files are not on the server (%s); they lie in the run\'s folder' % (len(self._waiting), self._why) if self._waiting else None

    def _is_over(self):
        return self._until is not None and (not self._waiting or time.monotonic() >= self._until)

    def _work(self):
        with self._changed:
            while not self._is_over():
                if not self._waiting:
                    self._changed.wait()
                    continue
                path, name = self._waiting[0]
                self._changed.release()
                try:
                    why = self._put(path, name)
                finally:
                    self._changed.acquire()
                done = self._waiting.pop(0)
                if why is not None:  # the others first
                    self._waiting.append(done)
                    self._why = why
                    self._changed.wait(RETRY_S)

    def _put(self, path, name):
        """None, or why not."""
        import urllib.error
        import urllib.request
        headers = {'Content-Length': str(os.path.getsize(path)), 'Content-Type': 'application/octet-stream'}
        if os.environ.get('DPTRACK_TOKEN'):
            headers['Authorization'] = 'Bearer ' + os.environ['DPTRACK_TOKEN']
        try:
            with open(path, 'rb') as f:
                request = urllib.request.Request(self._to + quote(name), data=f, headers=headers, method='PUT')
                urllib.request.urlopen(request, timeout=60, context=self._trusted()).close()
        except (OSError, urllib.error.URLError) as error:
            return str(getattr(error, 'reason', error))
        return None

    def _trusted(self):
        import ssl
        return ssl.create_default_context(cafile=os.environ.get('DPTRACK_CA')) if self._to.startswith('https') else None


class Keeper:
    """The files of one run."""

    def __init__(self, run_dir, run_id, url):
        self._dir, self._sender = run_dir, Sender(url, run_id) if url else None

    def keep(self, source, name):
        """Copies it now; a line says what went wrong."""
        why = wrong_name(name)
        try:
            path = None if why else copy(source, self._dir, name)
        except OSError as error:
            why = error.strerror or str(error)
        if why:
            say('file "%s" is not kept: %s' % (name, why))
        elif self._sender:
            self._sender.send(path, name)

    def finish(self, wait_s):
        """Waits for the server, wait_s at most."""
        why = self._sender and self._sender.finish(wait_s)
        if why:
            say(why)
