#!/usr/bin/env python3
"""Many participants who join a room at once and note their first picture; started by session.py in a namespace.

joiners.py ADDRESS PORT ROOM COUNT SECONDS      one line of JSON for each
"""

import json
import pathlib
import selectors
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from roombench.wire import BINARY, FIRST, HEADER, KEYFRAME, LAST, PING, PONG, TEXT  # noqa: E402
from roombench.wire import MessageReader, framed, handshake, join  # noqa: E402

PATIENCE = 10


def clock():
    """Seconds of CLOCK_MONOTONIC, which room time is on the server's machine."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class Joiner:
    """One participant, up to its first picture that is shown."""

    def __init__(self, address, port, room, number):
        self.started, self.through, self.keyframes, self.catch_up, self.result = clock(), -1, 0, 0, None
        self.room, self.number = room, number
        self.connection = socket.socket()
        self.connection.setblocking(False)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.connect_ex((address, port))
        self.request = handshake(port)
        self.reader = MessageReader(self.connection)
        self.is_open = False
        self.is_decodable = False

    def greet(self):
        """The connection stands: asks for the WebSocket."""
        self.connection.sendall(self.request)

    def receive(self):
        """Takes what has come; True once there is nothing more to wait for."""
        data = self.connection.recv(1 << 18)
        if not data:
            return True
        self.reader.buffer += data
        if not self.is_open:
            end = self.reader.buffer.find(b"\r\n\r\n")
            if end < 0:
                return False
            del self.reader.buffer[: end + 4]
            self.is_open = True
            self.connection.sendall(join(self.room, f"joiner-{self.number}"))
        while message := self.reader.take():
            self.take(*message)
        return self.result is not None

    def take(self, kind, payload):
        """A message of the server."""
        if kind == PING:
            self.connection.sendall(framed(payload, PONG))
        elif kind == TEXT:
            fields = json.loads(payload)
            if fields["type"] == "subscribed":
                self.through = fields.get("catchUpThrough", -1)
        elif kind == BINARY and payload[1] == 0:
            self.take_packet(payload)

    def take_packet(self, payload):
        """A packet of a frame: the frame is there with its last one."""
        _, _, _, flags, _, _, _, _, number, captured, *_ = HEADER.unpack_from(payload)
        if flags & FIRST and flags & KEYFRAME:
            self.keyframes += 1
            self.is_decodable = True
        if not flags & LAST or self.result or not self.is_decodable:
            return
        if number <= self.through:
            self.catch_up += 1
            return
        now = clock()
        self.result = {
            "event": "join",
            "firstPictureMs": round((now - self.started) * 1e3, 2),
            "firstAgeMs": round(now * 1e3 - captured / 1e3, 2),
            "keyframes": self.keyframes,
            "catchUpFrames": self.catch_up,
        }


def main():
    address, port, room, count, seconds = (
        sys.argv[1],
        int(sys.argv[2]),
        sys.argv[3],
        int(sys.argv[4]),
        float(sys.argv[5]),
    )
    selector, waiting, started = selectors.DefaultSelector(), 0, clock()
    joined = 0
    while (joined < count or waiting) and clock() < started + seconds + PATIENCE:
        while joined < count and clock() >= started + joined * seconds / count:
            joiner = Joiner(address, port, room, joined)
            selector.register(joiner.connection, selectors.EVENT_WRITE, joiner)
            joined += 1
            waiting += 1
        for key, events in selector.select(0.005):
            joiner = key.data
            if events & selectors.EVENT_WRITE:
                joiner.greet()
                selector.modify(joiner.connection, selectors.EVENT_READ, joiner)
            elif joiner.receive():
                selector.unregister(joiner.connection)
                joiner.connection.close()
                waiting -= 1
                print(json.dumps(joiner.result or {"event": "join", "firstAgeMs": None}), flush=True)


main()
