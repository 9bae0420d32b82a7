/* The level of the CPU that runs the library. */

#include <stdint.h>

#ifdef __x86_64__

/* In machine code, generated (`igniter/backends/ort/cpu_choice.py`): LLVM has no intrinsic for CPUID, and llvmlite
 * assembles for the host's machine only. `out` is eax, ebx, ecx, edx. */
void igniter_cpuid(uint32_t leaf, uint32_t *out);
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
enum { EAX, EBX, ECX, EDX, OSXSAVE = 27 };

/* Returns the psABI level of the CPU that runs it: 1 to 4. */
int32_t igniter_cpu_level(void) {
  uint32_t leaves[4], basic[4], extended[4], seven[4], features = 0, saved = 0;
  igniter_cpuid(0, leaves);
  igniter_cpuid(1, basic);
  igniter_cpuid(0x80000001, extended);
  if (leaves[EAX] >= 7 && basic[ECX] & BIT(OSXSAVE)) {
    igniter_cpuid(7, seven);
    features = seven[EBX];
    saved = igniter_xgetbv();
  }
  for (int32_t k = 0; k < 3; k++)
    if (~basic[ECX] & NEEDED[k].basic || ~extended[ECX] & NEEDED[k].extended || ~features & NEEDED[k].features ||
        ~saved & NEEDED[k].saved)
      return k + 1;
  return 4;
}

#else

int32_t igniter_cpu_level(void) { return 0; }

#endif
