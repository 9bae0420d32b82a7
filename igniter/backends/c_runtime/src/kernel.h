/* The interface between kernels, the thread pool that they run on, and the run time. */

#ifndef IGNITER_KERNEL_H
#define IGNITER_KERNEL_H

#include <stdint.h>

typedef void (*igniter_task)(void *data, uint64_t index);

/* Runs `task` for every index below `count`, on any threads, and returns when all runs have ended. */
typedef void (*igniter_parallel_for)(void *context, igniter_task task, uint64_t count, void *data);

/* A compiled kernel or program. Without a pool (`parallel_for` is null) it runs its tasks itself. */
typedef void (*igniter_kernel)(void **buffers, int64_t *symbols, void *scratch, igniter_parallel_for parallel_for,
                               void *context);

#endif
