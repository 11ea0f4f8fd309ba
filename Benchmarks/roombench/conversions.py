"""The CPU time of conversions, scalings and turns of pictures, against one call of libyuv."""

import statistics
import subprocess

from .pictures import grouped, lines
from .programs import BUILD
from .report import middle, significant, verdict

SIZES = ("640x480", "1280x720")
MOST_OF_A_CALL = 1.05


def jpeg(size):
    """A JPEG picture of that size, of 4:2:0, whose sampling libyuv takes from ffmpeg."""
    path = BUILD / f"picture-{size}.jpg"
    if not path.exists():
        command = ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", f"testsrc2=size={size}", "-frames:v", 1]
        command += ["-pix_fmt", "yuvj420p", "-q:v", 3, path]
        subprocess.run([str(word) for word in command], check=True)
    return path


def run(programs, report, settings):
    """Measures both sizes, both sides by turns, and prints the table."""
    results = []
    for size in settings.sizes or SIZES:
        for result in lines(programs, "conversions", size, "--jpeg", jpeg(size), "--rounds", 5 * settings.rounds):
            report.record("conversions", **result)
            results.append(result)
    rows = []
    for (size, case), rounds in grouped(results, "size", "case").items():
        ratios = [each["ours_us"] / each["bare_us"] for each in rounds]
        medians = [significant(statistics.median(each[side] for each in rounds)) for side in ("ours_us", "bare_us")]
        # Where the call's result is another one, there is nothing to be met.
        is_met = verdict(statistics.median(ratios) <= MOST_OF_A_CALL) if rounds[0]["same"] else "other result"
        rows.append([f"{size} {case}", *medians, middle(ratios), is_met])
    title = f"Conversions: CPU time of a picture against one call of libyuv, {5 * settings.rounds} rounds"
    report.table(title, ["picture", "us", "libyuv", "ratio", "met"], rows)
