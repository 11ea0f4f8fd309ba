# Checks of the programs against real drivers. Sourced by run.
# shellcheck shell=bash disable=SC2154

SECONDS_PUBLISHED=12
SECONDS_DUMPED_AT_LEAST=10

# Prints a field of the last JSON line whose event is EVENT; a dot goes one level down. Nothing if it is not there.
# Usage: json_field FILE EVENT FIELD
json_field() {
    python3 - "$@" <<'PYTHON'
import json, sys
path, event, field = sys.argv[1:]
found = None
try:
    lines = open(path).readlines()
except OSError:
    lines = []
for line in lines:
    try:
        entry = json.loads(line)
    except ValueError:
        continue
    if entry.get("event") == event:
        found = entry
for key in field.split("."):
    found = found.get(key) if isinstance(found, dict) else None
print("" if found is None else found)
PYTHON
}

status_of() { cat "$results/$1.status" 2>/dev/null || echo none; }

# Succeeds if one of the program's outputs has the pattern (case does not matter).
says() { grep -qi -- "$2" "$results/$1.out" "$results/$1.err" 2>/dev/null; }

# Usage: judge_says CLAIM PATTERN
judge_says() {
    local truth=0
    ! says connect "$2" || truth=1
    judge "$1" "exit code $(status_of connect): $(tail -n 1 "$results/connect.err" 2>/dev/null)" "$truth"
}

# Usage: judge_status CLAIM CODE...
judge_status() {
    local claim=$1 status code truth=0
    shift
    status=$(status_of connect)
    for code; do [[ $status != "$code" ]] || truth=1; done
    judge "$claim" "exit code $status" "$truth"
}

# ---- the devices ----

check_devices() {
    local camera difference truth
    for camera in vivid uvc; do
        in_guest "devices-$camera" "$camera" list_devices
        truth=1
        difference=$(python3 "$LAB/compare-formats.py" "$results/formats.txt" "$results/devices.out" 2>&1) || truth=0
        judge "devices --formats on $camera agrees with v4l2-ctl" "$(tail -n 1 <<<"$difference")" "$truth"
    done
}

# ---- publishing ----

dump_file() { compgen -G "$results/dump/*.webm" | head -n 1; }

# Judges that the subscriber's file is whole; leaves "packets seconds rate" in $dump_figures.
# Usage: judge_dump CLAIM SHORTEST_SECONDS
judge_dump() {
    local file warnings md5
    dump_figures="0 0 0"
    file=$(dump_file) || true
    [[ -n $file ]] || { judge "$1: a dump" "none; subscribe ended with $(status_of subscribe)" 0; return; }
    warnings=$(ffprobe -v warning -show_frames "$file" 2>&1 >/dev/null)
    dump_figures=$(ffprobe -v error -select_streams v:0 -show_entries packet=pts_time -of csv=p=0 "$file" |
        awk -F, 'NR == 1 { start = $1 } { end = $1 }
                 END { printf "%d %.2f %.2f\n", NR, end - start, (end > start ? (NR - 1) / (end - start) : 0) }')
    md5=$(vpxdec --md5 "$file" 2>/dev/null | cut -c 1-32)
    local packets seconds rate
    read -r packets seconds rate <<<"$dump_figures"
    judge "$1: a whole dump of at least $2 s" "$packets frames, $seconds s, ${warnings:-no warning}, MD5 ${md5:-none}" \
        "$([[ -z $warnings && -n $md5 ]] && echo 1 || echo 0)" "$(at_least "$seconds" "$2")"
}

# The driver's own rate: what was captured and what it skipped, over the time of the dump's pictures.
# Usage: judge_rate CLAIM
judge_rate() {
    local captured missed span packets seconds rate driver_rate
    captured=$(json_field "$results/connect.out" summary framesCaptured)
    missed=$(json_field "$results/connect.out" summary framesMissed)
    span=$(json_field "$results/connect.out" summary captureSeconds)
    read -r packets seconds rate <<<"$dump_figures"
    driver_rate=$(awk -v frames="$((${captured:-0} + ${missed:-0}))" -v seconds="${span:-0}" \
        'BEGIN { printf "%.2f", (seconds > 0 ? (frames - 1) / seconds : 0) }')
    judge "$1: the dump has the driver's frame rate" \
        "dump $rate, driver $driver_rate (captured ${captured:-?}, missed ${missed:-?} in ${span:-?} s)" \
        "$(within_percent 2 "$rate" "$driver_rate")"
}

# Usage: check_published CAMERA FOURCC SIZE RATE
check_published() {
    local claim="$1 $2 $3"
    in_guest "publish-$1-$2" "$1" publish "$SECONDS_PUBLISHED" --pixel-format "$2" --size "$3" --fps "$4"
    judge_status "$claim: connect ends well" 0
    judge_dump "$claim" "$SECONDS_DUMPED_AT_LEAST"
    judge_rate "$claim"
    [[ $1 != uvc ]] || judge_published_numbers "$claim"
}

# What the camera drew must still be in order behind encoder, relay and file.
judge_published_numbers() {
    local file count lost disordered
    file=$(dump_file) || true
    [[ -n $file ]] || { judge "$1: pictures in order" "no dump" 0; return; }
    read -r count lost disordered < <(frame_numbers -i "$file" | number_figures)
    judge "$1: pictures in order" "$count pictures, $lost lost, $disordered out of order" \
        "$((count > 0 && disordered == 0))"
}

check_publish() {
    check_published vivid YUYV 640x360 30
    check_published vivid NV12 640x360 30
    check_published uvc YUYV 320x240 30
    check_published uvc MJPG 320x240 30
}

# ---- errors ----

check_errors() {
    in_guest no-camera none connect_without_camera
    judge_says "no camera: connect names --source pattern" "--source pattern"
    judge_status "no camera: the exit code is 66" 66

    in_guest busy vivid connect_to_busy_camera
    judge_says "busy camera: the text names its holder" "v4l2-ctl"
    judge_status "busy camera: the exit code is 69" 69

    in_guest metadata uvc connect_to_metadata_node
    judge_says "metadata node: it is no camera" "not a camera"
}

check_unplug() {
    in_guest unplug uvc publish_and_unplug
    judge_status "unplugged: connect ends with an error of its own" 66 69 74
    judge_dump "unplugged" 1
}

check_faults() {
    in_guest drops vivid publish_with_drops
    local missed corrupt
    missed=$(json_field "$results/connect.out" summary framesMissed)
    corrupt=$(json_field "$results/connect.out" summary framesDropped.corrupt)
    judge "buffers that the driver drops are counted as missed" "${missed:-no figure}" "$((${missed:-0} > 0))"
    judge "a buffer flagged as an error is counted as corrupt" "${corrupt:-no figure}" "$((${corrupt:-0} > 0))"
}

# ---- the Swift tests ----

# A filter that finds nothing passes, so the number of tests counts.
check_tests() {
    in_guest tests vivid swift_tests "${CAMERA_TESTS:-CameraLabTests}"
    local count
    count=$(sed -n 's/.*Test run with \([0-9]*\) test.* passed.*/\1/p' "$results"/tests.{out,err} 2>/dev/null | tail -n 1) || true
    judge "the Swift tests with a camera" "${count:-0} passed, exit code $(status_of tests)" \
        "$([[ $(status_of tests) == 0 && ${count:-0} -gt 0 ]] && echo 1 || echo 0)"
}
