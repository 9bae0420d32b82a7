/* The functions of Linux's C library that the run time calls, on Windows. */

#include "no_files.h"
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

