"""Plays one case: starts the programs, follows the case's timetable, and collects what they left behind."""

import contextlib
import csv
import dataclasses
import itertools
import json
import pathlib
import shlex
import signal
import subprocess
import sys
import time

from roombench import clips

from . import quality, replays
from .spaces import DIRECTIONS, HUB_ADDRESS, Network

HERE = pathlib.Path(__file__).resolve().parent
PORT = 8480
URL = f"ws://{HUB_ADDRESS}:{PORT}"
WARM_SECONDS = 3
PATIENCE_SECONDS = 8


@dataclasses.dataclass
class Party:
    """A program that takes part: what it is called, what it belongs to, and how it ended."""

    role: str  # publisher, viewer, server, bulk, joiners
    process: object
    flow: int = 0
    name: str = ""
    dump: pathlib.Path | None = None
    cpu_at_start: float = 0
    cpu_seconds: float | None = None


@dataclasses.dataclass
class Outcome:
    """What a run left: times in seconds of the schedule."""

    parties: list
    begun: float
    link: dict | None
    samples: list
    logs: dict  # (flow, viewer's name) to the lines of its frame log
    summaries: dict  # (role, flow, name) to the last summaries
    joins: list
    bulk_bytes: int


class Session:
    """One run of a case."""

    def __init__(self, case, where, seed, settings, folder):
        self.case, self.where, self.seed, self.settings, self.folder = case, where, seed, settings, folder
        self.parties, self.timetable = [], []
        self.order, self.begun = itertools.count(), None
        self.clip = self._find_clip()

    def _find_clip(self):
        """The clip to publish; None for the pattern."""
        kind, _, path = self.settings.source.partition(":")
        if kind == "pattern":
            return None
        path = path.replace("{height}", self.case.size.split("x")[1])
        clip = clips.clip(self.case.size) if kind == "clip" else pathlib.Path(path).absolute()
        return quality.marked(clip) if self.settings.quality else clip

    def play(self):
        """Runs it to its end."""
        link = self.case.link
        plan = self._plan_ends()
        delays = [delay for delay, _ in plan]
        network = Network(link, delays, self.where, self.folder, self.settings, self.seed, self.case.congestion_control)
        with network, contextlib.ExitStack() as self.running:
            self.network = network
            self.ends = {key: network.near[i] if link else network.hub for i, (_, key) in enumerate(plan)}
            self._start_server()
            self._plan()
            time.sleep(WARM_SECONDS)
            self.begun = network.begin()
            for party in self.parties:
                party.cpu_at_start = party.process.cpu_seconds()
            self._follow_timetable()
            self._end_programs()
            return self._collect(network.end())

    # Who stands where

    def _plan_ends(self):
        """A near end, as (delay in ms, key), for each publisher or viewer that the link parts from the server."""
        delay = self.case.link.delay if self.case.link else 0
        plan = []
        for index, flow in enumerate(self.case.flows):
            own = delay if flow.delay is None else flow.delay
            if self._is_publisher_near(flow):
                plan.append((own, (index, "publisher")))
                if self.where != "both":
                    continue
            names = dict.fromkeys(viewer.name for viewer in flow.viewers if not viewer.beside_server)
            plan += [(own, (index, name)) for name in names]
        if self.case.bulks:
            plan.append((delay, "bulk"))
        if self.case.joiners:
            plan.append((delay, "joiners"))
        return plan

    def _is_publisher_near(self, flow):
        return self.where == "both" or (self.where == "up") != flow.reverse

    def _space(self, *key):
        return self.ends.get(key if len(key) > 1 else key[0], self.network.hub)

    # Programs

    def _start(self, space, role, *words, flow=0, name="", dump=None):
        if self.settings.nice:
            words = ("nice", "-n", self.settings.nice, *words)
        process = self.running.enter_context(space.start(*words))
        party = Party(role, process, flow, name, dump)
        self.parties.append(party)
        return party

    def _start_server(self):
        server = self.settings.server
        party = self._start(self.network.hub, "server", server, "--insecure-listen", "0.0.0.0", "--port", PORT)
        party.process.wait_for("listening at")

    def _start_publisher(self, index):
        case, settings = self.case, self.settings
        source, options = settings.source, ["--size", case.size]
        if self.clip:
            source = f"file:{self.clip}"
            options.append("--loop")
        if settings.records_inputs:
            options += replays.options(self.folder, index)
        pinned = ["taskset", "-c", "0"] if case.hog else []
        self._start(
            self._space(index, "publisher"), "publisher", *pinned, settings.client, "connect", "--url", URL,
            "--room", f"flow-{index}", "--identity", f"publisher-{index}", "--source", source, *options,
            "--max-bitrate", case.cap, "--json", "--verbose", *self._options(settings.connect_options, index),
            flow=index,
        )  # fmt: skip

    def _start_viewer(self, index, viewer):
        count = sum(1 for party in self.parties if party.role == "viewer")
        dump = self.folder / f"dump-{count}"
        party = self._start(
            self._space(index, viewer.name), "viewer", self.settings.client, "subscribe", "--url", URL,
            "--room", f"flow-{index}", "--identity", f"viewer-{index}-{count}", "--dump", dump, "--json", "--verbose",
            *self._options(self.settings.subscribe_options, index), flow=index, name=viewer.name, dump=dump,
        )  # fmt: skip
        if self.begun is None:
            party.process.wait_for('"connected"')
        return party

    def _options(self, text, flow):
        """The user's further options as words, with the run's folder and the flow's number put in."""
        return [word.replace("{folder}", str(self.folder)).replace("{flow}", str(flow)) for word in shlex.split(text)]

    # The timetable

    def _at(self, moment, action):
        """Does it now where there is no moment, else at that second of the schedule."""
        if moment is None:
            action()
        else:
            self.timetable.append((moment, next(self.order), action))

    def _plan(self):
        for index, flow in enumerate(self.case.flows):
            for viewer in flow.viewers:
                start = viewer.start if viewer.start is not None else flow.start
                self._at(start, lambda i=index, v=viewer: self._plan_viewer(i, v))
            self._at(flow.start, lambda i=index: self._start_publisher(i))
        for index, bulk in enumerate(self.case.bulks):
            self._at(bulk.start, lambda i=index, b=bulk: self._start_bulk(i, b))
        if joiners := self.case.joiners:
            self._at(joiners.start, lambda: self._start_joiners(joiners))
        if self.case.hog:
            self._at(self.case.hog[0], self._start_hog)

    def _plan_viewer(self, index, viewer):
        party = self._start_viewer(index, viewer)
        if viewer.stop is not None:
            self._at(viewer.stop, lambda: self._interrupt(party))
        if viewer.stopped:
            self._at(viewer.stopped[0], lambda: party.process.process.send_signal(signal.SIGSTOP))
            self._at(viewer.stopped[1], lambda: party.process.process.send_signal(signal.SIGCONT))
            # A stopped program heeds no other signal than this one.
            self.running.callback(lambda: party.process.process.poll() is None and party.process.process.kill())

    def _start_bulk(self, index, bulk):
        near, hub, port = self._space("bulk"), self.network.hub, 7000 + index
        source, sink = (hub, near) if self.where == "down" else (near, hub)
        script = HERE / "bulk.py"
        self._start(sink, "bulk", sys.executable, script, "sink", port).process.wait_for("ready")
        kind = "short" if bulk.short else "long"
        party = self._start(
            source, "bulk source", sys.executable, script, kind, sink.address, port, self.seed * 100 + index
        )
        if bulk.stop is not None:
            self._at(bulk.stop, lambda: self._interrupt(party))

    def _start_joiners(self, joiners):
        words = (sys.executable, HERE / "joiners.py", HUB_ADDRESS, PORT, "flow-0", joiners.count, joiners.seconds)
        self._start(self._space("joiners"), "joiners", *words)

    def _start_hog(self):
        begin, end, count = self.case.hog
        loop = f"import time\nend = time.monotonic() + {end - begin}\nwhile time.monotonic() < end: pass"
        for _ in range(count):
            self._start(self.network.hub, "hog", "taskset", "-c", "0", sys.executable, "-c", loop)

    def _follow_timetable(self):
        while True:
            self.timetable.sort()
            due = self.timetable[0][0] if self.timetable else self.case.seconds
            due = min(due, self.case.seconds)
            time.sleep(max(0, self.begun + due - time.clock_gettime(time.CLOCK_MONOTONIC)))
            if due >= self.case.seconds:
                return
            self.timetable.pop(0)[2]()
            self._check()

    def _check(self):
        for party in self.parties:
            process = party.process.process
            if party.role in ("server", "publisher") and process.poll() is not None:
                raise RuntimeError(
                    f"the {party.role} ended with {process.returncode}:\n{party.process.output()[-2000:]}"
                )

    # The end

    def _interrupt(self, party):
        """Asks a program to end as Ctrl-C does, and notes the CPU time that it took since the schedule began."""
        process = party.process.process
        if process.poll() is None and party.cpu_seconds is None:
            party.cpu_seconds = party.process.cpu_seconds() - party.cpu_at_start
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGINT)

    def _end(self, party):
        """Ends a program, by force if it takes long."""
        self._interrupt(party)
        try:
            party.process.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            party.process.process.kill()
            party.process.process.wait()

    def _end_programs(self):
        self._check()
        time.sleep(0.3)  # What is on the way still comes.
        for role in ("bulk source", "joiners", "hog", "publisher", "viewer", "bulk", "server"):
            for party in self.parties:
                if party.role == role:
                    self._end(party)

    # What is left

    def _collect(self, link):
        logs, summaries, joins, bulk_bytes = {}, {}, [], 0
        for number, party in enumerate(self.parties):
            (self.folder / f"{number}-{party.role}.log".replace(" ", "-")).write_text(party.process.output())
            events = list(json_lines(party.process.output()))
            key = (party.role, party.flow, party.name)
            summaries.setdefault(key, []).extend(e for e in events if e.get("event") == "summary")
            if party.role == "viewer":
                logs.setdefault((party.flow, party.name), []).extend(frame_log(party.dump))
            if party.role == "joiners":
                joins += events
            if party.role == "bulk":
                bulk_bytes += sum(e["bytes"] for e in events)
        if not any(logs.values()):
            said = "\n".join(f"{p.role}: {p.process.output()[-600:]}" for p in self.parties)
            raise RuntimeError(f"no viewer saw a frame\n{said}")
        return Outcome(self.parties, self.begun, link, self._samples(), logs, summaries, joins, bulk_bytes)

    def _samples(self):
        """The link's samples, with the direction of the pictures as `forward` and the other as `back`."""
        path = self.folder / "link.csv"
        if not path.exists():
            return []
        forward, back = DIRECTIONS[self.where]
        rename = lambda name: name.replace(f"{forward}_", "forward_").replace(f"{back}_", "back_")
        with path.open() as file:
            rows = [{rename(name): float(value) for name, value in row.items()} for row in csv.DictReader(file)]
        return [row for row in rows if row["t"] <= self.case.seconds + 0.05]

    def own_ends(self):
        """The link's numbers of the near ends of our flows in its forward direction."""
        keys = [key for _, key in self._plan_ends()]
        return [
            i
            for i, key in enumerate(keys)
            if isinstance(key, tuple) and not self.case.flows[key[0]].reverse
            if self.where != "both" or key[1] == "publisher"
        ]

    def near_index(self, *key):
        """The link's number of a near end; None where there is no such end."""
        keys = [key for _, key in self._plan_ends()]
        wanted = key if len(key) > 1 else key[0]
        return keys.index(wanted) if wanted in keys else None


def json_lines(text):
    """The JSON objects among a program's lines; one that is cut off is left out."""
    for line in text.splitlines():
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                yield json.loads(line)


def frame_log(dump):
    """The lines of all frame logs of a dump, in order of decoding."""
    rows = [row for file in sorted(dump.glob("*.frames.jsonl")) for row in json_lines(file.read_text())]
    return sorted(rows, key=lambda row: (row.get("decoded") or row["received"], row["number"]))
