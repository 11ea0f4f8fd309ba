#pragma once

// Our programs have a `main` of their own.
#define SDL_MAIN_HANDLED
#include <SDL2/SDL.h>
// For the errors that SDL's own connection to an X server gets.
#include <X11/Xlib.h>
// For the compositor's seats; libwayland-dev comes with libsdl2-dev.
#include <wayland-client.h>

// A macro with arguments, which Swift does not import.
static const int csdl_anywhere = SDL_WINDOWPOS_UNDEFINED;
