// uvc-camera [--damage N] [--damage-first N] [--error N] [--stall-after N] [--serial TEXT] [--bus FILE] CLIP...
//
// A USB Video Class camera in user space: plugs itself into this kernel's virtual USB host controller (vhci_hcd), so
// that the real uvcvideo driver binds to it. MJPEG and YUYV, 640x480, 320x240 and 1280x720, 30 and 15 frames a second.
// Each CLIP is a file of concatenated JPEGs of one of these sizes; one of each is needed. Runs until SIGTERM or SIGINT;
// its end unplugs the camera.
//
//   --damage N        every Nth MJPEG frame loses its second half
//   --damage-first N  the first N MJPEG frames of a stream do
//   --error N         every Nth payload carries the UVC error bit
//   --stall-after N   after N frames the camera is silent until the next stream
//   --serial TEXT     the camera's serial number (default 0001)
//   --bus FILE        streams isochronously, and shares the bandwidth of a USB 2.0 bus with all cameras of this FILE
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "camera.h"

enum { NANOSECONDS = 1000000000, EXIT_USAGE = 64 };

static int64_t monotonic_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)NANOSECONDS + time.tv_nsec;
}

static void usage(void) {
    fprintf(stderr, "usage: uvc-camera [--damage N] [--damage-first N] [--error N] [--stall-after N] "
                    "[--serial TEXT] [--bus FILE] CLIP...\n");
    exit(EXIT_USAGE);
}

static unsigned positive_number(const char *text) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*end || value == 0 || value > 1000000) usage();
    return (unsigned)value;
}

// Takes the options; the clips are what is left from `optind` on.
static struct faults parse_options(int count, char **words) {
    static const struct option options[] = {
        {"damage", required_argument, NULL, 'd'},
        {"damage-first", required_argument, NULL, 'f'},
        {"error", required_argument, NULL, 'e'},
        {"stall-after", required_argument, NULL, 's'},
        {"serial", required_argument, NULL, 'n'},
        {"bus", required_argument, NULL, 'b'},
        {0},
    };
    struct faults faults = {0};
    for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;) {
        switch (option) {
            case 'd': faults.damage = positive_number(optarg); break;
            case 'f': faults.damage_first = positive_number(optarg); break;
            case 'e': faults.error = positive_number(optarg); break;
            case 's': faults.stall_after = positive_number(optarg); break;
            case 'n':
                if (!set_serial_number(optarg)) usage();
                break;
            case 'b':
                set_isochronous();
                join_bus(optarg);
                break;
            default: usage();
        }
    }
    if (optind == count) usage();
    return faults;
}

// A descriptor that becomes readable when the program shall end.
static int ending_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

// Requests come first: an answered one may cancel what the stream is about to send.
static void serve(int cable, int signals) {
    for (;;) {
        int64_t wait = transfer_wait(monotonic_now());
        struct timespec timeout = {wait / NANOSECONDS, wait % NANOSECONDS};
        struct pollfd events[] = {{cable, POLLIN, 0}, {signals, POLLIN, 0}};
        int ready = ppoll(events, 2, wait < 0 ? NULL : &timeout, NULL);
        if (ready < 0 && errno != EINTR) return;
        if (events[1].revents) return;
        if (events[0].revents) {
            if (!handle_request(cable)) return;
        } else if (transfer_wait(monotonic_now()) == 0) {
            if (!send_payload(cable, monotonic_now())) return;
        }
    }
}

int main(int count, char **words) {
    stream_set_faults(parse_options(count, words));
    for (int i = optind; i < count; i++) load_clip(words[i]);
    require_clips();
    int signals = ending_signals();
    int cable = plug_in();
    if (cable < 0 || signals < 0) {
        fprintf(stderr, "uvc-camera: cannot plug in: %s (is vhci_hcd loaded, and are you root?)\n", strerror(errno));
        return EXIT_FAILURE;
    }
    serve(cable, signals);
    release_bandwidth();
    stream_report();
    close(cable);
    return EXIT_SUCCESS;
}
