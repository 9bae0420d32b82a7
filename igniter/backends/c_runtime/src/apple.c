/* The functions of Linux's C library that the run time calls and Apple's systems lack, or have with another meaning of
 * their numbers: there are no affinity masks, no control groups and no transparent large pages. */

#include <stddef.h>

int sched_getaffinity(int process, size_t size, void *mask) {
  (void)process, (void)size, (void)mask;
  return -1;
}
int open(const char *name, int flags, ...) {
  (void)name, (void)flags;
  return -1;
}
long read(int file, void *buffer, size_t size) {
  (void)file, (void)buffer, (void)size;
  return -1;
}
int close(int file) {
  (void)file;
  return -1;
}
int madvise(void *place, size_t size, int advice) {
  (void)place, (void)size, (void)advice;
  return -1;
}
