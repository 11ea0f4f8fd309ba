"""Builds what is measured and the C helpers, starts programs, and reads their CPU clocks."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
BUILD = HERE / "build"

CFLAGS = ["-O2", "-Wall", "-Wextra", "-Werror"]
HELPERS = {
    "allocation_counter": ["-shared", "-fPIC"],
    "bare_publisher": [],
    "bare_relay": [],
    "screen_painter": [],
    "subscribers": [],
}
LIBRARIES = {"bare_publisher": ["-lvpx"], "screen_painter": ["-lxcb"]}


class Programs:
    """Where the programs lie."""

    def __init__(self, folder=None):
        BUILD.mkdir(exist_ok=True)
        for name, flags in HELPERS.items():
            source = HERE / "native" / f"{name}.c"
            if not helper(name).exists() or helper(name).stat().st_mtime < source.stat().st_mtime:
                command = ["cc", *CFLAGS, *flags, "-o", helper(name), source, *LIBRARIES.get(name, [])]
                subprocess.run(command, check=True)
        if not folder:
            for product in ("room-server", "room-client", "encode-clip", "picture-bench"):
                command = ["swift", "build", "-c", "release", "--product", product]
                subprocess.run(command, cwd=HERE.parent, check=True, stdout=sys.stderr)
            folder = HERE.parent / ".build" / "release"
        self.server, self.client = (pathlib.Path(folder) / name for name in ("room-server", "room-client"))
        self.encode_clip, self.picture_bench = (pathlib.Path(folder) / name for name in ("encode-clip", "picture-bench"))


def helper(name):
    """Where a C helper lies once it is built."""
    return BUILD / name


class Process:
    """A program that runs, with its output in a file; ended with the `with` block.

    `niceness` is that of `nice`; below 0 only root gets it, and others get 0.
    """

    def __init__(self, *command, preload=None, niceness=0, **environment):
        self.log = tempfile.TemporaryFile("w+")
        if preload:
            environment["LD_PRELOAD"] = str(preload)
        self.name = pathlib.Path(command[0]).name
        if niceness:
            command = ["nice", "-n", niceness, *command]
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=os.environ | environment,
        )
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends the program as Ctrl-C would."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()

    def output(self):
        """What it has written so far."""
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def wait_for(self, pattern, seconds=15):
        """The first match of `pattern` in the output."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if match := re.search(pattern, self.output()):
                return match
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not say {pattern!r}, but:\n{self.output()}")

    def cpu_seconds(self):
        """CPU time of all its threads, those that have ended among them, to the nanosecond (clock_getcpuclockid)."""
        return time.clock_gettime_ns((~self.pid << 3) | 2) * 1e-9

    def resident_megabytes(self):
        """Memory in use."""
        pages = int(pathlib.Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1e6

    def threads(self):
        """The threads' names by their ids."""
        names = {}
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            try:
                names[int(task.name)] = (task / "comm").read_text().strip()
            except OSError:
                pass
        return names

    def thread_cpu_seconds(self):
        """CPU time by thread name."""
        seconds = {}
        for thread, name in self.threads().items():
            try:
                spent = int(pathlib.Path(f"/proc/{self.pid}/task/{thread}/schedstat").read_text().split()[0])
            except OSError:
                continue
            seconds[name] = seconds.get(name, 0) + spent * 1e-9
        return seconds


def start_server(programs, **options):
    """A room server on a free port, and the port."""
    server = Process(programs.server, "--port", 0, **options)
    port = int(server.wait_for(r"listening at ws://127\.0\.0\.1:(\d+)")[1])
    return server, port


def start_client(programs, command, port, room, *arguments, **options):
    """A room client."""
    address = f"ws://127.0.0.1:{port}"
    return Process(programs.client, command, "--url", address, "--room", room, *arguments, **options)
