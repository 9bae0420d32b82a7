/* The functions of Linux's C library that the run time calls, on Windows. */

#include <stddef.h>
#include <stdint.h>

int SwitchToThread(void);
void *GetCurrentProcess(void);
int GetProcessAffinityMask(void *process, uintptr_t *own, uintptr_t *all);

int sched_yield(void) {
  SwitchToThread();
  return 0;
}

/* The CPUs of the process, in its group of at most 64: Windows gives 0 for a process in several groups, which is no
 * limit. Returns the size in bytes. */
int sched_getaffinity(int process, size_t size, void *mask) {
  uintptr_t own = 0, all = 0;
  (void)process;
  if (size < sizeof own || !GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
    return -1;
  __builtin_memcpy(mask, &own, sizeof own);
  return sizeof own;
}

/* There are no control groups and no transparent large pages. */
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
