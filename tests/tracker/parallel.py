# SPDX-License-Identifier: Apache-2.0
"""Runs test cases that mostly wait, in parallel, each with its own folder."""
import tempfile
import threading


def run(cases):
    """Calls each case with an empty folder and prints its result. Returns 1 if one of them failed."""
    failed = []

    def one(case):
        try:
            with tempfile.TemporaryDirectory() as folder:
                said = case(folder)
            print('ok %s %s' % (case.__name__, said or ''), flush=True)
        except Exception as e:  # noqa: BLE001
            failed.append(case.__name__)
            print('FAILED %s: %s: %s' % (case.__name__, type(e).__name__, e), flush=True)

    threads = [threading.Thread(target=one, args=(c,)) for c in cases]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return 1 if failed else 0
