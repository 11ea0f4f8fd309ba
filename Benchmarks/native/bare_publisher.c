/* The floor of a publisher: one thread that reads a Y4M clip, waits, encodes and writes to a TCP socket.
 *
 *     bare_publisher CLIP PORT KBPS FPS [FRAMES]
 *
 * Reads, paces (absolute deadlines, the capture stamped when the frame is due), encodes and cuts as `room-client
 * connect` does, with the same settings and references (Sources/VP8Codec) and one temporal layer, as a track has while
 * its receivers keep up. It writes the same bytes that a subscriber of the relay gets: WebSocket header, media packet
 * header (docs/protocol.md, section 6.1), payload. FPS 0 means without pacing. The clip is played again and again, up to
 * FRAMES frames. Deliberately straight-line: no threads, queues, session or errors to recover from.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>

enum { MEDIA_HEADER_BYTES = 48, MESSAGE_BYTES = 16000, PAYLOAD_BYTES = MESSAGE_BYTES - MEDIA_HEADER_BYTES };
enum { FLAG_KEYFRAME = 1, FLAG_FIRST = 4, FLAG_LAST = 8 };

struct clip {
    int file;
    off_t first_frame;
    unsigned width, height;
};

struct frame {
    uint32_t number;
    uint16_t base_layer_index;
    uint64_t capture_us;
    uint8_t flags;
    const uint8_t *bytes;
    size_t length;
    uint32_t encode_delay_us;
};

static void fail(const char *attempt) {
    fprintf(stderr, "bare_publisher: cannot %s\n", attempt);
    exit(1);
}

static uint64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

static void wait_until(uint64_t deadline_us) {
    struct timespec time = {
        .tv_sec = (time_t)(deadline_us / 1000000u), .tv_nsec = (long)(deadline_us % 1000000u) * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL)) {}
}

static struct clip open_clip(const char *path) {
    struct clip clip = {.file = open(path, O_RDONLY)};
    char line[256] = {0};
    ssize_t count = read(clip.file, line, sizeof line - 1);
    char *end = count > 0 ? strchr(line, '\n') : NULL;
    char *width = strstr(line, " W"), *height = strstr(line, " H");
    if (!end || !width || !height) fail("read the clip's header");
    clip.width = (unsigned)atoi(width + 2);
    clip.height = (unsigned)atoi(height + 2);
    clip.first_frame = end + 1 - line;
    lseek(clip.file, clip.first_frame, SEEK_SET);
    return clip;
}

/* Reads the next picture into `pixels`, from the beginning again at the end. */
static void read_picture(const struct clip *clip, uint8_t *pixels, size_t length) {
    char line[6];
    struct iovec pieces[2] = {{line, sizeof line}, {pixels, length}};
    ssize_t wanted = (ssize_t)(sizeof line + length);
    if (readv(clip->file, pieces, 2) == wanted) return;
    lseek(clip->file, clip->first_frame, SEEK_SET);
    if (readv(clip->file, pieces, 2) != wanted) fail("read a picture");
}

static void open_encoder(vpx_codec_ctx_t *codec, const struct clip *clip, unsigned kbps) {
    vpx_codec_enc_cfg_t config;
    if (vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &config, 0)) fail("configure the encoder");
    config.g_w = clip->width;
    config.g_h = clip->height;
    config.g_timebase = (vpx_rational_t){1, 1000000};
    config.g_threads = 1;
    config.g_lag_in_frames = 0;
    config.g_pass = VPX_RC_ONE_PASS;
    config.g_error_resilient = VPX_ERROR_RESILIENT_DEFAULT;
    config.kf_mode = VPX_KF_DISABLED;
    config.rc_end_usage = VPX_CBR;
    config.rc_target_bitrate = kbps;
    config.rc_resize_allowed = 0;
    config.rc_min_quantizer = 2;
    config.rc_max_quantizer = 56;
    config.rc_undershoot_pct = 100;
    config.rc_overshoot_pct = 15;
    config.rc_dropframe_thresh = 30;
    config.rc_buf_sz = 300;
    config.rc_buf_initial_sz = 150;
    config.rc_buf_optimal_sz = 200;
    config.ts_number_layers = 1;
    if (vpx_codec_enc_init(codec, vpx_codec_vp8_cx(), &config, 0)) fail("open the encoder");
    vpx_codec_control(codec, VP8E_SET_CPUUSED, -6);
    vpx_codec_control(codec, VP8E_SET_NOISE_SENSITIVITY, 0);
    vpx_codec_control(codec, VP8E_SET_STATIC_THRESHOLD, 1);
    vpx_codec_control(codec, VP8E_SET_TOKEN_PARTITIONS, VP8_ONE_TOKENPARTITION);
    vpx_codec_control(codec, VP8E_SET_MAX_INTRA_BITRATE_PCT, 300);
}

/* Encodes a picture; `false` if the encoder left it out. The references are those of ReferenceBuffers.swift. */
static bool encode(vpx_codec_ctx_t *codec, vpx_image_t *image, uint64_t start_us, uint64_t duration_us,
                   struct frame *frame) {
    /* The frame after a keyframe updates GOLDEN besides LAST, the next one ARF, and so on by turns. */
    static bool updates_golden;
    vpx_enc_frame_flags_t flags = VP8_EFLAG_NO_REF_GF | VP8_EFLAG_NO_REF_ARF;
    flags |= updates_golden ? VP8_EFLAG_NO_UPD_ARF : VP8_EFLAG_NO_UPD_GF;
    if (frame->number == 0) flags = VPX_EFLAG_FORCE_KF;
    if (vpx_codec_encode(codec, image, (vpx_codec_pts_t)start_us, duration_us, flags, VPX_DL_REALTIME)) {
        fail("encode a picture");
    }
    vpx_codec_iter_t iterator = NULL;
    const vpx_codec_cx_pkt_t *packet;
    while ((packet = vpx_codec_get_cx_data(codec, &iterator)) && packet->kind != VPX_CODEC_CX_FRAME_PKT) {}
    if (!packet) return false;
    bool is_keyframe = packet->data.frame.flags & VPX_FRAME_IS_KEY;
    updates_golden = is_keyframe || !updates_golden;
    frame->flags = is_keyframe ? FLAG_KEYFRAME : 0;
    frame->bytes = packet->data.frame.buf;
    frame->length = packet->data.frame.sz;
    return true;
}

static uint8_t *put(uint8_t *to, uint64_t value, unsigned bytes) {
    while (bytes-- > 0) *to++ = (uint8_t)(value >> (8 * bytes));
    return to;
}

static void send_frame(int socket, const struct frame *frame) {
    uint8_t message[4 + MESSAGE_BYTES];
    for (size_t offset = 0; offset < frame->length; offset += PAYLOAD_BYTES) {
        size_t length = frame->length - offset < PAYLOAD_BYTES ? frame->length - offset : PAYLOAD_BYTES;
        size_t count = MEDIA_HEADER_BYTES + length;
        uint8_t flags = frame->flags | (offset == 0 ? FLAG_FIRST : 0);
        if (offset + length == frame->length) flags |= FLAG_LAST;
        uint8_t *end = put(message, 0x82, 1);
        if (count < 126) {
            end = put(end, count, 1);
        } else {
            end = put(put(end, 126, 1), count, 2);
        }
        end = put(put(put(end, 1, 1), 0, 1), MEDIA_HEADER_BYTES, 2);
        end = put(put(end, flags, 1), 0, 3);
        end = put(put(put(end, 1, 4), frame->number, 4), frame->capture_us, 8);
        end = put(put(put(end, frame->length, 4), offset, 4), frame->encode_delay_us, 4);
        end = put(put(put(end, frame->base_layer_index, 2), 0, 2), 0, 8);
        memcpy(end, frame->bytes + offset, length);
        end += length;
        if (write(socket, message, (size_t)(end - message)) != end - message) exit(0);
    }
}

static int connect_to(uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int peer = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (connect(peer, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return peer;
}

int main(int argument_count, char **arguments) {
    if (argument_count < 5) {
        fprintf(stderr, "usage: bare_publisher CLIP PORT KBPS FPS [FRAMES]\n");
        return 64;
    }
    struct clip clip = open_clip(arguments[1]);
    int peer = connect_to((uint16_t)atoi(arguments[2]));
    unsigned fps = (unsigned)atoi(arguments[4]);
    unsigned frame_limit = argument_count > 5 ? (unsigned)atoi(arguments[5]) : UINT32_MAX;
    vpx_codec_ctx_t codec;
    open_encoder(&codec, &clip, (unsigned)atoi(arguments[3]));
    size_t length = (size_t)clip.width * clip.height * 3 / 2;
    uint8_t *pixels = malloc(length);
    vpx_image_t image;
    vpx_img_wrap(&image, VPX_IMG_FMT_I420, clip.width, clip.height, 1, pixels);
    struct frame frame = {.base_layer_index = UINT16_MAX};
    uint64_t interval_us = 1000000u / (fps ? fps : 30), start_us = now_us();
    for (unsigned i = 0; i < frame_limit; i++) {
        uint64_t due_us = start_us + i * interval_us;
        if (fps) wait_until(due_us);
        frame.capture_us = fps ? now_us() : due_us;
        read_picture(&clip, pixels, length);
        if (!encode(&codec, &image, frame.capture_us - start_us, interval_us, &frame)) continue;
        frame.base_layer_index++;
        frame.encode_delay_us = (uint32_t)(now_us() - frame.capture_us);
        send_frame(peer, &frame);
        frame.number++;
    }
    vpx_codec_destroy(&codec);
    free(pixels);
    close(peer);
    return 0;
}
