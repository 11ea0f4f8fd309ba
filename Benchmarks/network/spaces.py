"""Network namespaces with addresses of their own, and the link between them; gone when the `with` block ends."""

import atexit
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from roombench.programs import BUILD, CFLAGS, HERE, Process

PREFIX = "room-bench"
NETWORK, HUB_ADDRESS = "198.18.0.0/24", "198.18.0.1"  # RFC 2544: for benchmarks
DIRECTIONS = {"up": ("up", "down"), "down": ("down", "up"), "both": ("up", "down")}
"""The link's direction of the pictures, and the other one, by where the link is. With "both" the pictures cross the link
up to the server, and then down to the viewers."""
counter = itertools.count()


def shortcoming():
    """Why there can be no namespaces here; None where there can."""
    if os.geteuid():
        return "it makes network namespaces, and only root may"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun"
    for tool in ("ip", "nsenter", "setpriv", "cc"):
        if subprocess.run(["which", tool], stdout=subprocess.DEVNULL, check=False).returncode:
            return f"there is no {tool} command"
    return None


def sweep():
    """Removes the namespaces and folders of runs that were killed."""
    for folder in ("/run/netns", tempfile.gettempdir()):
        for file in pathlib.Path(folder).glob(f"{PREFIX}-*"):
            match = re.fullmatch(rf"{PREFIX}-(\d+)-.*", file.name)
            if not match or pathlib.Path(f"/proc/{match[1]}").exists():
                continue
            if file.is_dir():
                shutil.rmtree(file, ignore_errors=True)
            else:
                subprocess.run(["ip", "netns", "del", file.name], stderr=subprocess.DEVNULL, check=False)


def temporary_folder():
    """A folder that goes with the `with` block, or with the next run where this one is killed."""
    return tempfile.TemporaryDirectory(prefix=f"{PREFIX}-{os.getpid()}-")


def link_program():
    """The link's program, built where it is not there or older than its source."""
    source, program = HERE / "native" / "link.c", BUILD / "link"
    BUILD.mkdir(exist_ok=True)
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        part = program.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", *CFLAGS, "-o", part, source], check=True)
        part.rename(program)
    return program


class Space:
    """A network namespace."""

    def __init__(self, role, address):
        self.name = f"{PREFIX}-{os.getpid()}-{next(counter)}{role}"
        self.address = address
        self.path = f"/run/netns/{self.name}"
        self._ip("netns", "add", self.name)
        atexit.register(self.remove)

    def configure_loopback(self):
        """Brings loopback up, with the address that others would have for it."""
        self._ip("-n", self.name, "addr", "add", f"{self.address}/32", "dev", "lo")
        self._ip("-n", self.name, "link", "set", "lo", "up")

    def configure_link(self, congestion_control):
        """Gives link0, which the link's program has made, its address; chooses the congestion control across it.

        By the route, because the setting net.ipv4.tcp_congestion_control of a namespace takes nothing but what the
        machine has in tcp_allowed_congestion_control, which is not ours to change.
        """
        self._ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", "link0")
        self._ip("-n", self.name, "link", "set", "link0", "mtu", "1500", "txqueuelen", "5000", "up")
        route = (NETWORK, "dev", "link0", "src", self.address)
        self._ip("-n", self.name, "route", "replace", *route, "congctl", "lock", congestion_control)

    def remove(self):
        """Removes it; the devices in it go with it."""
        atexit.unregister(self.remove)
        subprocess.run(["ip", "netns", "del", self.name], stderr=subprocess.DEVNULL, check=False)

    def command(self, *words):
        """The command that runs `words` here, and ends them when this process dies."""
        return ["nsenter", f"--net={self.path}", "--", "setpriv", "--pdeathsig", "KILL", "--", *map(str, words)]

    def start(self, *words, **options):
        """Starts a program here."""
        process = Process(*self.command(*words), **options)
        process.name = pathlib.Path(str(words[0])).name
        return process

    def _ip(self, *words):
        subprocess.run(["ip", *words], check=True)


class Network:
    """The hub, where the server is, and near ends with a delay each in ms; `link` None means there is only the hub."""

    def __init__(self, link, delays, where, folder, settings, seed, congestion_control):
        self.folder, self.link = folder, None
        self.spaces = []
        try:
            self.hub = self._add("hub", HUB_ADDRESS)
            self.near = [self._add(f"near{i}", f"198.18.0.{i + 2}") for i in range(len(delays) if link else 0)]
            for space in self.spaces:
                space.configure_loopback()
            if link:
                self._start_link(link, delays, where, settings, seed)
                for space in self.spaces:
                    space.configure_link(congestion_control)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _add(self, role, address):
        space = Space(role, address)
        self.spaces.append(space)
        return space

    def _start_link(self, link, delays, where, settings, seed):
        forward, back = DIRECTIONS[where]
        capacity, other = link.capacity, settings.second or link.capacity if where == "both" else link.back
        if capacity.startswith("trace:"):
            capacity = f"trace:{settings.traces / capacity.removeprefix('trace:')}"
        if other.startswith("trace:"):
            other = f"trace:{settings.traces / other.removeprefix('trace:')}"
        options = {
            forward: capacity,
            back: other,
            f"{forward}-queue": link.queue,
            f"{forward}-loss": link.loss,
            "jitter": link.jitter,
            "seed": seed,
            "series": self.folder / "link.csv",
        }
        if where == "both":
            options |= {f"{back}-queue": link.queue, f"{back}-loss": link.loss}
        if settings.packets:
            options["packets"] = self.folder / "packets.csv"
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        ends = [f"{space.path}={delay:g}" for space, delay in zip(self.near, delays)]
        # The program reads the namespaces' files by itself; it is in none of them.
        self.link = subprocess.Popen(
            [link_program(), *words, self.hub.path, *ends], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self.link.stdout.readline().strip() != "READY":
            raise RuntimeError("the link did not start")

    def begin(self):
        """Begins the schedule; the moment in seconds of CLOCK_MONOTONIC."""
        if not self.link:
            return time.clock_gettime(time.CLOCK_MONOTONIC)
        self.link.stdin.write("go\n")
        self.link.stdin.flush()
        return int(self.link.stdout.readline().split()[1]) / 1e9

    def end(self):
        """Ends the link; its counts, None where there is none."""
        if not self.link or self.link.poll() is not None:
            return None
        output, _ = self.link.communicate(timeout=10)
        return json.loads(output)

    def close(self):
        """Ends everything and removes the namespaces."""
        if self.link and self.link.poll() is None:
            self.link.kill()
            self.link.wait()
        for space in self.spaces:
            space.remove()
