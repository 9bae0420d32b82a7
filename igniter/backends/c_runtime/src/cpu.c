/* The features and the level of the CPU that runs the library. */

#include "cpu.h"

#ifdef __x86_64__

/* In machine code, generated (`igniter/backends/ort/cpu_choice.py`): LLVM has no intrinsic for CPUID, and llvmlite
 * assembles for the host's machine only. `out` is eax, ebx, ecx, edx. */
void igniter_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t *out);
uint32_t igniter_xgetbv(void);

#define BIT(n) (1u << (n))

/* The required bits by level: the x86-64 psABI's table of micro-architecture levels, and CPUID in Intel's manual,
 * volume 2A. `saved` are the registers that the operating system saves. */
static const struct {
  uint32_t basic, extended, features, saved;
} NEEDED[] = {
    {BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23), BIT(0), 0, 0},
    {BIT(12) | BIT(22) | BIT(27) | BIT(28) | BIT(29), BIT(5), BIT(3) | BIT(5) | BIT(8), 0x6},
    {0, 0, BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31), 0xE6},
};
enum { EAX, EBX, ECX, EDX, OSXSAVE = 27, AVX10_BIT = 19, EXTENDED = 0x80000000 };

void igniter_cpu_words(uint32_t *words) {
  uint32_t out[4], last;
  for (int32_t k = 0; k < WORDS; k++)
    words[k] = 0;
  igniter_cpuid(0, 0, out);
  last = out[EAX];
  igniter_cpuid(1, 0, out);
  words[ONE_ECX] = out[ECX];
  igniter_cpuid(EXTENDED, 0, out);
  if (out[EAX] > EXTENDED) {
    igniter_cpuid(EXTENDED + 1, 0, out);
    words[EXTENDED_ECX] = out[ECX];
  }
  /* XGETBV is an invalid instruction without it. */
  if (words[ONE_ECX] & BIT(OSXSAVE))
    words[XCR0] = igniter_xgetbv();
  /* For a leaf beyond the last one, Intel's CPUs give the values of the last one. */
  if (last < 7)
    return;
  igniter_cpuid(7, 0, out);
  words[SEVEN_EBX] = out[EBX];
  words[SEVEN_ECX] = out[ECX];
  words[SEVEN_EDX] = out[EDX];
  if (out[EAX] < 1)
    return;
  igniter_cpuid(7, 1, out);
  words[SEVEN_1_EAX] = out[EAX];
  words[SEVEN_1_EDX] = out[EDX];
  if (last < 0x24 || !(words[SEVEN_1_EDX] & BIT(AVX10_BIT)))
    return;
  /* A version as bits: bit N if it is more than N. */
  igniter_cpuid(0x24, 0, out);
  uint32_t version = out[EBX] & 0xFF;
  words[AVX10] = version < 32 ? BIT(version) - 1 : ~0u;
}

int32_t igniter_cpu_level(const uint32_t *words) {
  for (int32_t k = 0; k < 3; k++)
    if (~words[ONE_ECX] & NEEDED[k].basic || ~words[EXTENDED_ECX] & NEEDED[k].extended ||
        ~words[SEVEN_EBX] & NEEDED[k].features || ~words[XCR0] & NEEDED[k].saved)
      return k + 1;
  return 4;
}

#else

/* The C library's, for Linux and Android; `apple.c` has it for Apple's systems. */
unsigned long getauxval(unsigned long kind);

enum { AT_HWCAP = 16, AT_HWCAP2 = 26 };

void igniter_cpu_words(uint32_t *words) {
  for (int32_t k = 0; k < WORDS; k++)
    words[k] = 0;
  uint64_t first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  words[0] = (uint32_t)first;
  words[1] = (uint32_t)(first >> 32);
  words[2] = (uint32_t)second;
  words[3] = (uint32_t)(second >> 32);
}

int32_t igniter_cpu_level(const uint32_t *words) {
  (void)words;
  return 0;
}

#endif
