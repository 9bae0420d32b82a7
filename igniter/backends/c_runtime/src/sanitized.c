/* The check of a library of sanitized kernels after each run: an access out of bounds ends the call with an error. */

#include "library.h"

/* Null, or the text of an access out of bounds, stored by the kernels (`igniter/backends/violations.py`). One cell
 * serves the library: of two concurrent sessions, either may report an access of the other's kernel. */
extern const char *igniter_violation;

OrtStatus *igniter_run(struct igniter_state *state, const struct igniter_desc *desc, const OrtApi *api,
                       OrtKernelContext *context, void **buffers, int64_t *symbols, int64_t size);
OrtStatus *igniter_outside(const OrtApi *api, const struct igniter_desc *desc, const char *outside);

/* Takes the place of `igniter_run`. */
OrtStatus *igniter_run_sanitized(struct igniter_state *state, const struct igniter_desc *desc, const OrtApi *api,
                                 OrtKernelContext *context, void **buffers, int64_t *symbols, int64_t size) {
  OrtStatus *status = igniter_run(state, desc, api, context, buffers, symbols, size);
  const char *outside = __atomic_exchange_n(&igniter_violation, 0, __ATOMIC_ACQ_REL);
  if (!outside)
    return status;
  if (status)
    api->ReleaseStatus(status);
  return igniter_outside(api, desc, outside);
}
