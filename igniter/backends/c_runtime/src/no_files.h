/* Functions of Linux's C library for systems other than Linux, where there are no control groups to read and no
 * transparent large pages to ask for: each fails. */

#pragma once

#include <stddef.h>

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
