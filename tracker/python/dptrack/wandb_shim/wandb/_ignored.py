# SPDX-License-Identifier: Apache-2.0
"""Names of W&B that dptrack does not record: each says so once, does nothing and returns something that a program can use."""
import os
import tempfile

from dptrack._run import say

_said = set()


def ignore(name, advice=''):
    """One line for a name, the first time that it is used."""
    if name not in _said:
        _said.add(name)
        say('wandb.%s is not recorded%s' % (name, ': ' + advice if advice else ''))


class Nothing:
    """Stands for a value of W&B: any attribute, item or call of it is another one; it is empty, and its text is ''."""

    def __init__(self, name=''):
        self.__dict__['_name'] = name

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return Nothing('%s.%s' % (self._name, name))

    def __setattr__(self, name, value):
        ignore('%s.%s' % (self._name, name))

    def __call__(self, *arguments, **named):
        ignore(self._name)
        if len(arguments) == 1 and not named and callable(arguments[0]) and hasattr(arguments[0], '__code__'):
            return arguments[0]  # a decorator
        return Nothing(self._name)

    def __getitem__(self, key):
        return Nothing('%s[...]' % self._name)

    __setitem__ = __delitem__ = __setattr__

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __bool__(self):
        return True

    def __contains__(self, key):
        return False

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return False

    def __str__(self):
        return ''


def ignored_class(name):
    """A class of W&B, for isinstance and for subclasses; making one says so once."""
    def made(self, *arguments, **named):
        ignore(name)
        Nothing.__init__(self, name)
    return type(name, (Nothing,), {'__init__': made, '__module__': 'wandb', '__doc__': 'Not recorded by dptrack.'})


class Artifact:
    """Files under a name. They are not recorded; a program can use an artifact that it made as before."""

    def __init__(self, name='', type='', description=None, metadata=None, **left):
        ignore('Artifact', 'log files of the run with wandb.save(), or dptrack.File')
        self.name, self.type, self.description, self.metadata = name, type, description, dict(metadata or {})
        self.version, self.aliases, self.tags, self.id, self.digest, self.size = 'v0', [], [], None, '', 0
        self.qualified_name = self.source_name = name
        self.manifest, self.ttl, self.state = Nothing('Artifact.manifest'), None, 'PENDING'

    def new_file(self, name, mode='x', encoding=None):
        path = os.path.join(self._folder(), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, mode.replace('x', 'w'), encoding=encoding)

    def _folder(self):
        if not hasattr(self, '_made'):
            self._made = tempfile.mkdtemp(prefix='dptrack-wandb-')
        return self._made

    def download(self, root=None, **left):
        """An empty folder: there is no server that has the files."""
        folder = root or self._folder()
        os.makedirs(folder, exist_ok=True)
        return folder

    def wait(self, timeout=None):
        return self

    def file(self, root=None):
        return os.path.join(self.download(root), 'file')

    def files(self, *arguments, **named):
        return []

    def logged_by(self):
        return None

    def used_by(self):
        return []

    def is_draft(self):
        return True

    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        return Nothing('Artifact.' + name)
