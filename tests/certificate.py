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
