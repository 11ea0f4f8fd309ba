#pragma once

/* Asks the processor to fetch the cache line at an address that will be written soon. It reads nothing, whatever the address. */
static inline void cprefetch_line(const void *address) {
    __builtin_prefetch(address, 1, 3);
}
