# Checks of cameras that come and go, and of cameras that are changed, while one is published. Sourced by run.
# shellcheck shell=bash disable=SC2154

# Prints the median of the seconds from each return of the camera to the end of the interruption, and the longest.
# Usage: return_times NAME
return_times() {
    [[ -e $results/$1.returns && -e $results/$1/connect.out ]] || { echo "99 99"; return; }
    python3 - "$results/$1.returns" "$results/$1/connect.out" <<'PYTHON'
import datetime, json, statistics, sys
returns = [float(line) for line in open(sys.argv[1])]
lines = [json.loads(line) for line in open(sys.argv[2])]
ends = [datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
        for line in lines if line.get("event") == "interruptionEnded"]
times = [end - start for start, end in zip(returns, ends)]
print(f"{statistics.median(times):.2f} {max(times):.2f}" if times else "99 99")
PYTHON
}

# The publisher went on until it was told to end, with slates, and the subscriber kept its one subscription and file.
# Usage: judge_outages NAME CLAIM INTERRUPTIONS
judge_outages() {
    local interruptions slates subscriptions marked
    read_publication "$results/$1"
    read -r interruptions slates < <(json_fields "$results/$1/connect.out" summary interruptions framesSubstituted)
    subscriptions=$(grep -c '"event":"trackSubscribed"' "$results/$1/subscribe.out") || true
    judge "$2: the track goes on with slates, and nobody resubscribes" \
        "$interruptions interruptions, $slates slates, $subscriptions subscription, exit code $(status_of "$1/connect")" \
        "$(holds "$interruptions == $3 && $slates >= $3 && $subscriptions == 1")" \
        "$([[ $(status_of "$1/connect") == 0 ]] && echo 1 || echo 0)"
    marked=$(cat "$results/$1"/dump/*.frames.jsonl | grep -c '"substitute":true') || true
    judge "$2: the slates are marked in the subscriber's log" "$marked of $slates" \
        "$(holds "$marked >= $3 && $marked <= $slates")"
    judge_dump "$2" 0.5
    judge_counts "$2"
}

# Usage: judge_returns NAME CLAIM
judge_returns() {
    local median longest first last
    read -r median longest < <(return_times "$1")
    # A busy host holds the guest up for a second now and then.
    judge "$2: its picture is back within 2 s (4 s at the longest)" "$median s in the median, longest $longest s" \
        "$(holds "$median <= 2 && $longest <= 4")"
    first=$(sed -n 2p "$results/$1.holdings" 2>/dev/null) || true
    last=$(tail -n 1 "$results/$1.holdings" 2>/dev/null) || true
    # A thread of the system's pool may have ended meanwhile. The smallest set of pictures that could leak with a return has
    # 0.5 MiB, so 4 MiB after the last eight of ten; 3 MiB are allowed.
    judge "$2: descriptors stay the same, and threads and memory do not grow" \
        "descriptors, threads, KiB after 2: $first; at the end: $last" \
        "$(awk -v a="$first" -v b="$last" 'BEGIN { split(a, x, " "); split(b, y, " ")
            print (x[1] > 0 && x[1] == y[1] && x[2] >= y[2] && y[3] < x[3] + 3072 ? 1 : 0) }')"
}

check_replug() {
    local times=${CAMERA_LAB_REPLUGS:-10}
    in_guest replug-vivid vivid vivid_replug
    judge_outages rebound "unbound and bound $times times" "$times"
    judge_returns rebound "unbound and bound $times times"

    in_guest replug-uvc none uvc_replug
    judge_outages replugged "unplugged and plugged in $times times" "$times"
    judge_returns replugged "unplugged and plugged in $times times"

    in_guest replug-serial none uvc_other
    local former present early
    read -r former present < <(cat "$results/serial.nodes" 2>/dev/null) || true
    early=$(cat "$results/serial.early") || early=-
    judge "another camera under the old number, which differs by its serial number alone, is not published" \
        "$former, then the other at $present; $early ends of the interruption before the camera's own return" \
        "$([[ -n $former && $former == "$present" && $early == 0 ]] && echo 1 || echo 0)"
    judge_outages serial "a camera that comes back beside its double" 1

    in_guest replug-denied vivid vivid_denied
    early=$(cat "$results/denied.early") || early=-
    local longest
    read -r _ longest < <(return_times denied)
    judge "a camera that comes back without permission is waited for, and back 4 s after the permission at the latest" \
        "$early ends of the interruption before the permission; back after $longest s" \
        "$([[ $early == 0 ]] && echo 1 || echo 0)" "$(holds "$longest <= 4")"
    judge_outages denied "a camera that comes back without permission" 1

    in_guest hang-uvc none uvc_hangs
    local ends
    ends=$(grep -c '"event":"interruptionEnded"' "$results/hung/connect.out") || true
    read_publication "$results/hung"
    judge "a camera that hangs is opened anew" "$ends ends of interruptions, exit code $(status_of hung/connect)" \
        "$([[ ${ends:-0} -ge 1 && $(status_of hung/connect) == 0 ]] && echo 1 || echo 0)"
    judge_counts "a camera that hangs"
}

# ---- cameras changed while one is published ----

# Prints of each command that was carried out the milliseconds without a frame, in one line, then after a bar how many
# were refused. Usage: change_figures FILE
change_figures() {
    [[ -e $1 ]] || { echo "| 0"; return; }
    python3 - "$1" <<'PYTHON'
import json, sys
commands = [entry for entry in map(json.loads, open(sys.argv[1])) if entry.get("event") == "command"]
print(*(round(entry["gapMs"], 1) for entry in commands if entry["error"] is None), "|",
      sum(entry["error"] is not None for entry in commands))
PYTHON
}

# Whether some gaps were measured: each below 2 s, and one above 0 at least. A camera that overlaps with the next may give
# a frame at the same moment; one that is closed first, for another format, cannot.
# Usage: are_gaps "MILLISECONDS..."
are_gaps() {
    awk '{ for (i = 1; i <= NF; i++) { good += ($i >= 0 && $i < 2000); seen += ($i > 0) } }
         END { print (NF > 0 && good == NF && seen > 0 ? 1 : 0) }' <<<"$1"
}

check_change() {
    in_guest change-uvc none uvc_change
    local figures gaps refused keyframes interruptions subscriptions
    figures=$(change_figures "$results/changed/connect.out")
    gaps=${figures%|*} refused=${figures#*|}
    read_publication "$results/changed"
    read -r keyframes interruptions < <(json_fields "$results/changed/connect.out" summary keyframes interruptions)
    subscriptions=$(grep -c '"event":"trackSubscribed"' "$results/changed/subscribe.out") || true
    judge "two cameras changed while publishing, there and back, and one in another format; an absent one is refused" \
        "ms without a frame: $gaps; $refused refused, exit code $(status_of changed/connect)" \
        "$([[ $(wc -w <<<"$gaps") == 4 && $refused -eq 1 && $(status_of changed/connect) == 0 ]] && echo 1 || echo 0)"
    judge "two cameras changed while publishing: the time without a frame is measured, and less than 2 s" \
        "ms without a frame: $gaps" "$(are_gaps "$gaps")"
    # Besides the first frame.
    judge "two cameras changed while publishing: the same track without slates, at most one keyframe for each change" \
        "$keyframes keyframes, $interruptions interruptions, $subscriptions subscription" \
        "$(holds "$keyframes <= 1 + 4 && $interruptions == 0 && $subscriptions == 1")"
    judge_dump "two cameras changed while publishing" 2
    judge_counts "two cameras changed while publishing"
}
