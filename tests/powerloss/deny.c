/*
 * A library to preload: a disk that refuses. While the file DENY_FILE holds a number, every write, truncation and sync
 * below DENY_DIR fails with that errno, and so does every opening that may make a file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* The errno with which to fail, or 0. */
static int denied(void) {
    const char *file = getenv("DENY_FILE");
    if (!file) return 0;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY);
    if (fd < 0) return 0;
    char text[16] = {0};
    ssize_t length = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    return length > 0 ? atoi(text) : 0;
}

static int is_below(const char *path) {
    const char *dir = getenv("DENY_DIR");
    return dir && strncmp(path, dir, strlen(dir)) == 0;
}

static int fails(int fd) {
    char link[64], path[PATH_MAX] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) <= 0 || !is_below(path)) return 0;
    int number = denied();
    if (number) errno = number;
    return number != 0;
}

#define OPEN(name)                                                                  \
    int name(const char *path, int flags, ...) {                                    \
        va_list arguments;                                                          \
        va_start(arguments, flags);                                                 \
        mode_t mode = flags & O_CREAT ? (mode_t)va_arg(arguments, int) : 0;         \
        va_end(arguments);                                                          \
        int number = flags & (O_CREAT | O_TRUNC) && is_below(path) ? denied() : 0;  \
        if (number) {                                                               \
            errno = number;                                                         \
            return -1;                                                              \
        }                                                                           \
        int (*next)(const char *, int, ...) = real(#name);                          \
        return next(path, flags, mode);                                             \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *bytes, size_t length) {
    ssize_t (*next)(int, const void *, size_t) = real("write");
    return fails(fd) ? -1 : next(fd, bytes, length);
}

#define PWRITE(name)                                                                \
    ssize_t name(int fd, const void *bytes, size_t length, off_t at) {              \
        ssize_t (*next)(int, const void *, size_t, off_t) = real(#name);            \
        return fails(fd) ? -1 : next(fd, bytes, length, at);                        \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define FTRUNCATE(name)                                                             \
    int name(int fd, off_t length) {                                                \
        int (*next)(int, off_t) = real(#name);                                      \
        return fails(fd) ? -1 : next(fd, length);                                   \
    }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

#define SYNC(name)                                                                  \
    int name(int fd) {                                                              \
        int (*next)(int) = real(#name);                                             \
        return fails(fd) ? -1 : next(fd);                                           \
    }
SYNC(fsync)
SYNC(fdatasync)
