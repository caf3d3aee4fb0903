/*
 * A library to preload: records what a process writes below a directory, in the order in which it was done, so that a
 * test can rebuild what a disk would hold had the power failed at any point.
 *
 * POWERLOSS_DIR   the directory; files elsewhere are left alone
 * POWERLOSS_LOG   where the record goes
 *
 * A record is a header of five little-endian words of 8 bytes - kind, file, offset, length, thread - and `length` bytes.
 * Files are numbered as they are first named: a record of kind 'n' has the number and the path. Syncs are recorded twice,
 * when they begin and when they end: only what was written before the beginning is on the disk after the end. They are
 * not done, for nothing here depends on a disk. So no file may be written through a memory map, which SQLite does only
 * with the index of its log, and that is made anew by whoever opens a store.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define MAX_FDS 4096
#define MAX_FILES 256

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static char files[MAX_FILES][PATH_MAX];
static int file_count = 0;
/* The file of a descriptor, counted from 1; 0 for one that is not recorded. */
static int file_of[MAX_FDS];
static int record_fd = -1;

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static void put(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t done = syscall(SYS_write, record_fd, at, length);
        if (done <= 0) abort();
        at += done;
        length -= (size_t)done;
    }
}

/* With `order` held. */
static void record(char kind, int file, uint64_t offset, const void *bytes, uint64_t length) {
    uint64_t header[5] = {(uint64_t)kind, (uint64_t)file, offset, length, (uint64_t)syscall(SYS_gettid)};
    put(header, sizeof header);
    if (length > 0) put(bytes, length);
}

/* With `order` held: the number of a path, or 0 where it is not to be recorded. */
static int file_number(const char *path) {
    const char *dir = getenv("POWERLOSS_DIR"), *log = getenv("POWERLOSS_LOG");
    if (!dir || !log || strncmp(path, dir, strlen(dir)) != 0) return 0;
    if (record_fd < 0) {
        record_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (record_fd < 0) abort();
    }
    for (int i = 0; i < file_count; i++)
        if (strcmp(files[i], path) == 0) return i + 1;
    if (file_count == MAX_FILES) abort();
    strncpy(files[file_count], path, PATH_MAX - 1);
    file_count++;
    record('n', file_count, 0, path, strlen(path));
    return file_count;
}

static int number_of(int fd) { return fd >= 0 && fd < MAX_FDS ? file_of[fd] : 0; }

static int opened(int fd, const char *path, int flags) {
    if (fd < 0 || fd >= MAX_FDS) return fd;
    /* Directories are only opened to be synced. */
    if (flags & O_DIRECTORY) return fd;
    pthread_mutex_lock(&order);
    file_of[fd] = file_number(path);
    if (file_of[fd] && (flags & (O_CREAT | O_TRUNC))) record(flags & O_TRUNC ? 'c' : 'o', file_of[fd], 0, NULL, 0);
    pthread_mutex_unlock(&order);
    return fd;
}

#define OPEN(name)                                                                  \
    int name(const char *path, int flags, ...) {                                    \
        va_list arguments;                                                          \
        va_start(arguments, flags);                                                 \
        mode_t mode = flags & O_CREAT ? (mode_t)va_arg(arguments, int) : 0;         \
        va_end(arguments);                                                          \
        int (*next)(const char *, int, ...) = real(#name);                          \
        return opened(next(path, flags, mode), path, flags);                        \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    int (*next)(int) = real("close");
    pthread_mutex_lock(&order);
    if (fd >= 0 && fd < MAX_FDS) file_of[fd] = 0;
    pthread_mutex_unlock(&order);
    return next(fd);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    ssize_t (*next)(int, const void *, size_t) = real("write");
    if (!number_of(fd)) return next(fd, bytes, length);
    pthread_mutex_lock(&order);
    off_t at = fcntl(fd, F_GETFL) & O_APPEND ? lseek(fd, 0, SEEK_END) : lseek(fd, 0, SEEK_CUR);
    ssize_t done = next(fd, bytes, length);
    if (done > 0) record('w', number_of(fd), (uint64_t)at, bytes, (uint64_t)done);
    pthread_mutex_unlock(&order);
    return done;
}

#define PWRITE(name)                                                                \
    ssize_t name(int fd, const void *bytes, size_t length, off_t at) {              \
        ssize_t (*next)(int, const void *, size_t, off_t) = real(#name);            \
        if (!number_of(fd)) return next(fd, bytes, length, at);                     \
        pthread_mutex_lock(&order);                                                 \
        ssize_t done = next(fd, bytes, length, at);                                 \
        if (done > 0) record('w', number_of(fd), (uint64_t)at, bytes, (uint64_t)done); \
        pthread_mutex_unlock(&order);                                               \
        return done;                                                                \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define FTRUNCATE(name)                                                             \
    int name(int fd, off_t length) {                                                \
        int (*next)(int, off_t) = real(#name);                                      \
        if (!number_of(fd)) return next(fd, length);                                \
        pthread_mutex_lock(&order);                                                 \
        int done = next(fd, length);                                                \
        if (done == 0) record('t', number_of(fd), (uint64_t)length, NULL, 0);       \
        pthread_mutex_unlock(&order);                                               \
        return done;                                                                \
    }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

#define SYNC(name)                                                                  \
    int name(int fd) {                                                              \
        int (*next)(int) = real(#name);                                             \
        if (!number_of(fd)) return next(fd);                                        \
        pthread_mutex_lock(&order);                                                 \
        record('b', number_of(fd), 0, NULL, 0);                                     \
        pthread_mutex_unlock(&order);                                               \
        sched_yield();                                                              \
        pthread_mutex_lock(&order);                                                 \
        record('e', number_of(fd), 0, NULL, 0);                                     \
        pthread_mutex_unlock(&order);                                               \
        return 0;                                                                   \
    }
int sched_yield(void);
SYNC(fsync)
SYNC(fdatasync)

int unlink(const char *path) {
    int (*next)(const char *) = real("unlink");
    pthread_mutex_lock(&order);
    int file = file_number(path);
    int done = next(path);
    if (done == 0 && file) record('u', file, 0, NULL, 0);
    pthread_mutex_unlock(&order);
    return done;
}

int rename(const char *from, const char *to) {
    int (*next)(const char *, const char *) = real("rename");
    pthread_mutex_lock(&order);
    int old = file_number(from), new = file_number(to);
    int done = next(from, to);
    if (done == 0 && old && new) {
        record('r', old, (uint64_t)new, NULL, 0);
        for (int fd = 0; fd < MAX_FDS; fd++)
            if (file_of[fd] == old) file_of[fd] = new;
    }
    pthread_mutex_unlock(&order);
    return done;
}
