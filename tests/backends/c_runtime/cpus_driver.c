/* Prints the limit of CPUs for some runs in sequence, then the quota, for tests of the machine's masks and groups.
 * The argument is the number of runs. */

#include <stdio.h>
#include <stdlib.h>

#include "cpus.h"

int main(int count, char **arguments) {
  struct igniter_cpus cpus = {0};
  int runs = count > 1 ? atoi(arguments[1]) : 1;
  for (int k = 0; k < runs; k++) {
    int shows;
    uint64_t limit = igniter_cpus_limit(&cpus, &shows);
    if (shows)
      igniter_cpus_seen(&cpus);
    printf("%lld ", limit == UINT64_MAX ? -1ll : (long long)limit);
  }
  uint64_t quota = igniter_cpu_quota();
  printf("quota %lld\n", quota == UINT64_MAX ? -1ll : (long long)quota);
  return 0;
}
