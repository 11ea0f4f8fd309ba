"""Compares `v4l2-ctl --list-formats-ext` with what `room-client devices --formats` lists, as JSON and in words.

Usage: compare-formats.py FORMATS.txt DEVICES.json DEVICES.txt
Exit code 0 if all name the same pixel formats, sizes and rates, and the words mark what is not supported; says what
differs otherwise.
"""
import json
import re
import sys


def from_v4l2_ctl(path):
    """The set of (pixel format, width, height, rate in mHz) of one device."""
    found, pixel_format, size = set(), None, None
    for line in open(path):
        if match := re.search(r"\[\d+\]: '(.{4})(-BE)?'", line):
            pixel_format = match[1].strip() + (match[2] or "")
        elif match := re.search(r"Size: Discrete (\d+)x(\d+)", line):
            size = int(match[1]), int(match[2])
        elif match := re.search(r"Interval: Discrete .*\(([\d.]+) fps\)", line):
            found.add((pixel_format, *size, round(float(match[1]) * 1000)))
    return found


def from_json(path):
    """The same of the one camera that the program lists, and the formats that it supports."""
    lines = [json.loads(line) for line in open(path) if line.strip()]
    devices = [line for line in lines if line["event"] == "device"]
    if len(devices) != 1:
        sys.exit(f"{len(devices)} cameras listed instead of 1")
    entries = devices[0]["formats"]
    combinations = {
        (entry["pixelFormat"], entry["width"], entry["height"], round(rate * 1000))
        for entry in entries
        for rate in entry["frameRates"]
    }
    return combinations, {entry["pixelFormat"] for entry in entries if entry["supported"]}


def from_words(path):
    """The same, from the list for people."""
    combinations, supported = set(), set()
    for line in open(path):
        if not (match := re.match(r"   (\d+)x(\d+)  (\S+)  ([\d. ]+) fps(  \(unsupported\))?", line)):
            continue
        width, height, pixel_format = int(match[1]), int(match[2]), match[3]
        combinations |= {(pixel_format, width, height, round(float(rate) * 1000)) for rate in match[4].split()}
        if not match[5]:
            supported.add(pixel_format)
    return combinations, supported


driver = from_v4l2_ctl(sys.argv[1])
if not driver:
    sys.exit("v4l2-ctl lists no discrete format")
(program, supported), (words, supported_words) = from_json(sys.argv[2]), from_words(sys.argv[3])
for name, listed in ("JSON", program), ("words", words):
    if driver != listed:
        example = sorted(driver ^ listed)[0]
        sys.exit(f"{name}: {len(driver - listed)} missing, {len(listed - driver)} made up, for example {example}")
if supported != supported_words:
    sys.exit(f"the words mark other formats as unsupported: {sorted(supported ^ supported_words)}")
formats = {entry[0] for entry in driver}
print(
    f"{len(formats)} formats, {len(formats - supported)} of them marked unsupported; "
    f"{len(driver)} combinations of format, size and rate"
)
