"""PSNR and SSIM of what was shown against what was captured; for clips that carry a mark with each picture's number.

The mark is a strip of cells along the top, which is left out of the comparison: 16 bits of number and 8 of checksum.
"""

import bisect
import collections
import hashlib
import math
import os
import pathlib
import re
import statistics
import subprocess
import threading

from roombench.programs import BUILD

STRIP, CELLS = 32, 24  # rows; cells across
SETTLED = 4.0  # seconds; the reference begins with a keyframe, the publisher has had its own
# One layer with the settings of Sources/VP8Codec, as in native/bare_publisher.c.
REFERENCE = (
    "--codec=vp8 --rt --cpu-used=-6 --passes=1 --lag-in-frames=0 --error-resilient=1 --end-usage=cbr --disable-kf"
)
REFERENCE += (
    " --min-q=2 --max-q=56 --undershoot-pct=100 --overshoot-pct=15 --drop-frame=0 --static-thresh=1 --threads=1"
)
REFERENCE += " --buf-sz=300 --buf-initial-sz=150 --buf-optimal-sz=200 --max-intra-rate=300 --noise-sensitivity=0 --ivf"
WHITE, BLACK, MIDDLE = 235, 16, 126


class Clip:
    """A Y4M clip of 8 bits, 4:2:0, whose pictures are read by their numbers."""

    def __init__(self, path):
        self.path = path
        with path.open("rb") as file:
            head = file.readline()
            self.head_length = len(head)
            self.width, self.height = (int(re.search(rb" %b(\d+)" % key, head)[1]) for key in (b"W", b"H"))
            rate = re.search(rb" F(\d+):(\d+)", head)
            self.rate = int(rate[1]) / int(rate[2])
            if (form := re.search(rb" C(\S+)", head)) and not form[1].startswith(b"420") or b"p10" in head:
                raise ValueError(f"{path} is {form[1].decode()}, not 8 bits of 4:2:0")
            self.picture = self.width * self.height * 3 // 2
            self.marker_length = len(file.readline())
        if self.marker_length != len(b"FRAME\n") or self.width % 2 or self.height % 2:
            raise ValueError(f"{path} has frame parameters or an odd size")
        self.count = (path.stat().st_size - self.head_length) // (self.picture + self.marker_length)

    def read(self, file, index):
        """The bytes of a picture."""
        file.seek(self.head_length + index * (self.picture + self.marker_length) + self.marker_length)
        return file.read(self.picture)


def marked(path):
    """A copy of the clip with marks, made once."""
    clip = Clip(path)
    key = hashlib.sha256(f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}".encode()).hexdigest()[:12]
    BUILD.mkdir(exist_ok=True)
    copy = BUILD / f"marked-{path.stem}-{key}.y4m"
    if copy.exists():
        return copy
    part = copy.with_suffix(f".{os.getpid()}")
    with path.open("rb") as source, part.open("wb") as target:
        target.write(source.read(clip.head_length))
        for index in range(clip.count):
            picture = bytearray(clip.read(source, index))
            mark(picture, clip, index)
            target.write(b"FRAME\n" + picture)
    part.rename(copy)
    return copy


def code_of(number):
    """The bits of a mark."""
    return number << 8 | (number >> 8) ^ (number & 0xFF) ^ 0x5A


def mark(picture, clip, number):
    """Draws the mark of `number` into the bytes of a picture."""
    code, edges = code_of(number), [cell * clip.width // CELLS for cell in range(CELLS + 1)]
    levels = [WHITE if code >> (CELLS - 1 - cell) & 1 else BLACK for cell in range(CELLS)]
    row = b"".join(bytes([level]) * (after - before) for level, before, after in zip(levels, edges, edges[1:]))
    picture[: STRIP * clip.width] = row * STRIP
    luma, chroma = clip.width * clip.height, clip.width * clip.height // 4
    for start in (luma, luma + chroma):
        picture[start : start + STRIP // 2 * clip.width // 2] = b"\x80" * (STRIP // 2 * clip.width // 2)


def number_in(strip, width):
    """The number that a strip of luma shows; None if it cannot be read."""
    code, row = 0, (STRIP // 2) * width
    for cell in range(CELLS):
        middle = row + (2 * cell + 1) * width // (2 * CELLS)
        code = code << 1 | (statistics.fmean(strip[middle - 2 : middle + 3]) > MIDDLE)
    return code >> 8 if code == code_of(code >> 8) else None


def decode(files, clip, crop=""):
    """Yields the pictures of a dump's files, scaled to the clip's size; `crop` keeps the luma of the mark alone."""
    filters, form = f"scale={clip.width}:{clip.height}:flags=bicubic{crop}", ("gray" if crop else "yuv420p")
    length = clip.width * STRIP if crop else clip.picture
    for file in files:
        command = ["ffmpeg", "-v", "error", "-r", "30", "-i", file, "-vf", filters, "-fps_mode", "passthrough"]
        with subprocess.Popen(
            [*command, "-f", "rawvideo", "-pix_fmt", form, "-"], stdout=subprocess.PIPE, bufsize=1 << 20
        ) as process:
            try:
                while len(picture := process.stdout.read(length)) == length:
                    yield picture
            finally:
                process.kill()  # Its end where it has read everything, else nobody wants the rest.


def compare(files, clip, pairs, folder):
    """PSNR-Y over all pairs together, and the mean SSIM-Y; a pair is (picture of the dump, picture of the clip)."""
    pipes = [folder / "shown", folder / "captured"]
    for pipe in pipes:
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
    raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{clip.width}x{clip.height}", "-r", "30", "-i"]
    cut = f"crop=iw:ih-{STRIP}:0:{STRIP},split"
    graph = f"[0]{cut}[a][b];[1]{cut}[c][d];[a][c]psnr=stats_file=psnr.log;[b][d]ssim=stats_file=ssim.log"
    command = ["ffmpeg", "-v", "error", "-y", *raw, pipes[0].name, *raw, pipes[1].name, "-lavfi", graph]
    process = subprocess.Popen([*command, "-f", "null", "-"], cwd=folder, stdin=subprocess.DEVNULL)

    def write_captured():
        with pipes[1].open("wb") as pipe, clip.path.open("rb") as source:
            for _, captured in pairs:
                pipe.write(clip.read(source, captured))

    writer = threading.Thread(target=write_captured, daemon=True)
    writer.start()
    with pipes[0].open("wb") as pipe:
        pictures, position, picture = decode(files, clip), -1, None
        for shown, _ in pairs:
            while position < shown:
                picture, position = next(pictures), position + 1
            pipe.write(picture)
        pictures.close()
    writer.join()
    if process.wait():
        raise RuntimeError("ffmpeg could not compare")
    errors = [float(value) for value in re.findall(r"mse_y:(\S+)", (folder / "psnr.log").read_text())]
    similar = [float(value) for value in re.findall(r" Y:(\S+)", (folder / "ssim.log").read_text())]
    return round(10 * math.log10(255**2 / max(statistics.fmean(errors), 1e-6)), 2), round(statistics.fmean(similar), 4)


def reference(clip, numbers, bits_per_second, folder):
    """The PSNR-Y of one layer of vpxenc at that rate, of those pictures of the clip, from `SETTLED` on."""
    coded, form = folder / "reference.ivf", [f"--width={clip.width}", f"--height={clip.height}"]
    command = ["vpxenc", *REFERENCE.split(), *form, f"--fps={round(clip.rate)}/1", "--i420", "--quiet"]
    command += [f"--target-bitrate={round(bits_per_second / 1000)}", "-o", coded, "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process, clip.path.open("rb") as source:
        for number in numbers:
            process.stdin.write(clip.read(source, number))
        process.stdin.close()
        if process.wait():
            raise RuntimeError("vpxenc could not encode")
    seconds = len(numbers) / clip.rate
    pairs = list(enumerate(numbers))[round(SETTLED * clip.rate) :]
    return compare([coded], clip, pairs, folder)[0], coded.stat().st_size * 8 / seconds


def usual_phase(moments, rate):
    """Where in an interval of the rate most of the moments lie: single ones are late."""
    bins = collections.Counter(round(moment * rate % 1, 2) % 1 for moment in moments)
    return bins.most_common(1)[0][0] / rate


def quality(dump, frames, clip_path, end, folder, is_referenced):
    """Two views of the quality of a run; `frames` are those of the one log beside the one dump in `dump`, as written.

    coded: each picture shown against the same picture as captured, what encoder and scaling cost.
    screen: after each capture, what was on the screen against what was captured last: late pictures count.
    With `is_referenced` one layer of libvpx at the same rate stands beside it.
    """
    files = sorted(pathlib.Path(dump).glob("*.webm"))
    clip = Clip(clip_path)
    numbers = [number_in(strip, clip.width) for strip in decode(files, clip, f",crop=iw:{STRIP}:0:0")]
    known = [
        (frame, position, number)
        for position, (frame, number) in enumerate(zip(frames, numbers))
        if frame.is_shown and number is not None and number < clip.count
    ]
    inside = [entry for entry in known if SETTLED <= entry[0].captured < end]
    coded = [(position, number) for _, position, number in inside]
    if not coded:
        return {}
    moments, captures = [f.decoded for f, *_ in known], [f.captured for f, *_ in known]
    # Half an interval after each capture, so that the phase of the clocks does not matter.
    screen, phase = [], usual_phase(captures, clip.rate) + 0.5 / clip.rate
    for tick in range(int(end * clip.rate)):
        moment = tick / clip.rate + phase
        shown, anchor = bisect.bisect_right(moments, moment) - 1, bisect.bisect_right(captures, moment) - 1
        if shown >= 0 and anchor >= 0:
            ahead = max(0, round((moment - captures[anchor]) * clip.rate - 0.5))
            screen.append((known[shown][1], (known[anchor][2] + ahead) % clip.count))
    result = {"unreadableMarks": sum(number is None for number in numbers)}
    result["codedPsnrY"], result["codedSsimY"] = compare(files, clip, coded, folder)
    if screen:
        result["screenPsnrY"], result["screenSsimY"] = compare(files, clip, screen, folder)
    if is_referenced:
        span = inside[-1][0].captured - inside[0][0].captured + 1 / clip.rate
        rate = sum(frame.bytes for frame, *_ in inside) * 8 / span
        count = round((span + SETTLED) * clip.rate)
        numbers = [(inside[0][2] - round(SETTLED * clip.rate) + index) % clip.count for index in range(count)]
        result["referencePsnrY"], reached = reference(clip, numbers, rate, folder)
        result |= {"codedMbps": round(rate / 1e6, 4), "referenceMbps": round(reached / 1e6, 4)}
        result["belowReferenceDb"] = round(result["referencePsnrY"] - result["codedPsnrY"], 2)
    return result
