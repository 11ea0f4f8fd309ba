// A window manager that hides the first window the moment it is shown, for tests of whole programs: no request of the
// program comes in between. It does not announce itself, as the oldest managers do not. When the window is to be shown
// again, it is.

#include <stdio.h>
#include <stdlib.h>
#include <xcb/xcb.h>

int main(void) {
    xcb_connection_t *connection = xcb_connect(NULL, NULL);
    if (xcb_connection_has_error(connection)) return 1;
    xcb_window_t root = xcb_setup_roots_iterator(xcb_get_setup(connection)).data->root;
    uint32_t events = XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT;
    if (xcb_request_check(connection, xcb_change_window_attributes_checked(connection, root, XCB_CW_EVENT_MASK, &events)))
        return 1;
    puts("manages");
    fflush(stdout);
    xcb_window_t first = XCB_NONE;
    for (xcb_generic_event_t *event; (event = xcb_wait_for_event(connection)); free(event)) {
        if ((event->response_type & 0x7f) != XCB_MAP_REQUEST) continue;
        xcb_window_t window = ((xcb_map_request_event_t *)event)->window;
        xcb_grab_server(connection);
        xcb_map_window(connection, window);
        if (first == XCB_NONE) xcb_unmap_window(connection, first = window);
        xcb_ungrab_server(connection);
        xcb_flush(connection);
        // The window's number, as it is hidden and shown.
        printf("%u\n", window);
        fflush(stdout);
    }
}
