/* The library's entry point, and the choice of a CPU variant when the library is loaded, before any kernel runs. */

#include "library.h"

/* Generated: the ops, the name of their domain, and the least API version with all functions that they call. */
extern const OrtCustomOp *const igniter_ops[];
extern const int64_t igniter_op_count;
extern const char igniter_domain_name[];
extern const uint32_t igniter_api_version;
extern const char igniter_too_old[];

/* Generated: the variants, those of the highest level first, and the message for a CPU of each level, if no variant
 * fits. A library with one variant for every CPU has none here. */
struct variant {
  int32_t number, level;
};
extern const struct variant igniter_variants[];
extern const int64_t igniter_variant_count;
extern const char *const igniter_refusals[];

/* The chosen variant: the kernels' entry points jump to it. */
int32_t igniter_variant;

const OrtApi *igniter_api;

/* One domain serves all sessions of one ORT: ORT keeps a pointer to it and never frees it. */
static const OrtApi *domain_api;
static OrtCustomOpDomain *domain;

int32_t igniter_cpu_level(void);

/* Records the best variant; returns null, or the reason why none can run. */
static const char *choose_variant(void) {
  if (!igniter_variant_count)
    return 0;
  int32_t level = igniter_cpu_level();
  for (int64_t k = 0; k < igniter_variant_count; k++)
    if (level >= igniter_variants[k].level) {
      __atomic_store_n(&igniter_variant, igniter_variants[k].number, __ATOMIC_RELEASE);
      return 0;
    }
  return igniter_refusals[level];
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
  const char *refusal = choose_variant();
  if (refusal)
    return api->CreateStatus(ORT_NOT_IMPLEMENTED, refusal);
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
