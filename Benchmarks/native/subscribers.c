/* N subscribers in one epoll loop that know no protocol, so that every relay gets the same ones.
 *
 *     subscribers PORT COUNT SECONDS HELLO [THEN [acknowledging]]
 *
 * Each connection is sent the file HELLO and, once an empty line has come back (the end of an HTTP answer), the file
 * THEN; "{NUMBER}" in either becomes the subscriber's number, eight digits long, as the placeholder is. From then on
 * the bytes are counted, and searched for the marker that the publisher puts into each frame:
 *
 *     8 bytes MARKER, u32 frame number, u64 CLOCK_MONOTONIC in ns at the sending, both in the machine's byte order
 *
 * When all have seen a marker, and a second more has passed, "begin" is printed and the measurement starts; after
 * SECONDS, or on SIGTERM, it prints one line of JSON. With "acknowledging" each subscriber also acknowledges the media
 * every half second, as a room's subscriber does while nothing is delayed (docs/protocol.md, section 7), if anything came
 * since. Every five seconds each subscriber sends an unasked-for WebSocket pong as a sign of life.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char MARKER[8] = {'\x01', 'M', 'A', 'R', 'K', '\xfe', '\x02', '\x03'};
static const char PLACEHOLDER[] = "{NUMBER}";
/* A masked pong of one byte, its mask zero. */
static const unsigned char SIGN_OF_LIFE[] = {0x8a, 0x81, 0, 0, 0, 0, 0};

/* An acknowledgement as a masked binary message, its mask zero. */
enum { ACKNOWLEDGEMENT_BYTES = 48, MASKED_HEADER_BYTES = 6, MEDIA_HEADER_BYTES = 16 };
static const double ACKNOWLEDGEMENT_SECONDS = 0.5;

enum { MARKER_BYTES = sizeof MARKER + 4 + 8, READ_BYTES = 1 << 18, GREETING_BYTES = 4096 };
static const double LONGEST_START_SECONDS = 40;
static const double SIGN_OF_LIFE_SECONDS = 5;

struct subscriber {
    int socket;
    bool is_greeted, has_frames;
    uint32_t last_frame;
    /* The end of what was read, where a marker may have begun. */
    unsigned char carry[MARKER_BYTES];
    size_t carry_length;
    /* The WebSocket frame that is being read, and what is to be acknowledged. */
    unsigned char header[10];
    size_t header_length;
    uint64_t payload_left;
    unsigned char media[MEDIA_HEADER_BYTES];
    size_t media_length;
    uint64_t received, acknowledged, received_ns, frame_ns;
    uint32_t alias, frame;
};

static struct {
    uint64_t bytes, frames, missed;
    float *delays;
    size_t delay_capacity;
} result;

static unsigned char buffer[MARKER_BYTES + READ_BYTES];
static char hello[GREETING_BYTES], then[GREETING_BYTES];
static size_t hello_length, then_length;
static int started_count, closed_count;
static bool is_acknowledging;
static volatile sig_atomic_t is_stopped;

static void stop(int number) {
    (void)number;
    is_stopped = 1;
}

static void fail(const char *attempt) {
    perror(attempt);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static size_t read_file(const char *path, char *text) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    size_t length = fread(text, 1, GREETING_BYTES, file);
    fclose(file);
    return length;
}

static void say(const struct subscriber *self, int number, const char *text, size_t length) {
    char message[GREETING_BYTES];
    memcpy(message, text, length);
    char *place = memmem(message, length, PLACEHOLDER, strlen(PLACEHOLDER));
    if (place) {
        char digits[16];
        snprintf(digits, sizeof digits, "%08d", number % 100000000);
        memcpy(place, digits, strlen(PLACEHOLDER));
    }
    if (length && write(self->socket, message, length) != (ssize_t)length) fail("write");
}

static void connect_subscriber(struct subscriber *self, int number, uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    self->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(self->socket, (struct sockaddr *)&address, sizeof address)) fail("connect");
    say(self, number, hello, hello_length);
}

static void record_delay(uint64_t sent_ns, uint64_t read_ns) {
    if (result.frames == result.delay_capacity) {
        result.delay_capacity = result.delay_capacity ? result.delay_capacity * 2 : 1 << 16;
        result.delays = realloc(result.delays, result.delay_capacity * sizeof *result.delays);
        if (!result.delays) fail("realloc");
    }
    result.delays[result.frames++] = (float)((double)(read_ns - sent_ns) * 1e-6);
}

/* Notes the markers in `length` bytes of the buffer, and keeps the end for the next time. */
static void scan(struct subscriber *self, size_t length) {
    unsigned char *next = buffer, *end = buffer + length, *found;
    uint64_t time = now_ns();
    while ((found = memmem(next, (size_t)(end - next), MARKER, sizeof MARKER)) && found + MARKER_BYTES <= end) {
        uint32_t frame;
        uint64_t sent_ns;
        memcpy(&frame, found + sizeof MARKER, sizeof frame);
        memcpy(&sent_ns, found + sizeof MARKER + sizeof frame, sizeof sent_ns);
        if (!self->has_frames) started_count++;
        if (self->has_frames && frame > self->last_frame + 1) result.missed += frame - self->last_frame - 1;
        self->has_frames = true;
        self->last_frame = frame;
        record_delay(sent_ns, time);
        next = found + MARKER_BYTES;
    }
    size_t left = found ? (size_t)(end - found) : (size_t)(end - next);
    if (left >= MARKER_BYTES) left = MARKER_BYTES - 1;
    memcpy(self->carry, end - left, left);
    self->carry_length = left;
}

static uint64_t big_endian(const unsigned char *bytes, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) value = value << 8 | bytes[i];
    return value;
}

static void put_big_endian(unsigned char *bytes, uint64_t value, size_t count) {
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(value >> 8 * (count - 1 - i));
}

/* Counts the messages in `length` bytes that were just read, and notes the newest media packet among them. */
static void count_messages(struct subscriber *self, const unsigned char *bytes, size_t length) {
    self->received_ns = now_ns();
    while (length) {
        if (!self->payload_left) {
            self->header[self->header_length++] = *bytes++;
            length--;
            if (self->header_length < 2) continue;
            size_t extra = self->header[1] == 126 ? 2 : self->header[1] == 127 ? 8 : 0;
            if (self->header_length < 2 + extra) continue;
            self->payload_left = extra ? big_endian(self->header + 2, extra) : self->header[1];
            self->header_length = 0;
            self->media_length = 0;
            continue;
        }
        size_t count = length < self->payload_left ? length : (size_t)self->payload_left;
        int kind = self->header[0] & 15;
        if (kind == 1 || kind == 2) self->received += count;
        for (size_t i = 0; kind == 2 && i < count && self->media_length < MEDIA_HEADER_BYTES; i++) {
            self->media[self->media_length++] = bytes[i];
        }
        bytes += count;
        length -= count;
        self->payload_left -= count;
        if (!self->payload_left && self->media_length == MEDIA_HEADER_BYTES) {
            self->alias = (uint32_t)big_endian(self->media + 8, 4);
            self->frame = (uint32_t)big_endian(self->media + 12, 4);
            self->frame_ns = self->received_ns;
        }
    }
}

static void acknowledge(const struct subscriber *self) {
    unsigned char message[MASKED_HEADER_BYTES + ACKNOWLEDGEMENT_BYTES] = {0x82, 0x80 | ACKNOWLEDGEMENT_BYTES};
    unsigned char *body = message + MASKED_HEADER_BYTES;
    body[0] = body[1] = 1;
    put_big_endian(body + 2, ACKNOWLEDGEMENT_BYTES, 2);
    put_big_endian(body + 8, self->received, 8);
    put_big_endian(body + 16, self->received_ns / 1000, 8);
    put_big_endian(body + 24, self->alias, 4);
    put_big_endian(body + 28, self->frame, 4);
    put_big_endian(body + 32, self->frame_ns / 1000, 8);
    put_big_endian(body + 40, self->frame_ns / 1000, 8);
    send(self->socket, message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_input(struct subscriber *self, int number, int poller) {
    memcpy(buffer, self->carry, self->carry_length);
    ssize_t count = recv(self->socket, buffer + self->carry_length, READ_BYTES, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
        closed_count++;
        epoll_ctl(poller, EPOLL_CTL_DEL, self->socket, NULL);
        return;
    }
    size_t length = self->carry_length + (size_t)count;
    result.bytes += (uint64_t)count;
    unsigned char *fresh = buffer + self->carry_length, *end = buffer + length, *answer_end;
    if (!self->is_greeted && (answer_end = memmem(buffer, length, "\r\n\r\n", 4))) {
        self->is_greeted = true;
        say(self, number, then, then_length);
        fresh = answer_end + 4;
    }
    if (is_acknowledging && self->is_greeted) count_messages(self, fresh, (size_t)(end - fresh));
    scan(self, length);
}

static int compare(const void *left, const void *right) {
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

static double percentile(double share) {
    if (!result.frames) return -1;
    size_t index = (size_t)((double)result.frames * share);
    return result.delays[index < result.frames ? index : result.frames - 1];
}

static void print_result(int count, double seconds) {
    qsort(result.delays, result.frames, sizeof *result.delays, compare);
    printf("{\"subscribers\": %d, \"closed\": %d, \"seconds\": %.3f, \"bytes\": %llu, \"frames\": %llu, "
           "\"missed\": %llu, \"delay_ms\": {\"p50\": %.3f, \"p95\": %.3f, \"p99\": %.3f, \"max\": %.3f}}\n",
           count, closed_count, seconds, (unsigned long long)result.bytes, (unsigned long long)result.frames,
           (unsigned long long)result.missed, percentile(.5), percentile(.95), percentile(.99), percentile(1));
}

int main(int argument_count, char **arguments) {
    if (argument_count < 5) {
        fprintf(stderr, "usage: subscribers PORT COUNT SECONDS HELLO [THEN [acknowledging]]\n");
        return 64;
    }
    uint16_t port = (uint16_t)atoi(arguments[1]);
    int count = atoi(arguments[2]);
    double seconds = atof(arguments[3]);
    hello_length = read_file(arguments[4], hello);
    if (argument_count > 5) then_length = read_file(arguments[5], then);
    is_acknowledging = argument_count > 6 && !strcmp(arguments[6], "acknowledging");
    struct subscriber *subscribers = calloc((size_t)count, sizeof *subscribers);
    int poller = epoll_create1(0);
    signal(SIGTERM, stop);
    int connected = 0;
    double start = (double)now_ns() * 1e-9, all_started = 0, begin = 0, last_sign = start, last_acknowledgement = start;
    for (;;) {
        /* A few connections a turn, so that the relay is not met by all at once. */
        for (int i = 0; i < 5 && connected < count; i++, connected++) {
            connect_subscriber(&subscribers[connected], connected, port);
            struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)connected};
            epoll_ctl(poller, EPOLL_CTL_ADD, subscribers[connected].socket, &event);
        }
        struct epoll_event events[256];
        int ready = epoll_wait(poller, events, 256, connected < count ? 5 : 100);
        for (int i = 0; i < ready; i++) {
            int number = (int)events[i].data.u32;
            take_input(&subscribers[number], number, poller);
        }
        double now = (double)now_ns() * 1e-9;
        if (now - last_sign > SIGN_OF_LIFE_SECONDS) {
            last_sign = now;
            for (int i = 0; i < connected; i++) {
                if (subscribers[i].has_frames) {
                    send(subscribers[i].socket, SIGN_OF_LIFE, sizeof SIGN_OF_LIFE, MSG_DONTWAIT | MSG_NOSIGNAL);
                }
            }
        }
        if (is_acknowledging && now - last_acknowledgement > ACKNOWLEDGEMENT_SECONDS) {
            last_acknowledgement = now;
            for (int i = 0; i < connected; i++) {
                struct subscriber *self = &subscribers[i];
                if (self->frame_ns && self->received > self->acknowledged) acknowledge(self);
                self->acknowledged = self->received;
            }
        }
        if (!all_started && started_count == count) all_started = now;
        if (!begin && all_started && now > all_started + 1) {
            begin = now;
            result.bytes = result.frames = result.missed = 0;
            printf("begin\n");
            fflush(stdout);
        }
        if (!begin && now > start + LONGEST_START_SECONDS) {
            fprintf(stderr, "only %d of %d got frames; %d were closed\n", started_count, count, closed_count);
            return 69;
        }
        if (begin && (is_stopped || now > begin + seconds)) {
            print_result(count, now - begin);
            return 0;
        }
    }
}
