"""The CPU time of publishing a screen, against ffmpeg's x11grab into the same encoder."""

import contextlib
import json
import socket
import statistics
import threading
import time

from .programs import Process, helper, start_client, start_server
from .report import middle, significant, verdict

SIZE, FRAME_RATE, KBPS = "1920x1080", 15, 3000
WARM_SECONDS = 10
# What moves on the screen, and the most that ours may take of ffmpeg's CPU time.
SCENES = {"still": (0, SIZE, 0.3), "a part moves": (FRAME_RATE, "640x360", 1), "all moves": (FRAME_RATE, SIZE, 1)}
SIDES = ("ours", "ffmpeg", "nobody")


@contextlib.contextmanager
def screen():
    """An X server whose screen is in memory, and the name of its display."""
    options = ["-displayfd", 1, "-screen", 0, f"{SIZE}x24", "-nolisten", "tcp", "-noreset"]
    with Process("Xvfb", *options) as server:
        yield server, ":" + server.wait_for(r"(?m)^(\d+)$")[1]


class StreamCounts:
    """Frames and bytes of an IVF stream, read on a thread of its own."""

    def __init__(self, connection):
        self.frames, self.bytes = 0, 0
        threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        with contextlib.suppress(OSError):
            for length in ivf_lengths(connection):
                self.frames, self.bytes = self.frames + 1, self.bytes + length

    def now(self):
        """Frames and bytes so far."""
        return self.frames, self.bytes


class SubscriberCounts:
    """Frames and bytes that a `room-client subscribe` has received, by its last status."""

    def __init__(self, subscriber):
        self.subscriber = subscriber

    def now(self):
        """Frames and bytes so far."""
        events = [json.loads(line) for line in self.subscriber.output().splitlines() if line.endswith("}")]
        tracks = [event["tracks"] for event in events if event["event"] == "status" and event["tracks"]]
        return (tracks[-1][0]["framesReceived"], tracks[-1][0]["bytes"]) if tracks else (0, 0)


@contextlib.contextmanager
def ours(programs, display):
    """`room-client connect`, through a relay to `room-client subscribe`, whose CPU time does not count."""
    server, port = start_server(programs)
    status = ["--json", "--status-interval", 0.5]
    source = ["--source", "screen", "--display", display, "--fps", FRAME_RATE, "--max-bitrate", f"{KBPS}k", "--json"]
    with server, start_client(programs, "subscribe", port, "bench", *status) as subscriber:
        with start_client(programs, "connect", port, "bench", *source) as client:
            yield client, SubscriberCounts(subscriber)


def ivf_lengths(connection):
    """The lengths of the frames of an IVF stream as they come."""
    with connection, connection.makefile("rb") as stream:
        stream.read(32)
        while len(header := stream.read(12)) == 12:
            length = int.from_bytes(header[:4], "little")
            stream.read(length)
            yield length


@contextlib.contextmanager
def ffmpeg(_, display):
    """x11grab and libvpx with every setting of ours that ffmpeg has, to one minimal reader."""
    source = ["-f", "x11grab", "-framerate", FRAME_RATE, "-video_size", SIZE, "-i", display]
    rate = ["-b:v", f"{KBPS}k", "-minrate", f"{KBPS}k", "-maxrate", f"{KBPS}k", "-bufsize", KBPS * 300]
    limits = ["-qmin", 2, "-qmax", 56, "-undershoot-pct", 100, "-overshoot-pct", 15, "-drop-threshold", 30]
    effort = ["-deadline", "realtime", "-cpu-used", -6, "-lag-in-frames", 0, "-static-thresh", 1, "-threads", 1]
    encoder = ["-pix_fmt", "yuv420p", "-c:v", "libvpx", *rate, "-rc_init_occupancy", KBPS * 150, *limits, *effort]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        tail = ["-error-resilient", "default", "-g", 99999, "-flush_packets", 1, "-f", "ivf", target]
        with Process("ffmpeg", "-v", "error", "-filter_threads", 1, *source, *encoder, *tail) as client:
            yield client, StreamCounts(listener.accept()[0])


@contextlib.contextmanager
def nobody(*_):
    """No capturing: what the X server takes for the drawing alone."""
    yield None, None


def measure(programs, side, server, display, seconds):
    """CPU time of a second, of the side and of the X server, and what the side sent."""
    with {"ours": ours, "ffmpeg": ffmpeg, "nobody": nobody}[side](programs, display) as (client, counts):
        time.sleep(WARM_SECONDS)
        watched = [server] + ([client] if client else [])
        before = reading(watched, counts)
        time.sleep(seconds)
        after = reading(watched, counts)
        if client and not after[1]:
            raise RuntimeError(f"{side} sent nothing:\n{client.output()}")
    passed, count, length, *cpu = (late - early for early, late in zip(before, after))
    return {
        "fps": count / passed,
        "kbps": length * 8 / passed / 1000,
        "x_server_ms": cpu[0] / passed * 1000,
        "ms_per_second": cpu[1] / passed * 1000 if client else 0,
    }


def reading(processes, counts):
    """The time, frames and bytes so far, and the CPU times of processes."""
    return [time.monotonic(), *(counts.now() if counts else (0, 0)), *(each.cpu_seconds() for each in processes)]


def run(programs, report, settings):
    """Measures each scene, the sides by turns, and prints the table."""
    rows = []
    for scene, (rate, moving, most) in SCENES.items():
        with screen() as (server, display), Process(helper("screen_painter"), display, rate, moving) as painter:
            painter.wait_for("drawn")
            measured = {side: [] for side in SIDES}
            for number in range(settings.rounds):
                for side in SIDES if number % 2 == 0 else reversed(SIDES):
                    result = measure(programs, side, server, display, settings.seconds)
                    measured[side].append(result)
                    report.record("screen", scene=scene, side=side, round=number, **result)
        rows.append(row(scene, measured, most))
    columns = ["scene", "CPU ms/s", "ffmpeg", "ratio", "at most", "fps", "ffmpeg", "kbit/s", "ffmpeg"]
    columns += ["X server, ms/s", "ffmpeg", "nobody", "met"]
    title = f"Screen of {SIZE} at {FRAME_RATE} frames a second: CPU time of a second, {settings.rounds} rounds"
    report.table(title, columns, rows)


def row(scene, measured, most):
    """A line of the table: the medians of the rounds, with the spread of the ratio."""
    ratios = [a["ms_per_second"] / b["ms_per_second"] for a, b in zip(measured["ours"], measured["ffmpeg"])]
    median = lambda side, name: significant(statistics.median(each[name] for each in measured[side]))
    pairs = [median(side, name) for name in ("fps", "kbps") for side in ("ours", "ffmpeg")]
    times = [median(side, "ms_per_second") for side in ("ours", "ffmpeg")]
    servers = [median(side, "x_server_ms") for side in SIDES]
    return [scene, *times, middle(ratios), most, *pairs, *servers, verdict(statistics.median(ratios) <= most)]
