/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into a process: Python's wall clock is off by the seconds that /clock/offset has. Monotonic clocks, sleeps
 * and the clocks of C++ code stay, because the kernel compares their deadlines with its own clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    static _Thread_local time_t read_at = -1;
    static _Thread_local long seconds = 0;
    struct timespec now;
    char text[32] = {0};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    if (now.tv_sec == read_at) return seconds;
    read_at = now.tv_sec;
    seconds = 0;
    int file = open("/clock/offset", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) > 0) seconds = atol(text);
        close(file);
    }
    return seconds;
}

static void real(struct timespec *now, void *caller) {
    Dl_info from;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, now);
    if (dladdr(caller, &from) && from.dli_fname && strstr(from.dli_fname, "python") &&
        !strstr(from.dli_fname, "-packages"))
        now->tv_sec += offset();
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock != CLOCK_REALTIME) return syscall(SYS_clock_gettime, clock, now);
    real(now, __builtin_return_address(0));
    return 0;
}

time_t time(time_t *where) {
    struct timespec now;
    real(&now, __builtin_return_address(0));
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    real(&exact, __builtin_return_address(0));
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
