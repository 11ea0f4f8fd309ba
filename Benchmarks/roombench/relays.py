"""The relays that are compared: how each is started, fed, and greeted by a subscriber."""

import json
import pathlib
import shutil
import socket
import struct
import tempfile
import time

from . import wire
from .programs import Process, helper, start_server

NUMBER = "{NUMBER}"
NCHAN_MODULE = "/usr/lib/nginx/modules/ngx_nchan_module.so"


def free_port():
    """A port that nobody listens at for now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def connect_soon(port):
    """Connects to a program that has just been started."""
    for _ in range(100):
        try:
            return wire.connect(port)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise RuntimeError(f"nothing listens at port {port}")


def asks_for_keyframe(message):
    """Whether a server's message asks the publisher to begin with a keyframe.

    `layersWanted` names the layers in `layers`; servers before release 0.1 named them in `simulcastLayers`.
    """
    if message["type"] == "layersWanted":
        return bool(message.get("layers") or message.get("simulcastLayers"))
    return message["type"] == "keyframeRequest"


class RoomServer:
    """Ours."""

    name = "room-server"

    def __init__(self, programs, folder):
        self.process, self.port = start_server(programs)
        self.session = wire.RoomSession(self.port, "bench", subscribing=False)
        self.alias = self.session.publish(1280, 720, 30)

    def greeting(self):
        """What a subscriber says, before and after the server's answer."""
        return wire.handshake(self.port), wire.join("bench", NUMBER)

    def send(self, packets):
        """Publishes a frame's packets.

        Returns whether a keyframe is asked for.
        """
        is_asked = False
        for kind, payload in self.session.reader.drain():
            self.session.answer(kind, payload)
            is_asked = is_asked or kind == wire.TEXT and asks_for_keyframe(json.loads(payload))
        self.session.connection.sendall(b"".join(map(wire.framed, packets)))
        return is_asked


class BareRelay:
    """The floor: epoll and send(), and the bytes that room-server would send."""

    name = "bare relay"
    alias = 1

    def __init__(self, programs, folder):
        self.port = free_port()
        self.process = Process(helper("bare_relay"), self.port)
        self.connection = connect_soon(self.port)
        self.connection.sendall(b"P")

    def greeting(self):
        """A subscriber's first byte."""
        return b"S", b""

    def send(self, packets):
        """Sends a frame's packets, each with the header of a server's WebSocket frame."""
        messages = [wire.framed(packet, masked=False) for packet in packets]
        self.connection.sendall(b"".join(struct.pack(">I", len(message)) + message for message in messages))
        return False


class Nchan:
    """The peer: nginx with nchan, WebSocket in and out, one worker."""

    name = "nchan"
    alias = 1
    settings = """
        load_module {module};
        daemon off; master_process off; user root; worker_rlimit_nofile 20000;
        pid {folder}/pid; error_log {folder}/error.log;
        events {{ worker_connections 8192; }}
        http {{
            access_log off; tcp_nodelay on; client_max_body_size 4m; client_body_buffer_size 1m;
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
            uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
            nchan_shared_memory_size 256M;
            server {{
                listen 127.0.0.1:{port};
                location = /publish {{
                    nchan_publisher websocket; nchan_channel_id room;
                    nchan_message_buffer_length 30; nchan_message_timeout 5s;
                }}
                location = /subscribe {{
                    nchan_subscriber websocket; nchan_channel_id room; nchan_subscriber_first_message newest;
                }}
            }}
        }}
        """

    def __init__(self, programs, folder):
        self.port = free_port()
        path = pathlib.Path(folder) / "nginx.conf"
        path.write_text(self.settings.format(module=NCHAN_MODULE, folder=folder, port=self.port))
        self.process = Process("nginx", "-p", folder, "-c", path)
        self.connection = connect_soon(self.port)
        self.connection.sendall(wire.handshake(self.port, "/publish", None))
        self.reader = wire.MessageReader(self.connection)
        self.reader.skip_http()

    @staticmethod
    def is_present():
        """Whether nginx and the module are installed."""
        return shutil.which("nginx") is not None and pathlib.Path(NCHAN_MODULE).exists()

    def greeting(self):
        """A WebSocket handshake is all."""
        return wire.handshake(self.port, "/subscribe", None), b""

    def send(self, packets):
        """Publishes a frame's packets; what nchan reports of each is thrown away."""
        self.reader.drain()
        self.connection.sendall(b"".join(map(wire.framed, packets)))
        return False


def relays():
    """The relays that can be measured here."""
    return [RoomServer, BareRelay] + ([Nchan] if Nchan.is_present() else [])


class Running:
    """A relay that runs; ended, with its folder, with the `with` block."""

    def __init__(self, kind, programs):
        self.folder = tempfile.TemporaryDirectory(prefix="roombench-")
        self.relay = kind(programs, self.folder.name)

    def __enter__(self):
        return self.relay

    def __exit__(self, *_):
        self.relay.process.stop()
        self.folder.cleanup()
