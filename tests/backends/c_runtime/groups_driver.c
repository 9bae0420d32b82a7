/* Answers `open`, `read`, `close` and `sched_getaffinity` in place of the system, so that a test can have any control
 * groups: argument k is "PATH=TEXT". Prints the quota. */

#include <stdio.h>
#include <string.h>

#include "cpus.h"

static char **files;
static int file_count, places[64];

int open(const char *name, int flags, ...) {
  size_t length = strlen(name);
  for (int k = 0; k < file_count; k++)
    if (!strncmp(files[k], name, length) && files[k][length] == '=') {
      places[k] = (int)length + 1;
      return 100 + k;
    }
  return -1;
}

long read(int file, void *buffer, size_t size) {
  const char *text = files[file - 100] + places[file - 100];
  size_t length = strlen(text);
  if (length > size)
    length = size;
  memcpy(buffer, text, length);
  return (long)length;
}

int close(int file) { return 0; }

int sched_getaffinity(int process, size_t size, void *mask) { return -1; }

int main(int count, char **arguments) {
  files = arguments + 1;
  file_count = count - 1;
  uint64_t quota = igniter_cpu_quota();
  printf("%lld\n", quota == UINT64_MAX ? -1ll : (long long)quota);
  return 0;
}
