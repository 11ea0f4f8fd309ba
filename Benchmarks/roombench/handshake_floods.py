"""Floods of handshakes and frames that are begun and not finished, or that a server refuses."""

import asyncio
import itertools

from . import wire
from .flood import flood
from .peers import ACCEPTED, CUT_OFF, CUT_OFF_IN_HANDSHAKE, persist, trickle


@flood(
    "half handshakes",
    [CUT_OFF_IN_HANDSHAKE],
    ["4408 fatal", "HTTP 400", "HTTP 403", "HTTP 503"],
    turns=2,
    patience=12,
)
async def half_handshakes(target):
    """A thousand connections that never get to a session: silent, begun, trickling, or open without a join."""
    request = wire.handshake(target.port)
    beginnings = [b"", request[:1], request[: len(request) // 2], request[:-2]]

    async def visit(peer, index):
        if index % 10 == 0:
            await peer.open()
            await peer.over.wait()
            return
        await peer.connect()
        await peer.send(beginnings[index % 4])
        if index % 10 == 1:
            trickling = asyncio.create_task(trickle(peer, itertools.repeat(b"X")))
        try:
            await peer.read_http()
        finally:
            if index % 10 == 1:
                trickling.cancel()

    await persist(target, 1000, visit)


@flood("half frames", [CUT_OFF], ["4408 fatal"], turns=8, patience=49)
async def half_frames(target):
    """WebSocket frames that never come whole: a header, a half, or a byte a second."""
    frame = wire.framed(bytes(15_000))
    beginnings = [frame[:2], frame[:3], frame[:7], frame[: len(frame) // 2]]

    async def visit(peer, index):
        if index % 5 == 0:
            await peer.open()
        else:
            await peer.enter("half", f"peer-{index}", subscribing=True)
        # A pong would be taken for a part of the frame.
        peer.answers_pings = False
        await peer.send(beginnings[index % 4])
        if index % 3 == 0:
            trickling = asyncio.create_task(trickle(peer, itertools.repeat(b" ")))
        try:
            await peer.over.wait()
        finally:
            if index % 3 == 0:
                trickling.cancel()

    await persist(target, 200, visit)


@flood("wrong origins", ["HTTP 403"], [CUT_OFF_IN_HANDSHAKE])
async def origins(target):
    """Handshakes as web pages of strangers send them, some with a name of their own that leads to this machine."""
    here = f"127.0.0.1:{target.port}"
    strange = ["http://evil.example", "null", f"http://{here}.evil.example", "http://127.0.0.1:1", f"https://{here}"]
    strange += ["x" * 900, "http://" + "x" * 3000]
    options = [{"headers": [f"Origin: {origin}"]} for origin in strange]
    for host in ("evil.example", f"evil.example:{target.port}"):
        options.append({"host": host, "headers": [f"Origin: http://{host}"]})
    turn = itertools.count()

    async def visit(peer, _):
        await peer.shake_hands(**options[next(turn) % len(options)])
        peer.note(ACCEPTED)

    await persist(target, 16, visit)


@flood(
    "bad paths",
    ["4401 fatal"],
    ["HTTP 400", "HTTP 403", "HTTP 404", "HTTP 414", "HTTP 431", CUT_OFF_IN_HANDSHAKE],
)
async def paths(target):
    """Paths that name no room, name another one than `join`, or are no paths."""
    bad = ["/rooms/", "/rooms/a/b", "/rooms/%zz", "/rooms/%ff", "/rooms/a%00b", "/other", "/rooms/other"]
    bad += ["/rooms/" + "A" * 129, "/rooms/" + "%41" * 1000, "/" + "x" * 7000, "/../../etc/passwd", "//rooms/paths"]
    bad += ["*", "http://evil.example/"]
    turn = itertools.count()

    async def visit(peer, index):
        await peer.open(bad[next(turn) % len(bad)])
        await peer.send(wire.join("paths", f"peer-{index}"))
        await asyncio.wait_for(peer.over.wait(), 1)

    await persist(target, 16, visit)
