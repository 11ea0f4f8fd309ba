// What the camera sees. Frame number N shows the bits of N as sixteen blocks across the top eighth of the picture,
// lowest bit at the left, white for one; below, a colour ramp with a white bar that moves down.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "camera.h"

enum { NUMBER_BITS = 16, BLACK = 16, WHITE = 235, GREY_CHROMA = 128 };
enum { BAR_ROWS = 16, BAR_STEP = 4, MAX_WIDTH = 1280, MAX_HEIGHT = 720, MAX_PICTURES = 1024 };
// ITU-T T.81 B.1.1.3
enum { MARKER = 0xff, START_OF_IMAGE = 0xd8, END_OF_IMAGE = 0xd9, FIRST_START_OF_FRAME = 0xc0, LAST_START_OF_FRAME = 0xc3 };

struct jpeg {
    const uint8_t *data;
    uint32_t bytes;
};

static struct clip {
    struct jpeg pictures[MAX_PICTURES];
    uint32_t count;
} clips[FRAME_SIZES];

static void refuse(const char *path, const char *reason) {
    fprintf(stderr, "uvc-camera: %s: %s\n", path, reason);
    exit(1);
}

// ---- the JPEG clips ----

// Maps the whole file; it stays mapped for the life of the program.
static const uint8_t *map_file(const char *path, size_t *size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) refuse(path, "cannot be opened");
    *size = (size_t)status.st_size;
    const uint8_t *data = *size ? mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    if (data == MAP_FAILED) refuse(path, "cannot be mapped");
    close(file);
    return data;
}

// Reads the size out of a JPEG's frame header (T.81 B.2.2). False: there is none.
static bool jpeg_size(struct jpeg jpeg, struct frame_size *size) {
    for (uint32_t i = 2; i + 9 < jpeg.bytes && jpeg.data[i] == MARKER;) {
        const uint8_t *segment = jpeg.data + i;
        if (segment[1] >= FIRST_START_OF_FRAME && segment[1] <= LAST_START_OF_FRAME) {
            size->height = (uint16_t)(segment[5] << 8 | segment[6]);
            size->width = (uint16_t)(segment[7] << 8 | segment[8]);
            return true;
        }
        i += 2u + (uint32_t)(segment[2] << 8 | segment[3]);
    }
    return false;
}

static struct clip *clip_of_size(struct frame_size size) {
    for (int i = 0; i < FRAME_SIZES; i++)
        if (frame_sizes[i].width == size.width && frame_sizes[i].height == size.height) return &clips[i];
    return NULL;
}

static void add_picture(const char *path, struct jpeg jpeg) {
    struct frame_size size;
    struct clip *clip = jpeg_size(jpeg, &size) ? clip_of_size(size) : NULL;
    if (!clip) refuse(path, "holds a picture that is not 640x480, 320x240 or 1280x720");
    if (jpeg.bytes > yuyv_bytes(size)) refuse(path, "holds a JPEG larger than the announced frame size");
    if (clip->count == MAX_PICTURES) refuse(path, "holds too many pictures");
    clip->pictures[clip->count++] = jpeg;
}

// Compressed data never holds an end marker (T.81 B.1.1.5), and ffmpeg writes no embedded thumbnails.
void load_clip(const char *path) {
    size_t size;
    const uint8_t *data = map_file(path, &size);
    const uint8_t *start = NULL;
    for (const uint8_t *at = data; at + 1 < data + size; at++) {
        if (at[0] != MARKER) continue;
        if (at[1] == START_OF_IMAGE && !start) start = at;
        if (at[1] == END_OF_IMAGE && start) {
            add_picture(path, (struct jpeg){start, (uint32_t)(at + 2 - start)});
            start = NULL;
        }
    }
}

void require_clips(void) {
    for (int i = 0; i < FRAME_SIZES; i++) {
        if (clips[i].count) continue;
        fprintf(stderr, "uvc-camera: a clip of %ux%u is missing\n", frame_sizes[i].width, frame_sizes[i].height);
        exit(1);
    }
}

// ---- the YUYV picture ----

static uint8_t canvas[2 * MAX_WIDTH * MAX_HEIGHT];
static uint8_t ramp_row[2 * MAX_WIDTH], bar_row[2 * MAX_WIDTH];

static void fill_rows(struct frame_size size, uint32_t first, uint32_t count, const uint8_t *row) {
    uint32_t stride = 2u * size.width;
    for (uint32_t y = first; y < first + count && y < size.height; y++) memcpy(canvas + y * stride, row, stride);
}

static void paint_background(struct frame_size size) {
    for (uint32_t x = 0; x < size.width; x++) {
        uint32_t step = x * 192 / size.width;
        ramp_row[2 * x] = (uint8_t)(BLACK + step);
        ramp_row[2 * x + 1] = (uint8_t)(x % 2 ? 224 - step : 32 + step);  // V falls, U rises
        bar_row[2 * x] = WHITE;
        bar_row[2 * x + 1] = GREY_CHROMA;
    }
    fill_rows(size, 0, size.height, ramp_row);
}

static void paint_number(struct frame_size size, uint32_t number) {
    uint8_t row[2 * MAX_WIDTH];
    for (uint32_t x = 0; x < size.width; x++) {
        row[2 * x] = number >> (x * NUMBER_BITS / size.width) & 1 ? WHITE : BLACK;
        row[2 * x + 1] = GREY_CHROMA;
    }
    fill_rows(size, 0, size.height / 8, row);
}

// Repaints only what has changed, for the camera shares a slow emulated machine with those it tests.
static void paint(uint8_t frame_index, uint32_t number) {
    static uint8_t painted_index;
    static uint32_t bar;
    struct frame_size size = frame_sizes[frame_index - 1];
    if (painted_index != frame_index) paint_background(size);
    else fill_rows(size, bar, BAR_ROWS, ramp_row);
    painted_index = frame_index;

    uint32_t top = size.height / 8;
    bar = top + number * BAR_STEP % (size.height - top - BAR_ROWS);
    fill_rows(size, bar, BAR_ROWS, bar_row);
    paint_number(size, number);
}

uint32_t largest_picture(uint8_t format, uint8_t frame_index) {
    if (format != FORMAT_MJPEG) return yuyv_bytes(frame_sizes[frame_index - 1]);
    const struct clip *clip = &clips[frame_index - 1];
    uint32_t largest = 0;
    for (uint32_t i = 0; i < clip->count; i++)
        if (clip->pictures[i].bytes > largest) largest = clip->pictures[i].bytes;
    return largest;
}

const uint8_t *picture(uint8_t format, uint8_t frame_index, uint32_t number, uint32_t *bytes) {
    if (format == FORMAT_MJPEG) {
        const struct clip *clip = &clips[frame_index - 1];
        struct jpeg jpeg = clip->pictures[number % clip->count];
        *bytes = jpeg.bytes;
        return jpeg.data;
    }
    paint(frame_index, number);
    *bytes = yuyv_bytes(frame_sizes[frame_index - 1]);
    return canvas;
}
