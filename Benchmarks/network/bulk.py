#!/usr/bin/env python3
"""TCP without pictures, for the other end of a bottleneck; started by session.py in a network namespace.

bulk.py sink PORT                   takes what comes, and says at the end how much that was
bulk.py long ADDRESS PORT SEED      sends as fast as it can
bulk.py short ADDRESS PORT SEED     sends 30 to 50 kB, and again after a pause of 10 s on average
"""

import json
import random
import signal
import socket
import sys
import threading
import time


def sink(port):
    """Takes connections and counts their bytes until it is ended."""
    listener = socket.create_server(("0.0.0.0", port))
    counts = []

    def take(connection):
        index = len(counts)
        counts.append(0)
        while data := connection.recv(1 << 16):
            counts[index] += len(data)

    def end(*_):
        raise SystemExit

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    try:
        while True:
            threading.Thread(target=take, args=(listener.accept()[0],), daemon=True).start()
    finally:
        print(json.dumps({"event": "bulk", "bytes": sum(counts)}), flush=True)


def send(address, port, is_short, seed):
    """Sends until it is ended."""
    choice, block = random.Random(seed), bytes(1 << 15)
    while True:
        if is_short:
            time.sleep(choice.expovariate(0.1))
        with socket.create_connection((address, port)) as connection:
            if is_short:
                connection.sendall(bytes(choice.randrange(30_000, 50_000)))
                connection.shutdown(socket.SHUT_WR)
            while not is_short:
                connection.sendall(block)


if sys.argv[1] == "sink":
    sink(int(sys.argv[2]))
else:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    send(sys.argv[2], int(sys.argv[3]), sys.argv[1] == "short", int(sys.argv[4]))
