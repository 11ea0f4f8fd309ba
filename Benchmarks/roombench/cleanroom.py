"""A room that is used as it should be, and how old its frames are while a server is flooded."""

import json
import pathlib
import subprocess

from .programs import start_client
from .report import percentile

FRAME_RATE = 30
MOST_MORE_AGE_MS = 5
# Of the frames that come in while the other server is flooded, so many percent of all may be missing.
MOST_FEWER_FRAMES = 5
SIDES = ("same server", "other server")
# Servers and clean room come first, so that what else runs on the machine counts less.
NICENESS = -10


class CleanRoom:
    """A publisher and a subscriber that behave, with the subscriber's log of frames."""

    def __init__(self, programs, port, folder):
        self.programs, self.folder = programs, folder
        watch = ["--dump", folder, "--json"]
        self.subscriber = start_client(programs, "subscribe", port, "clean", *watch, niceness=NICENESS)
        options = ["--source", "pattern", "--size", "640x480", "--fps", str(FRAME_RATE), "--json"]
        self.publisher = start_client(programs, "connect", port, "clean", *options, niceness=NICENESS)
        self.publisher.wait_for("published")

    def is_alive(self):
        """Whether both take part still."""
        return self.subscriber.process.poll() is None and self.publisher.process.poll() is None

    def stop(self):
        """Ends both as Ctrl-C would, the subscriber last."""
        self.publisher.stop()
        self.subscriber.stop()

    def frames(self):
        """The shown frames' capture times in µs, and their ages when decoded, in ms."""
        logs = pathlib.Path(self.folder).glob("*.frames.jsonl")
        entries = (json.loads(line) for log in logs for line in log.read_text().splitlines())
        shown = [entry for entry in entries if entry["decoded"] and not entry["catchUp"]]
        return [(entry["captured"], (entry["decoded"] - entry["captured"]) / 1000) for entry in shown]

    def verify(self):
        """Whether `room-client verify` finds no fault in the dump."""
        command = [self.programs.client, "verify", self.folder, "--json"]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Side:
    """The clean room's frames while one of the servers was flooded."""

    def __init__(self, frames, windows):
        self.ages = [age for captured, age in frames for begin, end in windows if begin <= captured < end]
        self.seconds = sum(end - begin for begin, end in windows) / 1e6

    def figures(self):
        """Median and 95th percentile of the ages in ms, the greatest, and the percentage of frames that came.

        Where no frame came, an age is the whole time.
        """
        if not self.ages:
            return dict.fromkeys(("p50", "p95", "max"), self.seconds * 1000) | {"frames_percent": 0.0}
        return {
            "p50": percentile(self.ages, 0.5),
            "p95": percentile(self.ages, 0.95),
            "max": max(self.ages),
            "frames_percent": len(self.ages) / (self.seconds * FRAME_RATE) * 100,
        }


def compared(frames, windows):
    """The figures of both sides, how much older frames were, and whether that is within the bounds."""
    same, other = (Side(frames, windows[side]).figures() for side in SIDES)
    more_ms = same["p95"] - other["p95"]
    fewer_percent = other["frames_percent"] - same["frames_percent"]
    is_met = more_ms < MOST_MORE_AGE_MS and fewer_percent <= MOST_FEWER_FRAMES
    return {"same": same, "other": other, "more_ms": more_ms, "fewer_percent": fewer_percent, "is_age_met": is_met}
