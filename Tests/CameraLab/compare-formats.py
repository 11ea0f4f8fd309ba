"""Compares `v4l2-ctl --list-formats-ext` with `room-client devices --formats --json`.

Usage: compare-formats.py FORMATS.txt DEVICES.json
Exit code 0 if both name the same pixel formats, sizes and rates; says what differs otherwise.
"""
import json
import re
import sys


def from_v4l2_ctl(path):
    """The set of (pixel format, width, height, rate in mHz) of one device."""
    found, pixel_format, size = set(), None, None
    for line in open(path):
        if match := re.search(r"\[\d+\]: '(.{4})'", line):
            pixel_format = match[1].strip()
        elif match := re.search(r"Size: Discrete (\d+)x(\d+)", line):
            size = int(match[1]), int(match[2])
        elif match := re.search(r"Interval: Discrete .*\(([\d.]+) fps\)", line):
            found.add((pixel_format, *size, round(float(match[1]) * 1000)))
    return found


def from_room_client(path):
    """The same of the one camera that the program lists."""
    devices = [json.loads(line) for line in open(path) if line.strip()]
    devices = [device for device in devices if device.get("event") == "device"]
    if len(devices) != 1:
        sys.exit(f"{len(devices)} cameras listed instead of 1")
    return {
        (entry["pixelFormat"].strip(), entry["width"], entry["height"], round(rate * 1000))
        for entry in devices[0]["formats"]
        for rate in entry["frameRates"]
    }


driver, program = from_v4l2_ctl(sys.argv[1]), from_room_client(sys.argv[2])
if not driver:
    sys.exit("v4l2-ctl lists no discrete format")
if driver != program:
    example = sorted(driver ^ program)[0]
    sys.exit(f"{len(driver - program)} missing, {len(program - driver)} made up, for example {example}")
print(f"{len(driver)} combinations of format, size and rate")
