"""What one layer of ours looks like at its bit rate, against vpxenc and ffmpeg with the same library and buffers."""

import json
import math
import pathlib
import re
import subprocess
import tempfile

from . import clips
from .report import verdict

# How much worse than the better of the two references ours may be, in dB of the luma PSNR at the same bytes.
MOST_LOSS_DB = 0.2
# The references are encoded at these shares of the rate, and their figures interpolated at our bytes.
SHARES = (0.94, 1.0, 1.06)
BUFFERS_MS = {"size": 300, "initial": 150, "optimal": 200}


def contenders(settings):
    """The clips with their rates in kbit/s: those that were asked for, or the ones made on the spot."""
    if settings.clips:
        return [(pathlib.Path(name), int(kbps)) for name, kbps in (item.rsplit(":", 1) for item in settings.clips)]
    return [(clips.clip(size), kbps) for size, kbps in (("640x480", 800), ("1280x720", 2000))]


def encode_ours(programs, clip, kbps, target):
    """Our encoder; returns the CPU time of a picture in ms and the number of pictures left out."""
    command = [programs.encode_clip, clip, "--schedule", f"0:{kbps}", "--output", target]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    pictures = [json.loads(line) for line in lines]
    return sum(picture["us"] for picture in pictures) / len(pictures) / 1000, sum(not p["bytes"] for p in pictures)


def encode_vpxenc(clip, kbps, target):
    """libvpx's own program, with every setting of ours that it has."""
    options = ["--codec=vp8", "--rt", "--cpu-used=-6", "--end-usage=cbr", "--threads=1", "--lag-in-frames=0"]
    options += [f"--buf-sz={BUFFERS_MS['size']}", f"--buf-initial-sz={BUFFERS_MS['initial']}"]
    options += [f"--buf-optimal-sz={BUFFERS_MS['optimal']}", "--undershoot-pct=100", "--overshoot-pct=15"]
    options += ["--drop-frame=30", "--min-q=2", "--max-q=56", "--error-resilient=1", "--static-thresh=1"]
    options += ["--noise-sensitivity=0", "--token-parts=0", "--max-intra-rate=300", "--disable-kf"]
    command = ["vpxenc", *options, f"--target-bitrate={kbps}", "--ivf", "-o", target, clip]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def encode_ffmpeg(clip, kbps, target):
    """ffmpeg; its optimal buffer level is always five sixths of the size."""
    buffers = ["-bufsize", f"{kbps * BUFFERS_MS['size']}", "-rc_init_occupancy", f"{kbps * BUFFERS_MS['initial']}"]
    rate = ["-b:v", f"{kbps}k", "-minrate", f"{kbps}k", "-maxrate", f"{kbps}k", *buffers]
    limits = ["-qmin", "2", "-qmax", "56", "-undershoot-pct", "100", "-overshoot-pct", "15", "-drop-threshold", "30"]
    effort = ["-deadline", "realtime", "-cpu-used", "-6", "-lag-in-frames", "0", "-static-thresh", "1", "-threads", "1"]
    tail = ["-error-resilient", "default", "-g", "99999", "-f", "ivf", str(target)]
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-i", str(clip), "-c:v", "libvpx", *rate, *limits, *effort, *tail], check=True
    )


def likeness(coded, clip):
    """PSNR-Y in dB and SSIM-Y over all pictures of the clip; the one before stands for one that was left out."""
    compare = f"[0:v]fps={clips.FRAME_RATE},split[a][b];[1:v]split[c][d];[a][c]psnr;[b][d]ssim"
    command = ["ffmpeg", "-nostats", "-i", str(coded), "-i", str(clip), "-lavfi", compare, "-f", "null", "-"]
    log = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    psnr, ssim = re.search(r"PSNR y:(\S+)", log), re.search(r"SSIM Y:(\S+)", log)
    return float(psnr.group(1)), float(ssim.group(1))


def at_bytes(points, length):
    """The figures of a reference, linear in the logarithm of its bytes, at `length` bytes."""
    points = sorted(points)
    pairs = list(zip(points, points[1:]))
    low, high = next((pair for pair in pairs if length <= pair[1][0]), pairs[-1])
    share = (math.log(length) - math.log(low[0])) / (math.log(high[0]) - math.log(low[0]))
    return [a + (b - a) * share for a, b in zip(low[1:], high[1:])]


def measure(programs, clip, kbps):
    """All encoders on one clip."""
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "coded.ivf"
        cpu, left_out = encode_ours(programs, clip, kbps, target)
        length = target.stat().st_size
        psnr, ssim = likeness(target, clip)
        result = {"bytes": length, "psnr": psnr, "ssim": ssim, "ms_per_frame": cpu, "left_out": left_out}
        for name, encode in (("vpxenc", encode_vpxenc), ("ffmpeg", encode_ffmpeg)):
            points = []
            for share in SHARES:
                encode(clip, round(kbps * share), target)
                points.append((target.stat().st_size, *likeness(target, clip)))
            result[f"{name}_psnr"], result[f"{name}_ssim"] = at_bytes(points, length)
    return result


def run(programs, report, settings):
    """Measures each clip once: the encoders do the same in every run."""
    rows = []
    for clip, kbps in contenders(settings):
        result = measure(programs, clip, kbps)
        report.record("quality", clip=clip.name, kbps=kbps, **result)
        loss = max(result["vpxenc_psnr"], result["ffmpeg_psnr"]) - result["psnr"]
        decibels = [f"{result[key]:.2f}" for key in ("psnr", "vpxenc_psnr", "ffmpeg_psnr")]
        likenesses = [f"{result[key]:.4f}" for key in ("ssim", "vpxenc_ssim", "ffmpeg_ssim")]
        rows.append(
            [clip.name, kbps, *decibels, *likenesses, result["left_out"], f"{result['ms_per_frame']:.2f}"]
            + [verdict(loss <= MOST_LOSS_DB)]
        )
    columns = ["clip", "kbit/s", "PSNR-Y", "vpxenc", "ffmpeg", "SSIM-Y", "vpxenc", "ffmpeg", "left out", "ms/frame", "met"]
    report.table("Picture quality, one layer, the references at the same bytes", columns, rows)
