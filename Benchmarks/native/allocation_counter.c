/* Counts a program's allocations by thread, for LD_PRELOAD.
 *
 * ALLOCATION_COUNTS names a file of TABLE_BYTES that is mapped and shared: slot after slot, each {thread id,
 * allocations, bytes} as three u64 of the machine's byte order, free slots all zero. A reader of the file sees the
 * counts of the moment, so that the difference of two looks is what happened between them, with nothing asked of the
 * program.
 *
 * The allocator itself is glibc's, by the names under which it exports it besides malloc and its like.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLOT_COUNT = 256, TABLE_BYTES = SLOT_COUNT * 24 };

struct slot {
    _Atomic uint64_t thread;
    _Atomic uint64_t allocations;
    _Atomic uint64_t bytes;
};

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static struct slot *table;
static atomic_uint slots_taken;
/* initial-exec, because any other kind of thread-local storage may itself be allocated at its first use. */
static __thread struct slot *own_slot __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void map_table(void) {
    const char *path = getenv("ALLOCATION_COUNTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory != MAP_FAILED) table = memory;
}

static void count(size_t bytes) {
    if (!table) return;
    if (!own_slot) {
        unsigned index = atomic_fetch_add(&slots_taken, 1);
        /* Threads beyond the table share its last slot. */
        own_slot = &table[index < SLOT_COUNT ? index : SLOT_COUNT - 1];
        atomic_store_explicit(&own_slot->thread, (uint64_t)syscall(SYS_gettid), memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&own_slot->allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&own_slot->bytes, bytes, memory_order_relaxed);
}

void *malloc(size_t size) {
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count(number * size);
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    count(size);
    return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
    count(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count(size);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    count(size);
    void *made = __libc_memalign(alignment, size);
    if (!made) return ENOMEM;
    *memory = made;
    return 0;
}
