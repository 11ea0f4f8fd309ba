"""Compares `v4l2-ctl -L` with what `room-client devices --controls --json` lists.

Usage: compare-controls.py CONTROLS.txt DEVICES.json "OVERRULED..."
Exit code 0 if both name the same controls with the same ranges, defaults, values, menus and flags, and exactly OVERRULED
are inactive; says what differs otherwise. Controls of 64 bits, text or matrices are left out, as the program does.
"""
import json
import re
import sys

TYPES = {"int": "integer", "bool": "boolean", "menu": "menu", "intmenu": "integerMenu",
         "button": "button", "bitmask": "bitmask"}


def number(text):
    return int(text, 16) if text.startswith("0x") else int(text)


def from_v4l2_ctl(path):
    found, present = {}, None
    for line in open(path):
        if match := re.match(r"\s*(\w+) 0x[0-9a-f]{8} \((\w+) *\)\s*:\s*(.*)", line):
            name, kind, rest = match.groups()
            present = None
            if kind not in TYPES:
                continue
            fields = dict(re.findall(r"(\w+)=(\S+)", rest))
            flags = set(re.split(r",\s*", rest.partition("flags=")[2]))
            present = {"type": TYPES[kind], "menu": {}, "inactive": "inactive" in flags, "readOnly": "read-only" in flags}
            for key, word in ("minimum", "min"), ("maximum", "max"), ("step", "step"), ("default", "default"), ("value", "value"):
                # The driver changes a volatile control by itself.
                if word in fields and not (word == "value" and "volatile" in flags):
                    value = number(fields[word])
                    # v4l2-ctl prints the bits of a mask as a signed number.
                    present[key] = value & 0xFFFFFFFF if kind == "bitmask" else value
            found[name] = present
        elif present is not None and (match := re.match(r"\s+(\d+): (.*)", line)):
            present["menu"][int(match[1])] = match[2].strip()
    return found


def from_json(path):
    lines = [json.loads(line) for line in open(path) if line.strip()]
    devices = [line for line in lines if line["event"] == "device"]
    if len(devices) != 1:
        sys.exit(f"{len(devices)} cameras listed instead of 1")
    return {control["name"]: control for control in devices[0]["controls"]}


driver, program = from_v4l2_ctl(sys.argv[1]), from_json(sys.argv[2])
wanted = set(sys.argv[3].split())
if not driver:
    sys.exit("v4l2-ctl lists no control")
if driver.keys() != program.keys():
    sys.exit(f"only one of both lists: {sorted(driver.keys() ^ program.keys())}")
for name, ours in sorted(program.items()):
    theirs = driver[name]
    if theirs["type"] == "button":
        continue
    for key, value in theirs.items():
        mine = ours[key]
        if key == "menu":
            mine = {entry["value"]: entry["name"] for entry in mine}
            if theirs["type"] == "integerMenu":
                value, mine = list(value), list(mine)
        if mine != value:
            sys.exit(f"{name}: {key} is {mine} and not {value}")
inactive = {name for name, control in program.items() if control["inactive"]}
if inactive != wanted:
    sys.exit(f"overruled are {sorted(inactive)} and not {sorted(wanted)}")
print(f"{len(program)} controls, overruled: {' '.join(sorted(inactive)) or 'none'}")
