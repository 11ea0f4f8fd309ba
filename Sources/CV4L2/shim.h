#pragma once

#include <libv4lconvert.h>
#include <libv4l-plugin.h>
#include <linux/videodev2.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/sysmacros.h>

// The requests are macros that compute with `sizeof`; Swift does not import such macros.
static const unsigned long cv4l2_QUERYCAP = VIDIOC_QUERYCAP;
static const unsigned long cv4l2_ENUM_FMT = VIDIOC_ENUM_FMT;
static const unsigned long cv4l2_ENUM_FRAMESIZES = VIDIOC_ENUM_FRAMESIZES;
static const unsigned long cv4l2_ENUM_FRAMEINTERVALS = VIDIOC_ENUM_FRAMEINTERVALS;
static const unsigned long cv4l2_G_FMT = VIDIOC_G_FMT;
static const unsigned long cv4l2_S_FMT = VIDIOC_S_FMT;
static const unsigned long cv4l2_TRY_FMT = VIDIOC_TRY_FMT;
static const unsigned long cv4l2_G_PARM = VIDIOC_G_PARM;
static const unsigned long cv4l2_S_PARM = VIDIOC_S_PARM;
static const unsigned long cv4l2_QUERY_DV_TIMINGS = VIDIOC_QUERY_DV_TIMINGS;
static const unsigned long cv4l2_S_DV_TIMINGS = VIDIOC_S_DV_TIMINGS;
static const unsigned long cv4l2_SUBSCRIBE_EVENT = VIDIOC_SUBSCRIBE_EVENT;
static const unsigned long cv4l2_DQEVENT = VIDIOC_DQEVENT;
static const unsigned long cv4l2_REQBUFS = VIDIOC_REQBUFS;
static const unsigned long cv4l2_QUERYBUF = VIDIOC_QUERYBUF;
static const unsigned long cv4l2_QBUF = VIDIOC_QBUF;
static const unsigned long cv4l2_DQBUF = VIDIOC_DQBUF;
static const unsigned long cv4l2_QUERY_EXT_CTRL = VIDIOC_QUERY_EXT_CTRL;
static const unsigned long cv4l2_QUERYMENU = VIDIOC_QUERYMENU;
static const unsigned long cv4l2_G_CTRL = VIDIOC_G_CTRL;
static const unsigned long cv4l2_S_CTRL = VIDIOC_S_CTRL;
static const unsigned long cv4l2_STREAMON = VIDIOC_STREAMON;
static const unsigned long cv4l2_STREAMOFF = VIDIOC_STREAMOFF;

// Swift's Glibc module lacks <sys/eventfd.h>, which defines these flags as enumerators.
static inline int cv4l2_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

// The same holds for <sys/inotify.h>.
static inline int cv4l2_inotify(void) { return inotify_init1(IN_CLOEXEC | IN_NONBLOCK); }
