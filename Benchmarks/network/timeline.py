"""Draws a run over time as SVG: capacity and rate, age and queue, frames a second and size."""

import html
import math

from .metrics import Timeline

WIDTH, HEIGHT, LEFT, TOP, GAP = 860, 170, 60, 64, 74
COLOURS = {"capacity": "#bbbbbb", "link": "#1b6ca8", "pictures": "#27864b", "age": "#c0392b", "queue": "#8e6bb0",
           "frames a second": "#1b6ca8", "height": "#d98e04"}  # fmt: skip
STREAM_COLOURS = ["#27864b", "#d98e04", "#c0392b", "#8e6bb0", "#16808a", "#7a5c3e"]


class Panel:
    """One diagram: an axis from 0 to `highest`, and lines over time."""

    def __init__(self, index, title, seconds, highest):
        self.top = TOP + index * (HEIGHT + GAP)
        self.seconds, self.highest = seconds, highest or 1
        self.parts = [text(LEFT, self.top - 22, title, weight="bold")]
        self.legend = 0
        for value in marks(self.highest, 5):
            y = self.y(value)
            self.parts.append(f'<path d="M{LEFT} {y:.1f}H{LEFT + WIDTH}" stroke="#e4e4e4"/>')
            self.parts.append(text(LEFT - 6, y + 4, f"{value:g}", anchor="end"))
        for second in marks(seconds, 12):
            self.parts.append(text(self.x(second), self.top + HEIGHT + 16, f"{second:g}", anchor="middle"))
        self.parts.append(text(LEFT + WIDTH + 14, self.top + HEIGHT + 16, "s"))

    def x(self, second):
        """Where a second lies."""
        return LEFT + second / self.seconds * WIDTH

    def y(self, value):
        """Where a value lies; what is beyond the axis is drawn at its end."""
        return self.top + HEIGHT - min(max(value, 0), self.highest) / self.highest * HEIGHT

    def label(self, name, colour):
        """Adds a line to the legend."""
        self.parts.append(text(LEFT + self.legend, self.top - 6, name, colour=colour))
        self.legend += 16 + 7 * len(name)

    def line(self, name, points, colour, steps=False):
        """A line through (second, value); with steps, each value holds up to the next."""
        self.label(name, colour)
        path, before = [], None
        for second, value in points:
            if steps and before is not None:
                path.append(f"H{self.x(second):.1f}")
            path.append(f"{'L' if path else 'M'}{self.x(second):.1f} {self.y(value):.1f}")
            before = value
        if path:
            self.parts.append(f'<path d="{"".join(path)}" stroke="{colour}" stroke-width="1.3" fill="none"/>')

    def dots(self, name, points, colour):
        """A dot for each (second, value)."""
        self.label(name, colour)
        path = "".join(f"M{self.x(second):.1f} {self.y(value):.1f}h0" for second, value in points)
        style = f'stroke="{colour}" stroke-width="2.4" stroke-linecap="round" fill="none"'
        if path:
            self.parts.append(f'<path d="{path}" {style}/>')


def marks(highest, most):
    """At most so many round values from 0 to `highest`."""
    step = 10 ** math.floor(math.log10(highest / most))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if highest / (step * factor) <= most)
    return [round(index * step, 6) for index in range(int(highest / step + 1e-9) + 1)]


def text(x, y, words, anchor="start", weight="normal", colour="#222222"):
    """A piece of text."""
    style = f'text-anchor="{anchor}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(words)}</text>'


def draw(path, title, case, samples, streams):
    """Writes the picture of a run; `streams` holds the frames of each viewer, the first of them in full."""
    main = next(iter(streams.values()))
    panels = [rates(case, samples, streams), ages(case, samples, main), pictures(case, main)]
    height = TOP + len(panels) * (HEIGHT + GAP)
    body = "\n".join(part for panel in panels for part in panel.parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 50}" height="{height}" '
        'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        f"{text(LEFT, 20, title, weight='bold')}\n{body}\n</svg>\n"
    )


def rates(case, samples, streams):
    """Capacity, the link's traffic, and the pictures of each stream, Mbit/s."""
    growth = lambda name: [
        (after["t"], (after[name] - before[name]) / (after["t"] - before["t"]) / 1e6)
        for before, after in zip(samples, samples[5:])
    ]
    capacity = growth("forward_capacity_bits")
    link = [(second, value * 8) for second, value in growth("forward_out")]
    seconds = [tick / 5 for tick in range(int(case.seconds * 5))]
    lines = {}
    for index, ((flow, name), frames) in enumerate(list(streams.items())[: len(STREAM_COLOURS)]):
        timeline = Timeline(frames)
        label = "pictures" if len(streams) == 1 else f"{name} {flow}"
        lines[label] = ([(second, timeline.rate(second) / 1e6) for second in seconds], STREAM_COLOURS[index])
    highest = max([value for points, _ in lines.values() for _, value in points] + [value for _, value in link])
    panel = Panel(0, "Mbit/s", case.seconds, min(max([v for _, v in capacity], default=0), 1.6 * highest) or highest)
    if samples:
        panel.line("capacity", capacity, COLOURS["capacity"])
        panel.line("link", link, COLOURS["link"])
    for label, (points, colour) in lines.items():
        panel.line(label, points, colour)
    return panel


def ages(case, samples, frames):
    """The age of each shown frame, and how long the oldest packet waited in the queue, ms; cut at 1.5 s."""
    points = [(f.decoded, f.age * 1e3) for f in frames if f.is_shown and 0 <= f.decoded <= case.seconds]
    waits = [(sample["t"], sample["forward_wait_ms"]) for sample in samples]
    highest = min(1500, max([value for _, value in points + waits], default=1) * 1.1)
    panel = Panel(1, "ms", case.seconds, highest)
    if samples:
        panel.line("wait in the queue", waits, COLOURS["queue"])
    panel.dots("age, captured to decoded", points, COLOURS["age"])
    panel.dots("keyframe", [(f.decoded, f.age * 1e3) for f in frames if f.is_key and f.is_shown], "#111111")
    return panel


def pictures(case, frames):
    """Shown frames a second, and the picture's height as a share of the published one."""
    shown = sorted(f.decoded for f in frames if f.is_shown)
    rate = [
        (second, sum(second - 1 <= moment < second for moment in shown)) for second in range(1, int(case.seconds) + 1)
    ]
    panel = Panel(2, "frames a second, and height in % of the published", case.seconds, 100)
    panel.line("frames a second", rate, COLOURS["frames a second"])
    full = int(case.size.split("x")[1])
    heights = [(f.decoded, f.size[1] * 100 / full) for f in frames if f.size and f.is_shown and f.decoded >= 0]
    panel.line("height", heights, COLOURS["height"], steps=True)
    return panel
