"""The publisher's CPU time a frame, against a bare loop around the same encoder."""

import socket
import statistics
import time

from . import clips
from .programs import Process, helper, start_client, start_server
from .report import middle, verdict
from .wire import MessageReader, RoomSession, frames

WARM_FRAMES = 60
SIZES = ("640x480", "1280x720")
TARGET_RATIO = 1.05
TARGET_EXTRA_MS = 0.15


def clock_us():
    """CLOCK_MONOTONIC in µs."""
    return time.monotonic_ns() // 1000


def measure(process, stream, frame_count):
    """CPU time and bytes a frame, over whole turns of the clip after the warm-up."""
    begin = None
    delays, length = [], 0
    for frame in stream:
        if begin is None:
            if frame.number < WARM_FRAMES:
                continue
            begin = (frame.number, frame.captured, process.cpu_seconds(), process.thread_cpu_seconds())
            continue
        delays.append(frame.encode_delay / 1000)
        length += frame.length
        # By the clip's time, so that both sides are measured over the same pictures whatever their encoder leaves out.
        if frame.captured - begin[1] < frame_count / clips.FRAME_RATE * 1e6:
            continue
        cpu, threads = process.cpu_seconds() - begin[2], process.thread_cpu_seconds()
        count = frame.number - begin[0]
        return {
            "ms_per_frame": cpu / count * 1000,
            "frames": count,
            "kbps": round(length * 8 / (frame.captured - begin[1]) * 1000),
            "encode_delay_ms": statistics.median(delays),
            "threads_ms_per_frame": {
                name: round((spent - begin[3].get(name, 0)) / count * 1000, 4) for name, spent in threads.items()
            },
        }
    raise RuntimeError(f"{process.name} ended early:\n{process.output()}")


def measure_ours(programs, size, frame_count):
    """`room-client connect`, through a relay to one dumb subscriber."""
    server, port = start_server(programs)
    with server:
        session = RoomSession(port, "bench")
        with start_client(programs, "connect", port, "bench", *clips.source_options(size)) as client:
            return measure(client, frames(session.reader, clock_us, session.answer), frame_count)


def measure_bare(size, frame_count):
    """The bare loop, straight to a dumb reader."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [helper("bare_publisher"), clips.clip(size), port, clips.BITRATES[size], clips.FRAME_RATE]
        with Process(*command) as publisher:
            connection, _ = listener.accept()
            with connection:
                return measure(publisher, frames(MessageReader(connection), clock_us), frame_count)


def run(programs, report, settings):
    """Measures both sizes, the two sides by turns, and prints the table."""
    rows = []
    for size in settings.sizes or SIZES:
        clips.warm(size)
        pairs = []
        for number in range(settings.rounds):
            # By turns, and every other round the other way round, so that a drift of the machine favours neither.
            sides = {}
            for side in ("ours", "bare") if number % 2 == 0 else ("bare", "ours"):
                measured = (
                    measure_ours(programs, size, settings.frames)
                    if side == "ours"
                    else measure_bare(size, settings.frames)
                )
                sides[side] = measured
                report.record("publisher", size=size, side=side, round=number, **measured)
            pairs.append((sides["ours"], sides["bare"]))
        rows.append(row(size, pairs))
    columns = ["size", "ms/frame", "bare loop", "ratio", "extra ms", "kbit/s", "bare", "frames", "bare", "met"]
    report.table(f"Publisher: CPU time a frame, clip to socket, {settings.rounds} rounds", columns, rows)


def row(size, pairs):
    """A line of the table: the medians of the rounds with their spread."""
    ratios = [ours["ms_per_frame"] / bare["ms_per_frame"] for ours, bare in pairs]
    extras = [ours["ms_per_frame"] - bare["ms_per_frame"] for ours, bare in pairs]
    is_met = (
        statistics.median(extras) <= TARGET_EXTRA_MS if size == "640x480" else statistics.median(ratios) <= TARGET_RATIO
    )
    return [
        size,
        middle(ours["ms_per_frame"] for ours, _ in pairs),
        middle(bare["ms_per_frame"] for _, bare in pairs),
        middle(ratios),
        middle(extras),
        round(statistics.median(ours["kbps"] for ours, _ in pairs)),
        round(statistics.median(bare["kbps"] for _, bare in pairs)),
        round(statistics.median(ours["frames"] for ours, _ in pairs)),
        round(statistics.median(bare["frames"] for _, bare in pairs)),
        verdict(is_met),
    ]
