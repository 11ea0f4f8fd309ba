"""What a renderer that sleeps costs the other renderers and the publication."""

import statistics

from .pictures import grouped, lines
from .report import middle, percentile, verdict

# By how much the 95th percentiles may move beyond the difference of two phases without the renderer that sleeps.
MOST_MOVED_MS = 1
# Not a multiple of the frame interval, so that it does not always wake when a picture comes.
SLEEP_MS = 470


def run(programs, report, settings):
    """Measures ages and intervals at a local and a remote renderer, with and without the other by turns."""
    options = ["--sleep", SLEEP_MS, "--rounds", 2 * settings.rounds, "--seconds", settings.seconds]
    results = list(lines(programs, "renderers", *options))
    places = ("local_age_ms", "local_interval_ms", "remote_age_ms", "remote_interval_ms")
    tails = {place: {} for place in places}
    for result in results:
        figures = {place: percentile(result[place], 0.95) for place in places}
        for place, tail in figures.items():
            tails[place].setdefault(result["phase"], []).append(tail)
        others = {name: value for name, value in result.items() if name not in places}
        report.record("renderers", **others, **figures, **{f"{place}_count": len(result[place]) for place in places})
    rows = []
    for place, phases in tails.items():
        moved = [late - early for late, early in zip(phases["sleeping"], phases["quiet"])]
        noise = [late - early for late, early in zip(phases["again"], phases["quiet"])]
        is_met = statistics.median(moved) <= statistics.median(noise) + MOST_MOVED_MS
        cells = [middle(phases["quiet"]), middle(phases["sleeping"]), middle(moved), middle(noise)]
        rows.append([f"{place.removesuffix('_ms').replace('_', ' ')}, p95, ms", *cells, verdict(is_met)])
    by_phase = {phase: rounds for (phase,), rounds in grouped(results, "phase").items()}
    for name, title in (("encoded", "encoded share of captured"), ("cpu_ms_per_frame", "CPU ms/frame")):
        value = lambda each: each["encoded"] / each["captured"] if name == "encoded" else each[name]
        cells = [middle(map(value, by_phase[phase])) for phase in ("quiet", "sleeping")]
        rows.append([title, *cells, "", "", ""])
    columns = ["others", "without", "with", "moved", "moved without", "met"]
    report.table(f"A renderer that sleeps {SLEEP_MS} ms beside others, {2 * settings.rounds} rounds", columns, rows)
