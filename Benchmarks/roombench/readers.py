"""What several loops over `source.frames` cost, against one loop."""

import statistics

from .pictures import grouped, lines
from .programs import Process, helper
from .report import middle, significant, verdict
from .screen import SIZE, screen

READERS, MOST_OF_ONE_READER = 3, 1.05


def run(programs, report, settings):
    """Counts conversions, and measures the CPU time of a frame of a screen on which all moves."""
    with screen() as (_, display), Process(helper("screen_painter"), display, 30, SIZE) as painter:
        painter.wait_for("drawn")
        options = ["--display", display, "--rounds", settings.rounds, "--seconds", settings.seconds]
        results = list(lines(programs, "readers", "--readers", READERS, *options))
    for result in results:
        report.record("readers", **result)
    groups = {count: rounds for (count,), rounds in grouped(results, "readers").items()}
    ratios = [many["ms_per_frame"] / one["ms_per_frame"] for many, one in zip(groups[READERS], groups[1])]
    rows = []
    for count, rounds in groups.items():
        converted, read, delivered = (sum(each[name] for each in rounds) for name in ("conversions", "read", "frames"))
        cost = middle(each["ms_per_frame"] for each in rounds)
        rows.append([count, significant(converted / delivered), significant(read / delivered), cost, "", ""])
    is_met = statistics.median(ratios) <= MOST_OF_ONE_READER and abs(float(rows[-1][1]) - 1) < 0.02
    rows[-1][-2:] = [middle(ratios), verdict(is_met)]
    columns = ["readers", "conversions/frame", "read/frame", "CPU ms/frame", "ratio", "met"]
    report.table(f"Readers of one screen of {SIZE}, {settings.rounds} rounds", columns, rows)
