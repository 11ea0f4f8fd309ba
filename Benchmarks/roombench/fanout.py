"""The relay's CPU time a gigabyte, for few and many subscribers."""

import json
import pathlib
import random
import socket
import statistics
import struct
import subprocess
import tempfile
import threading
import time

from . import clips, wire
from .programs import Process, helper
from .publisher import clock_us
from .relays import BareRelay, Nchan, RoomServer, Running, relays
from .report import middle, verdict

MARKER = b"\x01MARK\xfe\x02\x03"
STREAM_SIZE, STREAM_KBPS = "1280x720", 2000
TARGET_RATIO, TARGET_ALONE = 1.4, 8
LONGEST_TURNS, TURN_END_SECONDS = 7200, 0.25


def recorded_stream():
    """The frames of the clip as the encoder makes them: their lengths, layers and flags."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [helper("bare_publisher"), clips.clip(STREAM_SIZE), port, STREAM_KBPS, 0, clips.FRAMES]
        with Process(*command):
            connection, _ = listener.accept()
            with connection:
                return list(wire.frames(wire.MessageReader(connection), clock_us))


class Publisher(threading.Thread):
    """Sends the recorded frames with other bytes at their pace, from the keyframe again when one is asked for."""

    def __init__(self, relay, stream):
        super().__init__(daemon=True)
        self.relay, self.stream = relay, stream
        # Nothing that could be taken for a marker.
        self.noise = random.Random(1).randbytes(1 << 20).replace(MARKER[:2], b"\0\0")
        self.is_stopped = threading.Event()
        self.may_send = threading.Event()
        self.may_send.set()
        self.sent_bytes = 0
        self.failure = None

    def run(self):
        try:
            self.publish()
        except OSError as error:
            self.failure = error

    def publish(self):
        """Sends frame after frame until stopped."""
        start = time.monotonic()
        number = position = base = 0
        while not self.is_stopped.is_set():
            if not self.may_send.is_set():
                self.may_send.wait()
                start = time.monotonic() - number / clips.FRAME_RATE
            time.sleep(max(0, start + number / clips.FRAME_RATE - time.monotonic()))
            frame = self.stream[position]
            base += frame.layer == 0
            packets = self.packets(frame, number, base)
            is_keyframe_due = self.relay.send(packets)
            self.sent_bytes += sum(map(len, packets))
            number += 1
            position = 0 if is_keyframe_due else (position + 1) % len(self.stream)

    def packets(self, frame, number, base):
        """The media packets of a frame."""
        length = max(frame.length, len(MARKER) + 12)
        offset = number * 7919 % (len(self.noise) - length)
        payload = MARKER + struct.pack("=IQ", number, time.monotonic_ns()) + self.noise[offset:]
        most = wire.MAXIMUM_MESSAGE - wire.HEADER.size
        packets = []
        for start in range(0, length, most):
            piece = payload[start : min(start + most, length)]
            flags = frame.role | (wire.FIRST if start == 0 else 0)
            flags |= wire.LAST if start + len(piece) == length else 0
            fields = (1, 0, wire.HEADER.size, flags, 0, frame.layer, 0, self.relay.alias, number)
            times = (clock_us(), length, start, frame.encode_delay, base % 65536, 0, 0)
            packets.append(wire.HEADER.pack(*fields, *times) + piece)
        return packets

    def stop(self):
        """Ends the thread."""
        self.is_stopped.set()
        self.may_send.set()
        self.join()


class Fanout:
    """A relay with its publisher and its subscribers, in which media flows only in its turns."""

    def __init__(self, kind, programs, stream, count, acknowledging):
        self.name, self.count = kind.name, count
        self.running = Running(kind, programs)
        self.relay = self.running.relay
        self.folder = tempfile.TemporaryDirectory()
        greetings = [pathlib.Path(self.folder.name) / name for name in ("hello", "then")]
        for path, words in zip(greetings, self.relay.greeting()):
            path.write_bytes(words)
        self.publisher = Publisher(self.relay, stream)
        command = [helper("subscribers"), self.relay.port, count, LONGEST_TURNS, *greetings]
        command += ["acknowledging"] if acknowledging else []
        self.subscribers = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        self.publisher.start()
        if self.subscribers.stdout.readline() != "begin\n":
            raise RuntimeError(f"{kind.name}: no start; publisher: {self.publisher.failure}")
        self.publisher.may_send.clear()

    def turn(self, seconds):
        """CPU time of the relay, in seconds, for each gigabyte that its subscribers got in a turn of `seconds`."""
        cpu, sent = self.relay.process.cpu_seconds(), self.publisher.sent_bytes
        self.publisher.may_send.set()
        time.sleep(seconds)
        self.publisher.may_send.clear()
        # What is under way arrives, and its acknowledgement.
        time.sleep(TURN_END_SECONDS)
        gigabytes = (self.publisher.sent_bytes - sent) * self.count * 1e-9
        if self.publisher.failure or not gigabytes:
            raise RuntimeError(f"{self.name}: the publisher ended: {self.publisher.failure}")
        return (self.relay.process.cpu_seconds() - cpu) / gigabytes

    def end(self):
        """Ends all of it; what the subscribers counted."""
        self.subscribers.terminate()
        result = json.loads(self.subscribers.stdout.readline() or "{}")
        self.subscribers.wait()
        self.publisher.stop()
        self.running.__exit__()
        self.folder.cleanup()
        if result.get("closed", 1):
            raise RuntimeError(f"{self.name}: {result}")
        return result


def measure(kind, programs, stream, subscriber_count, seconds, acknowledging=False):
    """One relay, with so many subscribers, which acknowledge what they receive or not."""
    with Running(kind, programs) as relay, tempfile.TemporaryDirectory() as folder:
        greetings = [pathlib.Path(folder) / name for name in ("hello", "then")]
        for path, words in zip(greetings, relay.greeting()):
            path.write_bytes(words)
        publisher = Publisher(relay, stream)
        publisher.start()
        try:
            command = [helper("subscribers"), relay.port, subscriber_count, seconds, *greetings]
            if acknowledging:
                command.append("acknowledging")
            with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as subscribers:
                if subscribers.stdout.readline() != "begin\n":
                    output = relay.process.output()
                    raise RuntimeError(f"{kind.name}: no start; publisher: {publisher.failure}\n{output}")
                begin = relay.process.cpu_seconds()
                result = json.loads(subscribers.stdout.readline())
                cpu = relay.process.cpu_seconds() - begin
                memory = relay.process.resident_megabytes()
        finally:
            publisher.stop()
    if result["closed"] or not result["bytes"]:
        raise RuntimeError(f"{kind.name}: {result}")
    return result | {
        "cpu_seconds": cpu,
        "cpu_seconds_per_gb": cpu / result["bytes"] * 1e9,
        "cpu_percent": cpu / result["seconds"] * 100,
        "megabytes": memory,
    }


def run(programs, report, settings):
    """Measures every relay by turns for each number of subscribers, and prints the table."""
    stream = recorded_stream()
    rows = []
    for count in settings.subscribers:
        rounds = {kind: [] for kind in relays()}
        for number in range(settings.rounds):
            order = list(rounds)
            for kind in order if number % 2 == 0 else reversed(order):
                result = measure(kind, programs, stream, count, settings.seconds)
                rounds[kind].append(result)
                report.record("fanout", relay=kind.name, round=number, **result)
        rows += [row(kind, count, rounds) for kind in rounds]
    columns = ["relay", "subscribers", "Mbit/s", "CPU-s/GB", "to bare relay", "CPU %"]
    columns += ["p50 ms", "p99 ms", "missed", "MB", "met"]
    report.table(f"Fan-out: the relay's CPU time, {settings.rounds} rounds of {settings.seconds:g} s", columns, rows)


def row(kind, count, rounds):
    """A line of the table: medians over the rounds, with the spread where it matters."""
    results = rounds[kind]
    ratios = [a["cpu_seconds_per_gb"] / b["cpu_seconds_per_gb"] for a, b in zip(results, rounds[BareRelay])]
    return [
        kind.name,
        count,
        round(statistics.median(r["bytes"] * 8e-6 / r["seconds"] for r in results)),
        middle(r["cpu_seconds_per_gb"] for r in results),
        middle(ratios),
        round(statistics.median(r["cpu_percent"] for r in results), 2),
        round(statistics.median(r["delay_ms"]["p50"] for r in results), 2),
        round(statistics.median(r["delay_ms"]["p99"] for r in results), 2),
        sum(r["missed"] for r in results),
        round(statistics.median(r["megabytes"] for r in results)),
        verdict(is_met(count, rounds, ratios)) if kind is RoomServer else "",
    ]


def is_met(count, rounds, ratios):
    """Whether ours is as cheap as it should be."""
    cost = {kind: statistics.median(r["cpu_seconds_per_gb"] for r in results) for kind, results in rounds.items()}
    if count < 50:
        return cost[RoomServer] <= TARGET_ALONE
    is_cheap = statistics.median(ratios) <= TARGET_RATIO
    return is_cheap and (count < 200 or Nchan not in cost or cost[RoomServer] < cost[Nchan])
