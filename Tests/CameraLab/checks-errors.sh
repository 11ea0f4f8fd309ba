# Checks of what the programs list, and of what they say when a camera cannot be had. Sourced by run.
# shellcheck shell=bash disable=SC2154

status_of() { cat "$results/$1.status" 2>/dev/null || echo none; }

# A program has ended with CODE and said PATTERN (case does not matter). Usage: judge_said NAME CLAIM CODE PATTERN
judge_said() {
    local truth=0
    [[ $(status_of "$1") != "$3" ]] || ! grep -qi -- "$4" "$results/$1.err" || truth=1
    judge "$2" "exit code $(status_of "$1"): $(tail -n 1 "$results/$1.err" 2>/dev/null)" "$truth"
}

check_devices() {
    local camera difference truth
    for camera in vivid uvc; do
        in_guest "devices-$camera" "$camera" list_devices
        truth=1
        difference=$(python3 "$LAB/compare-formats.py" "$results"/{formats.txt,devices.out,words.out} 2>&1) || truth=0
        judge "devices --formats on $camera agrees with v4l2-ctl" "$(tail -n 1 <<<"$difference")" "$truth"
    done

    in_guest devices-watch vivid watch_devices
    local changes
    changes=$(python3 -c 'import json, sys
print(*(entry["event"] + " " + entry["path"] for entry in map(json.loads, sys.stdin)), sep=", ")' \
        <"$results/watched.out" 2>&1) || true
    judge "devices --watch tells of a camera that goes and comes back, until SIGTERM" \
        "${changes##*$'\n'}; exit code $(status_of watched)" \
        "$([[ $changes == "deviceAdded /dev/video0, deviceRemoved /dev/video0, deviceAdded /dev/video0" ]] && echo 1 || echo 0)" \
        "$([[ $(status_of watched) == 0 ]] && echo 1 || echo 0)"
}

check_errors() {
    in_guest errors-none none no_camera
    judge_said none "no camera: connect names --source pattern" 66 "--source pattern"
    judge "no camera: devices says so" "$(cat "$results/none-list.out")" \
        "$([[ $(status_of none-list) == 0 && $(<"$results/none-list.out") == "No cameras: "* ]] && echo 1 || echo 0)"
    judge_said doctor-none "no camera: doctor says so" 1 "no camera: there is no /dev/video node"

    in_guest errors-vivid vivid vivid_errors
    judge_said missing "a path without a camera: connect lists those there are" 66 "/dev/video7.*/dev/video0 (vivid"
    judge_said unnamed "a name of no camera: connect lists those there are" 66 "/dev/video0 (vivid"
    judge_said no-format "a format that the camera lacks: connect lists those it has" 64 "no pixel format MJPG.*YUYV.*NV12"
    judge_said unreadable "a format that we cannot read: connect lists those we can" 64 "YUV4 cannot be read.*YUYV"
    judge_said busy "a busy camera: connect names its holder" 69 "v4l2-ctl (pid $(cat "$results/holder.pid"))"
    judge_said doctor-busy "a busy camera: doctor names its holder" 1 "problem cameras .*in use by v4l2-ctl"
    judge_said no-buffers "no buffers from the driver: connect says so" 69 "Cannot get buffers of /dev/video0"
    judge_said no-start "a driver that does not start: connect says so" 69 "Cannot start streaming from /dev/video0"
    judge "the next start works" "exit code $(status_of after-all)" "$([[ $(status_of after-all) == 0 ]] && echo 1 || echo 0)"
    judge_said doctor-free "a free camera: doctor states size, rate and first frame" 0 "ok .*gives 640x.* fps"
    judge_said doctor-forbidden "no permission: doctor gives the command" 1 "usermod -aG video nobody"
    judge_said forbidden "no permission: connect names the group" 77 'group.*video'
    judge_said forbidden-default "no permission, no device named: connect names the group" 77 'group.*video'
    judge_said forbidden-list "no permission: devices does not say that there is none" 77 'group.*video'

    in_guest errors-uvc uvc uvc_errors
    judge_said metadata "a metadata node: it is no camera" 66 "no node that pictures stream from: a metadata"
    judge_said no-format "a format that the USB camera lacks: connect lists those it has" 64 "NV12; choose one of YUYV, MJPG"
}

# ---- the Swift tests ----

# A filter that finds nothing passes, and tests that are skipped count for the runner; so those that passed are counted.
check_tests() {
    local camera count wanted
    prepare_tests
    for camera in vivid:15 uvc:3; do
        wanted=${camera#*:} camera=${camera%:*}
        in_guest "tests-$camera" "$camera" swift_tests "${CAMERA_TESTS:-CameraLabTests}"
        count=$(grep -hc '^[^ ]* Test ".*passed after' < <(cat "$results"/tests.{out,err})) || true
        [[ -z ${CAMERA_TESTS:-} ]] || wanted=1
        judge "the Swift tests with $camera" "${count:-0} passed, exit code $(status_of tests)" \
            "$([[ $(status_of tests) == 0 && ${count:-0} -ge $wanted ]] && echo 1 || echo 0)"
    done
}
