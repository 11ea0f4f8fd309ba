"""Tables for people, JSON lines for programs."""

import datetime
import json
import os
import statistics

from .programs import HERE


class Report:
    """Where the results of a run go: a line of JSON for each round, and a table for each benchmark."""

    def __init__(self):
        folder = HERE / "results"
        folder.mkdir(exist_ok=True)
        now = datetime.datetime.now(datetime.timezone.utc)
        self.path = folder / f"{now:%Y%m%dT%H%M%SZ}.jsonl"

    def record(self, benchmark, **values):
        """Writes a round's result."""
        line = {"benchmark": benchmark, **values, "load": round(os.getloadavg()[0], 2)}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def table(self, title, columns, rows):
        """Prints a table, the first column to the left, the others to the right."""
        cells = [columns] + [[str(cell) for cell in row] for row in rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        print(f"\n{title}")
        for row in cells:
            first, *rest = (cell.rjust(width) for cell, width in zip(row, widths))
            print("  " + "  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
        print(flush=True)


def middle(values):
    """The median and, in brackets, the least and the greatest."""
    values = list(values)
    return f"{significant(statistics.median(values))} [{significant(min(values))} .. {significant(max(values))}]"


def significant(value):
    """A number with three digits that count."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def percentile(values, share):
    """The value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def verdict(is_met):
    """Whether a target is met."""
    return "yes" if is_met else "NO"
