/* Draws on an X display: something still, or something that moves.
 *
 *     screen_painter DISPLAY FPS WIDTHxHEIGHT
 *
 * A window covers the screen with a picture like pages of text. FPS times a second, a part of it of the given size,
 * in the middle, is replaced by another cut of the picture, as in scrolling and in a video; FPS 0 changes nothing.
 * The server holds the picture, so this program sends a few bytes for each change. Writes a line once it has drawn.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xcb/xcb.h>

/* How much larger than the screen the picture is, so that its cuts move; a change moves by at most SPEED pixels. */
enum { MARGIN = 512, SPEED = 8, REQUEST_BYTES = 200000 };

static uint32_t pixel(unsigned column, unsigned row) {
    /* Windows of a few colours with lines of marks as small as letters, of which a fixed function of their place leaves
     * out some, as a desktop with pages of text. */
    unsigned window = column / 480 + row / 270 * 7;
    uint32_t background = 0xE0E0E0 - window % 5 * 0x181008;
    if (column % 480 < 40 || column % 480 > 440 || row % 270 < 40) return background;
    unsigned letter = (column / 8) * 2654435761u ^ (row / 24) * 2246822519u;
    return row % 24 < 10 && column % 8 < 2 && letter >> 13 & 1 ? 0x303030 : background;
}

static void draw_picture(xcb_connection_t *display, xcb_pixmap_t pixmap, xcb_gcontext_t context, unsigned width,
                         unsigned height) {
    unsigned rows = REQUEST_BYTES / (width * 4);
    uint32_t *pixels = malloc((size_t)rows * width * 4);
    for (unsigned top = 0; top < height; top += rows) {
        unsigned count = height - top < rows ? height - top : rows;
        for (unsigned row = 0; row < count; row++) {
            for (unsigned column = 0; column < width; column++) {
                pixels[(size_t)row * width + column] = pixel(column, top + row);
            }
        }
        xcb_put_image(display, XCB_IMAGE_FORMAT_Z_PIXMAP, pixmap, context, (uint16_t)width, (uint16_t)count, 0,
                      (int16_t)top, 0, 24, count * width * 4, (const uint8_t *)pixels);
    }
    free(pixels);
}

/* Goes to and fro between 0 and MARGIN. */
static int16_t sway(unsigned step) {
    unsigned place = step % (2 * MARGIN);
    return (int16_t)(place < MARGIN ? place : 2 * MARGIN - place);
}

int main(int argument_count, char **arguments) {
    unsigned moving_width, moving_height;
    if (argument_count != 4 || sscanf(arguments[3], "%ux%u", &moving_width, &moving_height) != 2) {
        fprintf(stderr, "usage: screen_painter DISPLAY FPS WIDTHxHEIGHT\n");
        return 64;
    }
    unsigned fps = (unsigned)atoi(arguments[2]);
    xcb_connection_t *display = xcb_connect(arguments[1], NULL);
    if (xcb_connection_has_error(display)) {
        fprintf(stderr, "screen_painter: cannot connect to %s\n", arguments[1]);
        return 69;
    }
    xcb_screen_t *screen = xcb_setup_roots_iterator(xcb_get_setup(display)).data;
    uint16_t width = screen->width_in_pixels, height = screen->height_in_pixels;
    xcb_window_t window = xcb_generate_id(display);
    uint32_t is_unmanaged = 1, no_exposures = 0;
    xcb_create_window(display, XCB_COPY_FROM_PARENT, window, screen->root, 0, 0, width, height, 0,
                      XCB_WINDOW_CLASS_INPUT_OUTPUT, screen->root_visual, XCB_CW_OVERRIDE_REDIRECT, &is_unmanaged);
    xcb_map_window(display, window);
    xcb_pixmap_t picture = xcb_generate_id(display);
    xcb_create_pixmap(display, 24, picture, window, width + MARGIN, height + MARGIN);
    xcb_gcontext_t context = xcb_generate_id(display);
    xcb_create_gc(display, context, window, XCB_GC_GRAPHICS_EXPOSURES, &no_exposures);
    draw_picture(display, picture, context, width + MARGIN, height + MARGIN);
    xcb_copy_area(display, picture, window, context, 0, 0, 0, 0, width, height);
    free(xcb_get_input_focus_reply(display, xcb_get_input_focus(display), NULL));
    puts("drawn");
    fflush(stdout);

    int16_t left = (int16_t)((width - moving_width) / 2), top = (int16_t)((height - moving_height) / 2);
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (unsigned step = 1; !xcb_connection_has_error(display); step++) {
        due.tv_nsec += fps ? 1000000000 / fps : 0;
        due.tv_sec += due.tv_nsec / 1000000000 + !fps;
        due.tv_nsec %= 1000000000;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL)) {}
        if (!fps) continue;
        xcb_copy_area(display, picture, window, context, sway(step * SPEED / 2) + left, sway(step * SPEED) + top, left,
                      top, (uint16_t)moving_width, (uint16_t)moving_height);
        xcb_flush(display);
    }
    return 0;
}
