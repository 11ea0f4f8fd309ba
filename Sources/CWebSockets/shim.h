#pragma once
#include <malloc.h>
#include <ev.h>
#include <libwebsockets.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* LWS_WRITE_RAW is a macro over another constant; Swift does not import such macros. */
static const enum lws_write_protocol cwebsockets_write_raw = LWS_WRITE_RAW;

/* LWS_TO_KILL_SYNC is a macro for a negative constant; Swift does not import such macros. */
static inline void cwebsockets_kill(struct lws *wsi) {
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
}

/* libev initializes its watchers with macros, which Swift does not import. */
static inline void cwebsockets_timer_init(ev_timer *timer, void (*ring)(struct ev_loop *, ev_timer *, int), void *data) {
    ev_timer_init(timer, ring, 0, 0);
    timer->data = data;
}

static inline void cwebsockets_timer_set(ev_timer *timer, double seconds) {
    ev_timer_set(timer, seconds, 0);
}

static inline void cwebsockets_io_init(
    ev_io *watcher, void (*ready)(struct ev_loop *, ev_io *, int), int descriptor, void *data) {
    ev_io_init(watcher, ready, descriptor, EV_READ);
    watcher->data = data;
}

/* A watcher that is never started; its events are fed by hand, and are handled before those of all other watchers. */
static inline void cwebsockets_first_init(ev_timer *watcher, void (*called)(struct ev_loop *, ev_timer *, int), void *data) {
    ev_timer_init(watcher, called, 0, 0);
    ev_set_priority(watcher, EV_MAXPRI);
    watcher->data = data;
}

/// Not in Swift's Glibc module, which lacks <malloc.h>.
static inline void cwebsockets_trim_memory(void) { malloc_trim(0); }

