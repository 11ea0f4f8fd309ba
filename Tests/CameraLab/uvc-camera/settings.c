// The controls of the camera terminal (UVC 4.2.2.1) and of the processing unit (UVC 4.2.2.3). They change nothing in the
// pictures. Unplugging forgets what was set.
#include <errno.h>
#include <string.h>

#include "camera.h"

// UVC 4.2.2.1.2: modes are bits, and GET_RES says which there are.
enum { MANUAL_MODE = 1, APERTURE_PRIORITY_MODE = 8 };
// UVC 4.2.1.2, request error code.
enum { NO_ERROR = 0, WRONG_STATE = 2, OUT_OF_RANGE = 4, INVALID_CONTROL = 6 };
enum { CAN_GET = 1 << 0, CAN_SET = 1 << 1 };

static struct setting {
    uint8_t entity, selector, size;
    int32_t smallest, largest, step, initial, value;
} settings[] = {
    {CAMERA_TERMINAL, UVC_CT_AE_MODE_CONTROL, 1, MANUAL_MODE, APERTURE_PRIORITY_MODE, MANUAL_MODE | APERTURE_PRIORITY_MODE,
     APERTURE_PRIORITY_MODE, APERTURE_PRIORITY_MODE},
    {CAMERA_TERMINAL, UVC_CT_EXPOSURE_TIME_ABSOLUTE_CONTROL, 4, 1, 5000, 1, 157, 157},
    {PROCESSING_UNIT, UVC_PU_BRIGHTNESS_CONTROL, 2, -64, 64, 1, 0, 0},
    {PROCESSING_UNIT, UVC_PU_CONTRAST_CONTROL, 2, 0, 64, 1, 32, 32},
    {PROCESSING_UNIT, UVC_PU_SATURATION_CONTROL, 2, 0, 128, 2, 64, 64},
    {PROCESSING_UNIT, UVC_PU_GAIN_CONTROL, 2, 0, 100, 5, 0, 0},
    {PROCESSING_UNIT, UVC_PU_POWER_LINE_FREQUENCY_CONTROL, 1, 0, 2, 1, 1, 1},
    {PROCESSING_UNIT, UVC_PU_WHITE_BALANCE_TEMPERATURE_CONTROL, 2, 2800, 6500, 10, 4600, 4600},
    {PROCESSING_UNIT, UVC_PU_WHITE_BALANCE_TEMPERATURE_AUTO_CONTROL, 1, 0, 1, 1, 1, 1},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static uint8_t last_error = NO_ERROR;

static struct setting *find(uint8_t entity, uint8_t selector) {
    for (struct setting *setting = settings; setting < settings + SETTINGS; setting++)
        if (setting->entity == entity && setting->selector == selector) return setting;
    return NULL;
}

static int32_t value_of(uint8_t entity, uint8_t selector) {
    return find(entity, selector)->value;
}

// Whether an automatic mode overrules the control.
static bool is_overruled(const struct setting *setting) {
    switch (setting->entity << 8 | setting->selector) {
        case CAMERA_TERMINAL << 8 | UVC_CT_EXPOSURE_TIME_ABSOLUTE_CONTROL:
            return value_of(CAMERA_TERMINAL, UVC_CT_AE_MODE_CONTROL) != MANUAL_MODE;
        case PROCESSING_UNIT << 8 | UVC_PU_WHITE_BALANCE_TEMPERATURE_CONTROL:
            return value_of(PROCESSING_UNIT, UVC_PU_WHITE_BALANCE_TEMPERATURE_AUTO_CONTROL) != 0;
        default: return false;
    }
}

static int refuse(uint8_t error) {
    last_error = error;
    return -EPIPE;
}

static int set(struct setting *setting, const uint8_t *data, size_t size) {
    if (size != setting->size) return refuse(OUT_OF_RANGE);
    int32_t value = 0;
    memcpy(&value, data, size);
    if (size == 2) value = (int16_t)value;
    if (value < setting->smallest || value > setting->largest) return refuse(OUT_OF_RANGE);
    if (is_overruled(setting)) return refuse(WRONG_STATE);
    setting->value = value;
    return 0;
}

static int give(int32_t value, uint8_t size, uint8_t *answer) {
    memcpy(answer, &value, size);
    return size;
}

int answer_setting(const struct usb_ctrlrequest *request, const uint8_t *data, size_t size, uint8_t *answer) {
    uint8_t entity = request->wIndex >> 8, selector = request->wValue >> 8;
    if (entity == 0 && selector == UVC_VC_REQUEST_ERROR_CODE_CONTROL) {
        uint8_t error = last_error;
        last_error = NO_ERROR;
        return give(error, 1, answer);
    }
    struct setting *setting = find(entity, selector);
    if (!setting) return refuse(INVALID_CONTROL);
    switch (request->bRequest) {
        case UVC_SET_CUR: return set(setting, data, size);
        case UVC_GET_CUR: return give(setting->value, setting->size, answer);
        case UVC_GET_MIN: return give(setting->smallest, setting->size, answer);
        case UVC_GET_MAX: return give(setting->largest, setting->size, answer);
        case UVC_GET_RES: return give(setting->step, setting->size, answer);
        case UVC_GET_DEF: return give(setting->initial, setting->size, answer);
        case UVC_GET_LEN: return give(setting->size, 2, answer);
        case UVC_GET_INFO: return give(CAN_GET | CAN_SET, 1, answer);
        default: return refuse(INVALID_CONTROL);
    }
}
