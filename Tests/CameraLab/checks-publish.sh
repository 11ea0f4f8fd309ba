# Checks of what is published from a camera, in whole streams and in broken ones. Sourced by run.
# shellcheck shell=bash disable=SC2154

SECONDS_PUBLISHED=12
SECONDS_DUMPED_AT_LEAST=10
# Of a small and slow stream the emulated machine can take all but so much.
EASY_DROP_PERCENT=3

# Prints FIELD... of the last JSON line whose event is EVENT, in a line; a dot goes one level down, "-" for what is not
# there. Usage: json_fields FILE EVENT FIELD...
json_fields() {
    python3 - "$@" <<'PYTHON'
import json, sys
path, event, *fields = sys.argv[1:]
found = {}
try:
    lines = open(path).readlines()
except OSError:
    lines = []
for line in lines:
    try:
        entry = json.loads(line)
    except ValueError:
        continue
    if isinstance(entry, dict) and entry.get("event") == event:
        found = entry
def value(field):
    place = found
    for key in field.split("."):
        place = place.get(key) if isinstance(place, dict) else None
    return "-" if place is None else place
print(*map(value, fields))
PYTHON
}

# Prints the value of an expression, or 1 or 0 for whether one holds; none of a malformed one, for a figure is missing.
calculate() { awk "BEGIN { printf \"%.3f\", ($1) }" 2>/dev/null || true; }
holds() { awk "BEGIN { print (($1) ? 1 : 0) }" 2>/dev/null || true; }

# Reads what came of a publishing into variables: captured missed span encoded sent expired corrupt unwanted dropped
# nominal (of the publisher), packets seconds rate warnings md5 (of the dump), lost left_out skipped verified (by verify),
# unsent (packets that the server had not sent to the subscriber when the track ended), numbers (the first and the last
# frame of the dump).
# Usage: read_publication FOLDER
read_publication() {
    local summary=$1/connect.out
    read -r captured missed span encoded sent expired corrupt unwanted < <(json_fields "$summary" summary \
        framesCaptured framesMissed captureSeconds framesEncoded framesSent framesExpired \
        framesDropped.corrupt framesDropped.notWanted)
    dropped=$(python3 -c 'import json, sys; print(sum(json.loads(open(sys.argv[1]).readlines()[-1])["framesDropped"].values()))' \
        "$summary" 2>/dev/null || echo -)
    read -r nominal < <(json_fields "$summary" published frameRate)
    file=$(compgen -G "$1/dump/*.webm" | head -n 1) || true
    packets=0 seconds=0 rate=0 warnings="no file" md5="" lost=- left_out=- skipped=- verified=none unsent=0 numbers=none
    [[ -n $file ]] || return 0
    warnings=$(ffprobe -v warning -show_frames "$file" 2>&1 >/dev/null) || true
    read -r packets seconds rate < <(ffprobe -v error -select_streams v:0 -show_entries packet=pts_time -of csv=p=0 "$file" |
        awk -F, 'NR == 1 { start = $1 } { end = $1 }
                 END { printf "%d %.2f %.2f\n", NR, end - start, (end > start ? (NR - 1) / (end - start) : 0) }')
    md5=$(vpxdec --md5 "$file" 2>/dev/null | cut -c 1-32) || true
    "$ROOM_BUILD_DIR/room-client" verify --json "$1/dump" >"$1/verify.out" 2>"$1/verify.err" && verified=0 || verified=$?
    read -r lost left_out skipped < <(json_fields "$1/verify.out" file lost layersLeftOut skipped)
    numbers=$(sed -n 's/.*"number":\([0-9]*\).*/\1/p' "${file%.*}.frames.jsonl" 2>/dev/null | sed -n '1p;$p' | paste -sd - -) || true
    local viewer
    read -r viewer < <(json_fields "$1/subscribe.out" connected participant)
    unsent=$(sed -n "s/.*\"$viewer\" left .*[ :]\([0-9][0-9]*\) unsent at the end.*/\1/p" "$1/../server.log" 2>/dev/null |
        tail -n 1) || true
    unsent=${unsent:-0}
}

# The file is one that players open, and no frame of it is missing, doubled or out of order.
# Usage: judge_dump CLAIM SHORTEST_SECONDS
judge_dump() {
    judge "$1: a whole dump of $2 s or more, verify finds nothing lost" \
        "$packets frames, $seconds s, ffprobe: ${warnings:-no warning}, MD5 ${md5:-none}, lost $lost, verify $verified" \
        "$([[ -z $warnings && -n $md5 && $lost == 0 && $verified == 0 ]] && echo 1 || echo 0)" \
        "$(at_least "$seconds" "$2")"
}

# captured = encoded + drops, encoded = sent + expired, sent = in the dump + left out on the way: temporal layers, all up to
# a keyframe where the host stopped the guest for longer than a frame may be late, and what was still to be sent when the
# track ended, of which the server tells (a frame has one packet or more).
# Usage: judge_counts CLAIM
judge_counts() {
    local missing figure="captured $captured = encoded $encoded + dropped $dropped; sent $sent + expired $expired; "
    figure+="in the dump $packets ($numbers) + left out $left_out + skipped $skipped; packets unsent at the end $unsent"
    [[ $captured != - && $left_out != - && $skipped != - ]] || { judge "$1: no frame is lost unexplained" "$figure" 0; return; }
    missing=$((sent - packets - left_out - skipped))
    judge "$1: no frame is lost unexplained" "$figure" \
        "$((captured > 0 && captured == encoded + dropped && encoded == sent + expired && missing >= 0 && missing <= unsent))"
}

# The driver's own rate by its sequence numbers and stamps, strictly; and in the dump, what was kept of it while somebody
# watched, less so: where a loaded host drops frames in bursts, first and last frame do not span what was watched.
# SKIPPED: frames of the USB camera that never reached its driver. Usage: judge_rate CLAIM SKIPPED
judge_rate() {
    [[ $captured != - ]] || { judge "$1: the camera's frame rate" "no summary" 0; return; }
    local camera kept
    camera=$(calculate "$span > 0 ? ($captured + $missed + $2 - 1) / $span : 0")
    kept=$(calculate "$packets / ($captured + $missed + $2 - $unwanted)")
    judge "$1: the camera runs at its $nominal fps, and the dump at what is kept of it" \
        "($captured captured + $missed missed + $2 skipped - 1) / $span s = $camera fps; kept $kept, dump $rate fps" \
        "$(within_percent 2 "$camera" "$nominal")" \
        "$(within_percent 5 "$rate" "$(calculate "$camera * $kept")")"
}

# Usage: judge_publication FOLDER CLAIM SKIPPED
judge_publication() {
    read_publication "$1"
    judge "$2: connect ends well" "exit code $(status_of "${1##*/}/connect")" "$([[ $(status_of "${1##*/}/connect") == 0 ]] && echo 1 || echo 0)"
    judge_dump "$2" "$SECONDS_DUMPED_AT_LEAST"
    judge_counts "$2"
    judge_rate "$2" "$3"
}

# What the USB camera drew must still be in order behind encoder, relay and file. Usage: judge_numbers CLAIM
judge_numbers() {
    local count gaps disordered
    [[ -n $file ]] || { judge "$1: pictures in order" "no dump" 0; return; }
    read -r count gaps disordered < <(frame_numbers -i "$file" | number_figures)
    judge "$1: pictures in order" "$count pictures, $gaps not sent, $disordered out of order" \
        "$((count == packets && disordered == 0))"
}

# Prints a count of the USB camera's Nth plugging, by its log. Usage: camera_count N WORD
camera_count() {
    sed -n "s/.*uvc-camera: .* \([0-9]*\) $2.*/\1/p" "$results/uvc-camera.log" | sed -n "$1p" | grep . || echo 0
}

check_publish() {
    in_guest publish-vivid vivid publish_vivid "$SECONDS_PUBLISHED"
    judge_publication "$results/yuyv" "vivid YUYV 640x360" 0
    judge_publication "$results/nv12" "vivid NV12 640x360" 0
    judge_publication "$results/easy" "vivid NV12 320x180" 0
    judge "vivid NV12 320x180: at most $EASY_DROP_PERCENT % are dropped while somebody watches" \
        "$dropped dropped, $unwanted of them while nobody watched, of $captured; dump $rate fps" \
        "$(holds "100 * ($dropped - $unwanted) <= $EASY_DROP_PERCENT * ($captured - $unwanted)")"

    in_guest publish-uvc uvc publish_uvc "$SECONDS_PUBLISHED"
    judge_publication "$results/mjpeg" "uvc MJPG 320x240" "$(camera_count 1 skipped)"
    judge_numbers "uvc MJPG 320x240"
    judge_publication "$results/yuyv" "uvc YUYV 320x240" "$(camera_count 2 skipped)"
    judge_numbers "uvc YUYV 320x240"
}

# ---- faults in the middle of a stream ----

# The publisher ends with a code and a sentence, the subscriber's file is whole.
# Usage: judge_ending NAME CLAIM CODE PATTERN
judge_ending() {
    judge_said "$1/connect" "$2: connect says so" "$3" "$4"
    read_publication "$results/$1"
    judge_dump "$2" 0.5
    judge_counts "$2"
}

check_faults() {
    in_guest faults-vivid vivid vivid_faults
    read_publication "$results/drops"
    judge "buffers that the driver drops are counted as missed" "$missed missed" "$((${missed/-/0} > 0))"
    judge "a buffer flagged as an error is corrupt; one that the driver refuses does not end the stream" \
        "$corrupt corrupt, exit code $(status_of drops/connect)" \
        "$([[ $corrupt == 1 && $(status_of drops/connect) == 0 ]] && echo 1 || echo 0)"
    judge_counts "dropped buffers"
    judge_rate "dropped buffers" 0
    judge_ending fatal "a fatal error of the driver" 69 "the driver"
    judge_ending disconnected "a disconnected camera" 69 "went away"
    judge_ending unbound "an unbound driver" 69 "went away"

    in_guest faults-uvc none uvc_stream_faults
    read_publication "$results/damaged"
    judge "damaged MJPEG frames are corrupt, and the stream goes on" \
        "$corrupt corrupt of $captured, the camera damaged $(camera_count 1 damaged); $encoded encoded" \
        "$(holds "$corrupt > 0 && $corrupt <= $(camera_count 1 damaged) && $corrupt >= $(camera_count 1 damaged) - $missed - 1")" \
        "$(holds "$encoded > 3 * $corrupt")"
    judge_dump "damaged MJPEG frames" 3
    judge_counts "damaged MJPEG frames"
    read_publication "$results/damaged-first"
    judge "a stream whose first five MJPEG frames are damaged comes" "$corrupt corrupt, $encoded encoded" \
        "$(holds "$corrupt > 0 && $corrupt <= 5 && $encoded > 0")"
    judge_ending stalled "a camera that falls silent" 69 "no frame came for 5"
    judge_ending unplugged "an unplugged camera" 69 "went away"
}

# ---- colours ----

check_colours() {
    local formats=(YU12 YV12 NV12 NV21 422P NV16 NV61 UYVY YVYU RGB3 BGR3 GREY Y16 BGR4 YUYV) format
    in_guest colours-vivid vivid vivid_colours "${formats[@]}"
    for format in "${formats[@]}"; do judge_colours "$format" bars; done
    judge_picture YUYV bars
    in_guest colours-uvc uvc uvc_colours
    judge_colours MJPG clip
    judge_picture MJPG clip
}

# Judges the last picture of a format's dump. Usage: judge_colours FORMAT SCENE
judge_colours() {
    local dump
    dump=$(compgen -G "$results/dump/$1-*.webm" | head -n 1) || true
    judge_scene "colours of $1" "$2" "$1" "${dump:-none}"
}

# Usage: judge_picture FORMAT SCENE
judge_picture() { judge_scene "colours of the snapshot, $1" "$2" "$1" "$results/$1.png"; }

# Usage: judge_scene CLAIM SCENE FORMAT FILE
judge_scene() {
    local figure truth=1
    figure=$(python3 "$LAB/compare-colours.py" "$2" "$3" "$4" 2>&1) || truth=0
    judge "$1 are the camera's" "$(tail -n 1 <<<"$figure")" "$truth"
}

check_signal() {
    in_guest signal hdmi vivid_signal
    judge_said no-signal "a receiver without a signal: connect says what to do" 69 "no steady signal comes at its input"
    read_publication "$results/signal"
    local sizes interruptions
    sizes=$(sed -n 's/.*"width":\([0-9]*\),.*"height":\([0-9]*\).*/\1x\2/p; s/.*"height":\([0-9]*\),.*"width":\([0-9]*\).*/\2x\1/p' \
        "$results"/signal/dump/*.frames.jsonl 2>/dev/null | uniq | paste -sd ' ') || true
    read -r interruptions < <(json_fields "$results/signal/connect.out" summary interruptions)
    # A busy guest may have no time for all of the larger pictures, and then sends smaller ones of their shape.
    judge "a receiver: its signal is followed, also when it becomes another one" "$sizes, $interruptions interruptions" \
        "$([[ $sizes == 720x480* && $interruptions == 1 ]] && echo 1 || echo 0)" \
        "$(holds "16 * ${sizes##*x} == 9 * $(sed 's/.* //; s/x.*//' <<<"$sizes")")"
    judge_dump "a receiver's changing signal" 4
    judge_counts "a receiver's changing signal"
}
