// The bandwidth of a bus that several cameras share. vhci_hcd has no bounds of its own, unlike a real host controller.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "camera.h"

// What one isochronous endpoint can carry (USB 2.0 5.6.3). Controllers have little more left for a second camera.
enum { BYTES_PER_SECOND = ISOCHRONOUS_PAYLOAD_BYTES * 8000, SEATS = 16 };

struct seat {
    pid_t owner;  // 0 for nobody
    uint64_t bytes_per_second;
};

static int file = -1;
static struct seat *seats;

void join_bus(const char *path) {
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    size_t size = SEATS * sizeof *seats;
    if (file >= 0 && ftruncate(file, (off_t)size) == 0) seats = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (seats && seats != MAP_FAILED) return;
    perror(path);
    exit(EXIT_FAILURE);
}

static bool is_gone(pid_t owner) {
    return kill(owner, 0) != 0 && errno == ESRCH;
}

bool reserve_bandwidth(uint64_t bytes_per_second) {
    if (!seats) return true;
    release_bandwidth();
    flock(file, LOCK_EX);
    uint64_t sum = bytes_per_second;
    struct seat *free_seat = NULL;
    for (struct seat *seat = seats; seat < seats + SEATS; seat++) {
        if (seat->owner && is_gone(seat->owner)) seat->owner = 0;
        if (seat->owner) sum += seat->bytes_per_second;
        else free_seat = seat;
    }
    bool fits = free_seat && sum <= BYTES_PER_SECOND;
    if (fits) *free_seat = (struct seat){getpid(), bytes_per_second};
    flock(file, LOCK_UN);
    return fits;
}

void release_bandwidth(void) {
    if (!seats) return;
    flock(file, LOCK_EX);
    for (struct seat *seat = seats; seat < seats + SEATS; seat++)
        if (seat->owner == getpid()) seat->owner = 0;
    flock(file, LOCK_UN);
}
