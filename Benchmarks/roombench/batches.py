"""Floods of media packets as byte strings that are built once and renumbered in place."""

import array
import random
import sys

from . import wire

HEADER_BYTES = wire.HEADER.size
ALIAS_OFFSET, NUMBER_OFFSET = 8, 12


class Batch:
    """Packets of one length, each in its WebSocket frame, one after the other in one byte string."""

    def __init__(self, packets, frame_numbers):
        """`packets` have no alias and no number yet; `frame_numbers` count from 0, one for each packet."""
        frames = [wire.framed(packet) for packet in packets]
        self.stride = len(frames[0])
        if any(len(frame) != self.stride for frame in frames):
            raise ValueError("the packets of a batch are of one length")
        self.start = self.stride - len(packets[0])
        self.bytes = bytearray(b"".join(frames))
        self.count = len(frames)
        self.frame_numbers = array.array("I", frame_numbers)
        self.frame_count = self.frame_numbers[-1] + 1

    def copy(self):
        """A batch of one's own: sending and renumbering may overlap otherwise."""
        other = Batch.__new__(Batch)
        other.__dict__ |= self.__dict__ | {"bytes": bytearray(self.bytes)}
        return other

    def address(self, alias):
        """Writes a track's alias into all packets."""
        for index, byte in enumerate(alias.to_bytes(4, "big")):
            self._fill(ALIAS_OFFSET + index, bytes([byte]) * self.count)

    def numbered(self):
        """The bytes again and again, for ever, with numbers that go on."""
        first = 0
        while True:
            numbers = array.array("I", [(number + first) & 0xFFFFFFFF for number in self.frame_numbers])
            if sys.byteorder == "little":
                numbers.byteswap()
            planes = numbers.tobytes()
            for index in range(4):
                self._fill(NUMBER_OFFSET + index, planes[index::4])
            first += self.frame_count
            yield self.bytes

    def _fill(self, offset, values):
        self.bytes[self.start + offset :: self.stride] = values


def packet(flags, frame_length, chunk_offset, payload):
    """A packet of temporal layer 0."""
    header = wire.HEADER.pack(1, 0, HEADER_BYTES, flags, 0, 0, 0, 0, 0, 1, frame_length, chunk_offset, 0, 0, 0, 0)
    return header + payload


def split_frame(frame_length, chunk_bytes, count):
    """The first `count` chunks of a frame."""
    noise = random.Random(1).randbytes(chunk_bytes)
    packets = []
    for index in range(count):
        flags = (wire.KEYFRAME | wire.FIRST) if index == 0 else wire.KEYFRAME
        if (index + 1) * chunk_bytes == frame_length:
            flags |= wire.LAST
        packets.append(packet(flags, frame_length, index * chunk_bytes, noise))
    return packets


def one_byte_chunks():
    """A frame of 8 KiB that comes a byte at a time."""
    return Batch(split_frame(8192, 1, 8192), [0] * 8192)


def tiny_frames():
    """Whole frames of one byte, the first a keyframe."""
    packets = [packet(wire.FIRST | wire.LAST | (wire.KEYFRAME if i == 0 else 0), 1, 0, b"\0") for i in range(4096)]
    return Batch(packets, range(4096))


def maximal_frames():
    """A keyframe of nearly 4 MiB, in full messages."""
    chunk = wire.MAXIMUM_MESSAGE - HEADER_BYTES
    count = 4_194_304 // chunk
    return Batch(split_frame(count * chunk, chunk, count), [0] * count)


def abandoned_frames():
    """First chunks of keyframes that never go on, as short as chunks may be."""
    noise = random.Random(1).randbytes(1024)
    return Batch([packet(wire.KEYFRAME | wire.FIRST, 100_000, 0, noise)] * 512, range(512))


def small_frames():
    """Whole frames of the length of a packet, the first a keyframe."""
    noise = random.Random(1).randbytes(1100)
    packets = [packet(wire.FIRST | wire.LAST | (wire.KEYFRAME if i == 0 else 0), 1100, 0, noise) for i in range(3)]
    return Batch(packets, range(3))
