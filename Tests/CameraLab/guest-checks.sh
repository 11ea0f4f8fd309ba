# What the checks do inside the guest: guest-checks.sh FUNCTION [ARGUMENT...].
# Everything that is judged goes to $CAMERA_LAB_OUT; run judges it on the host.
# shellcheck shell=bash
set -uo pipefail

LAB=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=guest-camera.sh
. "$LAB/guest-camera.sh"
# shellcheck source=guest-programs.sh
. "$LAB/guest-programs.sh"
# shellcheck source=guest-replug.sh
. "$LAB/guest-replug.sh"
# shellcheck source=guest-controls.sh
. "$LAB/guest-controls.sh"

OUT=$CAMERA_LAB_OUT

# Runs a command; leaves its exit code in NAME.status and its output in NAME.out and NAME.err.
# Usage: record NAME COMMAND...
record() {
    local name=$1
    shift
    "$@" >"$OUT/$name.out" 2>"$OUT/$name.err"
    echo $? >"$OUT/$name.status"
}

# ---- the cameras themselves, by v4l2-ctl ----

# Captures into NAME.raw, with a line per buffer in NAME.frames. The pictures wait
# in memory: writing to the host while capturing would make the guest late.
# Usage: capture NAME FOURCC WIDTH HEIGHT RATE COUNT
capture() {
    v4l2-ctl -d "$CAMERA_NODE" --set-fmt-video="pixelformat=$2,width=$3,height=$4" >/dev/null
    v4l2-ctl -d "$CAMERA_NODE" --set-parm="$5" >/dev/null
    timeout 15 v4l2-ctl -d "$CAMERA_NODE" --verbose --stream-mmap=4 --stream-count="$6" \
        --stream-to="/dev/shm/$1.raw" 2>&1 | tr '\r' '\n' | grep 'dqbuf: [0-9]* seq' >"$OUT/$1.frames"
    mv "/dev/shm/$1.raw" "$OUT/"
}

vivid_streams() {
    capture yuyv YUYV 640 360 30 60
    capture nv12 NV12 640 360 30 60
    v4l2-ctl -d "$CAMERA_NODE" -c percentage_of_dropped_buffers=30
    capture dropped YUYV 320 180 30 60
    v4l2-ctl -d "$CAMERA_NODE" -c percentage_of_dropped_buffers=0
    (sleep 1; v4l2-ctl -d "$CAMERA_NODE" -c inject_v4l2_buf_flag_error=1) &
    capture flagged YUYV 320 180 30 90
}

uvc_streams() {
    capture yuyv-small YUYV 320 240 30 60
    capture yuyv YUYV 640 480 15 30
    capture mjpeg-small MJPG 320 240 15 30
    capture mjpeg MJPG 640 480 30 60
    capture mjpeg-large MJPG 1280 720 30 60
    unplug_camera
}

# Unplugs the camera once pictures of a capture have come: a busy guest may need seconds to begin.
# Usage: unplug_during NAME
unplug_during() {
    local tries=120
    until [[ -s /dev/shm/$1.raw ]] || ((--tries == 0)); do sleep 0.1; done
    unplug_camera
}

# uvcvideo reads nodrop when a camera is plugged in: by default it keeps damaged frames to itself.
uvc_faults() {
    plug_camera --damage 5 && capture damaged MJPG 320 240 30 40
    unplug_camera
    plug_camera --error 25 && capture error-dropped YUYV 320 240 30 30
    unplug_camera
    echo 1 >/sys/module/uvcvideo/parameters/nodrop
    plug_camera --error 25 && capture error-flagged YUYV 320 240 30 30
    unplug_camera
    plug_camera --stall-after 20 && capture stalled YUYV 320 240 30 30
    capture restarted YUYV 320 240 30 10
    unplug_during unplugged &
    local unplugging=$!
    capture unplugged YUYV 320 240 30 300
    wait "$unplugging"
    plug_camera && capture replugged MJPG 320 240 30 10
    unplug_camera
}

"$@"
# The server and what else still runs ends with the guest.
exit 0
