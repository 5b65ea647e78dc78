"""A port of 127.0.0.1 for a server that wants to be told one, or for nobody's: it stays free until this process ends, though
many tests run at once. It lies below the ports that the system gives to clients, and an abstract socket of its name, which ends
with its owner, keeps other tests off."""
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
