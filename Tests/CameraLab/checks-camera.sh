# Checks of the lab itself: do its cameras do what the other checks rely on?
# Sourced by run.
# shellcheck shell=bash disable=SC2154

# Prints the lines of a capture as "sequence bytes seconds flagged"; none of a capture that did not take place.
capture_table() {
    [[ -e $results/$1.frames ]] || return 0
    awk '{ for (i = 1; i < NF; i++) value[$i] = $(i + 1)
           print value["seq:"], value["bytesused:"], value["ts:"], /error/ ? 1 : 0 }' "$results/$1.frames"
}

# Prints "count missing flagged rate" of a capture; the rate is the driver's, by its sequence numbers.
capture_figures() {
    capture_table "$1" | awk '
        NR == 1 { first = $1; start = $3 }
        { last = $1; end = $3; flagged += $4 }
        END { if (NR == 0) print "0 0 0 0"
              else printf "%d %d %d %.2f\n", NR, last - first + 1 - NR, flagged, (end > start ? (last - first) / (end - start) : 0) }'
}

# Prints the numbers that the USB camera's pictures carry, one a line.
# Usage: frame_numbers FFMPEG_INPUT_ARGUMENT...
frame_numbers() {
    ffmpeg -v error -nostdin "$@" -fps_mode passthrough -enc_time_base -1 \
        -vf 'crop=iw:ih/8:0:0,scale=16:1:flags=area,format=gray' -f rawvideo - |
        od -An -v -w16 -tu1 | awk '{ n = 0; for (i = 16; i > 0; i--) n = 2 * n + ($i > 128); print n }'
}

# Reads frame numbers; prints "count lost disordered". The clips have 64 pictures, so only the low bits count.
number_figures() {
    awk '{ n = $1 % 64 }
         NR > 1 { step = (n - before + 64) % 64
                  if (step == 0 || step > 32) disordered++; else lost += step - 1 }
         { before = n }
         END { printf "%d %d %d\n", NR, lost, disordered }'
}

# Usage: judge_capture NAME CLAIM COUNT RATE
judge_capture() {
    local count missing flagged rate
    read -r count missing flagged rate < <(capture_figures "$1")
    judge "$2: $3 frames at the driver's $4 a second" "$count frames, $missing missing, $rate fps" \
        "$((count == $3 && flagged == 0))" "$(within_percent 3 "$rate" "$4")"
}

# Judges the numbers in the pictures. On a busy machine the guest may be late, then the camera skips frames: these count
# as taken, for the camera keeps its rate by the clock. The stamps are of when the guest noticed a frame, so that the
# first and the last one may each be an interval away from it.
# Usage: judge_pictures NAME CLAIM COUNT RATE FFMPEG_INPUT_ARGUMENT...
judge_pictures() {
    local name=$1 claim=$2 wanted=$3 wanted_rate=$4 count lost disordered rate is_near
    shift 4
    read -r count lost disordered < <(frame_numbers "$@" -i "$results/$name.raw" | number_figures)
    read -r rate is_near < <(capture_table "$name" | awk -v lost="$lost" -v wanted="$wanted_rate" '
        NR == 1 { start = $3 }
        { end = $3 }
        END { taken = NR - 1 + lost; off = (end - start) * wanted - taken
              printf "%.2f %d\n", (end > start ? taken / (end - start) : 0), (taken > 0 && off * off <= 4) }')
    judge "$claim: $wanted pictures in order, taken $wanted_rate a second" \
        "$count pictures, $lost lost, $disordered out of order, taken at $rate fps" \
        "$((count == wanted && disordered == 0))" "$is_near"
}

check_vivid() {
    in_guest vivid vivid vivid_streams
    judge_capture yuyv "vivid YUYV 640x360" 60 30
    judge_capture nv12 "vivid NV12 640x360" 60 30
    local count missing flagged rate
    read -r count missing flagged rate < <(capture_figures dropped)
    judge "vivid drops buffers when told to" "$missing of $((count + missing)) missing" "$((missing > 0))"
    read -r count missing flagged rate < <(capture_figures flagged)
    judge "vivid flags one buffer as an error when told to" "$flagged of $count" "$((flagged == 1))"
}

check_uvc() {
    in_guest uvc uvc uvc_streams
    judge_pictures yuyv-small "uvc YUYV 320x240" 60 30 -f rawvideo -pixel_format yuyv422 -video_size 320x240
    judge_pictures yuyv "uvc YUYV 640x480" 30 15 -f rawvideo -pixel_format yuyv422 -video_size 640x480
    judge_pictures mjpeg-small "uvc MJPG 320x240" 30 15 -f mjpeg
    judge_pictures mjpeg "uvc MJPG 640x480" 60 30 -f mjpeg
    judge_pictures mjpeg-large "uvc MJPG 1280x720" 60 30 -f mjpeg
}

check_uvc_faults() {
    in_guest uvc-faults none uvc_faults
    local count missing flagged rate short
    short=$(capture_table damaged | awk '{ size[NR] = $2; sum += $2 } END { for (i in size) n += size[i] < 0.7 * sum / NR; print n + 0 }')
    judge "uvc --damage 5 halves every fifth MJPEG frame" "$short of 40" "$((short == 8))"
    read -r count missing flagged rate < <(capture_figures error-dropped)
    judge "uvc --error 25: the driver keeps such frames to itself" "$missing missing, $flagged flagged" \
        "$((missing > 0 && flagged == 0))"
    read -r count missing flagged rate < <(capture_figures error-flagged)
    judge "uvc --error 25 with nodrop: they come flagged" "$flagged of $count flagged" "$((flagged > 0))"
    read -r count missing flagged rate < <(capture_figures stalled)
    judge "uvc --stall-after 20: then silence" "$count frames" "$((count == 20))"
    read -r count missing flagged rate < <(capture_figures restarted)
    judge "uvc streams again after a restart" "$count frames" "$((count == 10))"
    read -r count missing flagged rate < <(capture_figures unplugged)
    judge "uvc unplugged in mid-stream ends it" "$count of 300 frames" "$((count > 0 && count < 300))"
    read -r count missing flagged rate < <(capture_figures replugged)
    judge "uvc plugged in again streams" "$count frames" "$((count == 10))"
}
