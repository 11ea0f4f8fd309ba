"""Connections of hostile peers: raw, many in one event loop, and counting what the server says to them."""

import asyncio
import collections
import json
import random
import socket
import struct

from . import wire

SIGN_OF_LIFE_SECONDS = 5
ANSWER_SECONDS = 10
READ_BYTES = 1 << 18
CUT_OFF, CUT_OFF_IN_HANDSHAKE, REFUSED = "cut off", "cut off in the handshake", "connection refused"
ACCEPTED, STILL_CONNECTED = "accepted", "still connected"
# With SO_LINGER 0 a close frees the port at once, so that a flood of connections does not use up the ports.
NO_LINGER = struct.pack("ii", 1, 0)


class Target:
    """The server that is flooded: what it was sent, and what it answered."""

    def __init__(self, port):
        self.port = port
        self.answers = collections.Counter()
        self.counts = collections.Counter(connections=0, sends=0, bytes=0)


class Peer:
    """One connection to the target.

    A stubborn peer goes on sending after the server has ended the session, until the socket breaks.
    """

    def __init__(self, target, is_stubborn=False):
        self.target, self.is_stubborn = target, is_stubborn
        self.loop = asyncio.get_running_loop()
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.reader = wire.MessageReader(None)
        self.messages = asyncio.Queue()
        self.over = asyncio.Event()
        self.listener = None
        self.fatal = None
        self.answers_pings = True

    def note(self, answer):
        """Counts an answer."""
        self.target.answers[answer] += 1

    async def connect(self):
        """Opens the TCP connection."""
        self.target.counts["connections"] += 1
        try:
            await self.loop.sock_connect(self.socket, ("127.0.0.1", self.target.port))
        except ConnectionRefusedError:
            self.note(REFUSED)
            await asyncio.sleep(0.05)
            raise

    async def shake_hands(self, path="/", **options):
        """Opens the WebSocket."""
        await self.connect()
        await self.send(wire.handshake(self.target.port, path, **options))
        await self.read_http()

    async def read_http(self):
        """Reads the answer to the handshake; anything but 101 is counted and ends the connection."""
        while (end := self.reader.buffer.find(b"\r\n\r\n")) < 0:
            try:
                data = await self.loop.sock_recv(self.socket, READ_BYTES)
            except ConnectionError:
                data = b""
            if not data:
                self.note(CUT_OFF_IN_HANDSHAKE)
                raise ConnectionAbortedError
            self.reader.buffer += data
        status = bytes(self.reader.buffer[9:12]).decode(errors="replace")
        del self.reader.buffer[: end + 4]
        if status != "101":
            self.note(f"HTTP {status}")
            raise ConnectionAbortedError

    async def open(self, path="/", **options):
        """Opens the WebSocket, and listens from then on."""
        await self.shake_hands(path, **options)
        self.listener = asyncio.create_task(self.listen())

    async def enter(self, room, identity, subscribing=False):
        """Opens the WebSocket, joins, and waits for the answer."""
        await self.open(f"/rooms/{room}")
        await self.send(wire.join(room, identity, subscribing))
        return await self.answer("joined")

    async def publish(self, name):
        """Publishes a track and returns its description."""
        await self.send(publish(name))
        return (await self.answer("published"))["track"]

    async def answer(self, kind):
        """The next signaling message of a type."""
        async with asyncio.timeout(ANSWER_SECONDS):
            while message := await self.messages.get():
                if f'"{kind}"'.encode() in message and (fields := json.loads(message))["type"] == kind:
                    return fields
        raise ConnectionAbortedError

    async def send(self, data):
        """Sends bytes, and lets others have a turn."""
        await self.loop.sock_sendall(self.socket, data)
        self.target.counts["sends"] += 1
        self.target.counts["bytes"] += len(data)
        await asyncio.sleep(0)

    async def pour(self, batches):
        """Sends batch after batch until the server ends it."""
        for batch in batches:
            await self.send(batch)
            if self.over.is_set() and not self.is_stubborn:
                break
        await self.over.wait()

    async def listen(self):
        """Reads and counts until the connection is over."""
        try:
            while data := await self.loop.sock_recv(self.socket, READ_BYTES):
                self.reader.buffer += data
                while message := self.reader.take():
                    if not await self.hear(*message):
                        return
            self.note(CUT_OFF)
        except ConnectionError:
            if not self.fatal:
                self.note(CUT_OFF)
        finally:
            self.over.set()
            self.messages.put_nowait(None)
            if not self.is_stubborn:
                # A send that waits for the server is over, too.
                try:
                    self.socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    async def hear(self, kind, payload):
        """Takes a message; returns whether more is to come."""
        if kind == wire.TEXT and b'"error"' in payload and (fields := json.loads(payload))["type"] == "error":
            self.note(f"{fields['code']} {'fatal' if fields['fatal'] else 'refused'}")
            self.fatal = fields["code"] if fields["fatal"] else None
        elif kind == wire.TEXT:
            self.messages.put_nowait(payload)
            if self.messages.qsize() > 1000:
                self.messages.get_nowait()
        elif kind == wire.PING and self.answers_pings:
            await self.loop.sock_sendall(self.socket, wire.framed(payload, wire.PONG))
        elif kind == wire.CLOSE:
            # 1005 stands for a close frame without a code (RFC 6455, section 7.1.5).
            code = int.from_bytes(payload[:2], "big") or 1005
            if code != self.fatal:
                self.note(f"close {code}")
            return False
        return True

    async def discard(self):
        """Reads without looking until the server hangs up."""
        buffer = bytearray(READ_BYTES)
        while await self.loop.sock_recv_into(self.socket, buffer):
            pass

    def last_words(self):
        """Counts what the server did to a peer that never read."""
        try:
            while data := self.socket.recv(READ_BYTES):
                self.reader.buffer += data
            ending = CUT_OFF
        except BlockingIOError:
            ending = STILL_CONNECTED
        except OSError:
            ending = CUT_OFF
        while message := self.reader.take():
            if message[0] == wire.CLOSE:
                ending = f"close {int.from_bytes(message[1][:2], 'big')}"
        self.note(ending)

    async def close(self):
        """Frees the connection, without a word."""
        if self.listener:
            self.listener.cancel()
            await asyncio.gather(self.listener, return_exceptions=True)
        self.socket.close()


def publish(name):
    """A `publish` as a WebSocket frame."""
    fields = {"kind": "video", "source": "other", "codec": "vp8", "width": 640, "height": 480, "frameRate": 30}
    return wire.text(type_="publish", requestId=1, name=name, **fields)


async def trickle(peer, pieces):
    """Sends a piece a second."""
    for piece in pieces:
        await asyncio.sleep(1)
        await peer.send(piece)


async def persist(target, count, visit):
    """Keeps `count` peers at it until cancelled: one whose connection has ended comes again."""

    async def keep(index):
        while True:
            peer = Peer(target, is_stubborn=index % 2 == 1)
            try:
                await visit(peer, index)
            except (OSError, TimeoutError):
                pass
            finally:
                await peer.close()
            await asyncio.sleep(0)

    await asyncio.gather(*map(keep, range(count)))


async def audience(target, room, count, subscribing=True):
    """Participants that only read, as good ones do, until cancelled."""
    pong = wire.framed(b".", wire.PONG)

    async def visit(peer, index):
        await peer.shake_hands()
        await peer.send(wire.join(room, f"audience-{index}", subscribing))
        reading = asyncio.create_task(peer.discard())
        try:
            while not reading.done():
                await asyncio.wait([reading], timeout=SIGN_OF_LIFE_SECONDS)
                await peer.send(pong)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    await persist(target, count, visit)


class Owner:
    """A participant that publishes a track as a good one does: small frames, 30 a second."""

    def __init__(self, target, room, frame_bytes=4000):
        self.target, self.room, self.frame_bytes = target, room, frame_bytes
        self.track = asyncio.get_running_loop().create_future()

    async def run(self):
        """Publishes until cancelled."""
        await persist(self.target, 1, self.visit)

    async def visit(self, peer, _):
        """One session."""
        await peer.enter(self.room, "owner")
        track = await peer.publish("track")
        if self.track.done():
            self.track = asyncio.get_running_loop().create_future()
        self.track.set_result(track["id"])
        noise = random.Random(1).randbytes(self.frame_bytes)
        number = 0
        while not peer.over.is_set():
            packets = whole_frame(track["alias"], number, noise, wire.KEYFRAME if number % 30 == 0 else 0)
            await peer.send(packets)
            number += 1
            await asyncio.sleep(1 / 30)


def whole_frame(alias, number, payload, role=0):
    """The packets of a frame of temporal layer 0, framed for WebSocket."""
    most = wire.MAXIMUM_MESSAGE - wire.HEADER.size
    parts = []
    for start in range(0, len(payload), most):
        chunk = payload[start : start + most]
        flags = role | (wire.FIRST if start == 0 else 0) | (wire.LAST if start + len(chunk) == len(payload) else 0)
        header = wire.HEADER.pack(
            1, 0, wire.HEADER.size, flags, 0, 0, 0, alias, number, 1, len(payload), start, 0, number % 65536, 0, 0
        )
        parts.append(wire.framed(header + chunk))
    return b"".join(parts)
