/* The number of CPUs that the process may use: its threads' affinity masks, and the limits of its control groups.
 *
 * A pool may have more threads than that, because its owner counted the machine's CPUs (a container with `--cpus=2`, a
 * `taskset` after the pool was made). The threads beyond would only take time from the others.
 *
 * Control groups: version 2 has `cpu.max` in the group's folder, version 1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
 * A limit applies to all groups below, so the least one up to the root counts. In a container the group's path may be
 * the host's, while the container's folder is mounted as the root, which is why a missing folder is no error.
 * (Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst in Linux.) */

#include "cpus.h"

#include <stddef.h>

/* The C library's. `open` takes a mode for new files only. */
int open(const char *name, int flags, ...);
long read(int file, void *buffer, size_t size);
int close(int file);
int sched_getaffinity(int process, size_t size, void *mask);

enum { READ_ONLY = 0, CLOSE_ON_EXEC = 02000000, PATH_SIZE = 512, TEXT_SIZE = 4096 };

/* Reads the begin of a file as a string; returns 0 if there is none. */
static int text_of(const char *name, char *buffer, size_t size) {
  int file = open(name, READ_ONLY | CLOSE_ON_EXEC);
  if (file < 0)
    return 0;
  long length = read(file, buffer, size - 1);
  close(file);
  buffer[length > 0 ? length : 0] = 0;
  return length > 0;
}

/* Reads a decimal number, and moves the text behind it; -1 if there is none ("max", "-1"). */
static int64_t number(const char **text) {
  int64_t value = 0;
  const char *at = *text;
  for (; *at >= '0' && *at <= '9' && at - *text < 18; at++)
    value = value * 10 + (*at - '0');
  int64_t found = at == *text ? -1 : value;
  while (*at && *at != ' ' && *at != '\n')
    at++;
  *text = *at ? at + 1 : at;
  return found;
}

/* Appends a string to a path; a path that becomes too long ends up empty. */
static char *append(char *path, char *end, const char *text, const char *stop) {
  for (; text != stop && *text; text++) {
    if (!end || end == path + PATH_SIZE - 1)
      return 0;
    *end++ = *text;
  }
  if (end)
    *end = 0;
  return end;
}

/* The CPUs of a quota, rounded up: 1.5 CPUs keep two threads busy. */
static uint64_t rounded_up(int64_t quota, int64_t period) {
  return quota > 0 && period > 0 ? (uint64_t)((quota + period - 1) / period) : UINT64_MAX;
}

/* The limit in a folder; `end` is where its path ends. */
static uint64_t limit_in(char *path, char *end, int version) {
  char text[64];
  const char *at = text;
  if (!append(path, end, version == 2 ? "/cpu.max" : "/cpu.cfs_quota_us", 0) || !text_of(path, text, sizeof text))
    return UINT64_MAX;
  int64_t quota = number(&at);
  if (version == 2)
    return rounded_up(quota, number(&at));
  at = text;
  if (!append(path, end, "/cpu.cfs_period_us", 0) || !text_of(path, text, sizeof text))
    return UINT64_MAX;
  return rounded_up(quota, number(&at));
}

/* The least limit of a group (`from` to `stop`) and those above it, in the hierarchy that is mounted at `root`. */
static uint64_t limit_of(const char *root, const char *from, const char *stop, int version) {
  char path[PATH_SIZE];
  char *base = append(path, path, root, 0), *end = append(path, base, from, stop);
  uint64_t least = UINT64_MAX;
  if (!end)
    end = base;
  for (;;) {
    uint64_t limit = limit_in(path, end, version);
    least = limit < least ? limit : least;
    if (end <= base)
      return least;
    while (end > base && *--end != '/')
      ;
  }
}

/* True if a list of names, separated by commas, has `name`. */
static int has(const char *list, const char *stop, const char *name) {
  for (;;) {
    const char *at = name;
    while (list != stop && *list != ',' && *at && *list == *at)
      list++, at++;
    if (!*at && (list == stop || *list == ','))
      return 1;
    while (list != stop && *list != ',')
      list++;
    if (list++ == stop)
      return 0;
  }
}

static const char *find(const char *text, char wanted) {
  while (*text && *text != wanted && *text != '\n')
    text++;
  return text;
}

/* Each line of /proc/self/cgroup is "hierarchy:controllers:path"; version 2 has no controllers. */
uint64_t igniter_cpu_quota(void) {
  char groups[TEXT_SIZE];
  uint64_t least = UINT64_MAX;
  if (!text_of("/proc/self/cgroup", groups, sizeof groups))
    return least;
  for (const char *line = groups; *line;) {
    const char *names = find(line, ':'), *end = find(line, '\n');
    const char *path = *names == ':' ? find(++names, ':') : names;
    if (*path == ':') {
      uint64_t limit = UINT64_MAX;
      if (path == names) {
        limit = limit_of("/sys/fs/cgroup", path + 1, end, 2);
      } else if (has(names, path, "cpu")) {
        limit = limit_of("/sys/fs/cgroup/cpu", path + 1, end, 1);
      }
      least = limit < least ? limit : least;
    }
    line = *end ? end + 1 : end;
  }
  return least;
}

void igniter_cpus_seen(struct igniter_cpus *cpus) {
  uint64_t mask[MASK_WORDS];
  for (int k = 0; k < MASK_WORDS; k++)
    mask[k] = 0;
  if (sched_getaffinity(0, sizeof mask, mask) < 0)
    return; /* More CPUs than the mask has bits: no limit is known. */
  for (int k = 0; k < MASK_WORDS; k++)
    if (mask[k] & ~__atomic_load_n(&cpus->mask[k], __ATOMIC_RELAXED))
      __atomic_fetch_or(&cpus->mask[k], mask[k], __ATOMIC_RELAXED);
}

/* The number of set bits: no intrinsic, which LLVM would turn into a call on a CPU without the instruction. */
static uint64_t bits(uint64_t word) {
  uint64_t count = 0;
  for (; word; word &= word - 1)
    count++;
  return count;
}

uint64_t igniter_cpus_limit(struct igniter_cpus *cpus, int *shows) {
  uint64_t run = __atomic_fetch_add(&cpus->runs, 1, __ATOMIC_RELAXED), count = 0;
  if (run % RUNS_TO_QUOTA == 0)
    __atomic_store_n(&cpus->quota, igniter_cpu_quota(), __ATOMIC_RELAXED);
  uint64_t quota = __atomic_load_n(&cpus->quota, __ATOMIC_RELAXED);
  *shows = run % RUNS_TO_MASK == 0;
  if (*shows)
    return quota;
  for (int k = 0; k < MASK_WORDS; k++)
    count += bits(__atomic_load_n(&cpus->mask[k], __ATOMIC_RELAXED));
  return count && count < quota ? count : quota;
}
