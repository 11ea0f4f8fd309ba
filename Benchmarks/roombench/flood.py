"""The table of the kinds of floods, and what docs/protocol.md says that each is answered."""

import dataclasses

from .peers import CUT_OFF

FLOODS = {}
# What any peer gets that does not take the close after a fatal error in time (docs/protocol.md, sections 2.2 and 12).
ALWAYS_ALLOWED = frozenset([CUT_OFF, "close 1008"])


@dataclasses.dataclass(frozen=True)
class Flood:
    """A kind of flood.

    `run` is an endless coroutine that takes a `Target`.
    `expected` are the answers of which each must come, `allowed` further ones that may. `turns` is how much longer than
    others it must last for its answer to come, which takes `patience` seconds.
    """

    run: object
    expected: frozenset
    allowed: frozenset
    turns: int
    patience: float


def flood(name, expected=(), allowed=(), turns=1, patience=4.0):
    """Enters a coroutine into the table."""

    def enter(run):
        FLOODS[name] = Flood(run, frozenset(expected), frozenset(allowed) | ALWAYS_ALLOWED, turns, patience)
        return run

    return enter
