"""The cases as data: the link, who sends and watches, what else happens, and the figures that a run must reach."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Link:
    """The bottleneck: `capacity` is the direction of the pictures, `back` the other; the words are native/link.c's."""

    capacity: str
    back: str = "100M"
    delay: float = 50
    queue: str = "300ms"
    loss: float = 0
    jitter: float = 0


@dataclasses.dataclass(frozen=True)
class Viewer:
    """A subscriber; times in seconds of the schedule, without a start it joins before the schedule begins.

    Viewers of one flow and the same name are one stream, so that one who leaves and returns is judged as a whole.
    """

    name: str = "viewer"
    start: float | None = None
    stop: float | None = None
    beside_server: bool = False
    stopped: tuple | None = None


@dataclasses.dataclass(frozen=True)
class Flow:
    """A publisher and those who watch it, in a room of their own.

    With the link "up" it lies between publisher and server, with "down" between server and viewers; a reverse flow
    crosses it the other way. `delay` in ms, one way, stands for the link's.
    """

    viewers: tuple = (Viewer(),)
    start: float | None = None
    delay: float | None = None
    reverse: bool = False


@dataclasses.dataclass(frozen=True)
class Bulk:
    """TCP beside the pictures: one long download, or short transfers of 30 to 50 kB, 10 s apart on average."""

    start: float = 0
    stop: float | None = None
    short: bool = False


@dataclasses.dataclass(frozen=True)
class Joiners:
    """Participants who join within `seconds`, note their first picture and leave."""

    count: int
    start: float
    seconds: float = 1


@dataclasses.dataclass(frozen=True)
class Line:
    """A figure that a run must reach; with the link "down" 20 % less will do, unless the line is `firm`."""

    figure: str
    relation: str
    bound: float
    firm: bool = False

    def bound_for(self, where):
        """The bound with the tolerance of that side of the link."""
        slack = 0 if self.firm or where == "up" else 0.2
        return self.bound * (1 + slack if self.relation in ("<=", "<") else 1 - slack)

    def is_met(self, value, where):
        """Whether a value reaches the bound; a figure that is not there never does."""
        if value is None:
            return False
        bound = self.bound_for(where)
        return {"<=": value <= bound, "<": value < bound, ">=": value >= bound, ">": value > bound}[self.relation]


@dataclasses.dataclass(frozen=True)
class Case:
    """One row of what must be shown."""

    name: str
    title: str
    seconds: float
    link: Link | None
    cap: int  # the publisher's --max-bitrate, bits a second
    size: str = "1280x720"
    flows: tuple = (Flow(),)
    bulks: tuple = ()
    joiners: Joiners | None = None
    hog: tuple | None = None  # busy loops on the publisher's one core: from, to, how many
    congestion_control: str = "cubic"
    judged_from: float = 0  # seconds; the shares of the flows are taken from here on
    where: tuple = ("up", "down")
    lines: tuple = ()

    @property
    def trace(self):
        """The name of the trace that it plays; None if it plays none."""
        capacity = self.link.capacity if self.link else ""
        return capacity.removeprefix("trace:") if capacity.startswith("trace:") else None

    @property
    def places(self):
        """Where the link can be: `where`, and "both" if all pictures go the same way."""
        is_one_way = self.link and not any(flow.reverse for flow in self.flows)
        return (*self.where, "both") if is_one_way and len(self.where) > 1 else self.where

    def shortened(self, factor):
        """The same case with all its times multiplied, and without the lines, which hold for the whole."""
        moved = lambda value: value if value is None else tuple(v * factor for v in value)
        at = lambda value: value if value is None else value * factor
        viewer = lambda v: dataclasses.replace(v, start=at(v.start), stop=at(v.stop), stopped=moved(v.stopped))
        link = self.link and dataclasses.replace(
            self.link, capacity=scaled(self.link.capacity, factor), back=scaled(self.link.back, factor)
        )
        return dataclasses.replace(
            self,
            seconds=self.seconds * factor,
            link=link,
            flows=tuple(
                dataclasses.replace(f, start=at(f.start), viewers=tuple(map(viewer, f.viewers))) for f in self.flows
            ),
            bulks=tuple(dataclasses.replace(b, start=at(b.start), stop=at(b.stop)) for b in self.bulks),
            joiners=self.joiners and dataclasses.replace(self.joiners, start=at(self.joiners.start)),
            hog=self.hog and (*moved(self.hog[:2]), self.hog[2]),
            judged_from=self.judged_from * factor,
            lines=(),
        )


def schedule(text):
    """A schedule's entries as (seconds, bits a second); empty for a trace and a free link."""
    if ":" not in text or text.startswith("trace:"):
        return []
    entries = (entry.split(":") for entry in text.split(","))
    return [(float(at), 0 if rate == "drop" else bits(rate)) for at, rate in entries]


def bits(text):
    """Bits a second of 800k or 2.5M."""
    return float(text[:-1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[text[-1]] if text[-1] in "kMG" else float(text)


def scaled(capacity, factor):
    """A schedule with its times multiplied."""
    if ":" not in capacity or capacity.startswith("trace:"):
        return capacity
    entries = (entry.split(":") for entry in capacity.split(","))
    return ",".join(f"{float(at) * factor:g}:{rate}" for at, rate in entries)


def rfc(number, title, seconds, capacity, lines, **values):
    """A case of RFC 8867: 50 ms one way, 300 ms drop-tail, media of at most 1500 kbit/s."""
    link = Link(capacity, **{name: values.pop(name) for name in ("back",) if name in values})
    return Case(
        f"rfc-5.{number}", f"RFC 8867, 5.{number}: {title}", seconds, link, 1_500_000, "640x480", lines=lines, **values
    )


def loss(percent, control):
    """Random loss at 2 Mbit/s and 25 ms."""
    return Case(
        f"loss-{percent:g}-{control}",
        f"random loss of {percent:g} %, {control}",
        60,
        Link("0:2M", delay=25, loss=percent / 100),
        1_700_000,
        "640x480",
        congestion_control=control,
        lines=(Line("linkUse", ">=", 0.5), Line("p95Ms", "<=", 250), Line("maxMs", "<=", 1000)),
    )


def outage(name, title, capacity, live, p99=250):
    """A hole of some seconds in 100 s of 2 Mbit/s; `p99` in ms, `live` is the line for the time after it."""
    return Case(
        name,
        title,
        100,
        Link(capacity),
        2_000_000,
        lines=(
            Line("p99Ms", "<=", p99),
            Line("recoverSeconds", "<=", 10),
            Line("fullSizeSeconds", "<=", 10),
            Line(*live),
        ),
    )


def loopback(size, cap):
    """No link at all."""
    lines = (Line("fullAfterSeconds", "<=", 2), Line("fps", ">=", 29, firm=True), Line("freezes", "<=", 0))
    return Case(f"loopback-{size}", f"clean loopback, {size}", 30, None, cap, size, where=("up",), lines=lines)


def picture_quality(size, cap):
    """One viewer and no limit but the cap; it needs a clip of that size."""
    lines = (Line("belowReferenceDb", "<=", 0.2), Line("fps", ">=", 29), Line("sizeChanges", "<=", 0))
    return Case(f"quality-{size}", f"no limit but the cap, {size}", 40, None, cap, size, where=("up",), lines=lines)


def trace(name, file, title, *lines):
    """A recorded cellular uplink, judged against libwebrtc on the same link; traces are no part of the project."""
    return Case(name, title, 120, Link(f"trace:{file}", delay=20), 1_700_000, "640x480", lines=lines)


def one_of_twenty(name, title, cap, size):
    """A room in which one viewer has a thin link and another one reads nothing."""
    lines = (
        Line("othersP95MovedMs", "<", 5, firm=True),
        Line("othersMissing", "<=", 0),
        Line("slowP95Ms", "<=", 400, firm=True),
    )
    return Case(name, title, 60, Link("0:200k"), cap, size, flows=(Flow(viewers=TWENTY),), where=("down",), lines=lines)


SMALLEST_FRAME_MS = 60  # 1,500 bytes at 200 kbit/s
THREE = (Flow(), Flow(start=20), Flow(start=40))
SOLO = Viewer(beside_server=True, name="beside")
# Every 11 s somebody comes to a keyframe that is old; every other time another viewer beside the server has just had
# one sent, and left again.
LATE = (
    SOLO,
    *(Viewer(name=f"late {i}", start=5 + 11 * i, stop=13 + 11 * i) for i in range(5)),
    *(Viewer(name=f"helper {i}", start=3.5 + 11 * i, stop=4.8 + 11 * i, beside_server=True) for i in (1, 3)),
)
TWENTY = (
    *(Viewer(beside_server=True, name=f"healthy {i}") for i in range(18)),
    Viewer(name="slow", start=20),
    Viewer(beside_server=True, name="not reading", stopped=(20, 60)),
)

STEP = Case(
    "step",
    "step 2.5 -> 0.5 -> 2.5 Mbit/s",
    100,
    Link("0:2.5M,30:500k,60:2.5M"),
    2_500_000,
    lines=(
        Line("p50Ms", "<=", 130),
        Line("p95Ms", "<=", 200),
        Line("maxMs", "<", 1000),
        Line("frozenSeconds", "<", 0.5),
        Line("linkUse", ">=", 0.85),
        Line("recoverSeconds", "<", 8),
        Line("fullSizeSeconds", "<", 12),
    ),
)

ALL = [
    STEP,
    # BBR holds back what is sent for 0.2 s and a round trip every 10 s, to measure the round trip.
    dataclasses.replace(STEP, name="step-bbr", title=f"{STEP.title}, bbr", congestion_control="bbr"),
    rfc(
        1,
        "variable capacity, one flow",
        100,
        "0:1M,40:2.5M,60:600k,80:1M",
        (
            Line("linkUse", ">=", 0.85),
            Line("p95Ms", "<=", 180),
            Line("settleSeconds", "<=", 2),
            Line("freezes", "<=", 2),
        ),
    ),
    rfc(
        2,
        "variable capacity, two flows",
        125,
        "0:4M,25:2M,50:3.5M,75:1M,100:2M",
        (Line("jain", ">=", 0.9), Line("worstP95Ms", "<=", 250)),
        flows=(Flow(), Flow()),
        judged_from=15,
    ),
    rfc(
        3,
        "congested feedback",
        100,
        "0:2M,20:1M,40:500k,60:2M",
        (Line("useShare", ">=", 0.6), Line("backShare", "<=", 0.05)),
        back="0:2M,35:800k,70:2M",
        flows=(Flow(), Flow(reverse=True)),
    ),
    rfc(4, "three flows", 120, "0:3.5M", (Line("jain", ">=", 0.9),), flows=THREE, judged_from=80),
    rfc(
        5,
        "round-trip fairness",
        300,
        "0:4M",
        (Line("rateRatio", "<=", 3),),
        flows=tuple(Flow(start=i * 10 or None, delay=d) for i, d in enumerate((10, 25, 50, 100, 150))),
        judged_from=100,
    ),
    rfc(
        6,
        "beside a long TCP flow",
        120,
        "0:2M",
        (Line("share", ">=", 0.25),),
        flows=(Flow(start=5),),
        bulks=(Bulk(),),
        judged_from=20,
    ),
    rfc(
        7,
        "beside short TCP flows",
        300,
        "0:2M",
        (Line("dipShare", "<", 0.5), Line("dipSeconds", "<", 5)),
        flows=(Flow(), Flow()),
        bulks=tuple(Bulk(short=True) for _ in range(10)),
        judged_from=20,
    ),
    rfc(
        8,
        "pause and resume",
        120,
        "0:3.5M",
        (Line("resumedSeconds", "<=", 10), Line("othersMaxMs", "<=", 300)),
        flows=(Flow(), Flow(), Flow(viewers=(Viewer(stop=40), Viewer(start=60)))),
        judged_from=80,
    ),
    trace(
        "verizon",
        "Verizon-LTE-short.up",
        "Verizon LTE, uplink",
        Line("mbps", ">", 0.79),
        Line("p95Ms", "<", 181, firm=True),
        Line("freezes", "<=", 6, firm=True),
    ),
    trace(
        "att",
        "ATT-LTE-driving-2016.up",
        "AT&T LTE driving, uplink",
        Line("mbps", ">", 0.67),
        Line("signalP95Ms", "<", 2300, firm=True),
        Line("liveSeconds", "<=", 0.5),
    ),
    trace(
        "umts",
        "TMobile-UMTS-driving.up",
        "T-Mobile UMTS, uplink",
        Line("mbps", ">", 0.16),
        Line("signalP95Ms", "<", 9400, firm=True),
    ),
    loopback("640x480", 1_700_000),
    loopback("1280x720", 2_500_000),
    Case(
        "wide",
        "a link of 50 Mbit/s and 5 ms",
        30,
        Link("0:50M", delay=5),
        2_500_000,
        lines=(Line("fullAfterSeconds", "<=", 2), Line("sizeChanges", "<=", 0), Line("freezes", "<=", 0)),
    ),
    *(loss(percent, control) for percent in (0.1, 1) for control in ("cubic", "bbr")),
    outage(
        "tenth",
        "a tenth of the capacity for 10 s",
        "0:2M,40:200k,50:2M",
        ("settleSeconds", "<=", 2),
        250 + SMALLEST_FRAME_MS,
    ),
    outage("outage-kept", "3 s without capacity, the queue kept", "0:2M,40:0,43:2M", ("liveSeconds", "<=", 0.5)),
    outage(
        "outage-dropped",
        "3 s without capacity, the queue dropped",
        "0:2M,40:drop,43:2M",
        ("liveAfterFirstOutSeconds", "<=", 0.5),
    ),
    Case(
        "two",
        "two of ours on 3.5 Mbit/s",
        90,
        Link("0:3.5M"),
        2_500_000,
        "320x240",
        flows=(Flow(), Flow(start=10)),
        judged_from=30,
        lines=(Line("jain", ">=", 0.95), Line("worstP95Ms", "<=", 200)),
    ),
    Case(
        "bulk",
        "one of ours beside a bulk download on 3.5 Mbit/s",
        90,
        Link("0:3.5M"),
        2_500_000,
        "320x240",
        bulks=(Bulk(start=10),),
        judged_from=30,
        lines=(Line("share", ">=", 0.3), Line("p95Ms", "<=", 600), Line("maxMs", "<=", 2000)),
    ),
    Case(
        "stopped-reader",
        # The server waits 45 s for a program that stands still (docs/protocol.md, section 2).
        "a viewer stops reading for 30 s",
        70,
        Link("0:50M", delay=5),
        2_000_000,
        flows=(Flow(viewers=(Viewer(stopped=(20, 50)), SOLO)),),
        where=("down",),
        lines=(
            Line("staleBytes", "<=", 200_000, firm=True),
            Line("staleShown", "<=", 0),
            Line("liveAfterStopSeconds", "<=", 0.3, firm=True),
        ),
    ),
    one_of_twenty("one-of-twenty", "20 viewers, one at 200 kbit/s and one not reading", 1_200_000, "640x480"),
    one_of_twenty("one-of-twenty-small", "the same at a size that has no smaller encoding", 800_000, "320x240"),
    Case(
        "late-joiner",
        "late joiners on a link of 1.2 times the rate",
        60,
        Link("0:1200k"),
        1_000_000,
        "640x480",
        flows=(Flow(viewers=LATE),),
        where=("down",),
        lines=(Line("lateKeyframesMost", "<=", 1), Line("lateFirstAgeP95Ms", "<=", 250, firm=True)),
    ),
    Case(
        "hundred-joins",
        "100 joins in 1 s",
        30,
        Link("0:200M", delay=5),
        1_000_000,
        "640x480",
        flows=(Flow(viewers=(SOLO,)),),
        joiners=Joiners(100, 10),
        where=("down",),
        lines=(
            Line("joinKeyframes", "<=", 1),
            Line("joinsWithPicture", ">=", 100, firm=True),
            Line("joinFirstAgeP95Ms", "<=", 110, firm=True),
        ),
    ),
    Case(
        "hog",
        "the publisher's core shared with busy loops",
        70,
        None,
        2_500_000,
        hog=(20, 50, 8),
        where=("up",),
        lines=(Line("hogStepSeconds", "<=", 10), Line("hogBackSeconds", "<=", 15), Line("p99Ms", "<=", 100)),
    ),
    picture_quality("640x480", 800_000),
    picture_quality("1280x720", 2_000_000),
]
QUICK = ("step", "rfc-5.1", "outage-kept", "bulk", "stopped-reader", "hundred-joins")
