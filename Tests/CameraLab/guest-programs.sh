# What the guest does with room-client and room-server. Sourced by guest-checks.sh.
# shellcheck shell=bash

CLIENT=${ROOM_BUILD_DIR:-}/room-client
FAULT_AFTER=20  # frames in the dump before something is done to the camera

# ---- waiting for what should happen; a slow machine may take its time ----

# Waits up to 30 s for a condition. Usage: wait_for WHAT CONDITION [ARGUMENT...]
wait_for() {
    local what=$1 attempt
    shift
    for ((attempt = 0; attempt < 300; attempt++)); do
        "$@" && return 0
        nap
    done
    echo "waited in vain for $what" >&2
    return 1
}

is_listening() { (exec 3<>/dev/tcp/127.0.0.1/8480) 2>/dev/null; }

# Usage: has_text FILE TEXT
has_text() { [[ -e $1 && $(<"$1") == *"$2"* ]]; }

# Usage: has_dumped FRAMES
has_dumped() {
    local log lines
    log=$(compgen -G "$OUT/dump/*.frames.jsonl" | head -n 1)
    [[ -n $log ]] || return 1
    mapfile -t lines <"$log"
    ((${#lines[@]} >= $1))
}

# Usage: when_dumped FRAMES COMMAND...
when_dumped() {
    local frames=$1
    shift
    wait_for "$frames frames in the dump" has_dumped "$frames" && "$@"
}

# ---- programs ----

start_server() {
    "$ROOM_BUILD_DIR/room-server" --port 8480 >"$CAMERA_LAB_OUT/server.log" 2>&1 &
    wait_for "room-server to listen" is_listening || exit 1
}

# Usage: start_subscriber [OPTION...]
start_subscriber() {
    "$CLIENT" subscribe --room lab --dump "$OUT/dump" --json "$@" >"$OUT/subscribe.out" 2>"$OUT/subscribe.err" &
    subscriber=$!
    wait_for "the subscriber to join" has_text "$OUT/subscribe.out" '"connected"'
}

# By then the publisher is gone; what it sent is on its way here, before the message that the track is over.
stop_subscriber() {
    ! has_text "$OUT/subscribe.out" '"trackSubscribed"' ||
        wait_for "the end of the track" has_text "$OUT/subscribe.out" '"trackUnsubscribed"'
    kill -TERM "$subscriber"
    wait "$subscriber"
    echo $? >"$OUT/subscribe.status"
}

RUNNER=()  # what the publisher is started with, as another user for example

# Usage: connect_camera NAME [OPTION...]
connect_camera() {
    local name=$1
    shift
    record "$name" "${RUNNER[@]}" "$CLIENT" connect --room lab --json --device "$CAMERA_NODE" "$@"
}

# Publishes, with a subscriber that dumps; what comes of it is NAME/ in the results. It waits in memory, because
# writing to the host would make the guest late.
# Usage: publish NAME SECONDS [OPTION...], options of connect
publish() {
    local OUT=/dev/shm/$1 seconds=$2
    shift 2
    mkdir "$OUT"
    start_subscriber
    connect_camera connect --duration "$seconds" "$@"
    stop_subscriber
    mv "$OUT" "$CAMERA_LAB_OUT/"
}

# Prints how often an event is in a file of JSON lines. Usage: count_events FILE EVENT
count_events() { grep -c "\"event\":\"$2\"" "$1" 2>/dev/null || true; }

# Usage: has_events FILE EVENT COUNT
has_events() { (($(count_events "$1" "$2") >= $3)); }

# Prints what a program holds: descriptors, threads, KiB of memory.
holdings() {
    local files=(/proc/"$1"/fd/*)
    echo "${#files[@]} $(awk '/^Threads|^VmRSS/ { printf "%s ", $2 }' "/proc/$1/status" | awk '{ print $2, $1 }')"
}

publisher_pid() { pgrep -f "room-client connect" | head -n 1; }

# As publish; meanwhile a fault is made. Usage: publish_with_fault NAME FAULT SECONDS [OPTION...]
publish_with_fault() {
    local name=$1 fault=$2
    shift 2
    (OUT=/dev/shm/$name && when_dumped "$FAULT_AFTER" "$fault") &
    local fault_process=$!
    publish "$name" "$@"
    wait "$fault_process"
}

# ---- checks ----

list_devices() {
    v4l2-ctl -d "$CAMERA_NODE" --list-formats-ext >"$OUT/formats.txt"
    record devices "$CLIENT" devices --formats --json
    record words "$CLIENT" devices --formats
}

# The camera is there, goes and comes back.
watch_devices() {
    record watched "$CLIENT" devices --watch --json &
    local watching=$!
    wait_for "the camera to be listed" has_events "$OUT/watched.out" deviceAdded 1
    unbind
    wait_for "the camera's going to be told" has_events "$OUT/watched.out" deviceRemoved 1
    rebind
    wait_for "the camera's return to be told" has_events "$OUT/watched.out" deviceAdded 2
    kill -TERM "$(pgrep -f "room-client devices" | head -n 1)"
    wait "$watching"
}

publish_vivid() {
    start_server
    publish yuyv "$1" --pixel-format YUYV --size 640x360 --fps 30
    publish nv12 "$1" --pixel-format NV12 --size 640x360 --fps 30
    publish easy "$1" --pixel-format NV12 --size 320x180 --fps 15
}

# The camera's log tells for one stream how many frames it skipped.
publish_uvc() {
    start_server
    publish mjpeg "$1" --pixel-format MJPG --size 320x240 --fps 30
    unplug_camera
    plug_camera
    publish yuyv "$1" --pixel-format YUYV --size 320x240 --fps 30
    unplug_camera
}

vivid_control() { v4l2-ctl -d "$CAMERA_NODE" -c "$1"; }

flag_and_refuse() {
    vivid_control inject_v4l2_buf_flag_error=1
    vivid_control inject_vidioc_qbuf_error=1
}
break_stream() { vivid_control inject_fatal_streaming_error=1; }
disconnect() { vivid_control disconnect=1; }
unbind() { echo vivid.0 >/sys/bus/platform/drivers/vivid/unbind; }

vivid_faults() {
    local small=(--pixel-format YUYV --size 320x180 --fps 15)
    start_server
    vivid_control percentage_of_dropped_buffers=30
    # Without a wait for the camera: a stream that had to be opened anew would end the program.
    publish_with_fault drops flag_and_refuse 6 "${small[@]}" --camera-wait 0
    vivid_control percentage_of_dropped_buffers=0
    publish_with_fault fatal break_stream 60 "${small[@]}" --camera-wait 0
    publish_with_fault disconnected disconnect 60 "${small[@]}" --camera-wait 0
    publish_with_fault unbound unbind 60 "${small[@]}" --camera-wait 1
}

# The number of a signal, such as 1280x720p60, in vivid's list.
signal_number() { v4l2-ctl -d "$CAMERA_NODE" -L | sed -n "s/^[[:space:]]*\([0-9]*\): $1\$/\1/p" | head -n 1; }
send_signal() { vivid_control dv_timings="$(signal_number "$1")"; }
send_larger_signal() { send_signal 1280x720p60; }

vivid_signal() {
    start_server
    vivid_control dv_timings_signal_mode=1
    connect_camera no-signal --duration 2
    vivid_control dv_timings_signal_mode=4
    send_signal 720x480p59
    publish_with_fault signal send_larger_signal 10 --fps 10
}

uvc_stream_faults() {
    local small=(--pixel-format MJPG --size 320x240 --fps 15)
    start_server
    plug_camera --damage 10 && publish damaged 6 "${small[@]}"
    unplug_camera
    plug_camera --damage-first 5 && publish damaged-first 3 "${small[@]}"
    unplug_camera
    plug_camera --stall-after 40 && publish stalled 60 "${small[@]}" --camera-wait 0
    unplug_camera
    plug_camera && publish_with_fault unplugged unplug_camera 60 "${small[@]}" --camera-wait 0
}

# ---- colours ----

# One subscriber for all formats, each published under its own name.
vivid_colours() {
    start_server
    vivid_control osd_text_mode=2
    start_subscriber --snapshot "$OUT/YUYV.png"
    local format
    for format; do
        connect_camera "$format" --identity "$format" --pixel-format "$format" --size 320x180 --fps 15 --duration 1.5
    done
    stop_subscriber
}

uvc_colours() {
    start_server
    start_subscriber --snapshot "$OUT/MJPG.png"
    connect_camera MJPG --identity MJPG --pixel-format MJPG --size 320x240 --fps 15 --duration 1.5
    stop_subscriber
}

# ---- errors before anything streams ----

# Lets everybody look into the folders of a file; only the guest's throw-away overlay changes.
open_folders() {
    local folder=$1
    while [[ $folder != / ]]; do
        folder=$(dirname "$folder")
        chmod o+x "$folder"
    done
}

# As a user who is in no group; the node is as udev would leave it.
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"; }

# Lets everybody start the client.
open_client() {
    open_folders "$CLIENT"
    open_folders "$(ldd "$CLIENT" | sed -n 's/.*libswiftCore.so => \([^ ]*\).*/\1/p')"
}

connect_without_rights() {
    open_client
    chgrp video "$CAMERA_NODE"
    chmod 660 "$CAMERA_NODE"
    record forbidden as_nobody "$CLIENT" connect --room lab --duration 2 --device "$CAMERA_NODE"
    record forbidden-default as_nobody "$CLIENT" connect --room lab --duration 2
    record forbidden-list as_nobody "$CLIENT" devices
    examine_camera doctor-forbidden as_nobody
}

# What doctor says about the cameras. Usage: examine_camera NAME [PREFIX...]
examine_camera() {
    local name=$1
    shift
    record "$name" "$@" "$CLIENT" doctor --only cameras --device "${CAMERA_NODE:-0}"
    cat "$OUT/$name.out" >>"$OUT/$name.err"
}

connect_to_busy_camera() {
    v4l2-ctl -d "$CAMERA_NODE" --stream-mmap=4 --stream-to=/dev/null >"$OUT/holder" 2>&1 &
    local holder=$!
    wait_for "v4l2-ctl to stream" test -s "$OUT/holder"  # a mark per frame
    echo "$holder" >"$OUT/holder.pid"
    connect_camera busy --duration 2
    examine_camera doctor-busy
    kill "$holder"
    wait "$holder"
}

vivid_errors() {
    start_server
    record missing "$CLIENT" connect --room lab --duration 2 --device /dev/video7
    record unnamed "$CLIENT" connect --room lab --duration 2 --device "Nobody's camera"
    connect_camera no-format --duration 2 --pixel-format MJPG
    connect_camera unreadable --duration 2 --pixel-format YUV4
    connect_to_busy_camera
    vivid_control inject_vidioc_reqbufs_error=1
    connect_camera no-buffers --duration 2
    vivid_control inject_vidioc_streamon_error=1
    connect_camera no-start --duration 2
    connect_camera after-all --duration 2 --size 320x180
    examine_camera doctor-free
    connect_without_rights
}

uvc_errors() {
    start_server
    record metadata "$CLIENT" connect --room lab --duration 2 --device "$CAMERA_METADATA_NODE"
    connect_camera no-format --duration 2 --pixel-format NV12
}

no_camera() {
    start_server
    record none "$CLIENT" connect --room lab --duration 2
    record none-list "$CLIENT" devices
    examine_camera doctor-none
}

swift_tests() {
    export CAMERA_LAB=1
    record tests "$ROOM_TESTS" --testing-library swift-testing --filter "$1"
}
