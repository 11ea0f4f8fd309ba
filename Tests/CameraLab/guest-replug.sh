# What the guest does with cameras that come and go, or are changed, while one is published. Sourced by guest-checks.sh.
# shellcheck shell=bash

REPLUGS=${CAMERA_LAB_REPLUGS:-10}
REPLUG_SECONDS=$((17 * REPLUGS))  # at most; the last return ends the publisher

# Waits until the publisher has reported COUNT interruptions, or of their ends. Usage: when_told NAME EVENT COUNT
when_told() { wait_for "$3 times $2" has_events "/dev/shm/$1/connect.out" "$2" "$3"; }

# Takes the camera away and gives it back, again and again; notes the time of each return, and what the publisher holds.
# Usage: come_and_go NAME AWAY BACK
come_and_go() {
    local name=$1 round publisher
    publisher=$(publisher_pid)
    for ((round = 1; round <= REPLUGS; round++)); do
        "$2"
        when_told "$name" interrupted "$round" || break
        nap; nap; nap; nap; nap
        date +%s.%N >>"$CAMERA_LAB_OUT/$name.returns"
        "$3"
        when_told "$name" interruptionEnded "$round" || break
        nap; nap; nap; nap; nap
        holdings "$publisher" >>"$CAMERA_LAB_OUT/$name.holdings"
    done
    kill -TERM "$publisher"
}

rebind() { echo vivid.0 >/sys/bus/platform/drivers/vivid/bind; }
vivid_comes_and_goes() { come_and_go rebound unbind rebind; }

vivid_replug() {
    start_server
    publish_with_fault rebound vivid_comes_and_goes "$REPLUG_SECONDS" --pixel-format YUYV --size 320x180 --fps 15
}

replug_uvc() { plug_camera --serial A; }
uvc_comes_and_goes() { come_and_go replugged unplug_camera replug_uvc; }

# In the same port, under the same number, with the same name: only the serial number differs.
other_serial() {
    local node=$CAMERA_NODE
    unplug_camera
    when_told serial interrupted 1
    plug_camera --serial B
    echo "$node $CAMERA_NODE" >"$CAMERA_LAB_OUT/serial.nodes"
    sleep 3
    count_events /dev/shm/serial/connect.out interruptionEnded >"$CAMERA_LAB_OUT/serial.early"
    plug_camera --serial A
    when_told serial interruptionEnded 1
    nap; nap; nap; nap; nap
    kill -TERM "$(publisher_pid)"
}

uvc_replug() {
    local small=(--pixel-format MJPG --size 320x240 --fps 15)
    start_server
    plug_camera --serial A && publish_with_fault replugged uvc_comes_and_goes "$REPLUG_SECONDS" "${small[@]}"
}

uvc_other() {
    local small=(--pixel-format MJPG --size 320x240 --fps 15)
    start_server
    plug_camera --serial A && publish_with_fault serial other_serial 60 "${small[@]}"
}

# The node comes back as the kernel makes it, for root alone; udev changes that a moment later.
deny_and_allow() {
    unbind
    when_told denied interrupted 1
    rebind
    sleep 1.5
    count_events /dev/shm/denied/connect.out interruptionEnded >"$CAMERA_LAB_OUT/denied.early"
    date +%s.%N >"$CAMERA_LAB_OUT/denied.returns"
    chmod 666 "$CAMERA_NODE"
    when_told denied interruptionEnded 1
    nap; nap; nap; nap; nap
    kill -TERM "$(publisher_pid)"
}

vivid_denied() {
    start_server
    open_client
    chmod 666 "$CAMERA_NODE"
    # shellcheck disable=SC2034 # guest-programs.sh reads it
    RUNNER=(as_nobody)
    publish_with_fault denied deny_and_allow 60 --pixel-format YUYV --size 320x180 --fps 15
}

# ---- cameras changed while one is published ----

# Gives the publisher a command, and waits until it is carried out or refused. Usage: tell NAME COUNT COMMAND
tell() {
    echo "$3" >&7
    when_told "$1" command "$2"
    nap; nap; nap; nap; nap
}

change_cameras() {
    tell changed 1 "device $SECOND_NODE"
    tell changed 2 "device $FIRST_NODE"
    tell changed 3 "format pixel-format=YUYV"
    tell changed 4 "device /dev/video99"
    tell changed 5 "device $SECOND_NODE pixel-format=MJPG"
    kill -TERM "$(publisher_pid)"
}

uvc_change() {
    start_server
    plug_camera --serial A || return
    FIRST_NODE=$CAMERA_NODE
    plug_camera --serial B || return
    SECOND_NODE=$CAMERA_NODE
    CAMERA_NODE=$FIRST_NODE
    mkfifo /dev/shm/commands
    exec 7<>/dev/shm/commands
    publish_with_fault changed change_cameras 120 --pixel-format MJPG --size 320x240 --fps 15 --commands <&7
}

uvc_hangs() {
    start_server
    plug_camera --stall-after 40 && publish hung 20 --pixel-format MJPG --size 320x240 --fps 15
    unplug_camera
}
