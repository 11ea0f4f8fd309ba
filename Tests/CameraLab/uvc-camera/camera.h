// The parts of the user-space USB camera. All of it runs on one thread.
//
// References in the comments:
//   USB 2.0   Universal Serial Bus Specification, revision 2.0
//   UVC       USB Device Class Definition for Video Devices, revision 1.1
//   UVC-U     the same, Payload Uncompressed;  UVC-M  the same, Payload MJPEG
//   USB/IP    Linux, Documentation/usb/usbip_protocol.rst
#pragma once

#include <linux/usb/ch9.h>
#include <linux/usb/video.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "USB structures are little-endian; this program writes them in the host's order."
#endif

// UVC 2.4.3.3: a payload is a header of at least two bytes, then picture data. uvcvideo gives a bulk transfer 32
// packets of 512 bytes at most, so that is the payload which one transfer can carry.
enum { PAYLOAD_BYTES = 32 * 512, PAYLOAD_HEADER_BYTES = 2 };

// USB 2.0 5.6.3: an isochronous endpoint takes at most three packets of 1,024 bytes in a microframe of 125 us. A payload
// is what one microframe carries.
enum { ISOCHRONOUS_PACKET_BYTES = 1024, PACKETS_PER_MICROFRAME = 3, MICROFRAME_NANOSECONDS = 125000 };
enum { ISOCHRONOUS_PAYLOAD_BYTES = ISOCHRONOUS_PACKET_BYTES * PACKETS_PER_MICROFRAME };

enum { FRAME_SIZES = 3, FRAME_RATES = 2 };
enum { FORMAT_YUYV = 1, FORMAT_MJPEG = 2 };  // bFormatIndex
enum { CAMERA_TERMINAL = 1, OUTPUT_TERMINAL = 2, PROCESSING_UNIT = 3 };
enum { VIDEO_CONTROL_INTERFACE = 0, VIDEO_STREAMING_INTERFACE = 1, STREAMING_ENDPOINT = 1 };

struct frame_size {
    uint16_t width, height;
};

extern const struct frame_size frame_sizes[FRAME_SIZES];    // by bFrameIndex - 1
extern const uint32_t frame_intervals[FRAME_RATES];         // in 100 ns, fastest first

static inline uint32_t yuyv_bytes(struct frame_size size) {
    return 2u * size.width * size.height;
}

// What the camera does wrong on purpose. Zero means never.
struct faults {
    unsigned damage;        // every Nth MJPEG frame loses its second half
    unsigned damage_first;  // the first N MJPEG frames of a stream do
    unsigned error;         // every Nth payload carries the error bit
    unsigned stall_after;   // a stream sends this many frames, then nothing
};

// ---- descriptors.c ----

// Makes the camera stream isochronously, in alternate setting 1, instead of in bulk.
void set_isochronous(void);
bool is_isochronous(void);

// Copies the descriptor that GET_DESCRIPTOR names into `answer`; gives its length, or -EPIPE if there is none.
int copy_descriptor(uint8_t type, uint8_t index, uint8_t *answer, size_t capacity);

// Sets the serial number; false if it has no letter, or more than 31.
bool set_serial_number(const char *text);

// ---- bus.c ----

// Puts the camera on the bus that all cameras with the same file share.
void join_bus(const char *path);

// Reserves bandwidth for a stream, in bytes a second; false if the bus has none left. A bus of one's own has enough.
bool reserve_bandwidth(uint64_t bytes_per_second);
void release_bandwidth(void);

// ---- settings.c ----

// Answers a request to the camera terminal or the processing unit, as `answer_control` does.
int answer_setting(const struct usb_ctrlrequest *request, const uint8_t *data, size_t size, uint8_t *answer);

// ---- control.c ----

// Answers a control transfer: the length of the answer, or a negative errno; -EPIPE is a stall. `data` is what the host
// sent with it.
int answer_control(const struct usb_ctrlrequest *request, const uint8_t *data, size_t size, uint8_t *answer,
                   size_t capacity);

// ---- pictures.c ----

// Loads a file of concatenated JPEGs, all of one of `frame_sizes`. Ends the program if that is not what it is.
void load_clip(const char *path);

// Ends the program unless every one of `frame_sizes` has a clip.
void require_clips(void);

// The bytes of the largest picture.
uint32_t largest_picture(uint8_t format, uint8_t frame_index);

// The picture of frame `number`; the bytes are valid until the next call.
const uint8_t *picture(uint8_t format, uint8_t frame_index, uint32_t number, uint32_t *bytes);

// ---- stream.c ----

void stream_set_faults(struct faults faults);
void stream_start(const struct uvc_streaming_control *committed);
void stream_stop(void);

// Nanoseconds until the stream wants to send, 0 for now, -1 for not before something else happens.
int64_t stream_wait(int64_t now);

// Writes the next payload into `payload` (room for `capacity` bytes, at most PAYLOAD_BYTES) and gives its length.
uint32_t stream_payload(int64_t now, uint8_t *payload, uint32_t capacity);

// One line of counts on standard error.
void stream_report(void);

// ---- usbip.c ----

// Plugs the camera into the first free port of the kernel's virtual host controller; gives our end of the cable.
int plug_in(void);

// Reads one request and does what it asks. False: the cable has been pulled.
bool handle_request(int cable);

// Nanoseconds until the oldest waiting transfer is to be sent, 0 for now, -1 for not before something else happens.
int64_t transfer_wait(int64_t now);

// Fills the oldest waiting transfer from the stream. False: the cable has been pulled.
bool send_payload(int cable, int64_t now);
