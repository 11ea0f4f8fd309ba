"""Figures of a run from what its programs left: pure functions over frame logs and the link's samples.

Times are seconds of the schedule unless a name says otherwise; ages are from capture to decoded.
"""

import bisect
import math
import statistics

from roombench.report import percentile

from . import cases

SIGNAL_HZ = 60
# A gap between shown frames is a freeze if it is at least three times the mean of the last 30 gaps, itself included, and
# at least 150 ms longer; among fewer than 5 gaps none is. This is libwebrtc's definition, and FreezeDetector's in Sources.
FREEZE_GAPS, FREEZE_FEWEST, FREEZE_FACTOR, FREEZE_MARGIN = 30, 5, 3, 0.150
RECOVERED_SHARE = 0.76  # 1.9 of 2.5 Mbit/s
SATISFIED_SHARE = 0.8
LATE = 0.200
RATE_WINDOW = 1.0
SETTLED = 2.0  # seconds
SETTLING = 5.0
TRACE_OUTAGE = 1.0  # seconds without an opportunity
TRACE_RETURN = 0.5  # a return that is shorter is part of the outage


class Frame:
    """A line of the frame log, in seconds of the schedule."""

    __slots__ = ("captured", "received", "decoded", "bytes", "is_key", "size", "is_shown", "number")

    def __init__(self, row, begun):
        self.captured = row["captured"] / 1e6 - begun
        self.received = row["received"] / 1e6 - begun
        decoded = row.get("decoded")
        self.decoded = self.received if decoded is None else decoded / 1e6 - begun
        self.bytes, self.is_key, self.number = row["bytes"], bool(row.get("key")), row["number"]
        self.size = (row["width"], row["height"]) if row.get("width") else None
        self.is_shown = decoded is not None and row.get("shown", True) and not row.get("catchUp")

    @property
    def age(self):
        """From capture to decoded."""
        return self.decoded - self.captured


def ms(seconds):
    """Milliseconds with one decimal; None of None."""
    return None if seconds is None else round(seconds * 1e3, 1)


def rounded(value, digits=3):
    """The value with that many decimals; None of None."""
    return None if value is None else round(value, digits)


def signal_delays(frames, start, end):
    """The age of the newest frame on the screen, 60 times a second; before the first frame there is none."""
    ordered = sorted(frames, key=lambda frame: frame.decoded)
    delays, index, newest = [], 0, None
    for tick in range(int((end - start) * SIGNAL_HZ)):
        moment = start + tick / SIGNAL_HZ
        while index < len(ordered) and ordered[index].decoded <= moment:
            captured = ordered[index].captured
            newest = captured if newest is None else max(newest, captured)
            index += 1
        if newest is not None:
            delays.append(moment - newest)
    return delays


def freezes(moments, end):
    """The freezes as (begin, seconds); one that lasts at the end counts up to there."""
    found, gaps = [], []
    for before, after in zip(moments, [*moments[1:], end]):
        gaps = [*gaps[1 - FREEZE_GAPS :], after - before]
        mean = statistics.fmean(gaps)
        if len(gaps) >= FREEZE_FEWEST and gaps[-1] >= max(FREEZE_FACTOR * mean, mean + FREEZE_MARGIN):
            found.append((before, gaps[-1]))
    return found


def freezes_by_overall_mean(moments):
    """The same with the mean of the whole run, as studies of peers count them: comparable between slow streams."""
    gaps = [after - before for before, after in zip(moments, moments[1:])]
    if not gaps:
        return []
    mean = statistics.fmean(gaps)
    return [gap for gap in gaps if gap > max(FREEZE_FACTOR * mean, mean + FREEZE_MARGIN)]


def stream_figures(frames, start, end):
    """The figures of one viewer's stream between two moments."""
    shown = [frame for frame in frames if frame.is_shown]
    captured_in = [frame for frame in shown if start <= frame.captured < end]
    ages = [frame.age for frame in captured_in]
    moments = sorted(frame.decoded for frame in shown if start <= frame.decoded < end)
    signals = signal_delays([frame for frame in shown if frame.decoded < end], start, end)
    frozen, by_mean = freezes(moments, end), freezes_by_overall_mean(moments)
    gaps = [after - before for before, after in zip(moments, moments[1:])]
    received = [frame for frame in frames if start <= frame.received < end]
    sizes = [frame.size for frame in captured_in if frame.size]
    quantile = lambda values, share: ms(percentile(values, share)) if values else None
    return {
        "mbps": round(sum(frame.bytes for frame in received) * 8 / (end - start) / 1e6, 4),
        "p50Ms": quantile(ages, 0.5),
        "p95Ms": quantile(ages, 0.95),
        "p99Ms": quantile(ages, 0.99),
        "maxMs": ms(max(ages, default=None)),
        "signalMeanMs": ms(statistics.fmean(signals)) if signals else None,
        "signalP95Ms": quantile(signals, 0.95),
        "signalMaxMs": ms(max(signals, default=None)),
        "freezes": len(frozen),
        "frozenSeconds": round(sum(gap for _, gap in frozen), 2),
        "freezesByMean": len(by_mean),
        "frozenByMeanSeconds": round(sum(by_mean), 2),
        "longestGapMs": ms(max(gaps, default=None)),
        "framesShown": len(captured_in),
        "fps": round(len(moments) / (end - start), 2),
        "harmonicFps": round(sum(gaps) / sum(gap * gap for gap in gaps), 2) if gaps else None,
        "keyframes": sum(frame.is_key for frame in received),
        "sizeChanges": sum(a != b for a, b in zip(sizes, sizes[1:])) if sizes else None,
    }


class Timeline:
    """Rate over a sliding second, from the frames' arrival."""

    def __init__(self, frames):
        ordered = sorted(frames, key=lambda frame: frame.received)
        self.moments = [frame.received for frame in ordered]
        self.sums = [0]
        for frame in ordered:
            self.sums.append(self.sums[-1] + frame.bytes)

    def bytes_between(self, start, end):
        """The bytes that came from `start` up to `end`."""
        return self.sums[bisect.bisect_left(self.moments, end)] - self.sums[bisect.bisect_left(self.moments, start)]

    def rate(self, moment):
        """Bits a second over the last second."""
        return self.bytes_between(moment - RATE_WINDOW, moment) * 8 / RATE_WINDOW

    def reaches(self, rate, start, end):
        """The first moment at which the rate is reached, by tenths of a second; None if it is not."""
        for tick in range(int((end - start) * 10) + 1):
            if self.rate(start + tick / 10) >= rate:
                return start + tick / 10
        return None


def phases(case):
    """The schedule as (begin, end, bits a second)."""
    entries = cases.schedule(case.link.capacity) if case.link else []
    ends = [at for at, _ in entries[1:]] + [case.seconds]
    return [(at, end, rate) for (at, rate), end in zip(entries, ends) if at < case.seconds]


def steps(case, frames, link):
    """What happens after each change of the capacity."""
    timeline, found, all_phases = Timeline(frames), [], phases(case)
    shown = sorted((frame for frame in frames if frame.is_shown), key=lambda frame: frame.decoded)
    largest = max((frame.size for frame in shown if frame.size), default=None)
    changes = {change["at"]: change for change in (link or {}).get("down", {}).get("changes", []) if change["at"]}
    changes |= {change["at"]: change for change in (link or {}).get("up", {}).get("changes", [])}
    for (_, _, before), (begin, end, rate) in zip(all_phases, all_phases[1:]):
        step = {"at": begin, "from": before, "to": rate}
        inside = [frame for frame in shown if begin <= frame.decoded < end]
        late = [frame.decoded for frame in inside if frame.age > LATE]
        step |= {"lateFrames": len(late), "settleSeconds": rounded(settled(late, begin) - begin)}
        if rate > before:
            limit = min(rate, case.cap)
            before_fall = rate_before(timeline, all_phases, begin, rate)
            # A source that needs clearly less than the link has comes back to that.
            target = RECOVERED_SHARE * (limit if before_fall > SATISFIED_SHARE * limit else before_fall)
            step["recoverSeconds"] = after(begin, timeline.reaches(target, begin, end))
            full = next((frame.decoded for frame in inside if frame.size == largest), None) if largest else None
            step["fullSizeSeconds"] = after(begin, full)
        if before == 0:
            live = next((frame.decoded for frame in inside if frame.captured >= begin), None)
            step["liveSeconds"] = after(begin, live)
            first_out = changes.get(round(begin, 3), {}).get("firstOut")
            step["liveAfterFirstOutSeconds"] = None if first_out is None else after(first_out, live)
        found.append(step)
    return found


def settled(late, begin):
    """When `SETTLED` seconds without a late picture begin; `late` are the moments of late ones."""
    moment = begin
    for other in sorted(late):
        if other - moment > SETTLED:
            break
        moment = other
    return moment


def rate_before(timeline, all_phases, moment, capacity):
    """The best mean rate in an earlier phase of no less capacity: a source may need less than the link has."""
    rates = [
        timeline.bytes_between(begin + SETTLING, end) * 8 / (end - begin - SETTLING)
        for begin, end, rate in all_phases
        if end <= moment and rate >= capacity and end - begin > 2 * SETTLING
    ]
    return max(rates, default=math.inf)


def after(begin, moment):
    """Seconds from `begin`; None if it never came."""
    return None if moment is None else round(moment - begin, 3)


def trace_outages(path, seconds):
    """The times without an opportunity of a trace, as (begin, end)."""
    times = [int(line) / 1e3 for line in path.read_text().split()]
    period, found, previous, turn = times[-1], [], 0, 0
    while turn * period < seconds:
        for moment in (turn * period + time for time in times):
            if moment - previous >= TRACE_OUTAGE and moment < seconds:
                is_same = found and previous - found[-1][1] < TRACE_RETURN
                found.append((found.pop()[0] if is_same else previous, moment))
            previous = moment
        turn += 1
    return found


def outages(path, seconds, frames):
    """How soon a picture from after each outage of a trace is shown."""
    shown = sorted((frame for frame in frames if frame.is_shown), key=lambda frame: frame.decoded)
    found = []
    for begin, end in trace_outages(path, seconds):
        live = next((frame.decoded for frame in shown if frame.captured >= end), None)
        found.append({"at": round(begin, 3), "seconds": round(end - begin, 3), "liveSeconds": after(end, live)})
    return found


def worst(entries, name):
    """The greatest of a figure over the steps that have it; None if one never came."""
    values = [entry[name] for entry in entries if name in entry]
    return None if not values or None in values else max(values)


def usable_bits(samples, cap, start, end, crosses_twice=False):
    """What a source of that cap could have sent through the link, by tenths of a second; None without a link.

    Pictures that cross the link twice have what both directions carry.
    """
    total, previous = 0.0, {}
    keys = ["forward_capacity_bits", *(["back_capacity_bits"] if crosses_twice else [])]
    for sample in samples:
        offered = {key: sample[key] - previous.get(key, 0) for key in keys}
        previous = {key: sample[key] for key in keys}
        if start < sample["t"] <= end + 0.01:
            total += min(*offered.values(), cap * 0.1)
    return total or None


def jain(rates):
    """Jain's index of fairness: 1 if all are equal."""
    squares = sum(rate * rate for rate in rates)
    return round(sum(rates) ** 2 / (len(rates) * squares), 3) if squares else None
