# The USB camera, from inside the guest. Sourced by what runs there.
# shellcheck shell=bash

UVC_CAMERA_NAME="Lab UVC camera"

# A tenth of a second, without starting a program.
nap() { read -rt 0.1 <> <(:) || true; }

# Prints the nodes of the USB camera: first the one for video, then the one for metadata.
camera_nodes() {
    local entry
    for entry in /sys/class/video4linux/video*; do
        [[ -r $entry/name && $(<"$entry/name") == "$UVC_CAMERA_NAME"* ]] && echo "$(<"$entry/index") /dev/${entry##*/}"
    done 2>/dev/null | sort | cut -d ' ' -f 2
}

# Plugs a camera in, with uvc-camera's options, and waits for its nodes.
# Sets CAMERA_PID, CAMERA_NODE and CAMERA_METADATA_NODE.
plug_camera() {
    [[ -d /sys/bus/platform/drivers/vhci_hcd && -d /sys/module/uvcvideo ]] || modprobe -a vhci_hcd uvcvideo || return
    local before nodes attempt
    before=$(camera_nodes)
    "$CAMERA_LAB_CACHE/uvc-camera" "$@" "$CAMERA_LAB_CACHE"/clips/*.mjpg </dev/null >/dev/null \
        2>>"$CAMERA_LAB_OUT/uvc-camera.log" &
    export CAMERA_PID=$! CAMERA_NODE="" CAMERA_METADATA_NODE=""
    for ((attempt = 0; attempt < 100; attempt++)); do
        mapfile -t nodes < <(camera_nodes | grep -vxF -e "${before:-none}")
        if ((${#nodes[@]} == 2)); then
            CAMERA_NODE=${nodes[0]} CAMERA_METADATA_NODE=${nodes[1]}
            return 0
        fi
        kill -0 "$CAMERA_PID" 2>/dev/null || break
        nap
    done
    echo "camera-lab: the USB camera did not appear: $(tail -n 1 "$CAMERA_LAB_OUT/uvc-camera.log")" >&2
    return 1
}

# Pulls the camera out that was plugged in last, and waits until its nodes are gone; its counts are in the log then.
unplug_camera() {
    kill "$CAMERA_PID" 2>/dev/null || true
    local attempt
    for ((attempt = 0; attempt < 100; attempt++)); do
        [[ -n $CAMERA_NODE && $(camera_nodes) == *"$CAMERA_NODE"* ]] || return 0
        nap
    done
    echo "camera-lab: the USB camera's nodes did not go" >&2
    return 1
}
