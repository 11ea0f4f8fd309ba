#pragma once

#include <sys/syscall.h>
#include <unistd.h>
#include <xcb/xcb.h>
#include <xcb/xcbext.h>
#include <xcb/composite.h>
#include <xcb/damage.h>
#include <xcb/randr.h>
#include <xcb/shm.h>
#include <xcb/xfixes.h>

// The extensions' identifiers are mutable globals, which Swift 6 does not let us name.
static inline const xcb_query_extension_reply_t *cxcb_composite(xcb_connection_t *c) {
    return xcb_get_extension_data(c, &xcb_composite_id);
}
static inline const xcb_query_extension_reply_t *cxcb_damage(xcb_connection_t *c) {
    return xcb_get_extension_data(c, &xcb_damage_id);
}
static inline const xcb_query_extension_reply_t *cxcb_randr(xcb_connection_t *c) {
    return xcb_get_extension_data(c, &xcb_randr_id);
}
static inline const xcb_query_extension_reply_t *cxcb_shm(xcb_connection_t *c) {
    return xcb_get_extension_data(c, &xcb_shm_id);
}
static inline const xcb_query_extension_reply_t *cxcb_xfixes(xcb_connection_t *c) {
    return xcb_get_extension_data(c, &xcb_xfixes_id);
}

// Glibc declares memfd_create only with _GNU_SOURCE, which a module cannot rely on. Such a file has no name, and is gone
// with its last user, also when a program is killed. 1 is MFD_CLOEXEC.
static inline int cxcb_memory_file(void) { return (int)syscall(SYS_memfd_create, "room screen", 1); }
