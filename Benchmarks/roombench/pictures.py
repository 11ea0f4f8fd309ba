"""Runs `picture-bench`, which measures raw pictures inside one process."""

import json
import subprocess


def lines(programs, *arguments):
    """What `picture-bench` prints, line by line."""
    command = [str(word) for word in (programs.picture_bench, *arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield from map(json.loads, process.stdout)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")


def grouped(results, *names):
    """The results by the values of some fields, in the order in which they came."""
    groups = {}
    for result in results:
        groups.setdefault(tuple(result[name] for name in names), []).append(result)
    return groups

