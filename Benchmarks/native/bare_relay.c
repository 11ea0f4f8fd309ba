/* The floor of a relay: bytes come in, and each message goes to every subscriber with one send().
 *
 *     bare_relay PORT
 *
 * A connection's first byte says what it is: 'P', the publisher, whose messages follow, each after its length as a u32
 * in network byte order; or 'S', a subscriber, whose further bytes are thrown away. There is no protocol, no state and
 * no decision in it. What a socket does not take is lost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAXIMUM_SUBSCRIBERS = 4096, INPUT_BYTES = 1 << 20 };

static int subscribers[MAXIMUM_SUBSCRIBERS];
static int subscriber_count;
static int publisher = -1;
static unsigned char input[INPUT_BYTES];
static size_t input_length;

static void fail(const char *attempt) {
    perror(attempt);
    exit(1);
}

static int listening_socket(uint16_t port) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) fail("listen");
    return listener;
}

static void watch(int poller, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event)) fail("epoll_ctl");
}

static void accept_connection(int poller, int listener) {
    int peer = accept(listener, NULL, NULL), on = 1;
    char role;
    if (peer < 0 || read(peer, &role, 1) != 1) {
        close(peer);
        return;
    }
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (role == 'P') {
        publisher = peer;
        input_length = 0;
    } else if (subscriber_count < MAXIMUM_SUBSCRIBERS) {
        subscribers[subscriber_count++] = peer;
    }
    watch(poller, peer);
}

static void drop(int peer) {
    for (int i = 0; i < subscriber_count; i++) {
        if (subscribers[i] == peer) subscribers[i] = subscribers[--subscriber_count];
    }
    if (peer == publisher) publisher = -1;
    close(peer);
}

static void forward(const unsigned char *message, size_t length) {
    for (int i = 0; i < subscriber_count; i++) {
        if (send(subscribers[i], message, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN) continue;
    }
}

static void take_input(void) {
    ssize_t count = recv(publisher, input + input_length, sizeof input - input_length, MSG_DONTWAIT);
    if (count <= 0) {
        if (count == 0 || errno != EAGAIN) drop(publisher);
        return;
    }
    input_length += (size_t)count;
    size_t start = 0;
    uint32_t length;
    while (input_length - start >= sizeof length) {
        memcpy(&length, input + start, sizeof length);
        length = ntohl(length);
        if (length > sizeof input - sizeof length) exit(1);
        if (input_length - start < sizeof length + length) break;
        forward(input + start + sizeof length, length);
        start += sizeof length + length;
    }
    input_length -= start;
    memmove(input, input + start, input_length);
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: bare_relay PORT\n");
        return 64;
    }
    int listener = listening_socket((uint16_t)atoi(arguments[1]));
    int poller = epoll_create1(0);
    watch(poller, listener);
    struct epoll_event events[64];
    for (;;) {
        int ready = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int peer = events[i].data.fd;
            char ignored[4096];
            if (peer == listener) {
                accept_connection(poller, listener);
            } else if (peer == publisher) {
                take_input();
            } else if (recv(peer, ignored, sizeof ignored, MSG_DONTWAIT) == 0) {
                drop(peer);
            }
        }
    }
}
