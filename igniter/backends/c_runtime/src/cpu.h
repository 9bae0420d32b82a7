/* What the CPU that runs the library has. */

#ifndef IGNITER_CPU_H
#define IGNITER_CPU_H

#include <stdint.h>

/* The words with the bits of features, in the order of `igniter/cpu_features.py`. */
enum { ONE_ECX, SEVEN_EBX, SEVEN_ECX, SEVEN_EDX, SEVEN_1_EAX, SEVEN_1_EDX, EXTENDED_ECX, AVX10, XCR0, WORDS };

/* Reads the words of the CPU; those that it lacks are 0. */
void igniter_cpu_words(uint32_t *words);

/* Returns the psABI level of a CPU with these words, 1 to 4; 0 on aarch64. */
int32_t igniter_cpu_level(const uint32_t *words);

#endif
