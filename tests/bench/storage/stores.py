# SPDX-License-Identifier: Apache-2.0
"""Places of a set: on a disk with evicted pages, on nginx, behind the proxy `shaped`."""
import json
import os
import subprocess
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
NGINX = "/usr/sbin/nginx"
ENDS = {"tar": ".tar", "npy": ".tar", "tfrecord": ".tfrecord", "parquet": ".parquet", "lmdb": "data.mdb", "folder": ".jpg"}


def files_of(folder):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(folder) for n in names if ".dptrain" not in d)


def data_files(kind, place):
    """The files that contain a set's samples."""
    return [f for f in files_of(place) if f.endswith(ENDS[kind])]


def evict(plain, files):
    """Evicts their pages from the page cache (tests/bench/storage/plain)."""
    for at in range(0, len(files), 1000):
        subprocess.run([plain, "evict", *files[at:at + 1000]], check=True)


class Nginx:
    """Serves a folder on the loopback; one process."""
    def __init__(self, home, folder):
        os.makedirs(home, exist_ok=True)
        conf, port = os.path.join(home, "conf"), 18000 + os.getpid() % 10000
        with open(conf, "w", encoding="ascii") as f:
            f.write("daemon off; pid %s/pid; error_log stderr crit; worker_processes 1; events {}\nhttp { access_log off; sendfile on; "
                    "client_body_temp_path %s/t; proxy_temp_path %s/t; fastcgi_temp_path %s/t; uwsgi_temp_path %s/t; scgi_temp_path %s/t;\n"
                    "server { listen 127.0.0.1:%d; root %s; } }\n" % (*[home] * 6, port, folder))
        self.url, self.process = "http://127.0.0.1:%d" % port, subprocess.Popen([NGINX, "-c", conf, "-p", home])

    def end(self):
        self.process.terminate()
        self.process.wait()


class Proxy:
    """`shaped` in front of a server: latency in ms, rate in MB/s per connection."""
    def __init__(self, upstream, latency, rate):
        self.shape = subprocess.Popen([sys.executable, os.path.join(HERE, "shaped"), upstream, "--latency", str(latency), "--rate", str(rate)],
                                      stdout=subprocess.PIPE, text=True)
        self.url = self.shape.stdout.readline().strip()

    def ask(self, path, **body):
        data = json.dumps(body).encode() if body else None
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data), timeout=30) as reply:
            return json.load(reply)

    def end(self):
        self.shape.kill()
        self.shape.wait()
