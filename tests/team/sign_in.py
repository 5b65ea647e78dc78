# SPDX-License-Identifier: Apache-2.0
"""tests/web/oidc with two processes on one PostgreSQL, which answer in turn: a sign-in begins at one and ends at the other, and
both hear within 2 s of what changed."""
import os
import subprocess
import sys
sys.dont_write_bytecode = True
import cluster


def main():
    why = cluster.reason()
    if why:
        print(f"sign_in: {why}")
        return 77
    with cluster.Cluster() as db:
        return subprocess.call(["sh", os.path.join(cluster.SOURCE, "tests", "web", "oidc", "oidc.sh")],
                               env={**os.environ, "DPTRACK_DB": db.store("oidc"), "srcdir": cluster.SOURCE, "builddir": cluster.BUILD})


sys.exit(main())
