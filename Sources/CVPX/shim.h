#ifndef CVPX_SHIM_H
#define CVPX_SHIM_H

#include <vpx/vp8cx.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>
#include <vpx/vpx_encoder.h>

// This is a function-like macro, which Swift does not import; it passes the ABI version of the headers.
static inline vpx_codec_err_t cvpx_encoder_defaults(vpx_codec_enc_cfg_t *configuration) {
    return vpx_codec_enc_config_default(vpx_codec_vp8_cx(), configuration, 0);
}

// This is a function-like macro, which Swift does not import; it passes the ABI version of the headers.
static inline vpx_codec_err_t cvpx_encoder_open(vpx_codec_ctx_t *context, const vpx_codec_enc_cfg_t *configuration) {
    return vpx_codec_enc_init(context, vpx_codec_vp8_cx(), configuration, 0);
}

// This is a function-like macro, which Swift does not import; it passes the ABI version of the headers.
static inline vpx_codec_err_t cvpx_decoder_open(vpx_codec_ctx_t *context, const vpx_codec_dec_cfg_t *configuration) {
    return vpx_codec_dec_init(context, vpx_codec_vp8_dx(), configuration, 0);
}

// vpx_codec_control_ is variadic, which Swift does not import; these are the three argument types that we use.
static inline vpx_codec_err_t cvpx_set(vpx_codec_ctx_t *context, int control, int value) {
    return vpx_codec_control_(context, control, value);
}
static inline vpx_codec_err_t cvpx_get(vpx_codec_ctx_t *context, int control, int *value) {
    return vpx_codec_control_(context, control, value);
}
// A map of NULL makes all macroblocks active again; the counts must be those of the encoder's size all the same.
static inline vpx_codec_err_t cvpx_set_active(vpx_codec_ctx_t *context, unsigned char *map, unsigned rows,
                                              unsigned columns) {
    vpx_active_map_t active = {map, rows, columns};
    return vpx_codec_control_(context, VP8E_SET_ACTIVEMAP, &active);
}

#endif
