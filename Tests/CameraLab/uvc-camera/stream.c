// Cuts pictures into payloads at the committed frame rate.
#include <stdio.h>
#include <string.h>

#include "camera.h"

static struct faults faults;

static struct {
    bool running;
    uint8_t format, frame_index;
    int64_t interval, start;        // ns; start 0: not before the first transfer
    uint32_t number;                // of the next frame to begin; counts those the host was too slow for
    uint32_t sent;                  // frames begun in this stream
    uint8_t frame_id;               // UVC 2.4.3.3: toggles with every frame
    const uint8_t *data;            // the frame in progress, or NULL
    uint32_t bytes, offset;
} stream;

static struct {
    uint64_t streams, frames, payloads, skipped, damaged;
} total;

void stream_set_faults(struct faults wanted) {
    faults = wanted;
}

void stream_start(const struct uvc_streaming_control *committed) {
    uint8_t frame_id = stream.frame_id;
    memset(&stream, 0, sizeof stream);
    stream.running = true;
    stream.format = committed->bFormatIndex;
    stream.frame_index = committed->bFrameIndex;
    stream.interval = committed->dwFrameInterval * 100ll;
    stream.frame_id = frame_id;
    total.streams++;
}

void stream_stop(void) {
    stream.running = false;
    stream.data = NULL;
}

static bool is_stalled(void) {
    return faults.stall_after && stream.sent >= faults.stall_after;
}

int64_t stream_wait(int64_t now) {
    if (!stream.running) return -1;
    if (stream.data || !stream.start) return 0;
    if (is_stalled()) return -1;
    int64_t due = stream.start + stream.number * stream.interval;
    return due > now ? due - now : 0;
}

// A frame whose time has passed is never taken: a sensor does not wait for its host.
static void skip_missed_frames(int64_t now) {
    uint32_t current = (uint32_t)((now - stream.start) / stream.interval);
    if (current <= stream.number) return;
    total.skipped += current - stream.number;
    stream.number = current;
}

static void begin_frame(int64_t now) {
    if (!stream.start) stream.start = now;
    skip_missed_frames(now);
    stream.data = picture(stream.format, stream.frame_index, stream.number, &stream.bytes);
    stream.offset = 0;
    stream.frame_id ^= UVC_STREAM_FID;
    stream.number++;
    stream.sent++;
    total.frames++;
    bool is_damaged = stream.sent <= faults.damage_first || (faults.damage && stream.sent % faults.damage == 0);
    if (!is_damaged || stream.format != FORMAT_MJPEG) return;
    stream.bytes /= 2;
    total.damaged++;
}

uint32_t stream_payload(int64_t now, uint8_t *payload, uint32_t capacity) {
    if (!stream.data) begin_frame(now);
    uint32_t room = capacity - PAYLOAD_HEADER_BYTES;
    uint32_t left = stream.bytes - stream.offset;
    uint32_t bytes = left < room ? left : room;
    memcpy(payload + PAYLOAD_HEADER_BYTES, stream.data + stream.offset, bytes);
    stream.offset += bytes;
    total.payloads++;

    payload[0] = PAYLOAD_HEADER_BYTES;
    payload[1] = UVC_STREAM_EOH | stream.frame_id;
    if (faults.error && total.payloads % faults.error == 0) payload[1] |= UVC_STREAM_ERR;
    if (stream.offset == stream.bytes) {
        payload[1] |= UVC_STREAM_EOF;
        stream.data = NULL;
    }
    return PAYLOAD_HEADER_BYTES + bytes;
}

void stream_report(void) {
    fprintf(stderr, "uvc-camera: %llu streams, %llu frames, %llu damaged, %llu skipped because the host was late\n",
            (unsigned long long)total.streams, (unsigned long long)total.frames, (unsigned long long)total.damaged,
            (unsigned long long)total.skipped);
}
