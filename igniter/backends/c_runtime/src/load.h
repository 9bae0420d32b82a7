/* The account of a team (load.c). */

#ifndef IGNITER_LOAD_H
#define IGNITER_LOAD_H

#include <stdint.h>

/* One run's account. Times are ticks of the CPU's clock. */
struct igniter_load {
  uint64_t started;   /* When the leader began. */
  uint64_t published; /* When the current job was. */
  uint64_t waiting;   /* When the leader had no more tasks of it. */
  uint64_t stopped;   /* When the leader ended the program. */
  uint64_t polls;     /* The leader's, in the current job. */
  uint64_t own;       /* The leader's tasks of the current job. */
  uint64_t lost;      /* Time spent waiting. */
  uint64_t saved;     /* Time of the helpers' tasks. */
};

/* Of a program, between its runs. */
struct igniter_history {
  uint64_t alone;   /* Runs to do without a team. */
  uint64_t penalty; /* Runs to do alone after the next loss, halved. */
};

/* Waits for a moment: a pause of the CPU, or after some polls in sequence a yield to other threads. */
void igniter_load_pause(uint64_t polls);

void igniter_load_start(struct igniter_load *load);
void igniter_load_publish(struct igniter_load *load);
void igniter_load_task(struct igniter_load *load);
void igniter_load_wait(struct igniter_load *load);
/* Ends a job of `count` tasks; true if the team should be dismissed. */
int igniter_load_ended(struct igniter_load *load, uint64_t count);
void igniter_load_stop(struct igniter_load *load);

/* True if the next run of the program should be without a team. */
int igniter_load_alone(struct igniter_history *history);
/* Records a run with a team. */
void igniter_load_record(struct igniter_history *history, struct igniter_load *load);

#endif
