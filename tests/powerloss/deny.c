/*
 * A library to preload: a disk that refuses. While the file DENY_FILE holds a number, every write, truncation and sync
 * below DENY_DIR fails with that errno, and so does every opening that may make a file. While the file DENY_READ holds two
 * numbers, "errno n", the n-th opening, look or read below DENY_DIR since then fails with that errno.
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

/* What a file named by the environment holds; empty when there is none. */
static void content(const char *variable, char text[16]) {
    memset(text, 0, 16);
    const char *file = getenv(variable);
    int fd = file ? (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY) : -1;
    if (fd < 0) return;
    if (syscall(SYS_read, fd, text, 15) < 0) text[0] = 0;
    syscall(SYS_close, fd);
}

/* The errno with which to fail, or 0. */
static int denied(void) {
    char text[16];
    content("DENY_FILE", text);
    return atoi(text);
}

/* The same for what changes nothing. */
static int denied_look(void) {
    static char last[16];
    static int count;
    char text[16];
    int number = 0, which = 0;
    content("DENY_READ", text);
    if (sscanf(text, "%d %d", &number, &which) != 2) return 0;
    if (strcmp(text, last) != 0) {
        strcpy(last, text);
        count = 0;
    }
    return ++count == which ? number : 0;
}

static int is_below(const char *path) {
    const char *dir = getenv("DENY_DIR");
    return dir && strncmp(path, dir, strlen(dir)) == 0;
}

static int is_open_below(int fd) {
    char link[64], path[PATH_MAX] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) > 0 && is_below(path);
}

static int failed(int number) {
    if (number) errno = number;
    return number != 0;
}

static int fails(int fd) { return is_open_below(fd) && failed(denied()); }

static int fails_to_look(int fd) { return is_open_below(fd) && failed(denied_look()); }

#define OPEN(name)                                                                  \
    int name(const char *path, int flags, ...) {                                    \
        va_list arguments;                                                          \
        va_start(arguments, flags);                                                 \
        mode_t mode = flags & O_CREAT ? (mode_t)va_arg(arguments, int) : 0;         \
        va_end(arguments);                                                          \
        int number = flags & (O_CREAT | O_TRUNC) && is_below(path) ? denied() : 0;  \
        if (!number && is_below(path)) number = denied_look();                      \
        if (failed(number)) return -1;                                              \
        int (*next)(const char *, int, ...) = real(#name);                          \
        return next(path, flags, mode);                                             \
    }
OPEN(open)
OPEN(open64)

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *out) {
    int (*next)(int, const char *, int, unsigned, struct statx *) = real("statx");
    /* The standard library asks with no path whether there is such a call; its header says that there is one. */
    const char *volatile below = path;
    if (below && is_below(below) && failed(denied_look())) return -1;
    return next(dir, path, flags, mask, out);
}

ssize_t read(int fd, void *bytes, size_t length) {
    ssize_t (*next)(int, void *, size_t) = real("read");
    return fails_to_look(fd) ? -1 : next(fd, bytes, length);
}

#define PREAD(name)                                                                 \
    ssize_t name(int fd, void *bytes, size_t length, off_t at) {                    \
        ssize_t (*next)(int, void *, size_t, off_t) = real(#name);                  \
        return fails_to_look(fd) ? -1 : next(fd, bytes, length, at);                \
    }
PREAD(pread)
PREAD(pread64)

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
