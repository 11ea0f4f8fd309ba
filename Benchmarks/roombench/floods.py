"""Lets floods loose on a server of this machine: the child process of Benchmarks/hostile.

    python3 -m roombench.floods PORT SECONDS NAME…

All that are named run at once; the result is a line of JSON.
"""

import asyncio
import json
import os
import sys

from . import handshake_floods, malformed_floods, media_floods, signaling_floods  # noqa: F401, each fills the table
from .flood import FLOODS
from .peers import Target

# The clean room's programs are to be late because of the server, if at all, and not because a flood has their core.
NICENESS = 5


async def let_loose(port, seconds, names_of_floods):
    """Runs floods for some seconds; gives what was sent and answered, by flood."""
    targets = {name: Target(port) for name in names_of_floods}
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(FLOODS[name].run(target) for name, target in targets.items()))
    except TimeoutError:
        pass
    return {name: {"answers": target.answers, "counts": target.counts} for name, target in targets.items()}


def main():
    """Runs the floods of the command line."""
    port, seconds, *names_of_floods = sys.argv[1:]
    os.nice(NICENESS)
    print(json.dumps(asyncio.run(let_loose(int(port), float(seconds), names_of_floods))))


if __name__ == "__main__":
    main()
