#ifndef LUMA_H
#define LUMA_H

#include <stddef.h>
#include <stdint.h>

// Stands for any C library that takes planes: the mean of a plane whose rows begin `stride` bytes apart.
static inline double luma_mean(const uint8_t *plane, size_t stride, size_t width, size_t height) {
    uint64_t sum = 0;
    for (size_t row = 0; row < height; row++)
        for (size_t column = 0; column < width; column++) sum += plane[row * stride + column];
    return (double)sum / (double)(width * height);
}

#endif
