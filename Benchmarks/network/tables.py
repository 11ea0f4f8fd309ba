"""A table in Markdown of the medians in files of results, beside the lines that the cases must reach."""

import json
import statistics

from . import cases

COLUMNS = {
    "Mbit/s": ("mbps", 2), "use": ("linkUse", 2), "p50": ("p50Ms", 0), "p95": ("p95Ms", 0), "max": ("maxMs", 0),
    "signal p95": ("signalP95Ms", 0), "freezes": ("freezes", 0), "frozen": ("frozenSeconds", 2), "fps": ("fps", 1),
    "keys": ("keyframes", 0), "sizes": ("sizeChanges", 0), "PSNR": ("screenPsnrY", 1), "SSIM": ("screenSsimY", 3), "CPU-limited": ("cpuLimitedSeconds", 0),
}  # fmt: skip


def median(results, figure):
    """The median of a figure over the runs; one that is missing in any is missing."""
    values = [result.get(figure) for result in results]
    if not values or any(not isinstance(value, (int, float)) for value in values):
        return None
    return round(statistics.median(values), 3)


def recorded(paths, by_program=False):
    """The runs in the files, by case and side of the link, and by source and version of the programs if wanted."""
    runs = {}
    for path in paths:
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if record["benchmark"] == "network":
                key = (record["case"], record["where"], record["source"], record["version"])[: 4 if by_program else 2]
                runs.setdefault(key, []).append(record["figures"])
    return runs


def valid(name, results):
    """The runs in which nothing but the link limited the publisher; all where there is none, or where the CPU is the case."""
    return [run for run in results if name == "hog" or not run.get("cpuLimitedSeconds")] or results


def markdown(paths):
    """The lines of the table, in the order of the cases."""
    runs, known = recorded(paths, by_program=True), {case.name: case for case in cases.ALL}
    yield "| case | link | source | programs | runs | " + " | ".join(COLUMNS) + " | lines |"
    yield "|---|---|---|---|--:|" + "--:|" * len(COLUMNS) + "---|"
    order = {name: index for index, name in enumerate(known)}
    for key in sorted(runs, key=lambda key: (order.get(key[0], len(order)), key[1] != "up", key[2:])):
        name, where, source, version = key
        results = valid(name, runs[key])
        cells = []
        for figure, digits in COLUMNS.values():
            value = median([result for result in results if result.get(figure) is not None], figure)
            cells.append("" if value is None else f"{value:.{digits}f}")
        judged = "; ".join(judgement(line, results, where) for line in known[name].lines) if name in known else ""
        source = source.removesuffix(".y4m").replace("{height}", "")
        yield f"| {name} | {where} | {source} | {version} | {len(results)} | {' | '.join(cells)} | {judged} |"


def judgement(line, results, where):
    """A line with its figure; what is missed is bold."""
    value = median(results, line.figure)
    words = f"{line.figure} {'none' if value is None else f'{value:g}'} ({line.relation} {line.bound_for(where):.4g})"
    return words if line.is_met(value, where) else f"**{words}**"
