/* One bottleneck between network namespaces: rate schedule or mahimahi trace, drop-tail queue, delay, random loss.
 *
 *     link [options] HUB NEAR=MILLISECONDS [NEAR=MILLISECONDS ...]
 *
 * HUB and NEAR are files of network namespaces, such as /run/netns/NAME. Each gets a TUN device called link0; whoever
 * starts this gives them the addresses 198.18.0.1 (the hub), 198.18.0.2, .3 ... in the order of the arguments, and
 * brings them up. All packets from the near ones to the hub pass one queue, "up"; all from the hub pass another,
 * "down". After the queue, a packet takes the one-way delay of its near end. Near ends do not reach each other.
 *
 *     --up SPEC, --down SPEC        capacity: "free", "trace:FILE", a rate such as 100M in bits a second, or a schedule
 *                                   "0:2.5M,30:500k,33:drop,36:2.5M" of seconds and rates; 0 holds the queue, "drop"
 *                                   loses it and what comes then
 *     --up-queue N, --down-queue N  limit of the queue: 300ms (at the rate of the moment, of a trace its mean; never
 *                                   less than two packets), 64000B or 256p; default 300ms
 *     --up-loss P, --down-loss P    probability of losing a packet before the queue
 *     --jitter MS                   adds 0 to MS, evenly distributed, to each delay; order is kept
 *     --seed N                      of loss and jitter
 *     --series FILE, --packets FILE CSV: 100 ms a line; a packet a line
 *
 * It prints READY, waits for a line on standard input, prints "T0 nanoseconds" of CLOCK_MONOTONIC, and begins the
 * schedule; until then the capacity is the schedule's first, or the trace's mean. At the end of input or SIGTERM it
 * prints its counts as one JSON object. A trace has mahimahi's meaning: each line is a millisecond in which 1,500
 * bytes may leave; small packets share them; what is not used is lost; the trace repeats after its last line.
 *
 * The service of a packet ends at the nanosecond that the schedule gives, however late this process runs: lateness
 * moves only the hand-over, and is reported ("lateMs").
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MAXIMUM_ENDS = 64, MAXIMUM_CHANGES = 4096, OPPORTUNITY = 1500, PACKET_BYTES = 2048, READS_AT_ONCE = 64 };
static const int64_t NEVER = INT64_MAX, SECOND = 1000000000, MILLISECOND = 1000000, SAMPLE = 100 * 1000000;

typedef struct packet {
    struct packet *next;
    int64_t number, arrived, release;
    int length, end;
    unsigned char bytes[PACKET_BYTES];
} packet;

typedef struct {
    packet *head, *tail;
    int count;
    int64_t bytes;
} fifo;

typedef struct {
    int64_t at, rate, first_out, queue_bytes;
    bool drops;
} change;

typedef enum { FREE, SCHEDULE, TRACE } capacity_kind;

typedef struct {
    const char *name;
    capacity_kind kind;
    change changes[MAXIMUM_CHANGES];
    int change_count, current;
    int64_t *opportunities, period, opportunity;
    int64_t opportunity_count;
    int64_t rate, limit_rate;      /* bits a second; the second never falls to 0 */
    int64_t queue_ms, queue_bytes; /* limits; 0 is none */
    int queue_packets;
    double loss;
    uint64_t random;
    fifo queue;
    int64_t head_left; /* of the first packet: bits * 10^9 by schedule, bytes by trace */
    int64_t served;    /* the moment up to which the queue has been served */
    bool is_trace_running;
    fifo lines[MAXIMUM_ENDS];
    double offered_bits;
    int64_t in_packets, in_bytes, out_packets, out_bytes, lost, dropped, unwritten;
    int64_t wait_sum, wait_max, end_bytes[MAXIMUM_ENDS];
} direction;

static direction up = {.name = "up"}, down = {.name = "down"};
static int hub = -1, ends[MAXIMUM_ENDS], end_count;
static int64_t delays[MAXIMUM_ENDS], jitter, begun = -1, latest, late_sum, late_count, very_late;
static FILE *series, *packet_log;
static packet *spare;
static volatile sig_atomic_t is_stopped;

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("link: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

/* splitmix64: a fraction from 0 to 1. */
static double chance(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static void append(fifo *list, packet *packet) {
    packet->next = NULL;
    if (list->tail) list->tail->next = packet;
    else list->head = packet;
    list->tail = packet;
    list->count++;
    list->bytes += packet->length;
}

static packet *take(fifo *list) {
    packet *first = list->head;
    list->head = first->next;
    if (!list->head) list->tail = NULL;
    list->count--;
    list->bytes -= first->length;
    return first;
}

static packet *new_packet(void) {
    packet *packet = spare;
    if (packet) spare = packet->next;
    else if (!(packet = malloc(sizeof *packet))) fail("there is no memory for a packet");
    return packet;
}

static void recycle(packet *packet) {
    packet->next = spare;
    spare = packet;
}

/* ---- service of the queue ---- */

static void log_packet(const direction *d, const packet *packet, int64_t out, const char *what) {
    if (!packet_log || begun < 0) return;
    fprintf(packet_log, "%s,%" PRId64 ",%d,%d,%.6f,", d->name, packet->number, packet->end, packet->length,
            (packet->arrived - begun) / 1e9);
    if (out >= 0) fprintf(packet_log, "%.6f", (out - begun) / 1e9);
    fprintf(packet_log, ",%s\n", what);
}

static void begin_head(direction *d, int64_t carried) {
    if (!d->queue.head) return;
    d->head_left = d->is_trace_running ? d->queue.head->length : d->queue.head->length * 8 * SECOND - carried;
}

/* Whether a packet carries bytes of a TCP stream, and not an acknowledgement alone. */
static bool has_payload(const packet *packet) {
    const unsigned char *ip = packet->bytes;
    int header = (ip[0] & 15) * 4;
    if (ip[0] >> 4 != 4 || packet->length < header + 20) return true;
    return packet->length > header + (ip[header + 12] >> 4) * 4;
}

/* Puts a packet that has passed the bottleneck at `moment` onto the line of its near end. */
static void pass_on(direction *d, packet *packet, int64_t moment) {
    fifo *line = &d->lines[packet->end];
    packet->release = moment + delays[packet->end];
    if (jitter) packet->release += (int64_t)(chance(&d->random) * (double)jitter);
    if (line->tail && line->tail->release > packet->release) packet->release = line->tail->release;
    int64_t waited = moment - packet->arrived;
    d->wait_sum += waited;
    if (waited > d->wait_max) d->wait_max = waited;
    d->out_packets++;
    d->out_bytes += packet->length;
    d->end_bytes[packet->end] += packet->length;
    change *change = &d->changes[d->current];
    if (change->first_out < 0 && begun >= 0 && has_payload(packet)) change->first_out = moment;
    log_packet(d, packet, moment, "");
    append(line, packet);
}

static void discard(direction *d, packet *packet, const char *why) {
    log_packet(d, packet, -1, why);
    recycle(packet);
}

static int64_t next_change(const direction *d) {
    if (d->kind != SCHEDULE || begun < 0 || d->current + 1 >= d->change_count) return NEVER;
    return begun + d->changes[d->current + 1].at;
}

static void apply_next_change(direction *d) {
    change *change = &d->changes[++d->current];
    d->rate = change->rate;
    if (d->rate) d->limit_rate = d->rate;
    change->queue_bytes = d->queue.bytes;
    while (change->drops && d->queue.head) {
        d->dropped++;
        discard(d, take(&d->queue), "outage");
    }
}

static void serve_schedule(direction *d, int64_t now) {
    while (d->served < now) {
        int64_t change = next_change(d), until = change < now ? change : now;
        if (d->queue.head && d->rate) {
            int64_t need = (d->head_left + d->rate - 1) / d->rate;
            if (need <= until - d->served) {
                int64_t carried = need * d->rate - d->head_left;
                d->offered_bits += (double)need * d->rate / 1e9;
                d->served += need;
                pass_on(d, take(&d->queue), d->served);
                begin_head(d, carried);
                continue;
            }
            d->head_left -= d->rate * (until - d->served);
        }
        d->offered_bits += (double)(until - d->served) * d->rate / 1e9;
        d->served = until;
        if (until == change) apply_next_change(d);
    }
}

static int64_t next_opportunity(const direction *d) {
    int64_t turn = d->opportunity / d->opportunity_count, index = d->opportunity % d->opportunity_count;
    return begun + (turn * d->period + d->opportunities[index]) * MILLISECOND;
}

static void serve_trace(direction *d, int64_t now) {
    for (int64_t moment; (moment = next_opportunity(d)) <= now; d->opportunity++) {
        d->offered_bits += OPPORTUNITY * 8;
        for (int64_t room = OPPORTUNITY; room > 0 && d->queue.head;) {
            int64_t part = room < d->head_left ? room : d->head_left;
            room -= part;
            d->head_left -= part;
            if (d->head_left) break;
            pass_on(d, take(&d->queue), moment);
            begin_head(d, 0);
        }
    }
    d->served = now;
}

static void hand_over(direction *d, int64_t now) {
    for (int end = 0; end < end_count; end++) {
        fifo *line = &d->lines[end];
        while (line->head && line->head->release <= now) {
            packet *packet = take(line);
            int64_t late = now_ns() - packet->release;
            if (late > latest) latest = late;
            late_sum += late;
            late_count++;
            very_late += late > 5 * MILLISECOND;
            if (write(d == &up ? hub : ends[end], packet->bytes, packet->length) < 0) d->unwritten++;
            recycle(packet);
        }
    }
}

static void serve(direction *d, int64_t now) {
    if (d->kind == FREE) d->served = now;
    else if (d->is_trace_running) serve_trace(d, now);
    else serve_schedule(d, now);
}

/* When something happens next by itself. */
static int64_t next_event(const direction *d) {
    int64_t next = next_change(d);
    if (d->queue.head) {
        int64_t leaves = NEVER;
        if (d->is_trace_running) leaves = next_opportunity(d);
        else if (d->rate) leaves = d->served + (d->head_left + d->rate - 1) / d->rate;
        if (leaves < next) next = leaves;
    }
    for (int end = 0; end < end_count; end++) {
        if (d->lines[end].head && d->lines[end].head->release < next) next = d->lines[end].head->release;
    }
    return next;
}

static bool is_full(const direction *d, int length) {
    if (d->queue_packets && d->queue.count >= d->queue_packets) return true;
    if (d->queue_bytes && d->queue.bytes + length > d->queue_bytes) return true;
    if (!d->queue_ms) return false;
    int64_t limit = d->limit_rate / 8 * d->queue_ms / 1000;
    return d->queue.bytes + length > (limit > 2 * OPPORTUNITY ? limit : 2 * OPPORTUNITY);
}

/* A packet has come from a namespace. */
static void accept_packet(direction *d, packet *packet, int64_t now) {
    packet->arrived = now;
    packet->number = d->in_packets++;
    d->in_bytes += packet->length;
    bool is_lost = d->loss > 0 && chance(&d->random) < d->loss;
    bool is_in_outage = d->kind == SCHEDULE && d->changes[d->current].drops && begun >= 0;
    if (is_lost) {
        d->lost++;
        discard(d, packet, "lost");
    } else if (d->kind == FREE) {
        pass_on(d, packet, now);
    } else if (is_in_outage || is_full(d, packet->length)) {
        d->dropped++;
        discard(d, packet, is_in_outage ? "outage" : "full");
    } else {
        append(&d->queue, packet);
        if (d->queue.count == 1) begin_head(d, 0);
    }
}

/* ---- the devices ---- */

static int open_device(const char *namespace_file) {
    int space = open(namespace_file, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET)) fail("%s: %s", namespace_file, strerror(errno));
    close(space);
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strcpy(request.ifr_name, "link0");
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0 || ioctl(device, TUNSETIFF, &request)) fail("no TUN device: %s", strerror(errno));
    return device;
}

/* The near end that a packet belongs to, by its addresses; -1 for what is not ours, such as multicast. */
static int end_of(const packet *packet, int from) {
    const unsigned char *bytes = packet->bytes, network[] = {198, 18, 0};
    if (packet->length < 20 || bytes[0] >> 4 != 4 || memcmp(bytes + 16, network, 3)) return -1;
    if (from >= 0) return bytes[19] == 1 ? from : -1;
    int end = bytes[19] - 2;
    return end >= 0 && end < end_count ? end : -1;
}

static void read_device(int device, int from, int64_t now) {
    for (int i = 0; i < READS_AT_ONCE; i++) {
        packet *packet = new_packet();
        ssize_t length = read(device, packet->bytes, sizeof packet->bytes);
        packet->length = (int)length;
        packet->end = length > 0 ? end_of(packet, from) : -1;
        if (packet->end >= 0) accept_packet(from < 0 ? &down : &up, packet, now);
        else recycle(packet);
        if (length <= 0) return;
    }
}

/* ---- what is written ---- */

static void write_header(void) {
    fprintf(series, "t");
    for (int i = 0; i < 2; i++) {
        const char *name = i ? down.name : up.name;
        fprintf(series, ",%s_capacity_bits,%s_in,%s_out,%s_lost,%s_dropped,%s_queue_bytes,%s_wait_ms", name, name, name,
                name, name, name, name);
        for (int end = 0; end < end_count; end++) fprintf(series, ",%s_out_%d", name, end);
    }
    fputc('\n', series);
}

/* The counts of a direction, from the beginning. */
static void write_sample(int64_t moment) {
    fprintf(series, "%.1f", (moment - begun) / 1e9);
    for (int i = 0; i < 2; i++) {
        const direction *d = i ? &down : &up;
        double wait = d->queue.head ? (moment - d->queue.head->arrived) / 1e6 : 0;
        fprintf(series, ",%.0f,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.2f", d->offered_bits,
                d->in_bytes, d->out_bytes, d->lost, d->dropped, d->queue.bytes, wait);
        for (int end = 0; end < end_count; end++) fprintf(series, ",%" PRId64, d->end_bytes[end]);
    }
    fputc('\n', series);
}

static void print_counts(const direction *d) {
    double mean = d->out_packets ? d->wait_sum / 1e6 / (double)d->out_packets : 0;
    printf("\"%s\":{\"inPackets\":%" PRId64 ",\"inBytes\":%" PRId64 ",\"outPackets\":%" PRId64 ",\"outBytes\":%" PRId64
           ",\"lost\":%" PRId64 ",\"dropped\":%" PRId64 ",\"unwritten\":%" PRId64
           ",\"queueBytesAtEnd\":%" PRId64 ",\"waitMeanMs\":%.2f,\"waitMaxMs\":%.2f,\"changes\":[",
           d->name, d->in_packets, d->in_bytes, d->out_packets, d->out_bytes, d->lost, d->dropped, d->unwritten,
           d->queue.bytes, mean, d->wait_max / 1e6);
    for (int i = 0; i < d->change_count && i <= d->current; i++) {
        const change *change = &d->changes[i];
        printf("%s{\"at\":%.3f,\"rate\":%" PRId64 ",\"drops\":%s,\"queueBytes\":%" PRId64 ",\"firstOut\":",
               i ? "," : "", change->at / 1e9, change->rate, change->drops ? "true" : "false", change->queue_bytes);
        if (change->first_out < 0) printf("null}");
        else printf("%.3f}", (change->first_out - begun) / 1e9);
    }
    printf("]}");
}

/* ---- options ---- */

/* Bits a second: 800k, 2.5M, 1G or a plain number. */
static int64_t rate_of(const char *text) {
    char *unit;
    double value = strtod(text, &unit);
    double scale = *unit == 'k' ? 1e3 : *unit == 'M' ? 1e6 : *unit == 'G' ? 1e9 : 1;
    if (unit == text || !(value >= 0 && value * scale <= 1e10) || (*unit && (scale == 1 || unit[1]))) {
        fail("\"%s\" is no rate; rates are written 800k, 2.5M or 1G, up to 10G", text);
    }
    return (int64_t)(value * scale + 0.5);
}

static void read_schedule(direction *d, char *text) {
    d->kind = SCHEDULE;
    for (char *rest = text, *entry; (entry = strsep(&rest, ","));) {
        char *colon = strchr(entry, ':'), *tail;
        double at = strtod(entry, &tail);
        if (!colon || tail != colon || !(at >= 0 && at < 1e6)) {
            fail("\"%s\" is no entry of a schedule such as 0:2.5M,30:500k", entry);
        }
        if (d->change_count == MAXIMUM_CHANGES) fail("a schedule has at most %d entries", MAXIMUM_CHANGES);
        change *change = &d->changes[d->change_count];
        *change = (typeof(*change)){.at = (int64_t)(at * 1e9 + 0.5), .first_out = -1};
        change->drops = !strcmp(colon + 1, "drop");
        change->rate = change->drops ? 0 : rate_of(colon + 1);
        bool is_ordered = d->change_count ? change->at > change[-1].at : change->at == 0;
        if (!is_ordered) fail("a schedule begins at 0 and its times grow; \"%s\" does not fit", entry);
        d->change_count++;
    }
    d->rate = d->changes[0].rate;
    for (int i = d->change_count - 1; i >= 0; i--) {
        if (d->changes[i].rate) d->limit_rate = d->changes[i].rate;
    }
}

static void read_trace(direction *d, const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) fail("%s: %s", path, strerror(errno));
    int64_t capacity = 0, moment, previous = 0;
    int fields;
    while ((fields = fscanf(file, "%" SCNd64, &moment)) == 1) {
        if (moment < previous || moment > INT32_MAX) {
            fail("%s: line %" PRId64 ": times must not decrease", path, d->opportunity_count + 1);
        }
        if (d->opportunity_count == capacity) {
            capacity = capacity ? 2 * capacity : 65536;
            if (!(d->opportunities = realloc(d->opportunities, capacity * sizeof moment))) fail("there is no memory");
        }
        d->opportunities[d->opportunity_count++] = previous = moment;
    }
    if (fields != EOF) fail("%s: line %" PRId64 " is no number of milliseconds", path, d->opportunity_count + 1);
    fclose(file);
    if (!previous) fail("%s has no time after 0", path);
    d->kind = TRACE;
    d->period = previous;
    d->rate = d->limit_rate = d->opportunity_count * OPPORTUNITY * 8 * 1000 / d->period;
    d->changes[0].first_out = -1;
}

static void read_capacity(direction *d, char *text) {
    if (!strncmp(text, "trace:", 6)) read_trace(d, text + 6);
    else if (!strcmp(text, "free")) return;
    else if (strchr(text, ':')) read_schedule(d, text);
    else {
        d->kind = SCHEDULE;
        d->change_count = 1;
        d->changes[0].first_out = -1;
        d->rate = d->limit_rate = d->changes[0].rate = rate_of(text);
    }
}

static void read_queue(direction *d, const char *text) {
    char *unit;
    long value = strtol(text, &unit, 10);
    if (value <= 0 || value > 1 << 30) fail("\"%s\" is no limit of a queue, such as 300ms, 64000B or 256p", text);
    d->queue_ms = d->queue_bytes = d->queue_packets = 0;
    if (!strcmp(unit, "ms")) d->queue_ms = value;
    else if (!strcmp(unit, "B")) d->queue_bytes = value;
    else if (!strcmp(unit, "p")) d->queue_packets = (int)value;
    else fail("\"%s\" is no limit of a queue, such as 300ms, 64000B or 256p", text);
}

static double number_of(const char *text, double highest) {
    char *rest;
    double value = strtod(text, &rest);
    if (rest == text || *rest || !(value >= 0 && value <= highest)) fail("\"%s\" is no number up to %g", text, highest);
    return value;
}

static FILE *open_output(const char *path) {
    FILE *file = fopen(path, "we");
    if (!file) fail("%s: %s", path, strerror(errno));
    return file;
}

static int read_options(int count, char **words) {
    uint64_t seed = 1;
    int i = 1;
    for (; i + 1 < count && !strncmp(words[i], "--", 2); i += 2) {
        char *name = words[i] + 2, *value = words[i + 1];
        direction *d = strncmp(name, "down", 4) ? &up : &down;
        if (!strcmp(name, "up") || !strcmp(name, "down")) read_capacity(d, value);
        else if (!strcmp(name, "up-queue") || !strcmp(name, "down-queue")) read_queue(d, value);
        else if (!strcmp(name, "up-loss") || !strcmp(name, "down-loss")) d->loss = number_of(value, 1);
        else if (!strcmp(name, "jitter")) jitter = (int64_t)(number_of(value, 1e4) * 1e6);
        else if (!strcmp(name, "seed")) seed = strtoull(value, NULL, 10);
        else if (!strcmp(name, "series")) series = open_output(value);
        else if (!strcmp(name, "packets")) packet_log = open_output(value);
        else fail("there is no option --%s", name);
    }
    up.random = seed * 2;
    down.random = seed * 2 + 1;
    return i;
}

static void open_ends(int count, char **words) {
    if (count < 2) fail("usage: link [options] HUB NEAR=MILLISECONDS ...");
    hub = open_device(words[0]);
    for (int i = 1; i < count; i++) {
        char *equals = strrchr(words[i], '=');
        if (!equals || end_count == MAXIMUM_ENDS) fail("\"%s\" is no NEAR=MILLISECONDS, or one too many", words[i]);
        *equals = 0;
        delays[end_count] = (int64_t)(number_of(equals + 1, 1e4) * 1e6);
        ends[end_count++] = open_device(words[i]);
    }
}

/* ---- the loop ---- */

static void begin(int64_t now) {
    begun = now;
    direction *both[] = {&up, &down};
    for (int i = 0; i < 2; i++) {
        direction *d = both[i];
        /* The figures are those of the schedule. */
        d->offered_bits = 0;
        d->in_packets = d->in_bytes = d->out_packets = d->out_bytes = d->lost = d->dropped = 0;
        d->wait_sum = d->wait_max = 0;
        memset(d->end_bytes, 0, sizeof d->end_bytes);
        if (d->kind != TRACE) continue;
        d->is_trace_running = true;
        d->head_left = (d->head_left + 8 * SECOND - 1) / (8 * SECOND);
    }
    latest = late_sum = late_count = very_late = 0;
    printf("T0 %" PRId64 "\n", begun);
    fflush(stdout);
}

/* Serves both queues up to `now`, and writes the samples that fall before it. */
static void advance(int64_t now, int64_t *next_sample) {
    while (*next_sample <= now) {
        serve(&up, *next_sample);
        serve(&down, *next_sample);
        if (series) write_sample(*next_sample);
        *next_sample += SAMPLE;
    }
    serve(&up, now);
    serve(&down, now);
    hand_over(&up, now);
    hand_over(&down, now);
}

/* Waits for packets, a word of the parent or the next event; returns false at the end of input. */
static bool wait_and_read(int64_t *next_sample) {
    struct pollfd polled[MAXIMUM_ENDS + 2] = {{.fd = 0, .events = POLLIN}, {.fd = hub, .events = POLLIN}};
    for (int i = 0; i < end_count; i++) polled[i + 2] = (struct pollfd){.fd = ends[i], .events = POLLIN};
    int64_t next = next_event(&up), other = next_event(&down);
    if (other < next) next = other;
    if (*next_sample < next) next = *next_sample;
    int64_t wait = next == NEVER ? SECOND : next - now_ns();
    if (wait < 0) wait = 0;
    struct timespec timeout = {wait / SECOND, wait % SECOND};
    if (ppoll(polled, end_count + 2, &timeout, NULL) < 0) return errno == EINTR;
    int64_t now = now_ns();
    advance(now, next_sample);
    for (int i = 1; i < end_count + 2; i++) {
        if (polled[i].revents) read_device(polled[i].fd, i - 2, now);
    }
    if (!polled[0].revents) return true;
    char line[64];
    if (read(0, line, sizeof line) <= 0) return false;
    if (begun < 0) {
        begin(now);
        *next_sample = begun + SAMPLE;
    }
    return true;
}

static void stop(int number) {
    (void)number;
    is_stopped = 1;
}

int main(int count, char **words) {
    up.queue_ms = down.queue_ms = 300;
    int first = read_options(count, words);
    open_ends(count - first, words + first);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_TIMERSLACK, 1);
    /* The link must not wait behind what it measures; where this is not allowed, "lateMs" tells. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    mlockall(MCL_CURRENT | MCL_FUTURE);
    if (series) write_header();
    if (packet_log) fprintf(packet_log, "direction,number,end,bytes,in,out,fate\n");
    puts("READY");
    fflush(stdout);
    up.served = down.served = now_ns();
    int64_t next_sample = NEVER;
    while (!is_stopped && wait_and_read(&next_sample)) advance(now_ns(), &next_sample);
    for (packet *left = up.queue.head; left; left = left->next) log_packet(&up, left, -1, "waiting");
    for (packet *left = down.queue.head; left; left = left->next) log_packet(&down, left, -1, "waiting");
    printf("{");
    print_counts(&up);
    printf(",");
    print_counts(&down);
    printf(",\"lateMs\":{\"mean\":%.3f,\"max\":%.3f,\"packetsOver5\":%" PRId64 "}}\n",
           late_count ? late_sum / 1e6 / (double)late_count : 0, latest / 1e6, very_late);
    return 0;
}
