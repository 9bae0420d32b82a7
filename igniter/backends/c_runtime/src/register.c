/* The library's entry point, and the choice of a CPU variant when the library is loaded, before any kernel runs. */

#include "cpu.h"
#include "library.h"

/* Generated: the ops, the name of their domain, and the least API version with all functions that they call. */
extern const OrtCustomOp *const igniter_ops[];
extern const int64_t igniter_op_count;
extern const char igniter_domain_name[];
extern const uint32_t igniter_api_version;
extern const char igniter_too_old[];

/* Generated: the features of CPUs that a variant needs, with their places (`igniter/cpu_features.py`): `bits` of a word,
 * and `saved` of XCR0, the registers that the operating system saves. */
struct feature {
  const char *name;
  int32_t word;
  uint32_t bits, saved, unused;
};
extern const struct feature igniter_features[];
extern const int64_t igniter_feature_count;

/* Generated: the variants, the best first; `features` has a bit for each feature that its code may use. A library with
 * one variant for every CPU has none here. */
struct variant {
  int32_t number, level;
  uint64_t features;
};
extern const struct variant igniter_variants[];
extern const int64_t igniter_variant_count;

/* Generated: by the level of the CPU, the begin and the end of the message if no variant fits. */
extern const char *const igniter_refusals[][2];

/* The chosen variant: the kernels' entry points jump to it. */
int32_t igniter_variant;

const OrtApi *igniter_api;

/* One domain serves all sessions of one ORT: ORT keeps a pointer to it and never frees it. */
static const OrtApi *domain_api;
static OrtCustomOpDomain *domain;

/* The features of this CPU among those of the table, as bits. */
static uint64_t present(const uint32_t *words) {
  uint64_t found = 0;
  for (int64_t k = 0; k < igniter_feature_count; k++) {
    const struct feature *feature = &igniter_features[k];
    if (!(feature->bits & ~words[feature->word]) && !(feature->saved & ~words[XCR0]))
      found |= (uint64_t)1 << k;
  }
  return found;
}

/* Makes the error for a CPU without the features `missing`. */
COLD static OrtStatus *refuse(const OrtApi *api, int32_t level, uint64_t missing) {
  enum { CAPACITY = 1024 };
  char buffer[CAPACITY];
  struct igniter_string text = {buffer, CAPACITY, 0};
  const char *between = " without ";
  igniter_text(&text, igniter_refusals[level][0]);
  for (int64_t k = 0; k < igniter_feature_count; k++)
    if (missing >> k & 1) {
      igniter_text(&text, between);
      igniter_text(&text, igniter_features[k].name);
      between = ", ";
    }
  igniter_text(&text, igniter_refusals[level][1]);
  return api->CreateStatus(ORT_NOT_IMPLEMENTED, buffer);
}

/* Records the best variant whose level and features the CPU has; returns null, or the error if none can run, with the
 * missing features of the last variant, which needs the least. */
static OrtStatus *choose_variant(const OrtApi *api) {
  if (!igniter_variant_count)
    return 0;
  uint32_t words[WORDS];
  igniter_cpu_words(words);
  int32_t level = igniter_cpu_level(words);
  uint64_t found = present(words), missing = 0;
  for (int64_t k = 0; k < igniter_variant_count; k++) {
    missing = igniter_variants[k].features & ~found;
    if (level >= igniter_variants[k].level && !missing) {
      __atomic_store_n(&igniter_variant, igniter_variants[k].number, __ATOMIC_RELEASE);
      return 0;
    }
  }
  return refuse(api, level, missing);
}

static OrtStatus *make_domain(const OrtApi *api, OrtCustomOpDomain **made) {
  TRY(api->CreateCustomOpDomain(igniter_domain_name, made));
  for (int64_t k = 0; k < igniter_op_count; k++) {
    OrtStatus *status = api->CustomOpDomain_Add(*made, igniter_ops[k]);
    if (status) {
      api->ReleaseCustomOpDomain(*made);
      return status;
    }
  }
  /* The first one made is kept; that of a thread that comes second, or of another ORT, serves only its caller. */
  const OrtApi *none = 0;
  if (__atomic_compare_exchange_n(&domain_api, &none, api, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    __atomic_store_n(&domain, *made, __ATOMIC_RELEASE);
  return 0;
}

/* ORT creates no session from options with a domain twice: the library marks the options that have it. */
__attribute__((visibility("default"))) OrtStatus *RegisterCustomOps(OrtSessionOptions *options,
                                                                     const OrtApiBase *base) {
  const OrtApi *api = base->GetApi(igniter_api_version);
  if (!api)
    return base->GetApi(1)->CreateStatus(ORT_NOT_IMPLEMENTED, igniter_too_old);
  TRY(choose_variant(api));
  __atomic_store_n(&igniter_api, api, __ATOMIC_RELEASE);
  int32_t marked = 0;
  TRY(api->HasSessionConfigEntry(options, igniter_domain_name, &marked));
  if (marked)
    return 0;
  OrtCustomOpDomain *chosen = __atomic_load_n(&domain, __ATOMIC_ACQUIRE);
  if (!chosen || __atomic_load_n(&domain_api, __ATOMIC_ACQUIRE) != api)
    TRY(make_domain(api, &chosen));
  TRY(api->AddCustomOpDomain(options, chosen));
  return api->AddSessionConfigEntry(options, igniter_domain_name, "1");
}
