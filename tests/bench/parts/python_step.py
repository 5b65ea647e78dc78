# SPDX-License-Identifier: Apache-2.0
"""python_step.py bare|logged|whole SECONDS FOLDER: PyTorch's steps of a small network on one thread, each printing a
line; without dptrack, with its log only, or with console and system statistics too, as by default. Prints JSON: the
number of steps, the median seconds per step, processor seconds per step of the complete process, and of these the
shares of the library's threads, of the print and of the log."""
import glob
import json
import os
import statistics
import sys
import time

import torch

WARM_STEPS = 20


def net():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)]
    return torch.nn.Sequential(*layers), torch.randn(256, 512), torch.randint(10, (256,))


def begin(mode, folder):
    if mode == 'bare':
        return None
    import dptrack
    quiet = {} if mode == 'whole' else {'console': False, 'code': False, 'system': 0}
    return dptrack.init(runs_dir=folder, url='', **quiet)


def own_threads_s():
    """Processor seconds of the threads started by libdptrack, so far."""
    ns = 0
    for task in glob.glob('/proc/self/task/*'):
        with open(task + '/comm', encoding='ascii') as comm, open(task + '/schedstat', encoding='ascii') as stat:
            ns += int(stat.read().split()[0]) if comm.read().startswith('dptrack-') else 0
    return ns / 1e9


def main():
    mode, seconds, folder = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    result, sys.stdout = sys.stdout, open(os.devnull, 'w', encoding='utf-8')
    model, images, labels = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    run, took, step = begin(mode, folder), [], 0
    parts = {'print_s': 0, 'log_s': 0}  # nanoseconds

    def one():
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        marks = [time.thread_time_ns()]
        print('step %d: loss %.6f' % (step, value))
        marks.append(time.thread_time_ns())
        if run:
            run.log({'train/loss': value}, step=step)
        marks.append(time.thread_time_ns())
        parts['print_s'] += marks[1] - marks[0]
        parts['log_s'] += marks[2] - marks[1]

    for step in range(WARM_STEPS):
        one()
    parts.update(print_s=0, log_s=0)
    begun, used, threads = time.perf_counter(), time.process_time(), own_threads_s()
    while time.perf_counter() - begun < seconds:
        step += 1
        before = time.perf_counter()
        one()
        took.append(time.perf_counter() - before)
    row = {'steps': len(took), 'step_s': statistics.median(took), 'used_s': (time.process_time() - used) / len(took),
           'threads_s': (own_threads_s() - threads) / len(took), **{name: ns / 1e9 / len(took) for name, ns in parts.items()}}
    if run:
        run.finish()
    print(json.dumps(row), file=result)


main()
