#pragma once

/* Not in Swift's Glibc module, which lacks <sys/timex.h>. */
#include <sys/timex.h>
