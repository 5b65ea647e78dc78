# SPDX-License-Identifier: Apache-2.0
"""A temporary certificate for a server on this machine."""
import os
import subprocess


def make(folder, name):
    """FOLDER/NAME.pem, which is self-signed, and its key."""
    cert, key = os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
                    "-days", "2", "-subj", f"/CN=dptrack test {name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True, timeout=60)
    return cert, key


def issue(folder, name, start, end):
    """The same by openssl's own authority, valid from start to end (YYYYMMDDhhmmssZ)."""
    cert, key, request, config = (os.path.join(folder, name + kind) for kind in (".pem", ".key", ".csr", ".cnf"))
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"""[ca]
default_ca = own
[own]
database = {config}.index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
basicConstraints = CA:TRUE
subjectAltName = DNS:localhost,IP:127.0.0.1
""")
    with open(config + ".index", "w", encoding="utf-8"):
        pass
    for command in (["req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", f"/CN=dptrack test {name}"],
                    ["ca", "-batch", "-notext", "-config", config, "-selfsign", "-keyfile", key, "-in", request, "-out", cert, "-startdate", start, "-enddate", end]):
        subprocess.run(["openssl", *command], check=True, capture_output=True, timeout=60)
    return cert, key
