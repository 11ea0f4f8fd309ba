# What the guest does with a camera's controls, and with two cameras on one bus. Sourced by guest-checks.sh.
# shellcheck shell=bash

# ---- controls ----

# Lists the controls, by v4l2-ctl and by the program. Usage: list_controls NAME
list_controls() {
    v4l2-ctl -d "$CAMERA_NODE" -L >"$OUT/$1.txt"
    record "$1" "$CLIENT" devices --controls --json --device "$CAMERA_NODE"
}

vivid_controls() { list_controls controls; }

# Prints NAME=VALUE of the controls named, a line each. Usage: control_values NAME...
control_values() {
    local name
    for name; do v4l2-ctl -d "$CAMERA_NODE" -C "$name" | awk '{ sub(":", "", $1); print $1 "=" $2 }'; done
}

# The publisher sets the controls when it opens the camera, and again when the camera is back.
replug_controlled() {
    control_values "${SETTINGS[@]%=*}" >"$CAMERA_LAB_OUT/before.values"
    OUT=$CAMERA_LAB_OUT list_controls manual
    unplug_camera
    when_told controlled interrupted 1
    plug_camera --serial A
    when_told controlled interruptionEnded 1
    control_values "${SETTINGS[@]%=*}" >"$CAMERA_LAB_OUT/after.values"
    kill -TERM "$(publisher_pid)"
}

# Usage: uvc_controls NAME=VALUE...
uvc_controls() {
    SETTINGS=("$@")
    local options=() setting
    for setting; do options+=(--control "$setting"); done
    start_server
    plug_camera --serial A || return
    list_controls automatic
    connect_camera overruled --duration 2 --control exposure_time_absolute=300
    connect_camera unknown --duration 2 --control zoom=1
    # The exposure comes before the mode that frees it; "default" puts both back.
    record unpublished "$CLIENT" devices --json --device "$CAMERA_NODE" \
        --control exposure_time_absolute=300,auto_exposure=1
    control_values exposure_time_absolute auto_exposure >"$CAMERA_LAB_OUT/unpublished.values"
    record restored "$CLIENT" devices --json --device "$CAMERA_NODE" \
        --control exposure_time_absolute=default --control auto_exposure=default
    connect_camera beyond --duration 2 --control brightness=65
    publish_with_fault controlled replug_controlled 60 --pixel-format MJPG --size 320x240 --fps 15 \
        "${options[@]}"
}

# ---- two cameras on one bus ----

FULL=(--pixel-format YUYV --size 640x480 --fps 30)

# Streams from the first camera, which takes three quarters of the bus, until `free_bus`.
fill_bus() {
    v4l2-ctl -d "$FIRST_NODE" --set-fmt-video=pixelformat=YUYV,width=640,height=480 --set-parm=30 >/dev/null
    v4l2-ctl -d "$FIRST_NODE" --stream-mmap=4 --stream-to=/dev/null >"$OUT/holder" 2>&1 &
    holder=$!
    wait_for "v4l2-ctl to stream" test -s "$OUT/holder"  # a mark per frame
}

free_bus() {
    kill "$holder"
    wait "$holder"
}

change_on_full_bus() {
    tell moved 1 "device $SECOND_NODE"
    kill -TERM "$(publisher_pid)"
}

uvc_bandwidth() {
    start_server
    plug_camera --serial A --bus /dev/shm/bus || return
    FIRST_NODE=$CAMERA_NODE
    plug_camera --serial B --bus /dev/shm/bus || return
    SECOND_NODE=$CAMERA_NODE
    fill_bus
    v4l2-ctl -d "$SECOND_NODE" --set-fmt-video=pixelformat=YUYV,width=640,height=480 --set-parm=30 >/dev/null
    record kernel timeout 10 v4l2-ctl -d "$SECOND_NODE" --stream-mmap=4 --stream-count=5 --stream-to=/dev/null
    connect_camera full --duration 2 "${FULL[@]}"
    publish compressed 4 --size 640x480 --fps 30
    free_bus
    connect_camera alone --duration 2 "${FULL[@]}"
    CAMERA_NODE=$FIRST_NODE
    mkfifo /dev/shm/commands
    exec 7<>/dev/shm/commands
    publish_with_fault moved change_on_full_bus 60 "${FULL[@]}" --commands <&7
}
