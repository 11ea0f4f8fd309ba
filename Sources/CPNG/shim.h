#pragma once

#include <png.h>

// Swift imports PNG_IMAGE_VERSION, PNG_FORMAT_RGB and PNG_IMAGE_FLAG_FAST, but not this function-like macro.
static inline size_t cpng_image_size_max(png_image image) {
    return PNG_IMAGE_PNG_SIZE_MAX(image);
}
