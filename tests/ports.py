# SPDX-License-Identifier: Apache-2.0
"""A free port of 127.0.0.1, for a server or to be left unused: it is reserved until this process ends, though many
tests run at once. It is below the ports that the system gives to clients, and an abstract socket with its name, which
ends with its owner, keeps other tests from using it."""
import random
import socket

owned = []


def free_port():
    while True:
        port = random.randrange(20000, 30000)
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0dptrack-test-port-{port}")
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            name.close()
            continue
        owned.append(name)
        return port
