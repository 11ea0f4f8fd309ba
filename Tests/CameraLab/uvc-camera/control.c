// The requests of endpoint 0: those every USB device answers, and the negotiation of a video stream.
#include <errno.h>
#include <string.h>

#include "camera.h"

enum { FEATURE_ENDPOINT_HALT = USB_ENDPOINT_HALT };

static struct uvc_streaming_control negotiated = {
    .bFormatIndex = FORMAT_YUYV,
    .bFrameIndex = 1,
    .dwFrameInterval = 333333,
    .dwMaxVideoFrameSize = 2 * 640 * 480,
    .dwMaxPayloadTransferSize = PAYLOAD_BYTES,
};

// What the stream that was negotiated needs of the bus, in bytes a second.
static uint64_t needed_bandwidth(void) {
    return largest_picture(negotiated.bFormatIndex, negotiated.bFrameIndex) * 10000000ull / negotiated.dwFrameInterval;
}

// USB 2.0 9.4.10. An isochronous stream begins with alternate setting 1, for which the host controller must have
// bandwidth, and ends with 0. As USB/IP does for a real controller, its answer is handed on as the transfer's status.
static int set_alternate_setting(uint16_t setting) {
    if (!is_isochronous()) return 0;
    if (setting == 0) {
        stream_stop();
        release_bandwidth();
        return 0;
    }
    if (!reserve_bandwidth(needed_bandwidth())) return -ENOSPC;
    stream_start(&negotiated);
    return 0;
}

// UVC 4.3.1.1: a device answers a probe with the nearest that it can do.
static void negotiate(const uint8_t *data, size_t size) {
    struct uvc_streaming_control wanted = negotiated;
    memcpy(&wanted, data, size < sizeof wanted ? size : sizeof wanted);
    if (wanted.bFormatIndex < FORMAT_YUYV || wanted.bFormatIndex > FORMAT_MJPEG) wanted.bFormatIndex = FORMAT_YUYV;
    if (wanted.bFrameIndex < 1 || wanted.bFrameIndex > FRAME_SIZES) wanted.bFrameIndex = 1;
    uint32_t middle = (frame_intervals[0] + frame_intervals[1]) / 2;
    wanted.dwFrameInterval = frame_intervals[wanted.dwFrameInterval > middle];
    wanted.dwMaxVideoFrameSize = yuyv_bytes(frame_sizes[wanted.bFrameIndex - 1]);
    wanted.dwMaxPayloadTransferSize = is_isochronous() ? ISOCHRONOUS_PAYLOAD_BYTES : PAYLOAD_BYTES;
    negotiated = wanted;
}

// UVC 4.3.1: probe and commit of the streaming interface.
static int answer_streaming(const struct usb_ctrlrequest *request, const uint8_t *data, size_t size, uint8_t *answer) {
    uint8_t control = request->wValue >> 8;
    if (control != UVC_VS_PROBE_CONTROL && control != UVC_VS_COMMIT_CONTROL) return -EPIPE;
    switch (request->bRequest) {
        case UVC_SET_CUR:
            negotiate(data, size);
            if (control == UVC_VS_COMMIT_CONTROL && !is_isochronous()) stream_start(&negotiated);
            return 0;
        case UVC_GET_LEN:
            answer[0] = sizeof negotiated;
            answer[1] = 0;
            return 2;
        case UVC_GET_INFO:
            answer[0] = UVC_CONTROL_CAP_GET | UVC_CONTROL_CAP_SET;
            return 1;
        default:
            memcpy(answer, &negotiated, sizeof negotiated);
            return sizeof negotiated;
    }
}

// USB 2.0 9.4: the standard requests. Nothing of the camera depends on its configuration or features, except that
// uvcvideo ends a bulk stream by clearing the endpoint's halt.
static int answer_standard(const struct usb_ctrlrequest *request, uint8_t *answer, size_t capacity) {
    switch (request->bRequest) {
        case USB_REQ_GET_DESCRIPTOR:
            return copy_descriptor(request->wValue >> 8, request->wValue & 0xff, answer, capacity);
        case USB_REQ_GET_STATUS:
            answer[0] = answer[1] = 0;
            return 2;
        case USB_REQ_GET_CONFIGURATION:
            answer[0] = 1;
            return 1;
        case USB_REQ_GET_INTERFACE:
            answer[0] = 0;
            return 1;
        case USB_REQ_CLEAR_FEATURE:
            if ((request->bRequestType & USB_RECIP_MASK) == USB_RECIP_ENDPOINT &&
                request->wValue == FEATURE_ENDPOINT_HALT)
                stream_stop();
            return 0;
        case USB_REQ_SET_FEATURE:
        case USB_REQ_SET_ADDRESS:
        case USB_REQ_SET_CONFIGURATION: return 0;
        case USB_REQ_SET_INTERFACE:
            return request->wIndex == VIDEO_STREAMING_INTERFACE ? set_alternate_setting(request->wValue) : 0;
        default: return -EPIPE;
    }
}

int answer_control(const struct usb_ctrlrequest *request, const uint8_t *data, size_t size, uint8_t *answer,
                   size_t capacity) {
    int length = -EPIPE;
    switch (request->bRequestType & USB_TYPE_MASK) {
        case USB_TYPE_STANDARD: length = answer_standard(request, answer, capacity); break;
        case USB_TYPE_CLASS:
            if ((request->wIndex & 0xff) == VIDEO_STREAMING_INTERFACE)
                length = answer_streaming(request, data, size, answer);
            else
                length = answer_setting(request, data, size, answer);
            break;
        default: break;
    }
    return length > request->wLength ? request->wLength : length;  // USB 2.0 9.3.5: never more than was asked for
}
