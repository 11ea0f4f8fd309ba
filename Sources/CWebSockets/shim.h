#pragma once
#include <libwebsockets.h>

/* A macro over another constant, which Swift does not import. */
static const enum lws_write_protocol cwebsockets_write_raw = LWS_WRITE_RAW;

/* A function-like cast macro, which Swift does not import. */
static inline void cwebsockets_kill(struct lws *wsi) {
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
}
