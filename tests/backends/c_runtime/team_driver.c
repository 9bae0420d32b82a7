/* Runs the team on a pool of threads, for the sanitizers: programs of jobs whose tasks write plain memory, checked by
 * the leader and by later jobs. Arguments: threads, runs of the task, programs, looks, and "late" if a helper has to
 * end the last task of each program's first job, long after the leader has ended its own. That takes two threads and
 * no limit of looks. Prints "ok" and exits with 0, or names the wrong value. */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel.h"

void igniter_team_run(igniter_kernel program, uint64_t runs, uint64_t looks, void **buffers, int64_t *symbols,
                      void *scratch, igniter_parallel_for parallel_for, void *context);

enum { TASKS = 37, JOBS = 25 };

/* A pool as simple as can be: each call starts its threads, and each takes indices until none is left. */
struct call {
  igniter_task task;
  void *data;
  uint64_t count, next;
};

static int threads;

static void *work(void *given) {
  struct call *call = given;
  for (uint64_t k; (k = __atomic_fetch_add(&call->next, 1, __ATOMIC_RELAXED)) < call->count;)
    call->task(call->data, k);
  return 0;
}

static void pool(void *context, igniter_task task, uint64_t count, void *data) {
  struct call call = {task, data, count, 0};
  pthread_t others[64];
  for (int k = 1; k < threads; k++)
    if (pthread_create(&others[k], 0, work, &call))
      exit(3);
  work(&call);
  for (int k = 1; k < threads; k++)
    pthread_join(others[k], 0);
}

/* Task k of a job adds its neighbour's value of the job before; plain accesses, ordered by the team alone. */
struct job {
  const long *from;
  long *to;
};

static int late, begun, ended; /* The last two are of a first job. Relaxed: they order nothing. */
static _Thread_local int leads;

static int reaches(int *number, int value) { return __atomic_load_n(number, __ATOMIC_RELAXED) >= value; }

static void step(void *data, uint64_t index) {
  struct job *job = data;
  if (late && !reaches(&ended, TASKS)) {
    if (!leads)
      __atomic_store_n(&begun, 1, __ATOMIC_RELAXED);
    while (leads ? !reaches(&begun, 1) : !reaches(&ended, TASKS - 1))
      sched_yield();
    if (!leads)
      nanosleep(&(struct timespec){0, 2000000}, 0);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
  }
  job->to[index] = job->from[index] + job->from[(index + 1) % TASKS];
}

static void program(void **buffers, int64_t *symbols, void *scratch, igniter_parallel_for parallel_for, void *context) {
  long *rows[2] = {buffers[0], scratch};
  leads = 1;
  begun = 0;
  ended = parallel_for ? 0 : TASKS;
  for (int k = 0; k < JOBS; k++) {
    struct job job = {rows[k & 1], rows[1 - (k & 1)]};
    uint64_t count = k == 7 ? 0 : TASKS;
    if (parallel_for)
      parallel_for(context, step, count, &job);
    else
      for (uint64_t index = 0; index < count; index++)
        step(&job, index);
    if (!count) /* A job without tasks: the values stay. */
      for (int i = 0; i < TASKS; i++)
        job.to[i] = job.from[i];
    for (int i = 0; i < TASKS; i++) /* The leader reads what all tasks wrote, and keeps the values small. */
      job.to[i] = (job.to[i] & 0xffff) + symbols[0];
  }
  leads = 0;
}

static void run(uint64_t runs, uint64_t looks, igniter_parallel_for parallel_for, long *result) {
  long first[TASKS], second[TASKS];
  int64_t symbols[1] = {3};
  void *buffers[1] = {first};
  for (int i = 0; i < TASKS; i++)
    first[i] = 7 * i;
  igniter_team_run(program, runs, looks, buffers, symbols, second, parallel_for, 0);
  for (int i = 0; i < TASKS; i++)
    result[i] = JOBS & 1 ? second[i] : first[i];
}

int main(int count, char **arguments) {
  long expected[TASKS], found[TASKS];
  if (count != 5 && (count != 6 || strcmp(arguments[5], "late")))
    return 2;
  late = count == 6;
  threads = atoi(arguments[1]);
  uint64_t runs = strtoull(arguments[2], 0, 10), looks = strtoull(arguments[4], 0, 10);
  run(runs, looks, 0, expected);
  for (int k = atoi(arguments[3]); k > 0; k--) {
    run(runs, looks, pool, found);
    for (int i = 0; i < TASKS; i++)
      if (found[i] != expected[i]) {
        printf("program %d: value %d is %ld, expected %ld\n", k, i, found[i], expected[i]);
        return 1;
      }
  }
  puts("ok");
  return 0;
}
