/* The CPUs that the process may use (cpus.c). */

#ifndef IGNITER_CPUS_H
#define IGNITER_CPUS_H

#include <stdint.h>

enum {
  MASK_WORDS = 16,    /* 1,024 CPUs. */
  RUNS_TO_MASK = 16,  /* All threads of the pool take part in one run of 16, and record their masks. */
  RUNS_TO_QUOTA = 256 /* Control groups are read in one run of 256: some 50 microseconds. */
};

/* Of a library; all fields are atomic. */
struct igniter_cpus {
  uint64_t runs, quota;
  uint64_t mask[MASK_WORDS]; /* The CPUs of all threads seen. */
};

/* Returns the least limit of the process's control groups, in CPUs; UINT64_MAX without a limit. */
uint64_t igniter_cpu_quota(void);

/* Adds the CPUs of the calling thread. */
void igniter_cpus_seen(struct igniter_cpus *cpus);

/* Returns the most threads that should run at a time, counting one more run. `shows` is true if all threads of the pool
 * may take part and should call `igniter_cpus_seen`: a system call for each thread, so not in every run. */
uint64_t igniter_cpus_limit(struct igniter_cpus *cpus, int *shows);

#endif
