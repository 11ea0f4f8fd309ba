"""Floods of signaling, of joins, and of pings."""

import asyncio
import itertools
import random

from . import wire
from .flood import flood
from .peers import Owner, audience, persist, publish

CROWD = 200


async def signaling(target, blob, peers=8, room="signaling", identity="peer", subscribing=False):
    """Participants that send the same messages without end."""

    async def visit(peer, index):
        await peer.enter(room, f"{identity}-{index}", subscribing)
        await peer.pour(itertools.repeat(blob))

    await persist(target, peers, visit)


@flood("timeSync", ["4429 fatal"])
async def time_sync(target):
    """Questions for the time."""
    await signaling(target, wire.text(type_="timeSync", clientTime=412007113) * 1000)


async def about_a_track(target, room, messages):
    """Participants that send messages about somebody else's track without end."""
    owner = Owner(target, room)

    async def visit(peer, index):
        track = await owner.track
        blob = b"".join(wire.text(trackId=track, **message) for message in messages) * 500
        await peer.enter(room, f"peer-{index}", subscribing=index % 2 == 0)
        await peer.pour(itertools.repeat(blob))

    await asyncio.gather(owner.run(), audience(target, room, 20), persist(target, 8, visit))


@flood("subscribe, unsubscribe", ["4429 fatal"], ["4404 refused"])
async def subscriptions(target):
    """Subscribing and unsubscribing by turns."""
    await about_a_track(target, "subscriptions", [{"type_": "subscribe"}, {"type_": "unsubscribe"}])


@flood("keyframe requests", ["4429 fatal"], ["4404 refused"])
async def keyframe_requests(target):
    """Requests for keyframes without a need."""
    await about_a_track(target, "keyframes", [{"type_": "keyframeRequest"}])


@flood("publish, unpublish", ["4429 fatal"], ["4401 refused", "4429 refused"])
async def publications(target):
    """Publishing and unpublishing in a room of 200; half of the peers do not wait for answers."""
    room = "publications"
    blind = publish("one") * 500

    async def visit(peer, index):
        await peer.enter(room, f"publisher-{index}")
        if index % 4 < 2:
            await peer.pour(itertools.repeat(blind))
            return
        await peer.send(b"".join(publish(f"first-{n}") for n in range(16)))
        for number in itertools.count():
            track = (await peer.answer("published"))["track"]["id"]
            await peer.send(wire.text(type_="unpublish", trackId=track) + publish(f"{number}"))

    await asyncio.gather(audience(target, room, CROWD), persist(target, 8, visit))


@flood("enable, disable", ["4429 fatal"])
async def toggles(target):
    """Pausing and resuming a track in a room of 200."""
    room = "toggles"

    async def visit(peer, index):
        await peer.enter(room, f"publisher-{index}")
        track = (await peer.publish("track"))["id"]
        blob = wire.text(type_="disable", trackId=track) + wire.text(type_="enable", trackId=track)
        await peer.pour(itertools.repeat(blob * 500))

    await asyncio.gather(audience(target, room, CROWD), persist(target, 8, visit))


@flood("joins and leaves", ["close 1000"], ["4409 fatal", "4429 fatal"])
async def joins(target):
    """Joining and leaving as fast as possible, under new and under used names, in a room of 50 and in new ones."""
    leave = wire.text(type_="leave", reason="left")

    async def visit(peer, index):
        room = "joins" if index % 4 else f"joins-{random.getrandbits(32)}"
        identity = "used" if index % 3 == 0 else f"new-{random.getrandbits(32)}"
        await peer.open(f"/rooms/{room}")
        await peer.send(wire.join(room, identity) + leave)
        await peer.over.wait()

    await asyncio.gather(audience(target, "joins", 50), persist(target, 16, visit))


@flood("pings", [], ["4429 fatal", "close 1008"])
async def pings(target):
    """Pings of 125 bytes, each of which is to be answered, and pongs that nobody asked for."""
    ping = wire.framed(bytes(125), wire.PING) * 1000
    pong = wire.framed(bytes(125), wire.PONG) * 1000

    async def visit(peer, index):
        await peer.enter("pings", f"peer-{index}")
        await peer.pour(itertools.repeat(pong if index % 4 == 0 else ping))

    await persist(target, 8, visit)
