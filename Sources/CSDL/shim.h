#pragma once

// Our programs have a `main` of their own.
#define SDL_MAIN_HANDLED
#include <SDL2/SDL.h>
// For the errors that SDL's own connection to an X server gets.
#include <X11/Xlib.h>
// For the compositor's seats; libwayland-dev comes with libsdl2-dev.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wayland-client.h>

// A macro with arguments, which Swift does not import.
static const int csdl_anywhere = SDL_WINDOWPOS_UNDEFINED;

/// What `$WAYLAND_DISPLAY` is.
typedef enum { csdl_no_compositor, csdl_compositor_without_seat, csdl_compositor } csdl_wayland;

static void csdl_note_global(void *has_seat, struct wl_registry *registry, uint32_t name, const char *interface,
                             uint32_t version) {
    (void)registry, (void)name, (void)version;
    if (strcmp(interface, "wl_seat") == 0) *(bool *)has_seat = true;
}

static void csdl_ignore_global(void *has_seat, struct wl_registry *registry, uint32_t name) {
    (void)has_seat, (void)registry, (void)name;
}

/// Asks the compositor whether it has a seat: a place of keyboard, pointer or touch.
static inline csdl_wayland csdl_inspect_wayland(void) {
    static const struct wl_registry_listener listener = {csdl_note_global, csdl_ignore_global};
    // This is one connection, which is then SDL's.
    if (getenv("WAYLAND_SOCKET")) return csdl_no_compositor;
    // Without a folder for sockets the library would complain to the standard error.
    const char *name = getenv("WAYLAND_DISPLAY");
    if (!getenv("XDG_RUNTIME_DIR") && !(name && name[0] == '/')) return csdl_no_compositor;
    struct wl_display *display = wl_display_connect(NULL);
    if (!display) return csdl_no_compositor;
    bool has_seat = false;
    struct wl_registry *registry = wl_display_get_registry(display);
    bool is_answered = registry && wl_registry_add_listener(registry, &listener, &has_seat) == 0
        && wl_display_roundtrip(display) >= 0;
    if (registry) wl_registry_destroy(registry);
    wl_display_disconnect(display);
    if (!is_answered) return csdl_no_compositor;
    return has_seat ? csdl_compositor : csdl_compositor_without_seat;
}
