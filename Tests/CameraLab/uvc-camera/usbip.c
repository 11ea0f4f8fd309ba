// The cable: USB/IP between this program and vhci_hcd, over a socket pair instead of a network.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "camera.h"

// USB/IP, "Device usage": every message starts with these 48 bytes, big-endian.
enum { CMD_SUBMIT = 1, CMD_UNLINK = 2, RET_SUBMIT = 3, RET_UNLINK = 4, DIRECTION_IN = 1 };
struct message {
    uint32_t command, sequence, device, direction, endpoint;
    union {
        struct {
            uint32_t flags, length, start_frame, packets, interval;
            struct usb_ctrlrequest setup;
        } submit;
        struct {
            uint32_t status, length, start_frame, packets, errors;
        } submitted;
        struct {
            uint32_t sequence;
        } unlink;
        struct {
            uint32_t status;
        } unlinked;
    };
};
_Static_assert(sizeof(struct message) == 48, "USB/IP header");

// USB/IP, struct usbip_iso_packet_descriptor, big-endian: the packets of an isochronous transfer.
struct packet {
    uint32_t offset, length, actual, status;
};
enum { MAX_PACKETS = 32 };  // uvcvideo, UVC_MAX_PACKETS

enum { PORTS = 8, DEVICE = 1 << 16 | 2, ANSWER_BYTES = 4096, MAX_TRANSFERS = 64 };

static struct transfer {
    uint32_t sequence, length;
    uint32_t packets;    // of an isochronous transfer, 0 for bulk
    int64_t due;         // when an isochronous transfer is over, ns
    struct packet packet[MAX_PACKETS];
} transfers[MAX_TRANSFERS];  // the host's waiting reads, oldest first
static unsigned transfer_count;

// ---- plugging ----

// Writes "port socket device speed", what vhci_hcd's attach file takes (Linux, drivers/usb/usbip/vhci_sysfs.c).
// EBUSY: another device is on this port.
static bool attach(unsigned port, int socket) {
    char line[64];
    int length = snprintf(line, sizeof line, "%u %d %u %d", port, socket, (unsigned)DEVICE, USB_SPEED_HIGH);
    int file = open("/sys/devices/platform/vhci_hcd.0/attach", O_WRONLY | O_CLOEXEC);
    if (file < 0) return false;
    bool done = write(file, line, (size_t)length) == length;
    int error = errno;
    close(file);
    errno = error;
    return done;
}

int plug_in(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    bool done = false;
    for (unsigned port = 0; port < PORTS && !done; port++) {
        done = attach(port, ends[1]);
        if (!done && errno != EBUSY) break;
    }
    close(ends[1]);
    if (done) return ends[0];
    close(ends[0]);
    return -1;
}

// ---- bytes ----

static bool read_all(int cable, void *data, size_t size) {
    for (uint8_t *at = data; size;) {
        ssize_t count = read(cable, at, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

static bool write_all(int cable, const void *data, size_t size) {
    for (const uint8_t *at = data; size;) {
        ssize_t count = send(cable, at, size, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        at += count;
        size -= (size_t)count;
    }
    return true;
}

// A message and the data behind it, so that they go out with one call.
struct reply {
    struct message head;
    uint8_t data[MAX_PACKETS * (ISOCHRONOUS_PAYLOAD_BYTES + sizeof(struct packet))];
};
_Static_assert(sizeof(((struct reply *)0)->data) > PAYLOAD_BYTES, "room for a bulk transfer");

static bool send_submitted(int cable, struct reply *reply, uint32_t sequence, int status, uint32_t actual,
                           uint32_t data_bytes) {
    reply->head = (struct message){.command = htonl(RET_SUBMIT), .sequence = htonl(sequence)};
    reply->head.submitted.status = htonl((uint32_t)status);
    reply->head.submitted.length = htonl(actual);
    return write_all(cable, reply, sizeof reply->head + data_bytes);
}

// ---- requests ----

static bool handle_control(int cable, const struct message *message, const uint8_t *data, uint32_t size) {
    static struct reply reply;
    uint32_t sequence = ntohl(message->sequence);
    int length = answer_control(&message->submit.setup, data, size, reply.data, ANSWER_BYTES);
    if (length < 0) return send_submitted(cable, &reply, sequence, length, 0, 0);
    bool is_in = ntohl(message->direction) == DIRECTION_IN;
    uint32_t answer = is_in ? (uint32_t)length : 0;
    return send_submitted(cable, &reply, sequence, 0, is_in ? answer : size, answer);
}

// Reads the packets of an isochronous transfer, and says when it is over: microframes pass one after another.
static bool read_packets(int cable, const struct message *message, struct transfer *transfer) {
    static int64_t last_due;
    transfer->packets = ntohl(message->submit.packets);
    if (transfer->packets == 0 || transfer->packets > MAX_PACKETS) return false;
    if (!read_all(cable, transfer->packet, transfer->packets * sizeof *transfer->packet)) return false;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    int64_t now = time.tv_sec * 1000000000ll + time.tv_nsec;
    last_due = (last_due > now ? last_due : now) + transfer->packets * (int64_t)MICROFRAME_NANOSECONDS;
    transfer->due = last_due;
    return true;
}

static bool queue_transfer(int cable, const struct message *message) {
    static struct reply reply;
    struct transfer transfer = {.sequence = ntohl(message->sequence), .length = ntohl(message->submit.length)};
    if (is_isochronous() && !read_packets(cable, message, &transfer)) return false;
    if (transfer_count == MAX_TRANSFERS || transfer.length <= PAYLOAD_HEADER_BYTES)
        return send_submitted(cable, &reply, transfer.sequence, -EPIPE, 0, 0);
    transfers[transfer_count++] = transfer;
    return true;
}

static struct transfer remove_transfer(unsigned index) {
    struct transfer removed = transfers[index];
    transfer_count--;
    memmove(transfers + index, transfers + index + 1, (transfer_count - index) * sizeof *transfers);
    return removed;
}

static bool handle_submit(int cable, const struct message *message) {
    static uint8_t data[1 << 16];
    uint32_t length = ntohl(message->submit.length);
    bool is_out = ntohl(message->direction) != DIRECTION_IN;
    if (is_out && (length > sizeof data || !read_all(cable, data, length))) return false;
    if (ntohl(message->endpoint) == 0) return handle_control(cable, message, data, is_out ? length : 0);
    return queue_transfer(cable, message);
}

// USB/IP, USBIP_RET_UNLINK: -ECONNRESET if the transfer was still waiting, 0 if it had been answered before.
static bool handle_unlink(int cable, const struct message *message) {
    uint32_t victim = ntohl(message->unlink.sequence);
    int status = 0;
    for (unsigned i = 0; i < transfer_count; i++) {
        if (transfers[i].sequence != victim) continue;
        remove_transfer(i);
        status = -ECONNRESET;
        break;
    }
    struct message answer = {.command = htonl(RET_UNLINK), .sequence = message->sequence};
    answer.unlinked.status = htonl((uint32_t)status);
    return write_all(cable, &answer, sizeof answer);
}

bool handle_request(int cable) {
    struct message message;
    if (!read_all(cable, &message, sizeof message)) return false;
    switch (ntohl(message.command)) {
        case CMD_SUBMIT: return handle_submit(cable, &message);
        case CMD_UNLINK: return handle_unlink(cable, &message);
        default: return false;
    }
}

// ---- the video endpoint ----

int64_t transfer_wait(int64_t now) {
    if (transfer_count == 0) return -1;
    if (!is_isochronous()) return stream_wait(now);
    return transfers[0].due > now ? transfers[0].due - now : 0;
}

// Each packet carries a payload, or nothing where the stream has none.
static bool send_packets(int cable, struct transfer *transfer, struct reply *reply, int64_t now) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < transfer->packets; i++) {
        uint32_t room = ntohl(transfer->packet[i].length), actual = 0;
        if (room > ISOCHRONOUS_PAYLOAD_BYTES) room = ISOCHRONOUS_PAYLOAD_BYTES;
        if (room > PAYLOAD_HEADER_BYTES && stream_wait(now) == 0) actual = stream_payload(now, reply->data + bytes, room);
        transfer->packet[i].actual = htonl(actual);
        transfer->packet[i].status = 0;
        bytes += actual;
    }
    uint32_t descriptors = transfer->packets * sizeof *transfer->packet;
    memcpy(reply->data + bytes, transfer->packet, descriptors);
    reply->head = (struct message){.command = htonl(RET_SUBMIT), .sequence = htonl(transfer->sequence)};
    reply->head.submitted.length = htonl(bytes);
    reply->head.submitted.packets = htonl(transfer->packets);
    return write_all(cable, reply, sizeof reply->head + bytes + descriptors);
}

bool send_payload(int cable, int64_t now) {
    static struct reply reply;
    struct transfer transfer = remove_transfer(0);
    if (transfer.packets) return send_packets(cable, &transfer, &reply, now);
    uint32_t capacity = transfer.length < PAYLOAD_BYTES ? transfer.length : PAYLOAD_BYTES;
    uint32_t bytes = stream_payload(now, reply.data, capacity);
    return send_submitted(cable, &reply, transfer.sequence, 0, bytes, bytes);
}
