"""Floods of media: packets, frames, tracks and acknowledgements."""

import asyncio
import itertools
import random

from . import batches, wire
from .flood import flood
from .peers import CUT_OFF, STILL_CONNECTED, Owner, audience, persist, publish, trickle


async def media(target, name, batch, peers=8):
    """Publishers that pour a batch into a room with two readers, for as long as they are let."""

    async def visit(peer, index):
        await peer.enter(name, f"publisher-{index}")
        own = batch.copy()
        own.address((await peer.publish("track"))["alias"])
        await peer.pour(own.numbered())

    await asyncio.gather(audience(target, name, 2), persist(target, peers, visit))


@flood("1-byte chunks", ["4400 fatal"], ["4429 fatal"])
async def one_byte_chunks(target):
    """Frames cut into packets of one byte."""
    await media(target, "chunks", batches.one_byte_chunks())


@flood("tiny frames", ["4429 fatal"])
async def tiny_frames(target):
    """Whole frames of one byte, as fast as they go."""
    await media(target, "tiny", batches.tiny_frames())


@flood("maximal frames", ["4429 fatal"])
async def maximal_frames(target):
    """Keyframes of 4 MiB, as fast as they go."""
    await media(target, "maximal", batches.maximal_frames(), peers=4)


@flood("abandoned frames", ["4429 fatal"])
async def abandoned_frames(target):
    """Keyframes that are begun and never finished."""
    await media(target, "abandoned", batches.abandoned_frames())


@flood("16 tracks each", ["4429 refused"], ["4429 fatal"])
async def tracks(target):
    """As many tracks as are allowed, one more, and media on all, in the way of good publishers."""
    room, template = "tracks", batches.small_frames()

    async def visit(peer, index):
        await peer.enter(room, f"publisher-{index}")
        sources = []
        for number in range(16):
            batch = template.copy()
            batch.address((await peer.publish(f"{number}"))["alias"])
            sources.append(batch.numbered())
        await peer.send(publish("one more"))
        while not peer.over.is_set():
            for source in sources:
                await peer.send(bytes(next(source)))
            await asyncio.sleep(0.1)

    await asyncio.gather(audience(target, room, 4), persist(target, 20, visit))


@flood("peers that never read", [CUT_OFF], [STILL_CONNECTED, "4414 fatal", "close 4414"], turns=8, patience=49)
async def deaf_peers(target):
    """Subscribers that take nothing: silent ones, which are cut off, and such as give signs of life."""
    room, owner = "deaf", Owner(target, "deaf", frame_bytes=30_000)
    pong = wire.framed(b".", wire.PONG)

    async def visit(peer, index):
        await peer.shake_hands()
        await peer.send(wire.join(room, f"deaf-{index}"))
        try:
            if index % 2:
                await asyncio.sleep(3600)
            await trickle(peer, itertools.repeat(pong + wire.text(type_="timeSync", clientTime=1) * 50))
        finally:
            peer.last_words()

    await asyncio.gather(owner.run(), persist(target, 100, visit))


@flood("acknowledgements that lie", ["4400 fatal", "4429 fatal"])
async def acknowledgements(target):
    """Acknowledgements of what was never sent, with times that go backwards; half of the peers cut some short."""
    noise = random.Random(1)
    ack = lambda: b"\x01\x01\x00\x30" + noise.randbytes(44)
    lies = b"".join(wire.framed(ack()) for _ in range(2000))
    room, owner = "acknowledgements", Owner(target, "acknowledgements")

    async def visit(peer, index):
        await peer.enter(room, f"peer-{index}", subscribing=True)
        await peer.pour(itertools.repeat(lies) if index % 2 else [lies[:5400] + wire.framed(ack()[:40])])

    await asyncio.gather(owner.run(), persist(target, 8, visit))
