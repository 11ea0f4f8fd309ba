"""Clips to publish, made on the spot: a slow zoom with a moving test picture in the corner and a camera's noise."""

import subprocess

from .programs import BUILD

FRAMES = 300
FRAME_RATE = 30
BITRATES = {"640x480": 1700, "1280x720": 2500}


def source_options(size):
    """The options of `room-client connect` that publish the clip of that size."""
    return ["--source", f"file:{clip(size)}", "--loop", "--max-bitrate", f"{BITRATES[size]}k", "--json"]


def warm(size):
    """Reads the clip once, so that no round has to wait for the disk."""
    with clip(size).open("rb") as file:
        while file.read(1 << 22):
            pass


def clip(size):
    """The Y4M clip of that size."""
    path = BUILD / f"clip-{size}.y4m"
    if path.exists():
        return path
    unfinished = path.with_suffix(".part")
    zoom = f"mandelbrot=size={size}:rate={FRAME_RATE}:end_scale=0.05:maxiter=300"
    corner = f"testsrc2=size=320x240:rate={FRAME_RATE}"
    mix = "[0:v][1:v]overlay=W-w-16:H-h-16,noise=alls=2:allf=t:all_seed=1,format=yuv420p"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", zoom, "-f", "lavfi", "-i", corner]
        + ["-filter_complex", mix, "-frames:v", str(FRAMES), "-f", "yuv4mpegpipe", str(unfinished)],
        check=True,
    )
    unfinished.rename(path)
    return path
