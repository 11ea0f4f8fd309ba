# What the checks do inside the guest: guest-checks.sh FUNCTION [ARGUMENT...].
# Everything that is judged goes to $CAMERA_LAB_OUT; run judges it on the host.
# shellcheck shell=bash
set -uo pipefail

# shellcheck source=guest-camera.sh
. "$(dirname "${BASH_SOURCE[0]}")/guest-camera.sh"

OUT=$CAMERA_LAB_OUT
SUBSCRIBER_MARGIN=4  # seconds that the subscriber stays longer than the publisher

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
    (sleep 1; unplug_camera) &
    local unplugging=$!
    capture unplugged YUYV 320 240 30 300
    wait "$unplugging"
    plug_camera && capture replugged MJPG 320 240 30 10
    unplug_camera
}

# ---- the programs ----

list_devices() {
    v4l2-ctl -d "$CAMERA_NODE" --list-formats-ext >"$OUT/formats.txt"
    record devices "$ROOM_BUILD_DIR/room-client" devices --formats --json
}

start_server() {
    "$ROOM_BUILD_DIR/room-server" --port 8480 >"$OUT/server.log" 2>&1 &
    local attempt
    for ((attempt = 0; attempt < 300; attempt++)); do
        (exec 3<>/dev/tcp/127.0.0.1/8480) 2>/dev/null && return 0
        nap
    done
    echo "room-server does not listen" >&2
    exit 1
}

# Usage: subscribe_for SECONDS
subscribe_for() {
    record subscribe "$ROOM_BUILD_DIR/room-client" subscribe --room lab --dump "$OUT/dump" --duration "$1" --json
}

# Usage: connect_for SECONDS [OPTION...]
connect_for() {
    local seconds=$1
    shift
    record connect "$ROOM_BUILD_DIR/room-client" connect --room lab --duration "$seconds" --json \
        --device "$CAMERA_NODE" "$@"
}

# Usage: publish SECONDS [OPTION...], options of connect
publish() {
    start_server
    subscribe_for $(($1 + SUBSCRIBER_MARGIN)) &
    local subscriber=$!
    connect_for "$@"
    wait "$subscriber"
}

# Two seconds of pictures in the dump, then the camera goes; on a busy machine that takes its time.
unplug_when_dumping() {
    local attempt
    for ((attempt = 0; attempt < 200; attempt++)); do
        compgen -G "$OUT/dump/*.webm" >/dev/null && break
        nap
    done
    sleep 2
    unplug_camera
}

publish_and_unplug() {
    unplug_when_dumping &
    publish 20 --pixel-format MJPG --size 320x240
}

publish_with_drops() {
    v4l2-ctl -d "$CAMERA_NODE" -c percentage_of_dropped_buffers=30
    (sleep 4; v4l2-ctl -d "$CAMERA_NODE" -c inject_v4l2_buf_flag_error=1) &
    publish 8 --pixel-format YUYV --size 320x180
}

connect_without_camera() {
    start_server
    record connect "$ROOM_BUILD_DIR/room-client" connect --room lab --duration 2
}

connect_to_busy_camera() {
    v4l2-ctl -d "$CAMERA_NODE" --stream-mmap=4 --stream-to=/dev/null >"$OUT/holder" 2>&1 &
    local holder=$!
    start_server
    until [[ -s $OUT/holder ]]; do nap; done  # a mark per frame
    record connect "$ROOM_BUILD_DIR/room-client" connect --room lab --duration 2 --device "$CAMERA_NODE"
    kill "$holder"
}

connect_to_metadata_node() {
    start_server
    record connect "$ROOM_BUILD_DIR/room-client" connect --room lab --duration 2 --device "$CAMERA_METADATA_NODE"
}

swift_tests() {
    export CAMERA_LAB=1
    record tests "$ROOM_BUILD_DIR/roomPackageTests.xctest" --testing-library swift-testing --filter "$1"
}

"$@"
# The server and what else still runs ends with the guest.
exit 0
