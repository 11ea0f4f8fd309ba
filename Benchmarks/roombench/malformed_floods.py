"""Floods of messages that cannot be read, are too large, or hold hostile names."""

import asyncio
import itertools
import json
import random
import string

from . import wire
from .flood import flood
from .peers import audience, persist


@flood("oversize messages", ["close 1009"], ["close 1002", "close 1007", "4400 fatal", "4429 fatal"])
async def oversize(target):
    """Messages beyond their limit: whole, in fragments, and with lengths that nobody means."""
    part = bytes(9_000)
    variants = [
        wire.framed(bytes(16_001)),
        huge_header(wire.BINARY, 1 << 20) + bytes(1 << 20),
        huge_header(wire.TEXT, 65_537) + b"x" * 65_537,
        huge_header(wire.BINARY, 1 << 62) + bytes(1 << 18),
        huge_header(wire.BINARY, (1 << 64) - 1) + bytes(1 << 18),
        unfinished(wire.BINARY, part) + unfinished(0, part) * 40,
        unfinished(wire.TEXT, b"x" * 9_000) + unfinished(0, b"x" * 9_000) * 40,
    ]
    await bad_messages(target, "oversize", variants)


def huge_header(kind, length):
    """The header of a WebSocket frame with a length in eight bytes, masked with zeros."""
    return bytes([0x80 | kind, 0xFF]) + length.to_bytes(8, "big") + bytes(4)


def unfinished(kind, payload):
    """A fragment that others follow."""
    frame = bytearray(wire.framed(payload, kind))
    frame[0] &= 0x7F
    return bytes(frame)


async def bad_messages(target, room, variants):
    """Peers each of which sends one variant and waits for the end; some join first."""
    turn = itertools.count()

    async def visit(peer, index):
        number = next(turn)
        if number // len(variants) % 2:
            await peer.open()
        else:
            await peer.enter(room, f"peer-{index}", subscribing=True)
        await peer.send(variants[number % len(variants)])
        await asyncio.wait_for(peer.over.wait(), 1)

    await asyncio.gather(audience(target, room, 10), persist(target, 16, visit))


@flood(
    "garbage",
    ["4400 fatal", "close 1007"],
    ["4405 refused", "4401 fatal", "4429 fatal", "close 1002", "close 1005", "close 1009"],
)
async def garbage(target):
    """What is no message: bad JSON, bad UTF-8, random bytes, bad packets, and frames against RFC 6455."""
    noise = random.Random(1)
    text = lambda content: wire.framed(content, wire.TEXT)
    variants = [
        text(b""),
        text(b"{"),
        text(b"[" * 60_000),
        text(b'{"type":' * 7_000),
        text(b'{"type":"join","type":"join"}'),
        text(b'{"type":"timeSync","clientTime":1e999}'),
        text(b'{"type":"' + b"x" * 60_000 + b'"}'),
        text(b'{"type":"\\ud800"}'),
        text(b"\xff\xfe\xfd"),
        text(b"\xc0\x80"),
        text("".join(noise.choices(string.printable, k=4000)).encode()),
        wire.framed(b"\x01\x00"),
        wire.framed(b"\x02\x00" + bytes(60)),
        wire.framed(b"\x01\x00\xff\xff" + bytes(60)),
        *(wire.framed(noise.randbytes(length)) for length in (1, 2, 3, 47, 48, 49, 125, 126, 4000, 15_999)),
        *(wire.framed(b"\x01\x00" + noise.randbytes(length)) for length in (46, 60, 4000)),
        wire.framed(b"x", 3),
        wire.framed(b"x", 11),
        wire.framed(b"x", masked=False),
        b"\xf2\x80" + bytes(4),
        b"\x89\xfe\x00\x80" + bytes(4 + 128),
        b"\x09\x80" + bytes(4),
        wire.framed(b"x", 0),
        unfinished(wire.BINARY, b"") + unfinished(0, b"") * 20_000,
        wire.framed(b"\x00", wire.CLOSE),
        noise.randbytes(60_000),
    ]
    await bad_messages(target, "garbage", variants)


@flood("names", ["4401 fatal"], ["4400 fatal", "4409 fatal", "4401 refused", "4429 fatal", "close 1000"])
async def names(target):
    """Names of the greatest length and beyond, of what renders, compares and escapes badly."""
    fill = lambda unit: unit * (128 // len(unit.encode()))
    units = ['"', "\\", "\u0301", "\u202e", "\u200b", "\u200d", "\ufeff", "\uffff", "e\u0301", "\U0001f468\u200d"]
    legal = [fill(unit) for unit in units]
    legal += ["../" * 42, "%s%n" * 32, "<script>", "\U000e0001", "PA_000000000000", "A\u030a", "\u212b", "\u00c5"]
    illegal = [fill(unit) + "xx" for unit in ("a" * 127, "\u0301", "\U0001f468")] + ["", "a\0b", "\x7f", "a\u0085b"]
    raw = [b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\u0000"', b"[]", b"null", b"1e400"]
    everything = [json.dumps(name).encode() for name in legal + illegal] + raw
    turn = itertools.count()

    async def visit(peer, index):
        name = everything[next(turn) % len(everything)]
        fields = b'{"type":"join","version":1,"room":"names","identity":%s,"automaticSubscription":false}'
        await peer.open()
        await peer.send(wire.framed(fields % name, wire.TEXT))
        await peer.send(named_publish(name))
        await asyncio.sleep(0.05)
        await peer.send(wire.text(type_="leave", reason="\u202e" * 500))
        await asyncio.wait_for(peer.over.wait(), 1)

    await asyncio.gather(audience(target, "names", 20), persist(target, 32, visit))


def named_publish(name):
    """A `publish` with a name that is JSON already."""
    fields = b'"requestId":2,"name":%s,"kind":"video","source":%s,"codec":"vp8","width":1,"height":1,"frameRate":1'
    return wire.framed(b'{"type":"publish",' + fields % (name, name) + b"}", wire.TEXT)
