"""Compares the colours of the last picture of a file with what the lab's camera showed.

Usage: compare-colours.py bars|clip FORMAT FILE
bars: vivid's eight bars, in grey for formats without colours; clip: the USB camera's MJPEG pictures, told apart by their number.
Exit code 0 if they agree, but for what VP8 and the way between RGB and YUV take; prints the largest difference.
"""
import os
import subprocess
import sys

# linux/drivers/media/common/v4l2-tpg: TPG_PAT_75_COLORBAR, tpg_colors of 75 %.
HIGH = 191
BARS = [(HIGH, HIGH, HIGH), (HIGH, HIGH, 0), (0, HIGH, HIGH), (0, HIGH, 0),
        (HIGH, 0, HIGH), (HIGH, 0, 0), (0, 0, HIGH), (0, 0, 0)]
GREY_FORMATS = ("GREY", "Y16", "Y16-BE")
NUMBER_BITS, CLIP_PICTURES = 16, 64
# Flat areas: rounding in two conversions, and VP8's quantizer. A swap of U and V or R and B differs by 190.
BAR_TOLERANCE = 12
# Mean over a moving picture with fine detail. Another picture of the clip differs by more than 3, a swap by 30.
CLIP_TOLERANCE = 8


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout


def pictures(path):
    """The pictures of a file: width, height, and for each the RGB bytes."""
    size = run("ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=width,height",
               "-of", "csv=p=0", path)
    width, height = (int(side) for side in size.decode().strip().split(",")[:2])
    data = run("ffmpeg", "-v", "error", "-i", path, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
    step = 3 * width * height
    found = [data[start:start + step] for start in range(0, len(data), step)]
    if not found:
        sys.exit(f"{path} has no picture")
    return width, height, found


def mean(picture, width, columns, rows):
    """The mean colour of an area."""
    sums = [0, 0, 0]
    for y in rows:
        for x in columns:
            for channel in range(3):
                sums[channel] += picture[3 * (y * width + x) + channel]
    return [value / (len(columns) * len(rows)) for value in sums]


def luma(colour):
    """What vivid makes of a colour in formats without any: the luma of BT.709, in full range."""
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def compare_bars(pixel_format, width, height, picture):
    worst, seen = 0, []
    for index, bar in enumerate(BARS):
        expected = [luma(bar)] * 3 if pixel_format in GREY_FORMATS else bar
        middle = (2 * index + 1) * width // (2 * len(BARS))
        colour = mean(picture, width, range(middle - 6, middle + 6), range(height // 4, 3 * height // 4))
        seen.append("/".join(f"{value:.0f}" for value in colour))
        worst = max([worst] + [abs(a - b) for a, b in zip(colour, expected)])
    return worst, BAR_TOLERANCE, " ".join(seen)


def compare_clip(width, height, picture):
    number = 0
    for bit in range(NUMBER_BITS):
        middle = (2 * bit + 1) * width // (2 * NUMBER_BITS)
        number |= (mean(picture, width, range(middle - 3, middle + 3), range(height // 32, height // 16))[1] > 128) << bit
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    _, _, clip = pictures(f"{cache}/room-camera-lab/clips/{width}x{height}.mjpg")
    expected = clip[number % CLIP_PICTURES]
    difference = sum(abs(a - b) for a, b in zip(picture, expected)) / len(expected)
    return difference, CLIP_TOLERANCE, f"picture {number % CLIP_PICTURES} of the clip"


scene, pixel_format, path = sys.argv[1:]
if not os.path.exists(path):
    sys.exit(f"there is no {path}")
width, height, found = pictures(path)
worst, tolerance, seen = (
    compare_bars(pixel_format, width, height, found[-1]) if scene == "bars" else compare_clip(width, height, found[-1])
)
print(f"off by {worst:.1f} of {tolerance} allowed: {seen}")
sys.exit(0 if worst <= tolerance else 1)
