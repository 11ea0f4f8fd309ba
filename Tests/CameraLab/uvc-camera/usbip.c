// The cable: USB/IP between this program and vhci_hcd, over a socket pair instead of a network.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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

enum { PORTS = 8, DEVICE = 1 << 16 | 2, ANSWER_BYTES = 4096, MAX_TRANSFERS = 64 };

static struct transfer {
    uint32_t sequence, length;
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
    uint8_t data[PAYLOAD_BYTES];
};

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
    if (length < 0) return send_submitted(cable, &reply, sequence, -EPIPE, 0, 0);
    bool is_in = ntohl(message->direction) == DIRECTION_IN;
    uint32_t answer = is_in ? (uint32_t)length : 0;
    return send_submitted(cable, &reply, sequence, 0, is_in ? answer : size, answer);
}

static bool queue_transfer(int cable, const struct message *message) {
    static struct reply reply;
    struct transfer transfer = {ntohl(message->sequence), ntohl(message->submit.length)};
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

bool has_transfer(void) {
    return transfer_count > 0;
}

bool send_payload(int cable, int64_t now) {
    static struct reply reply;
    struct transfer transfer = remove_transfer(0);
    uint32_t capacity = transfer.length < PAYLOAD_BYTES ? transfer.length : PAYLOAD_BYTES;
    uint32_t bytes = stream_payload(now, reply.data, capacity);
    return send_submitted(cable, &reply, transfer.sequence, 0, bytes, bytes);
}
