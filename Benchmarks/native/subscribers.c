/* N subscribers in one epoll loop that know no protocol, so that every relay gets the same ones.
 *
 *     subscribers PORT COUNT SECONDS HELLO [THEN]
 *
 * Each connection is sent the file HELLO and, once an empty line has come back (the end of an HTTP answer), the file
 * THEN; "{NUMBER}" in either becomes the subscriber's number, eight digits long, as the placeholder is. From then on
 * the bytes are counted, and searched for the marker that the publisher puts into each frame:
 *
 *     8 bytes MARKER, u32 frame number, u64 CLOCK_MONOTONIC in ns at the sending, both in the machine's byte order
 *
 * When all have seen a marker, and a second more has passed, "begin" is printed and the measurement starts; after
 * SECONDS it prints one line of JSON. Every five seconds each subscriber sends an unasked-for WebSocket pong as a sign
 * of life.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
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
    if (!self->is_greeted && memmem(buffer, length, "\r\n\r\n", 4)) {
        self->is_greeted = true;
        say(self, number, then, then_length);
    }
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
        fprintf(stderr, "usage: subscribers PORT COUNT SECONDS HELLO [THEN]\n");
        return 64;
    }
    uint16_t port = (uint16_t)atoi(arguments[1]);
    int count = atoi(arguments[2]);
    double seconds = atof(arguments[3]);
    hello_length = read_file(arguments[4], hello);
    if (argument_count > 5) then_length = read_file(arguments[5], then);
    struct subscriber *subscribers = calloc((size_t)count, sizeof *subscribers);
    int poller = epoll_create1(0);
    int connected = 0;
    double start = (double)now_ns() * 1e-9, all_started = 0, begin = 0, last_sign = start;
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
        if (begin && now > begin + seconds) {
            print_result(count, now - begin);
            return 0;
        }
    }
}
