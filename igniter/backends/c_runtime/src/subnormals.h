/* The mode of a thread in which subnormal operands and results of float arithmetic count as 0: the bits FTZ and DAZ of
 * MXCSR on x86-64, FZ of FPCR on aarch64. Loads, stores and conversions of f16 by instructions are not affected. */

#ifndef IGNITER_SUBNORMALS_H
#define IGNITER_SUBNORMALS_H

#include <stdint.h>

#if defined(__x86_64__)
#define FLUSH_BITS 0x8040u
static inline uint64_t float_mode(void) { return __builtin_ia32_stmxcsr(); }
static inline void set_float_mode(uint64_t mode) { __builtin_ia32_ldmxcsr((uint32_t)mode); }
#elif defined(__clang__)
#define FLUSH_BITS (1u << 24)
static inline uint64_t float_mode(void) { return __builtin_arm_rsr64("fpcr"); }
static inline void set_float_mode(uint64_t mode) { __builtin_arm_wsr64("fpcr", mode); }
#else
#define FLUSH_BITS (1u << 24)
static inline uint64_t float_mode(void) { return __builtin_aarch64_get_fpcr64(); }
static inline void set_float_mode(uint64_t mode) { __builtin_aarch64_set_fpcr64(mode); }
#endif

/* Makes subnormal numbers 0 on this thread, and returns its mode as it was. */
static inline uint64_t begin_flush(void) {
  uint64_t before = float_mode();
  if ((before & FLUSH_BITS) != FLUSH_BITS)
    set_float_mode(before | FLUSH_BITS);
  return before;
}

/* Restores the mode of the thread: a session may have set it for itself (`session.set_denormal_as_zero`). The flags of
 * exceptions that were raised in between stay. */
static inline void end_flush(uint64_t before) {
  if ((before & FLUSH_BITS) != FLUSH_BITS)
    set_float_mode((float_mode() & ~(uint64_t)FLUSH_BITS) | (before & FLUSH_BITS));
}

/* Lets subnormal numbers be as they are on this thread, and returns its mode as it was. */
static inline uint64_t begin_exact(void) {
  uint64_t before = float_mode();
  if (before & FLUSH_BITS)
    set_float_mode(before & ~(uint64_t)FLUSH_BITS);
  return before;
}

/* Restores the mode of the thread. */
static inline void end_exact(uint64_t before) {
  if (before & FLUSH_BITS)
    set_float_mode(float_mode() | (before & FLUSH_BITS));
}

#endif
