"""As much of docs/protocol.md as a benchmark needs: join, publish, read frames. What we send has a zero mask."""

import dataclasses
import json
import os
import select
import socket
import struct

SUBPROTOCOL = "room.v1"
MAXIMUM_MESSAGE = 16_000
HEADER = struct.Struct(">BBHBBBBIIQIIIHHQ")
KEYFRAME, LAYER_SYNC, FIRST, LAST, DISCARDABLE = 1, 2, 4, 8, 16
ROLE_FLAGS = KEYFRAME | LAYER_SYNC | DISCARDABLE

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def handshake(port, path="/", subprotocol=SUBPROTOCOL, host=None, headers=()):
    """The HTTP request that opens a WebSocket; `headers` are further lines of it."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{port}'}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version: 13",
    ]
    if subprotocol:
        lines.append(f"Sec-WebSocket-Protocol: {subprotocol}")
    lines += headers
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def framed(payload, kind=BINARY, masked=True):
    """`payload` as one WebSocket frame."""
    mask_bit = 0x80 if masked else 0
    if len(payload) < 126:
        header = bytes([0x80 | kind, mask_bit | len(payload)])
    else:
        header = struct.pack(">BBH", 0x80 | kind, mask_bit | 126, len(payload))
    return header + (b"\0\0\0\0" if masked else b"") + payload


def text(**fields):
    """A signaling message as a WebSocket frame; `type_` stands for `type`."""
    fields = {name.rstrip("_"): value for name, value in fields.items()}
    return framed(json.dumps(fields).encode(), TEXT)


def join(room, identity, subscribing=True):
    """The first message of a session."""
    return text(
        type_="join",
        version=1,
        room=room,
        identity=identity,
        automaticSubscription=subscribing,
        bootId=open("/proc/sys/kernel/random/boot_id").read().strip(),
        client="benchmark",
    )


@dataclasses.dataclass
class Frame:
    """What the packets of a frame say; times in µs of CLOCK_MONOTONIC."""

    number: int
    role: int
    layer: int
    length: int
    captured: int
    encode_delay: int
    relayed: int = 0
    received: int = 0


class MessageReader:
    """Reads the server's WebSocket messages from a connected socket."""

    def __init__(self, connection):
        self.connection = connection
        self.buffer = bytearray()

    def next(self):
        """The next message's kind and payload; `None` at the end."""
        while True:
            message = self.take()
            if message:
                return message
            data = self.connection.recv(1 << 18)
            if not data:
                return None
            self.buffer += data

    def skip_http(self):
        """Reads the answer to the handshake."""
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            data = self.connection.recv(1 << 16)
            if not data:
                raise ConnectionError("the server hung up during the handshake")
            self.buffer += data
        head = bytes(self.buffer[:end])
        del self.buffer[: end + 4]
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode(errors="replace"))

    def drain(self):
        """The messages that are there already."""
        messages = []
        while select.select([self.connection], [], [], 0)[0]:
            data = self.connection.recv(1 << 18)
            if not data:
                raise ConnectionError("the server hung up")
            self.buffer += data
        while message := self.take():
            messages.append(message)
        return messages

    def take(self):
        """The first message of the buffer; `None` if it has not come whole."""
        if len(self.buffer) < 2:
            return None
        kind, length, start = self.buffer[0] & 0x0F, self.buffer[1] & 0x7F, 2
        if length == 126:
            start, length = 4, int.from_bytes(self.buffer[2:4], "big")
        elif length == 127:
            start, length = 10, int.from_bytes(self.buffer[2:10], "big")
        if len(self.buffer) < start or len(self.buffer) < start + length:
            return None
        payload = bytes(self.buffer[start : start + length])
        del self.buffer[: start + length]
        return kind, payload


def frames(reader, clock, answer=lambda kind, payload: None):
    """Yields the frames that a reader gets, each as its last packet comes."""
    frame = None
    while message := reader.next():
        kind, payload = message
        if kind != BINARY or payload[1] != 0:
            answer(kind, payload)
            continue
        fields = HEADER.unpack_from(payload)
        (_, _, _, flags, _, layer, _, _, number, captured, length, _, delay, _, _, relayed) = fields
        if flags & FIRST:
            frame = Frame(number, flags & ROLE_FLAGS, layer, length, captured, delay)
        if flags & LAST and frame:
            frame.relayed, frame.received = relayed, clock()
            yield frame


def connect(port):
    """A TCP connection to this machine that sends at once."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class RoomSession:
    """One participant: joined when it is made."""

    def __init__(self, port, room, subscribing=True):
        self.connection = connect(port)
        self.reader = MessageReader(self.connection)
        self.connection.sendall(handshake(port))
        self.reader.skip_http()
        self.connection.sendall(join(room, f"bench-{os.getpid()}-{id(self)}", subscribing))
        self.expect("joined")

    def expect(self, kind):
        """Reads on to a signaling message of type `kind`."""
        while message := self.reader.next():
            if message[0] == TEXT and (fields := json.loads(message[1]))["type"] == kind:
                return fields
            self.answer(*message)
        raise ConnectionError(f"the server hung up instead of saying {kind}")

    def answer(self, kind, payload):
        """Answers a ping, and gives up after a fatal error."""
        if kind == PING:
            self.connection.sendall(framed(payload, PONG))
        if kind == TEXT and (fields := json.loads(payload))["type"] == "error" and fields["fatal"]:
            raise ConnectionError(fields["message"])

    def publish(self, width, height, frame_rate):
        """Publishes a track and returns its alias."""
        self.connection.sendall(
            text(
                type_="publish",
                requestId=1,
                name="bench",
                kind="video",
                source="other",
                codec="vp8",
                width=width,
                height=height,
                frameRate=frame_rate,
            )
        )
        return self.expect("published")["track"]["alias"]

    def close(self):
        """Leaves without a word."""
        self.connection.close()
