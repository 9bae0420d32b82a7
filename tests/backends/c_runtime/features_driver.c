/* The words and the level of CPUs that are made up, and the choice of a variant on them.
 *
 *   features_driver [LEAF:SUBLEAF=EAX,EBX,ECX,EDX ...] [xcr0=BITS] [FEATURE=WORD,BITS,SAVED ...] [LEVEL/FEATURES ...]
 *
 * Numbers are hexadecimal. An argument `name=...` that is no leaf adds a feature, and LEVEL/FEATURES a variant. Prints
 * the words and the level, then the number of the variant or the error. */

#include "cpu.h"
#include "library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  uint32_t leaf, subleaf, out[4];
} leaves[32];
static int leaf_count, xgetbv_calls;
static uint32_t xcr0;

void igniter_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t *out) {
  memset(out, 0, 16);
  for (int k = 0; k < leaf_count; k++)
    if (leaves[k].leaf == leaf && leaves[k].subleaf == subleaf)
      memcpy(out, leaves[k].out, 16);
}
uint32_t igniter_xgetbv(void) {
  xgetbv_calls++;
  return xcr0;
}

const OrtCustomOp *const igniter_ops[1] = {0};
const int64_t igniter_op_count = 0;
const char igniter_domain_name[] = "igniter.test", igniter_too_old[] = "too old";
const uint32_t igniter_api_version = 17;
const char *const igniter_type_names[] = {"of an unknown kind"};
const uint64_t igniter_type_count = 1;

struct {
  const char *name;
  int32_t word;
  uint32_t bits, saved, unused;
} igniter_features[64];
int64_t igniter_feature_count;
struct {
  int32_t number, level;
  uint64_t features;
} igniter_variants[8];
int64_t igniter_variant_count;
const char *const igniter_refusals[5][2] = {
    {"this is 0", "."}, {"this is 1", "."}, {"this is 2", "."}, {"this is 3", "."}, {"this is 4", "."}};

extern int32_t igniter_variant;
OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);

static OrtStatus *create_status(int code, const char *text) {
  printf("%d: %s\n", code, text);
  exit(0);
}
static OrtStatus *has_entry(const OrtSessionOptions *options, const char *name, int *found) {
  (void)options, (void)name;
  *found = 1;
  return 0;
}
static OrtApi api;
static const OrtApi *get_api(uint32_t version) {
  (void)version;
  return &api;
}

int main(int count, char **arguments) {
  for (int k = 1; k < count; k++) {
    char *text = arguments[k], *equals = strchr(text, '='), *slash = strchr(text, '/');
    if (slash) {
      igniter_variants[igniter_variant_count].number = (int32_t)igniter_variant_count;
      igniter_variants[igniter_variant_count].level = atoi(text);
      igniter_variants[igniter_variant_count++].features = strtoull(slash + 1, 0, 16);
    } else if (!strncmp(text, "xcr0=", 5)) {
      xcr0 = (uint32_t)strtoul(equals + 1, 0, 16);
    } else if (strchr(text, ':')) {
      uint32_t *out = leaves[leaf_count].out;
      if (sscanf(text, "%x:%x=%x,%x,%x,%x", &leaves[leaf_count].leaf, &leaves[leaf_count].subleaf, out, out + 1, out + 2,
                 out + 3) != 6)
        return 2;
      leaf_count++;
    } else {
      int64_t at = igniter_feature_count++;
      igniter_features[at].name = text;
      if (sscanf(equals + 1, "%x,%x,%x", (unsigned *)&igniter_features[at].word, &igniter_features[at].bits,
                 &igniter_features[at].saved) != 3)
        return 2;
      *equals = 0;
    }
  }
  uint32_t words[WORDS];
  memset(words, 0xFF, sizeof words);
  igniter_cpu_words(words);
  for (int k = 0; k < WORDS; k++)
    printf("%x ", words[k]);
  printf("level %d, %d xgetbv\n", igniter_cpu_level(words), xgetbv_calls);
  api.CreateStatus = create_status;
  api.HasSessionConfigEntry = has_entry;
  static const OrtApiBase base = {get_api, 0};
  if (RegisterCustomOps(0, &base))
    return 1;
  printf("variant %d\n", igniter_variant);
  return 0;
}
