/* The team: a program enters the thread pool once, and the threads stay together for all its kernels.
 *
 * `igniter_team_run` requests `runs` runs of one task from the pool. The first run to start, on any thread, leads: it
 * runs the program kernel by kernel. The others help until the program has ended; a late run finds it ended. Kernels
 * distribute their tasks through `igniter_team_for` in place of the pool's own function: the leader publishes a job,
 * takes tasks from it like the helpers, and continues when all are done. So a step costs an atomic addition a task;
 * entering the pool costs microseconds, and much more if its threads sleep in between.
 *
 * A thread that waits yields its CPU after a moment, and the leader dismisses helpers that cost more than they save
 * (load.c): from then on it does all the tasks itself.
 *
 * No thread waits for another one to start: if the pool is busy with another run, or has one thread, the leader does
 * all the work, and no order of starting deadlocks.
 *
 * A ticket is a generation (upper half) and an index (lower half). The generation numbers the jobs from 1; the index is
 * the job's next task. So one atomic addition takes a task and identifies its job. Jobs alternate between two slots: a
 * slot within reach of a late helper is not written before its generation has passed, and a helper that finds another
 * generation than its ticket's has taken no task.
 *
 * `tests/backends/cpu/team_model` visits every interleaving of a few threads under the C11 memory model. It reads the
 * LLVM IR of this file. It knows the fields of `struct igniter_team` by their offsets (below), the instructions that
 * appear here, and no others: a new field or instruction has to be added there too. */

#include <stddef.h>

#include "kernel.h"
#include "load.h"

#define CACHE_LINE _Alignas(64)

struct igniter_job {
  CACHE_LINE igniter_task task;
  uint64_t count;
  void *data;
};

/* Fields that several threads write while the program runs have a cache line each. */
struct igniter_team {
  CACHE_LINE uint64_t led;      /* 1 as soon as a run leads. */
  CACHE_LINE uint64_t ticket;   /* Generation and next task of the current job. */
  CACHE_LINE uint64_t finished; /* Tasks of the current job that have ended. */
  CACHE_LINE uint64_t done;     /* 1 when the program has ended, or the leader does the rest alone. */
  struct igniter_job jobs[2];   /* The job of a generation is at its parity. */
  /* Written before the pool is entered, and only read afterwards. */
  CACHE_LINE igniter_kernel program;
  void **buffers;
  int64_t *symbols;
  void *scratch;
  uint64_t looks;
  CACHE_LINE struct igniter_load load; /* The leader's. */
};

_Static_assert(offsetof(struct igniter_team, ticket) == 64, "the model's offset");
_Static_assert(offsetof(struct igniter_team, finished) == 128, "the model's offset");
_Static_assert(offsetof(struct igniter_team, done) == 192, "the model's offset");
_Static_assert(offsetof(struct igniter_team, jobs) == 256, "the model's offset");
_Static_assert(offsetof(struct igniter_team, program) == 384, "the model's offset");
_Static_assert(offsetof(struct igniter_team, load) == 448, "the model's offset");
_Static_assert(sizeof(struct igniter_job) == 64 && offsetof(struct igniter_job, data) == 16, "the model's offset");

#define GENERATION(ticket) ((ticket) >> 32)
#define INDEX(ticket) ((ticket) & UINT32_MAX)
#define SLOT(team, ticket) (&(team)->jobs[GENERATION(ticket) & 1])
#define NEXT(team) __atomic_fetch_add(&(team)->ticket, 1, __ATOMIC_ACQ_REL)
#define ENDED(team) __atomic_fetch_add(&(team)->finished, 1, __ATOMIC_ACQ_REL)

/* The leader's `parallel_for`: `context` is the team. */
void igniter_team_for(void *context, igniter_task task, uint64_t count, void *data) {
  struct igniter_team *team = context;
  if (__atomic_load_n(&team->done, __ATOMIC_RELAXED)) {
    for (uint64_t index = 0; index < count; index++)
      task(data, index);
    return;
  }
  uint64_t last = __atomic_load_n(&team->ticket, __ATOMIC_RELAXED);
  uint64_t first = (GENERATION(last) + 1) << 32;
  struct igniter_job *job = SLOT(team, first);
  /* A late helper may read the slot now. The releases make it see, with a value of this job, that its own generation
   * has passed. */
  __atomic_store_n(&job->task, task, __ATOMIC_RELEASE);
  __atomic_store_n(&job->count, count, __ATOMIC_RELEASE);
  __atomic_store_n(&job->data, data, __ATOMIC_RELEASE);
  __atomic_store_n(&team->finished, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&team->ticket, first, __ATOMIC_RELEASE);
  igniter_load_publish(&team->load);
  for (uint64_t index; (index = INDEX(NEXT(team))) < count;) {
    task(data, index);
    ENDED(team);
    igniter_load_task(&team->load);
  }
  while (__atomic_load_n(&team->finished, __ATOMIC_ACQUIRE) < count)
    igniter_load_wait(&team->load);
  if (igniter_load_ended(&team->load, count))
    __atomic_store_n(&team->done, 1, __ATOMIC_RELEASE);
}

/* Takes one task and runs it. The slot is read between the ticket and a second look at the generation: equal
 * generations show that the slot was not reused in between. */
static inline void take(struct igniter_team *team) {
  uint64_t ticket = NEXT(team);
  struct igniter_job *job = SLOT(team, ticket);
  igniter_task task = __atomic_load_n(&job->task, __ATOMIC_ACQUIRE);
  uint64_t count = __atomic_load_n(&job->count, __ATOMIC_ACQUIRE);
  void *data = __atomic_load_n(&job->data, __ATOMIC_ACQUIRE);
  uint64_t now = __atomic_load_n(&team->ticket, __ATOMIC_ACQUIRE);
  if (GENERATION(now) == GENERATION(ticket) && INDEX(ticket) < count) {
    task(data, INDEX(ticket));
    ENDED(team);
  }
}

/* True if the current job seems to have tasks left: only then a helper writes to the ticket's cache line. */
static inline int has_work(struct igniter_team *team) {
  uint64_t seen = __atomic_load_n(&team->ticket, __ATOMIC_ACQUIRE);
  return INDEX(seen) < __atomic_load_n(&SLOT(team, seen)->count, __ATOMIC_RELAXED);
}

/* A helper's part. It leaves when the program has ended, or after `looks` looks in sequence that found no work. */
static void help(struct igniter_team *team) {
  uint64_t idle = 0;
  while (!__atomic_load_n(&team->done, __ATOMIC_ACQUIRE)) {
    if (has_work(team)) {
      take(team);
      idle = 0;
    } else {
      if (++idle > team->looks)
        return;
      igniter_load_pause(idle);
    }
  }
}

/* One run of the pool's task. */
void igniter_team_member(void *data, uint64_t index) {
  struct igniter_team *team = data;
  if (__atomic_exchange_n(&team->led, 1, __ATOMIC_ACQ_REL)) {
    help(team);
    return;
  }
  igniter_load_start(&team->load);
  team->program(team->buffers, team->symbols, team->scratch, igniter_team_for, team);
  igniter_load_stop(&team->load);
  __atomic_store_n(&team->done, 1, __ATOMIC_RELEASE);
}

static inline void clear(struct igniter_job *job) {
  job->task = 0;
  job->count = 0;
  job->data = 0;
}

/* Runs a program, with a team if there is a pool. */
void igniter_team_run(igniter_kernel program, uint64_t runs, uint64_t looks, void **buffers, int64_t *symbols,
                      void *scratch, igniter_parallel_for parallel_for, void *context) {
  static struct igniter_history history;
  if (!parallel_for || igniter_load_alone(&history)) {
    program(buffers, symbols, scratch, 0, 0);
    return;
  }
  struct igniter_team team;
  /* Without the padding: clearing all of it would become a call of memset, which a kernel's object must not have. */
  team.led = team.ticket = team.finished = team.done = 0;
  clear(&team.jobs[0]);
  clear(&team.jobs[1]);
  team.program = program;
  team.buffers = buffers;
  team.symbols = symbols;
  team.scratch = scratch;
  team.looks = looks;
  parallel_for(context, igniter_team_member, runs, &team);
  igniter_load_record(&history, &team.load);
}
