/* The account of a team: the time that its helpers save, and the time that the leader loses waiting for them.
 *
 * On a quiet machine a helper saves far more than it costs. On a busy one the kernel may put it to sleep in the middle
 * of a task, for milliseconds, and the leader waits. No system call says so in time, so the leader counts: a job's
 * tasks take about equally long, so its own tell the time that the helpers' would have taken it. When the losses exceed
 * the savings, the leader dismisses the team and does the rest alone. The next runs begin alone: one after the first
 * such run, twice as many after each further one, up to `MOST_ALONE`. A run that gains halves the number.
 *
 * `struct igniter_load` is the leader's alone. What is kept between runs is atomic and relaxed: a lost update costs one
 * run with a team or without. */

#include "load.h"

enum { POLLS = 64, MOST_ALONE = 32 };

/* The C library's: lets the threads run that are ready on this CPU. It returns at once if there are none. */
int sched_yield(void);

#ifndef now /* A test has a clock of its own. */
/* A clock of the CPU; its unit is unknown, and nothing here depends on it. */
static inline uint64_t now(void) {
#if defined(__aarch64__) && defined(__clang__)
  return __builtin_readsteadycounter();
#elif defined(__clang__)
  return __builtin_readcyclecounter();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return __builtin_ia32_rdtsc();
#endif
}
#endif

/* Tells the CPU that this thread polls. */
static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__clang__)
  __builtin_arm_yield();
#else
  __asm__ volatile("yield");
#endif
}

void igniter_load_pause(uint64_t polls) {
  /* A thread that polls for longer than about two microseconds may occupy the CPU that another one needs. */
  if (polls % POLLS == POLLS - 1)
    sched_yield();
  else
    relax();
}

static inline uint64_t since(uint64_t before, uint64_t after) {
  /* Clocks of two CPUs may differ by a little. */
  return after > before ? after - before : 0;
}

void igniter_load_start(struct igniter_load *load) {
  load->started = now();
  load->lost = load->saved = 0;
}

void igniter_load_publish(struct igniter_load *load) {
  load->published = now();
  load->own = 0;
  load->polls = 0;
}

void igniter_load_task(struct igniter_load *load) { load->own++; }

void igniter_load_wait(struct igniter_load *load) {
  if (!load->polls)
    load->waiting = now();
  igniter_load_pause(load->polls++);
}

/* True if the losses exceed half of the savings by more than a sixteenth of the time: what a helper saves here, it may
 * take from another program, so a small gain is none. */
static inline int loses(const struct igniter_load *load, uint64_t time) {
  return load->lost > load->saved / 2 + since(load->started, time) / 16;
}

int igniter_load_ended(struct igniter_load *load, uint64_t count) {
  uint64_t time = now();
  if (!load->polls)
    load->waiting = time;
  load->lost += since(load->waiting, time);
  if (load->own)
    load->saved += since(load->published, load->waiting) / load->own * (count - load->own);
  return loses(load, time);
}

void igniter_load_stop(struct igniter_load *load) { load->stopped = now(); }

int igniter_load_alone(struct igniter_history *history) {
  uint64_t left = __atomic_load_n(&history->alone, __ATOMIC_RELAXED);
  if (left)
    __atomic_store_n(&history->alone, left - 1, __ATOMIC_RELAXED);
  return left != 0;
}

void igniter_load_record(struct igniter_history *history, struct igniter_load *load) {
  uint64_t time = now(), penalty = __atomic_load_n(&history->penalty, __ATOMIC_RELAXED);
  /* The pool waits for a helper that has no task and sleeps. */
  load->lost += since(load->stopped, time);
  if (loses(load, time)) {
    penalty = penalty ? penalty * 2 : 1;
    if (penalty > MOST_ALONE)
      penalty = MOST_ALONE;
    __atomic_store_n(&history->alone, penalty, __ATOMIC_RELAXED);
  } else {
    penalty /= 2;
  }
  __atomic_store_n(&history->penalty, penalty, __ATOMIC_RELAXED);
}
