/* Runs the account of a team on times that the test makes: each argument is one run, "TASK:OWN:COUNT:WAIT" with the
 * ticks of a task, the leader's tasks, all tasks, and the ticks that the leader waits. Prints for each run "alone",
 * "kept" or "lost" (the run was a loss), and whether the team was dismissed. */

#include <stdio.h>

#define now() ticks
#include <stdint.h>
static uint64_t ticks;
#include "load.c"

int main(int count, char **arguments) {
  struct igniter_history history = {0, 0};
  for (int k = 1; k < count; k++) {
    struct igniter_load load;
    unsigned long task, own, all, wait;
    if (sscanf(arguments[k], "%lu:%lu:%lu:%lu", &task, &own, &all, &wait) != 4)
      return 2;
    if (igniter_load_alone(&history)) {
      printf("alone ");
      continue;
    }
    load.polls = load.waiting = 0;
    igniter_load_start(&load);
    igniter_load_publish(&load);
    for (unsigned long i = 0; i < own; i++) {
      ticks += task;
      igniter_load_task(&load);
    }
    if (wait)
      igniter_load_wait(&load);
    ticks += wait;
    int dismissed = igniter_load_ended(&load, all);
    igniter_load_stop(&load);
    igniter_load_record(&history, &load);
    printf(history.alone ? "lost%s " : "kept%s ", dismissed ? "!" : "");
  }
  printf("\n");
  return 0;
}
