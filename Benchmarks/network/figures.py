"""The figures of a run, as they stand in its line of JSON."""

import statistics

from roombench.report import percentile

from . import cases, metrics
from .metrics import Frame, Timeline, ms, stream_figures, worst


def figures(session, outcome):
    """All figures of a run that the case's elements give rise to."""
    case = session.case
    streams = {key: [Frame(row, outcome.begun) for row in rows] for key, rows in outcome.logs.items()}
    main = next(iter(streams))
    frames = streams[main]
    begin, end = case.flows[0].start or 0, case.seconds
    result = stream_figures(frames, begin, end)
    result |= counted_freezes(outcome, main)
    result["cpuLimitedSeconds"] = cpu_limited(outcome)
    result |= shares_of_link(session, outcome, streams, begin, end)
    step_list = metrics.steps(case, frames, outcome.link)
    if case.trace:
        step_list = metrics.outages(session.settings.traces / case.trace, case.seconds, frames)
    for name in ("recoverSeconds", "settleSeconds", "fullSizeSeconds", "liveSeconds", "liveAfterFirstOutSeconds"):
        if any(name in step for step in step_list):
            result[name] = worst(step_list, name)
    result |= first_seconds(case, frames)
    if step_list and not case.trace:
        result["p99OutsideMs"] = p99_outside(case, frames)
    if len(case.flows) > 1 or case.bulks:
        result |= fairness(session, outcome, streams)
    if len(case.flows) > 1:
        result |= others(case, streams)
    for viewer in case.flows[0].viewers:
        if viewer.stopped and len(case.flows[0].viewers) == 2:
            result |= stopped_reader(streams[(0, viewer.name)], viewer.stopped[1])
    if any(viewer.name == "slow" for viewer in case.flows[0].viewers):
        result |= healthy_beside_slow(case, streams)
    if any(viewer.name.startswith("late") for viewer in case.flows[0].viewers):
        result |= late_joiners(case, streams, outcome)
    if case.joiners:
        result |= joins(case, outcome, frames)
    if case.hog:
        result |= hog(case, frames)
    return result, step_list, streams


def shares_of_link(session, outcome, streams, begin, end):
    """What our flows used of min(capacity, cap): pictures alone, and with the headers of WebSocket, TCP and IP."""
    case = session.case
    crossing = {}  # the first stream of each flow that crosses the link
    for (flow, name), frames in streams.items():
        beside = any(viewer.name == name and viewer.beside_server for viewer in case.flows[flow].viewers)
        if not case.flows[flow].reverse and (session.where != "down" or not beside):
            crossing.setdefault(flow, frames)
    highest = min(case.cap, session.settings.need or case.cap) * max(1, len(crossing))
    is_both = session.where == "both"
    usable = metrics.usable_bits(outcome.samples, highest, begin, end, is_both) or highest * (end - begin)
    media = sum(Timeline(frames).bytes_between(begin, end) * 8 for frames in crossing.values())
    shares = {"useShare": round(media / usable, 3)}
    if outcome.samples:
        count = lambda name: span(outcome.samples, name, begin, end)
        shares["linkUse"] = round(sum(count(f"forward_out_{end}") for end in session.own_ends()) * 8 / usable, 3)
        directions = ("forward", "back") if is_both else ("forward",)
        shares["queueDrops"] = int(sum(count(f"{name}_dropped") for name in directions))
        shares["randomLosses"] = int(sum(count(f"{name}_lost") for name in directions))
        waits = [sample[f"{name}_wait_ms"] for sample in outcome.samples for name in directions]
        shares["waitMaxMs"] = round(max(waits), 1)
        back = session.near_index(0, "publisher" if session.where == "up" else next(iter(streams))[1])
        if not is_both and back is not None and (offered := count("back_capacity_bits")):
            shares["backShare"] = round(count(f"back_out_{back}") * 8 / offered, 4)
    return shares


def cpu_limited(outcome):
    """For how long the CPU limited what the publishers encoded: on a machine that is busy otherwise, a run is void."""
    summaries = [s for (role, *_), found in outcome.summaries.items() if role == "publisher" for s in found]
    layers = [layer for summary in summaries for layer in summary.get("layers", [])]
    return round(max((layer["qualityLimitationSeconds"]["cpu"] for layer in layers), default=0), 1)


def counted_freezes(outcome, main):
    """The freezes that the viewer's program counted itself, in all of its time."""
    tracks = [t for summary in outcome.summaries.get(("viewer", *main), []) for t in summary["tracks"]]
    return {"freezesByProgram": sum(track.get("freezeCount") or 0 for track in tracks)} if tracks else {}


def span(samples, name, begin, end):
    """How far a count went between two moments."""
    before = [sample[name] for sample in samples if sample["t"] <= begin + 0.01]
    until = [sample[name] for sample in samples if sample["t"] <= end + 0.01]
    return until[-1] - (before[-1] if before else 0)


def first_seconds(case, frames):
    """When a viewer first had the full rate of frames and the largest size, from the first frame's capture."""
    shown = sorted((frame for frame in frames if frame.is_shown), key=lambda frame: frame.decoded)
    if not shown:
        return {}
    width, height = map(int, case.size.split("x"))
    for index, frame in enumerate(shown):
        second = [other for other in shown[index:] if other.decoded < frame.decoded + 1]
        if len(second) >= 29 and (frame.size in (None, (width, height))):
            return {"fullAfterSeconds": round(frame.decoded - shown[0].captured, 3)}
    return {"fullAfterSeconds": None}


def p99_outside(case, frames):
    """The 99th percentile of all ages but those of the frames captured while the capacity was reduced."""
    full = max(rate for _, _, rate in metrics.phases(case))
    low = [(begin, end) for begin, end, rate in metrics.phases(case) if rate < full]
    ages = [
        frame.age
        for frame in frames
        if frame.is_shown and 0 <= frame.captured < case.seconds
        if not any(begin - 1 <= frame.captured < end for begin, end in low)
    ]
    return ms(percentile(ages, 0.99)) if ages else None


def fairness(session, outcome, streams):
    """How the flows share the link from `judged_from` on, and how the rate dips while others come."""
    case = session.case
    begin, end = case.judged_from, case.seconds
    timelines = {}
    for (flow, _), frames in streams.items():
        if not case.flows[flow].reverse:
            timelines.setdefault(flow, Timeline(frames))
    rates = [timeline.bytes_between(begin, end) * 8 / (end - begin) for timeline in timelines.values()]
    found = {"flowMbps": [round(rate / 1e6, 3) for rate in rates], "jain": metrics.jain(rates)}
    found["rateRatio"] = round(max(rates) / min(rates), 2) if min(rates, default=0) else None
    long = [bulk for bulk in case.bulks if not bulk.short]
    if long:
        fair = metrics.usable_bits(outcome.samples, float("inf"), begin, end) / (len(rates) + len(long))
        found["share"] = round(statistics.fmean(rates) * (end - begin) / fair, 3)
        found["shareOfCapacity"] = round(found["share"] / (len(rates) + len(long)), 3)
        index = session.near_index("bulk")
        found["bulkMbps"] = round(
            span(outcome.samples, f"forward_out_{index}", begin, end) * 8 / (end - begin) / 1e6, 3
        )
    if any(bulk.short for bulk in case.bulks):
        found |= dips(list(timelines.values()), begin, end)
    return found


def dips(timelines, begin, end):
    """The deepest fall of the sum below its median, as a share, and the longest time below half of it."""
    moments = [begin + tick / 10 for tick in range(int((end - begin) * 10))]
    rates = [sum(timeline.rate(moment) for timeline in timelines) for moment in moments]
    median = statistics.median(rates)
    longest = run = 0
    for rate in rates:
        run = run + 1 if rate < median / 2 else 0
        longest = max(longest, run)
    return {"dipShare": round(1 - min(rates) / median, 3) if median else None, "dipSeconds": longest / 10}


def others(case, streams):
    """The other flows of a case: the worst 95th percentile, and what a returning flow does."""
    p95 = []
    for (flow, _), frames in streams.items():
        begin = max(case.flows[flow].start or 0, case.judged_from)
        p95.append(stream_figures(frames, begin, case.seconds)["p95Ms"])
    found = {"worstP95Ms": None if None in p95 else max(p95)}
    for index, flow in enumerate(case.flows):
        starts = [viewer.start for viewer in flow.viewers if viewer.start is not None]
        if not starts or len(flow.viewers) < 2:
            continue
        back = starts[0]
        fair = cases.schedule(case.link.capacity)[-1][1] / len(case.flows)
        timeline = Timeline(streams[(index, flow.viewers[0].name)])
        reached = timeline.reaches(metrics.RECOVERED_SHARE * min(fair, case.cap), back + 1, case.seconds)
        found["resumedSeconds"] = metrics.after(back, reached)
        rest = [stream_figures(frames, back, back + 10)["maxMs"] for (f, _), frames in streams.items() if f != index]
        found["othersMaxMs"] = None if None in rest else max(rest)
    return found


def stopped_reader(frames, moment):
    """What a viewer gets that reads on after a pause: what is old by then, and when it is live again."""
    stale = [frame for frame in frames if frame.received >= moment - 0.05 and frame.captured < moment - 0.5]
    live = next(
        (f.decoded for f in sorted(frames, key=lambda f: f.decoded) if f.is_shown and f.captured >= moment), None
    )
    return {
        "staleBytes": sum(frame.bytes for frame in stale),
        "staleShown": sum(frame.is_shown for frame in stale),
        "liveAfterStopSeconds": metrics.after(moment, live),
    }


def healthy_beside_slow(case, streams):
    """How the healthy viewers fare before and after a slow one comes and another stops reading."""
    start = next(viewer.start for viewer in case.flows[0].viewers if viewer.name == "slow")
    healthy = [frames for (_, name), frames in streams.items() if name.startswith("healthy")]
    pooled = lambda begin, end: [
        f.age for frames in healthy for f in frames if f.is_shown and begin <= f.captured < end
    ]
    # The second before the slow one's start belongs to neither: its program starts then.
    before, since = pooled(2, start - 1), pooled(start + 2, case.seconds)
    numbers = [{f.number for f in frames if start <= f.captured < case.seconds - 1} for frames in healthy]
    every = set().union(*numbers)
    slow = stream_figures(streams[(0, "slow")], start + 5, case.seconds)
    return {
        "othersP95MovedMs": ms(percentile(since, 0.95) - percentile(before, 0.95)) if before and since else None,
        "othersMissing": sum(len(every - own) for own in numbers),
        "slowP95Ms": slow["p95Ms"],
        "slowFps": slow["fps"],
        "slowMbps": slow["mbps"],
        "slowFreezes": slow["freezes"],
    }


def late_joiners(case, streams, outcome):
    """What each late joiner needed for its first picture."""
    keyframes, ages, first = [], [], []
    for (flow, name), frames in streams.items():
        if not name.startswith("late"):
            continue
        shown = [frame for frame in frames if frame.is_shown]
        # The first keyframe is the cached one or the one that was asked for; what counts is how many follow.
        keyframes.append(max(0, sum(frame.is_key for frame in frames) - 1))
        ages.append(min(shown, key=lambda frame: frame.decoded).age if shown else None)
        tracks = [t for summary in outcome.summaries[("viewer", flow, name)] for t in summary["tracks"]]
        first += [track["firstFrameMs"] for track in tracks if track["firstFrameMs"] is not None]
    return {
        "lateKeyframesMost": max(keyframes),
        "lateFirstAgeP95Ms": None if None in ages else ms(percentile(ages, 0.95)),
        "lateFirstPictureMs": [round(value, 1) for value in first],
    }


def joins(case, outcome, frames):
    """The many joiners' first pictures, and the keyframes that they cost."""
    ages = [join["firstAgeMs"] for join in outcome.joins if join.get("firstAgeMs") is not None]
    times = [join["firstPictureMs"] for join in outcome.joins if join.get("firstPictureMs") is not None]
    window = (case.joiners.start, case.joiners.start + case.joiners.seconds + 5)
    return {
        "joinsWithPicture": len(ages),
        "joinFirstAgeP95Ms": percentile(ages, 0.95) if ages else None,
        "joinFirstPictureP50Ms": percentile(times, 0.5) if times else None,
        "joinFirstPictureP95Ms": percentile(times, 0.95) if times else None,
        "joinKeyframes": sum(frame.is_key and window[0] <= frame.captured < window[1] for frame in frames),
    }


def hog(case, frames):
    """When size or rate step down after the busy loop begins, and are back after it ends."""
    begin, end, _ = case.hog
    shown = sorted((frame for frame in frames if frame.is_shown), key=lambda frame: frame.decoded)
    full = max((frame.size for frame in shown if frame.size), default=None)
    rate = lambda moment: sum(moment - 1 <= frame.captured < moment for frame in shown)
    smaller = next((f.captured for f in shown if begin <= f.captured < end and full and f.size != full), None)
    slower = next((begin + t / 10 for t in range(10, int((end - begin) * 10)) if rate(begin + t / 10) < 25), None)
    stepped = min((moment for moment in (smaller, slower) if moment is not None), default=None)
    is_back = lambda moment: rate(moment) >= 28 and all(
        frame.size == full for frame in shown if moment - 1 <= frame.captured < moment
    )
    back = next((end + t / 10 for t in range(10, int((case.seconds - end) * 10)) if is_back(end + t / 10)), None)
    return {"hogStepSeconds": metrics.after(begin, stepped), "hogBackSeconds": metrics.after(end, back)}
