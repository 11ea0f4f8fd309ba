"""Where the time from capture to decoded goes, on one machine."""

import json
import pathlib
import tempfile

from . import clips
from .programs import start_client, start_server
from .publisher import SIZES, clock_us, measure_bare
from .report import percentile, significant, verdict
from .wire import RoomSession, frames

WARM_FRAMES = 60
TARGET_BETWEEN_MS = 3
STAGES = ("capture to encoded", "encoded to relay", "relay to received", "received to decoded")


def stages(frame, entry):
    """The parts of a frame's age, in ms; `entry` is its line of the dump's frame log."""
    encoded = frame.captured + frame.encode_delay
    moments = [frame.captured, encoded, frame.relayed, entry["received"], entry["decoded"]]
    parts = dict(zip(STAGES, ((later - earlier) / 1000 for earlier, later in zip(moments, moments[1:]))))
    parts["between encoder and decoder"] = (entry["received"] - encoded) / 1000
    parts["capture to decoded"] = (entry["decoded"] - frame.captured) / 1000
    return parts


def collect(programs, size, frame_count, folder):
    """The stages of each frame: headers as a dumb subscriber sees them, ends as `room-client subscribe` does."""
    server, port = start_server(programs)
    with server:
        session = RoomSession(port, "bench")
        watching = start_client(programs, "subscribe", port, "bench", "--dump", folder, "--format", "ivf", "--json")
        with watching, start_client(programs, "connect", port, "bench", *clips.source_options(size)) as publishing:
            seen = {}
            for frame in frames(session.reader, clock_us, session.answer):
                seen[frame.number] = frame
                if frame.number >= WARM_FRAMES + frame_count:
                    break
            if not seen:
                raise RuntimeError(f"no frames came:\n{publishing.output()}")
    lines = [line for log in pathlib.Path(folder).glob("*.frames.jsonl") for line in log.read_text().splitlines()]
    for entry in map(json.loads, lines):
        frame = seen.get(entry["number"])
        if frame and frame.number >= WARM_FRAMES and not entry["catchUp"]:
            if entry["clock"] != "same-host":
                raise RuntimeError(f"the subscriber's clock is {entry['clock']}, not same-host")
            yield stages(frame, entry)


def run(programs, report, settings):
    """Measures both sizes and prints a table for each."""
    for size in settings.sizes or SIZES:
        clips.warm(size)
        with tempfile.TemporaryDirectory() as folder:
            samples = list(collect(programs, size, settings.frames, folder))
        bare = measure_bare(size, settings.frames)["encode_delay_ms"]
        rows = []
        for stage in samples[0]:
            values = [sample[stage] for sample in samples]
            figures = {name: percentile(values, share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
            report.record("latency", size=size, stage=stage, frames=len(values), max=max(values), **figures)
            is_judged = stage == "between encoder and decoder"
            target = verdict(figures["p95"] <= TARGET_BETWEEN_MS) if is_judged else ""
            rows.append([stage, *(significant(value) for value in (*figures.values(), max(values))), target])
        report.record("latency", size=size, stage="capture to encoded, bare loop", p50=bare)
        rows.append(["capture to encoded, bare loop", significant(bare), "", "", "", ""])
        columns = ["stage, ms", "p50", "p95", "p99", "max", "met"]
        report.table(f"Latency on loopback at {size}, {len(samples)} frames", columns, rows)
