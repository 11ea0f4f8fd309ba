// What the camera tells the host about itself when it is plugged in.
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "camera.h"

const struct frame_size frame_sizes[FRAME_SIZES] = {{640, 480}, {320, 240}, {1280, 720}};

enum { INTERVAL_30_FPS = 333333, INTERVAL_15_FPS = 666666 };  // in 100 ns (UVC-U 3.1.2, dwFrameInterval)
const uint32_t frame_intervals[FRAME_RATES] = {INTERVAL_30_FPS, INTERVAL_15_FPS};

// UVC 3.7.2.3 and 3.7.2.5: the bits of the controls that the terminal and the unit have (settings.c).
enum { AUTO_EXPOSURE_MODE = 1 << 1, EXPOSURE_TIME_ABSOLUTE = 1 << 3 };
enum {
    BRIGHTNESS = 1 << 0, CONTRAST = 1 << 1, SATURATION = 1 << 3, WHITE_BALANCE = 1 << 6,
    GAIN = 1 << 9, POWER_LINE_FREQUENCY = 1 << 10, WHITE_BALANCE_AUTO = 1 << 12
};
enum { STRING_LANGUAGES, STRING_MANUFACTURER, STRING_PRODUCT, STRING_SERIAL, STRINGS };
enum { BULK_PACKET_BYTES = 512 };   // USB 2.0 5.8.3, high speed
enum { UVC_VERSION = 0x0110, USB_VERSION = 0x0200, LANGUAGE_US_ENGLISH = 0x0409 };
enum { BUS_POWERED = USB_CONFIG_ATT_ONE, POWER_500_MA = 500 / 2 };  // USB 2.0 9.6.3: units of 2 mA
// UVC 3.3.2.2, colour matching: BT.709 primaries and transfer, SMPTE 170M (BT.601) matrix.
enum { PRIMARIES_BT709 = 1, TRANSFER_BT709 = 1, MATRIX_SMPTE170M = 4 };

DECLARE_UVC_HEADER_DESCRIPTOR(1);
DECLARE_UVC_INPUT_HEADER_DESCRIPTOR(1, 2);
DECLARE_UVC_FRAME_UNCOMPRESSED(2);  // the MJPEG frame descriptor has the same fields (UVC-M 3.1.2)

static const struct usb_device_descriptor device = {
    .bLength = USB_DT_DEVICE_SIZE,
    .bDescriptorType = USB_DT_DEVICE,
    .bcdUSB = USB_VERSION,
    // USB 2.0 with the interface association notice: functions are told apart by their association descriptors.
    .bDeviceClass = USB_CLASS_MISC,
    .bDeviceSubClass = 2,
    .bDeviceProtocol = 1,
    .bMaxPacketSize0 = 64,
    .idVendor = 0x1d6b,  // the Linux Foundation's webcam gadget
    .idProduct = 0x0102,
    .bcdDevice = 0x0100,
    .iManufacturer = STRING_MANUFACTURER,
    .iProduct = STRING_PRODUCT,
    .iSerialNumber = STRING_SERIAL,
    .bNumConfigurations = 1,
};

// The class-specific part of each interface, apart because its header states its total length (UVC 3.7.2, 3.9.2).
struct control_part {
    struct UVC_HEADER_DESCRIPTOR(1) header;
    struct uvc_camera_terminal_descriptor camera;
    struct uvc_processing_unit_descriptor processing;
    struct uvc_output_terminal_descriptor output;
} __attribute__((packed));

struct streaming_part {
    struct UVC_INPUT_HEADER_DESCRIPTOR(1, 2) header;
    struct uvc_format_uncompressed yuyv;
    struct UVC_FRAME_UNCOMPRESSED(2) yuyv_frames[FRAME_SIZES];
    struct uvc_color_matching_descriptor yuyv_colors;
    struct uvc_format_mjpeg mjpeg;
    struct UVC_FRAME_UNCOMPRESSED(2) mjpeg_frames[FRAME_SIZES];
    struct uvc_color_matching_descriptor mjpeg_colors;
} __attribute__((packed));

struct streaming_endpoint {  // usb_endpoint_descriptor without the two fields that only audio has
    uint8_t bLength, bDescriptorType, bEndpointAddress, bmAttributes;
    uint16_t wMaxPacketSize;
    uint8_t bInterval;
} __attribute__((packed));

#define FRAME(subtype, index, width, height)                                         \
    {                                                                                \
        .bLength = UVC_DT_FRAME_UNCOMPRESSED_SIZE(FRAME_RATES),                      \
        .bDescriptorType = USB_DT_CS_INTERFACE,                                      \
        .bDescriptorSubType = subtype,                                               \
        .bFrameIndex = index,                                                        \
        .wWidth = width,                                                             \
        .wHeight = height,                                                           \
        .dwMinBitRate = 2 * width * height * 8 * 15,                                 \
        .dwMaxBitRate = 2 * width * height * 8 * 30,                                 \
        .dwMaxVideoFrameBufferSize = 2 * width * height,                             \
        .dwDefaultFrameInterval = INTERVAL_30_FPS,                                   \
        .bFrameIntervalType = FRAME_RATES,                                           \
        .dwFrameInterval = {INTERVAL_30_FPS, INTERVAL_15_FPS},                       \
    }
// In the order of `frame_sizes`.
#define FRAMES(subtype) \
    { FRAME(subtype, 1, 640, 480), FRAME(subtype, 2, 320, 240), FRAME(subtype, 3, 1280, 720) }

#define COLORS                                            \
    {                                                     \
        .bLength = UVC_DT_COLOR_MATCHING_SIZE,            \
        .bDescriptorType = USB_DT_CS_INTERFACE,           \
        .bDescriptorSubType = UVC_VS_COLORFORMAT,         \
        .bColorPrimaries = PRIMARIES_BT709,               \
        .bTransferCharacteristics = TRANSFER_BT709,       \
        .bMatrixCoefficients = MATRIX_SMPTE170M,          \
    }

#define VIDEO_INTERFACE(number, subclass, endpoints)      \
    {                                                     \
        .bLength = USB_DT_INTERFACE_SIZE,                 \
        .bDescriptorType = USB_DT_INTERFACE,              \
        .bInterfaceNumber = number,                       \
        .bNumEndpoints = endpoints,                       \
        .bInterfaceClass = USB_CLASS_VIDEO,               \
        .bInterfaceSubClass = subclass,                   \
    }

static const struct {
    struct usb_config_descriptor configuration;
    struct usb_interface_assoc_descriptor association;
    struct usb_interface_descriptor control_interface;
    struct control_part control;
    struct usb_interface_descriptor streaming_interface;
    struct streaming_part streaming;
    struct streaming_endpoint endpoint;
} __attribute__((packed)) configuration = {
    .configuration = {
        .bLength = USB_DT_CONFIG_SIZE,
        .bDescriptorType = USB_DT_CONFIG,
        .wTotalLength = sizeof configuration,
        .bNumInterfaces = 2,
        .bConfigurationValue = 1,
        .bmAttributes = BUS_POWERED,
        .bMaxPower = POWER_500_MA,
    },
    .association = {
        .bLength = sizeof(struct usb_interface_assoc_descriptor),
        .bDescriptorType = USB_DT_INTERFACE_ASSOCIATION,
        .bFirstInterface = VIDEO_CONTROL_INTERFACE,
        .bInterfaceCount = 2,
        .bFunctionClass = USB_CLASS_VIDEO,
        .bFunctionSubClass = UVC_SC_VIDEO_INTERFACE_COLLECTION,
    },
    .control_interface = VIDEO_INTERFACE(VIDEO_CONTROL_INTERFACE, UVC_SC_VIDEOCONTROL, 0),
    .control = {
        .header = {
            .bLength = UVC_DT_HEADER_SIZE(1),
            .bDescriptorType = USB_DT_CS_INTERFACE,
            .bDescriptorSubType = UVC_VC_HEADER,
            .bcdUVC = UVC_VERSION,
            .wTotalLength = sizeof(struct control_part),
            .dwClockFrequency = 48000000,
            .bInCollection = 1,
            .baInterfaceNr = {VIDEO_STREAMING_INTERFACE},
        },
        .camera = {
            .bLength = UVC_DT_CAMERA_TERMINAL_SIZE(3),
            .bDescriptorType = USB_DT_CS_INTERFACE,
            .bDescriptorSubType = UVC_VC_INPUT_TERMINAL,
            .bTerminalID = CAMERA_TERMINAL,
            .wTerminalType = UVC_ITT_CAMERA,
            .bControlSize = 3,
            .bmControls = {AUTO_EXPOSURE_MODE | EXPOSURE_TIME_ABSOLUTE},
        },
        .processing = {
            .bLength = UVC_DT_PROCESSING_UNIT_SIZE(2),
            .bDescriptorType = USB_DT_CS_INTERFACE,
            .bDescriptorSubType = UVC_VC_PROCESSING_UNIT,
            .bUnitID = PROCESSING_UNIT,
            .bSourceID = CAMERA_TERMINAL,
            .bControlSize = 2,
            .bmControls = {BRIGHTNESS | CONTRAST | SATURATION | WHITE_BALANCE,
                           (GAIN | POWER_LINE_FREQUENCY | WHITE_BALANCE_AUTO) >> 8},
        },
        .output = {
            .bLength = UVC_DT_OUTPUT_TERMINAL_SIZE,
            .bDescriptorType = USB_DT_CS_INTERFACE,
            .bDescriptorSubType = UVC_VC_OUTPUT_TERMINAL,
            .bTerminalID = OUTPUT_TERMINAL,
            .wTerminalType = UVC_TT_STREAMING,
            .bSourceID = PROCESSING_UNIT,
        },
    },
    .streaming_interface = VIDEO_INTERFACE(VIDEO_STREAMING_INTERFACE, UVC_SC_VIDEOSTREAMING, 1),
    .streaming = {
        .header = {
            .bLength = UVC_DT_INPUT_HEADER_SIZE(1, 2),
            .bDescriptorType = USB_DT_CS_INTERFACE,
            .bDescriptorSubType = UVC_VS_INPUT_HEADER,
            .bNumFormats = 2,
            .wTotalLength = sizeof(struct streaming_part),
            .bEndpointAddress = USB_DIR_IN | STREAMING_ENDPOINT,
            .bTerminalLink = OUTPUT_TERMINAL,
            .bControlSize = 1,
        },
        .yuyv = {
            .bLength = UVC_DT_FORMAT_UNCOMPRESSED_SIZE,
            .bDescriptorType = USB_DT_CS_INTERFACE,
            .bDescriptorSubType = UVC_VS_FORMAT_UNCOMPRESSED,
            .bFormatIndex = FORMAT_YUYV,
            .bNumFrameDescriptors = FRAME_SIZES,
            // UVC-U 3.1.1: the media type GUID 32595559-0000-0010-8000-00AA00389B71 (YUY2).
            .guidFormat = {'Y', 'U', 'Y', '2', 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0xaa, 0x00, 0x38, 0x9b, 0x71},
            .bBitsPerPixel = 16,
            .bDefaultFrameIndex = 1,
        },
        .yuyv_frames = FRAMES(UVC_VS_FRAME_UNCOMPRESSED),
        .yuyv_colors = COLORS,
        .mjpeg = {
            .bLength = UVC_DT_FORMAT_MJPEG_SIZE,
            .bDescriptorType = USB_DT_CS_INTERFACE,
            .bDescriptorSubType = UVC_VS_FORMAT_MJPEG,
            .bFormatIndex = FORMAT_MJPEG,
            .bNumFrameDescriptors = FRAME_SIZES,
            .bDefaultFrameIndex = 1,
        },
        .mjpeg_frames = FRAMES(UVC_VS_FRAME_MJPEG),
        .mjpeg_colors = COLORS,
    },
    .endpoint = {
        .bLength = USB_DT_ENDPOINT_SIZE,
        .bDescriptorType = USB_DT_ENDPOINT,
        .bEndpointAddress = USB_DIR_IN | STREAMING_ENDPOINT,
        .bmAttributes = USB_ENDPOINT_XFER_BULK,
        .wMaxPacketSize = BULK_PACKET_BYTES,
    },
};

// What takes the place of the bulk endpoint in an isochronous camera: a second setting of the streaming interface.
static const struct {
    struct usb_interface_descriptor streaming_interface;
    struct streaming_endpoint endpoint;
} __attribute__((packed)) isochronous_setting = {
    .streaming_interface = {
        .bLength = USB_DT_INTERFACE_SIZE,
        .bDescriptorType = USB_DT_INTERFACE,
        .bInterfaceNumber = VIDEO_STREAMING_INTERFACE,
        .bAlternateSetting = 1,
        .bNumEndpoints = 1,
        .bInterfaceClass = USB_CLASS_VIDEO,
        .bInterfaceSubClass = UVC_SC_VIDEOSTREAMING,
    },
    .endpoint = {
        .bLength = USB_DT_ENDPOINT_SIZE,
        .bDescriptorType = USB_DT_ENDPOINT,
        .bEndpointAddress = USB_DIR_IN | STREAMING_ENDPOINT,
        .bmAttributes = USB_ENDPOINT_XFER_ISOC | USB_ENDPOINT_SYNC_ASYNC,
        .wMaxPacketSize = ISOCHRONOUS_PACKET_BYTES | (PACKETS_PER_MICROFRAME - 1) << 11,
        .bInterval = 1,
    },
};

static bool isochronous;

void set_isochronous(void) {
    isochronous = true;
}

bool is_isochronous(void) {
    return isochronous;
}

static int copy(const void *descriptor, size_t size, uint8_t *answer, size_t capacity) {
    if (size > capacity) return -EPIPE;
    memcpy(answer, descriptor, size);
    return (int)size;
}

static const char *serial_number = "0001";

bool set_serial_number(const char *text) {
    serial_number = text;
    return *text && strlen(text) < 32;
}

static int copy_configuration(uint8_t *answer, size_t capacity) {
    if (!isochronous) return copy(&configuration, sizeof configuration, answer, capacity);
    size_t kept = sizeof configuration - sizeof configuration.endpoint;
    size_t size = kept + sizeof isochronous_setting;
    if (size > capacity) return -EPIPE;
    memcpy(answer, &configuration, kept);
    memcpy(answer + kept, &isochronous_setting, sizeof isochronous_setting);
    ((struct usb_config_descriptor *)answer)->wTotalLength = (uint16_t)size;
    size_t setting = offsetof(__typeof__(configuration), streaming_interface);
    ((struct usb_interface_descriptor *)(answer + setting))->bNumEndpoints = 0;
    return (int)size;
}

// USB 2.0 9.6.7: UTF-16 without a terminator; string 0 lists the languages.
static int copy_string(uint8_t index, uint8_t *answer, size_t capacity) {
    const char *const strings[STRINGS] = {
        [STRING_MANUFACTURER] = "Camera lab", [STRING_PRODUCT] = "Lab UVC camera", [STRING_SERIAL] = serial_number};
    if (index >= STRINGS) return -EPIPE;
    uint16_t text[32] = {LANGUAGE_US_ENGLISH};
    size_t characters = 1;
    if (index != STRING_LANGUAGES) {
        characters = strlen(strings[index]);
        for (size_t i = 0; i < characters; i++) text[i] = (uint8_t)strings[index][i];
    }
    size_t size = 2 + 2 * characters;
    if (size > capacity) return -EPIPE;
    answer[0] = (uint8_t)size;
    answer[1] = USB_DT_STRING;
    memcpy(answer + 2, text, 2 * characters);
    return (int)size;
}

int copy_descriptor(uint8_t type, uint8_t index, uint8_t *answer, size_t capacity) {
    switch (type) {
        case USB_DT_DEVICE: return copy(&device, sizeof device, answer, capacity);
        case USB_DT_CONFIG: return copy_configuration(answer, capacity);
        case USB_DT_STRING: return copy_string(index, answer, capacity);
        default: return -EPIPE;
    }
}
