# Checks of a camera's controls, and of two cameras whose payload does not fit one bus. Sourced by run.
# shellcheck shell=bash disable=SC2154

# An automatic mode is turned off before what it overrules.
SETTINGS=(auto_exposure=1 exposure_time_absolute=321 white_balance_automatic=0 white_balance_temperature=3100
    brightness=-20 gain=15 power_line_frequency=2)

# The program lists what v4l2-ctl lists, and OVERRULED are inactive. Usage: judge_controls NAME CLAIM OVERRULED
judge_controls() {
    local difference truth=1
    difference=$(python3 "$LAB/compare-controls.py" "$results/$1.txt" "$results/$1.out" "$3" 2>&1) || truth=0
    judge "$2" "$(tail -n 1 <<<"$difference")" "$truth"
}

check_controls() {
    in_guest controls-vivid vivid vivid_controls
    judge_controls controls "vivid: devices --controls agrees with v4l2-ctl" gain
    in_guest controls-uvc none uvc_controls "${SETTINGS[@]}"
    judge_controls automatic "uvc: devices --controls agrees with v4l2-ctl, and automatic modes overrule two controls" \
        "exposure_time_absolute white_balance_temperature"
    judge_controls manual "uvc: with manual modes, none is overruled" ""
    judge_said overruled "a control that an automatic mode overrules is refused" 69 "exposure_time_absolute.*overrules"
    judge_said unknown "a control that the camera lacks: connect lists those it has" 64 "zoom.*brightness"
    local unpublished
    unpublished=$(tr '\n' ' ' <"$results/unpublished.values")
    judge "devices --control sets controls without a room, in any order" \
        "$unpublished, exit codes $(status_of unpublished) $(status_of restored)" \
        "$([[ $unpublished == "exposure_time_absolute=300 auto_exposure=1 " && $(status_of unpublished) == 0 &&
            $(status_of restored) == 0 ]] && echo 1 || echo 0)"
    judge_said beyond "a value beyond a control's range: connect states the range" 64 "-64 to 64"
    local wanted before after
    wanted=$(printf '%s\n' "${SETTINGS[@]}")
    before=$(cat "$results/before.values") || true
    after=$(cat "$results/after.values") || true
    judge "controls that connect sets are set" "$(tr '\n' ' ' <<<"$before")" "$([[ $before == "$wanted" ]] && echo 1 || echo 0)"
    judge "they are set again after a replug" "$(tr '\n' ' ' <<<"$after")" "$([[ $after == "$wanted" ]] && echo 1 || echo 0)"
    judge_outages controlled "a camera with controls that was replugged" 1
}

check_bandwidth() {
    local format warned subscriptions gap truth
    in_guest bandwidth-uvc none uvc_bandwidth
    judge "a second camera whose payload does not fit the bus: the kernel says ENOSPC" \
        "$(grep -i "space left" "$results/kernel.err" "$results/kernel.out" | head -n 1 | cut -d : -f 2-)" \
        "$(grep -qi "STREAMON.*No space left" "$results"/kernel.{err,out} && echo 1 || echo 0)"
    judge_said full "no bandwidth for the format asked for: connect says so" 69 "no bandwidth left for this format"
    read_publication "$results/compressed"
    read -r format < <(json_fields "$results/compressed/connect.out" published pixelFormat)
    warned=$(grep -ci "captured as MJPG" "$results/compressed/connect.out" "$results/compressed/connect.err" |
        awk -F : '{ sum += $2 } END { print sum + 0 }') || true
    judge "no bandwidth, and no format asked for: it is captured as MJPG, with a warning" \
        "format $format, $warned warnings, exit code $(status_of compressed/connect)" \
        "$(holds "${warned:-0} >= 1")" "$([[ $format == MJPG && $(status_of compressed/connect) == 0 ]] && echo 1 || echo 0)"
    judge_dump "captured as MJPG" 1
    judge_counts "captured as MJPG"
    judge "with the bus free, the camera streams in the format asked for" "exit code $(status_of alone)" \
        "$([[ $(status_of alone) == 0 ]] && echo 1 || echo 0)"
    read_publication "$results/moved"
    gap=$(change_figures "$results/moved/connect.out")
    subscriptions=$(grep -c '"event":"trackSubscribed"' "$results/moved/subscribe.out") || true
    truth=$([[ $(wc -w <<<"${gap%|*}") == 1 && ${gap#*|} -eq 0 && $(status_of moved/connect) == 0 ]] && echo 1 || echo 0)
    judge "a change on a bus with room for one camera: the same track goes on" \
        "${gap%|*}ms without a frame, $subscriptions subscription, exit code $(status_of moved/connect)" \
        "$truth" "$(are_gaps "${gap%|*}")" "$(holds "${subscriptions:-0} == 1")"
    judge_dump "a change on a bus with room for one camera" 1
    judge_counts "a change on a bus with room for one camera"
}
