"""Allocations a frame, by program and thread, once all is warm."""

import mmap
import pathlib
import struct
import tempfile

from . import clips
from .programs import helper, start_client, start_server
from .publisher import clock_us
from .report import significant
from .wire import RoomSession, frames

TABLE_BYTES = 256 * 24
SLOT = struct.Struct("QQQ")
WARM_FRAMES = 300


class Counter:
    """The table that the preloaded counter keeps for one program."""

    def __init__(self, folder, name):
        self.path = pathlib.Path(folder) / name
        self.path.write_bytes(bytes(TABLE_BYTES))
        with self.path.open("rb") as file:
            self.table = mmap.mmap(file.fileno(), TABLE_BYTES, access=mmap.ACCESS_READ)
        self.options = {"preload": helper("allocation_counter"), "ALLOCATION_COUNTS": str(self.path)}

    def counts(self):
        """Allocations and bytes so far, by thread id."""
        slots = (SLOT.unpack_from(self.table, start) for start in range(0, TABLE_BYTES, SLOT.size))
        return {thread: (allocations, size) for thread, allocations, size in slots if thread}


def per_frame(process, before, after, frame_count):
    """The difference of two counts, as (allocations, bytes) a frame by thread name."""
    names = process.threads()
    totals = {}
    for thread, (allocations, size) in after.items():
        earlier = before.get(thread, (0, 0))
        name = names.get(thread, "(ended)")
        total = totals.setdefault(name, [0, 0])
        total[0] += (allocations - earlier[0]) / frame_count
        total[1] += (size - earlier[1]) / frame_count
    return totals


def run(programs, report, settings):
    """Runs publisher, relay and subscriber under the counter and prints the table."""
    size = "640x480"
    clips.warm(size)
    with tempfile.TemporaryDirectory() as folder:
        counters = {name: Counter(folder, name) for name in ("server", "connect", "subscribe")}
        server, port = start_server(programs, **counters["server"].options)
        with server:
            session = RoomSession(port, "bench")
            watching = start_client(programs, "subscribe", port, "bench", "--json", **counters["subscribe"].options)
            options = clips.source_options(size)
            publishing = start_client(programs, "connect", port, "bench", *options, **counters["connect"].options)
            with watching, publishing:
                processes = {"server": server, "connect": publishing, "subscribe": watching}
                before = None
                for frame in frames(session.reader, clock_us, session.answer):
                    if before is None and frame.number >= WARM_FRAMES:
                        before, first = {name: counter.counts() for name, counter in counters.items()}, frame.number
                    elif before is not None and frame.number >= first + settings.frames:
                        break
                if before is None:
                    raise RuntimeError(f"no frames came:\n{publishing.output()}")
                count = frame.number - first
                rows = []
                for name, process in processes.items():
                    totals = per_frame(process, before[name], counters[name].counts(), count)
                    for thread, (number, length) in sorted(totals.items()):
                        figures = {"allocations": number, "bytes": length, "frames": count}
                        report.record("allocations", program=name, thread=thread, **figures)
                        rows.append([f"{name} / {thread}", significant(number), significant(length)])
    report.table(
        f"Allocations a frame at {size}, over {count} warm frames (two subscribers)",
        ["program / thread", "allocations", "bytes"],
        rows,
    )
