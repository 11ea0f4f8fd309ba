// A camera for tests of whole programs. As a preloaded library (LD_PRELOAD) it answers the V4L2 calls that a program makes
// on any file, which stands for the camera's node; all other calls go on to the kernel. The driver's buffers are in that
// file, so that mapping them needs no call of ours.
//
// TEST_CAMERA says the one size and rate of the camera, as in 640x480@30. Its pictures are black, with a white quarter at
// the top left; its control, brightness, says how bright the black is. Only one thread at a time may capture.

#include <errno.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BUFFERS = 8, PAGE = 4096 };

static unsigned width = 640, height = 480, rate = 30;
static unsigned char *memory;
static unsigned buffer_count, queued[MOST_BUFFERS], queued_count, sequence;
static int64_t next_due;
static int was_asked_in_vain;
static int brightness = 16;

static unsigned picture_size(void) { return width * height * 2; }
static unsigned buffer_size(void) { return (picture_size() + PAGE - 1) / PAGE * PAGE; }

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int refuse(int status) {
    errno = status;
    return -1;
}

__attribute__((constructor)) static void read_settings(void) {
    const char *text = getenv("TEST_CAMERA");
    if (text && sscanf(text, "%ux%u@%u", &width, &height, &rate) != 3) abort();
}

static int describe(struct v4l2_capability *answer) {
    memset(answer, 0, sizeof *answer);
    strcpy((char *)answer->driver, "preloaded");
    strcpy((char *)answer->card, "Preloaded camera");
    strcpy((char *)answer->bus_info, "platform:preloaded");
    answer->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
    answer->capabilities = answer->device_caps | V4L2_CAP_DEVICE_CAPS;
    return 0;
}

static int list_format(struct v4l2_fmtdesc *answer) {
    if (answer->index > 0) return refuse(EINVAL);
    strcpy((char *)answer->description, "YUYV 4:2:2");
    answer->pixelformat = V4L2_PIX_FMT_YUYV;
    return 0;
}

static int list_size(struct v4l2_frmsizeenum *answer) {
    if (answer->index > 0 || answer->pixel_format != V4L2_PIX_FMT_YUYV) return refuse(EINVAL);
    answer->type = V4L2_FRMSIZE_TYPE_DISCRETE;
    answer->discrete.width = width;
    answer->discrete.height = height;
    return 0;
}

static int list_interval(struct v4l2_frmivalenum *answer) {
    if (answer->index > 0 || answer->pixel_format != V4L2_PIX_FMT_YUYV) return refuse(EINVAL);
    answer->type = V4L2_FRMIVAL_TYPE_DISCRETE;
    answer->discrete.numerator = 1;
    answer->discrete.denominator = rate;
    return 0;
}

static int state_format(struct v4l2_format *answer) {
    struct v4l2_pix_format *format = &answer->fmt.pix;
    memset(format, 0, sizeof *format);
    format->width = width;
    format->height = height;
    format->pixelformat = V4L2_PIX_FMT_YUYV;
    format->field = V4L2_FIELD_NONE;
    format->bytesperline = width * 2;
    format->sizeimage = picture_size();
    return 0;
}

static int state_rate(struct v4l2_streamparm *answer) {
    answer->parm.capture.capability = V4L2_CAP_TIMEPERFRAME;
    answer->parm.capture.timeperframe.numerator = 1;
    answer->parm.capture.timeperframe.denominator = rate;
    return 0;
}

static void paint(unsigned char *picture) {
    for (unsigned row = 0; row < height; row++) {
        for (unsigned column = 0; column < width; column++) {
            unsigned char *pixel = picture + (row * width + column) * 2;
            pixel[0] = row < height / 2 && column < width / 2 ? 235 : (unsigned char)brightness;
            pixel[1] = 128;
        }
    }
}

static void paint_buffers(void) {
    for (unsigned index = 0; memory && index < buffer_count; index++) paint(memory + (size_t)index * buffer_size());
}

static int describe_control(struct v4l2_query_ext_ctrl *answer) {
    if (answer->id != (0 | V4L2_CTRL_FLAG_NEXT_CTRL)) return refuse(EINVAL);
    memset(answer, 0, sizeof *answer);
    answer->id = V4L2_CID_BRIGHTNESS;
    answer->type = V4L2_CTRL_TYPE_INTEGER;
    strcpy(answer->name, "Brightness");
    answer->minimum = 16;
    answer->maximum = 235;
    answer->step = 1;
    answer->default_value = 16;
    return 0;
}

static int read_control(struct v4l2_control *answer) {
    if (answer->id != V4L2_CID_BRIGHTNESS) return refuse(EINVAL);
    answer->value = brightness;
    return 0;
}

static int set_control(const struct v4l2_control *given) {
    if (given->id != V4L2_CID_BRIGHTNESS) return refuse(EINVAL);
    brightness = given->value;
    paint_buffers();
    return 0;
}

static int make_buffers(int file, struct v4l2_requestbuffers *request) {
    if (memory) munmap(memory, (size_t)buffer_count * buffer_size());
    memory = NULL;
    buffer_count = request->count < MOST_BUFFERS ? request->count : MOST_BUFFERS;
    request->count = buffer_count;
    size_t length = (size_t)buffer_count * buffer_size();
    if (ftruncate(file, (off_t)length) != 0) return -1;
    if (length == 0) return 0;
    void *mapped = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return -1;
    memory = mapped;
    paint_buffers();
    return 0;
}

static int find_buffer(struct v4l2_buffer *answer) {
    if (answer->index >= buffer_count) return refuse(EINVAL);
    answer->length = buffer_size();
    answer->m.offset = answer->index * buffer_size();
    return 0;
}

static int queue(struct v4l2_buffer *given) {
    if (given->index >= buffer_count || queued_count == buffer_count) return refuse(EINVAL);
    queued[queued_count++] = given->index;
    return 0;
}

// A file is always readable, so poll() does not wait. Therefore a second call in vain waits for the next picture.
static int dequeue(struct v4l2_buffer *taken) {
    int64_t interval = 1000000000LL / rate, late = now() - next_due;
    if (queued_count == 0) return refuse(EAGAIN);
    if (late < 0 && !was_asked_in_vain) {
        was_asked_in_vain = 1;
        return refuse(EAGAIN);
    }
    was_asked_in_vain = 0;
    if (late < 0) usleep((useconds_t)(-late / 1000 + 1));
    int64_t stamp = now();
    next_due = late > interval ? stamp + interval : next_due + interval;
    taken->index = queued[0];
    memmove(queued, queued + 1, --queued_count * sizeof *queued);
    taken->bytesused = picture_size();
    taken->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
    taken->sequence = sequence++;
    taken->timestamp.tv_sec = stamp / 1000000000LL;
    taken->timestamp.tv_usec = stamp % 1000000000LL / 1000;
    return 0;
}

static int start(void) {
    next_due = now() + 1000000000LL / rate;
    sequence = 0;
    return 0;
}

static int stop(void) {
    queued_count = 0;
    return 0;
}

int ioctl(int file, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (_IOC_TYPE(request) != 'V') return (int)syscall(SYS_ioctl, file, request, argument);
    switch (request) {
    case VIDIOC_QUERYCAP: return describe(argument);
    case VIDIOC_ENUM_FMT: return list_format(argument);
    case VIDIOC_ENUM_FRAMESIZES: return list_size(argument);
    case VIDIOC_ENUM_FRAMEINTERVALS: return list_interval(argument);
    case VIDIOC_G_FMT:
    case VIDIOC_S_FMT:
    case VIDIOC_TRY_FMT: return state_format(argument);
    case VIDIOC_G_PARM:
    case VIDIOC_S_PARM: return state_rate(argument);
    case VIDIOC_REQBUFS: return make_buffers(file, argument);
    case VIDIOC_QUERYBUF: return find_buffer(argument);
    case VIDIOC_QBUF: return queue(argument);
    case VIDIOC_DQBUF: return dequeue(argument);
    case VIDIOC_QUERY_EXT_CTRL: return describe_control(argument);
    case VIDIOC_G_CTRL: return read_control(argument);
    case VIDIOC_S_CTRL: return set_control(argument);
    case VIDIOC_STREAMON: return start();
    case VIDIOC_STREAMOFF: return stop();
    default: return refuse(ENOTTY);
    }
}
