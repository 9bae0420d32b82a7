/* The functions of Linux's C library that the run time calls and Apple's systems lack, or have with another meaning of
 * their numbers: there are no affinity masks, no control groups and no transparent large pages. The features of the CPU
 * are values by name (Apple, "Determining Instruction Set Characteristics"). */

#include "no_files.h"

int sched_getaffinity(int process, size_t size, void *mask) {
  (void)process, (void)size, (void)mask;
  return -1;
}

int sysctlbyname(const char *name, void *value, size_t *size, void *set, size_t length);

/* The bits of Linux's HWCAP and HWCAP2 by Apple's names. */
static const struct {
  const char *name;
  unsigned long kind, bit;
} FEATURES[] = {
    {"hw.optional.arm.FEAT_LSE", 16, 8},     {"hw.optional.arm.FEAT_FP16", 16, 10},
    {"hw.optional.arm.FEAT_RDM", 16, 12},    {"hw.optional.arm.FEAT_FCMA", 16, 14},
    {"hw.optional.arm.FEAT_LRCPC", 16, 15},  {"hw.optional.arm.FEAT_SHA3", 16, 17},
    {"hw.optional.arm.FEAT_DotProd", 16, 20}, {"hw.optional.arm.FEAT_FHM", 16, 23},
    {"hw.optional.arm.FEAT_LRCPC2", 16, 26}, {"hw.optional.arm.FEAT_I8MM", 26, 13},
    {"hw.optional.arm.FEAT_BF16", 26, 14},
};

/* A feature is missing only if the system says so: older systems do not know all names. */
unsigned long getauxval(unsigned long kind) {
  unsigned long found = ~0ul;
  for (size_t k = 0; k < sizeof FEATURES / sizeof *FEATURES; k++) {
    int value = 1;
    size_t size = sizeof value;
    if (FEATURES[k].kind == kind && !sysctlbyname(FEATURES[k].name, &value, &size, 0, 0) && !value)
      found &= ~(1ul << FEATURES[k].bit);
  }
  return found;
}
