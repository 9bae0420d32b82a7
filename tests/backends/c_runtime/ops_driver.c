/* Registers, creates and calls an op in an ONNX Runtime of its own, for the sanitizers: with every mismatch of its
 * inputs, and with each call of the API failing once. Objects are from malloc, so the address sanitizer reports what is
 * lost or used too late. Prints "ok" and exits with 0. With an argument only the first registration, whose call of that
 * number fails. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);

/* -- an ONNX Runtime ----------------------------------------------------------------------------------------------- */

struct OrtStatus {
  char text[1200];
};
struct OrtShape {
  int32_t type;
  int64_t rank, dims[8];
  const char *names[8];
};
struct OrtValue {
  struct OrtShape shape;
  void *data;
};

static int live, calls, fail_at, marked, domains, refuse_pool;
static const OrtCustomOp *added;
static struct OrtValue *inputs[8], *outputs[8];
static size_t input_count, output_count;
static struct OrtShape *shapes[8], inferred;

static OrtStatus *status(int32_t code, const char *text) {
  OrtStatus *made = calloc(1, sizeof *made);
  strncpy(made->text, text, sizeof made->text - 1);
  live++;
  return made;
}
static void release_status(OrtStatus *s) { free(s), live--; }

/* Fails if it is this call's turn. */
#define TURN                                                                                                           \
  if (++calls == fail_at)                                                                                              \
    return status(1, "planned failure");
static OrtStatus *has_entry(const OrtSessionOptions *o, const char *k, int32_t *has) { TURN *has = marked; return 0; }
static OrtStatus *add_entry(OrtSessionOptions *o, const char *k, const char *v) { TURN marked = 1; return 0; }
static OrtStatus *make_domain(const char *name, OrtCustomOpDomain **made) { TURN *made = malloc(1); domains++; return 0; }
static OrtStatus *add_op(OrtCustomOpDomain *d, const OrtCustomOp *op) { TURN added = op; return 0; }
static OrtStatus *add_domain(OrtSessionOptions *o, OrtCustomOpDomain *d) { TURN return 0; }
static void release_domain(OrtCustomOpDomain *d) { free(d), domains--; }
static OrtStatus *allocator(OrtAllocator **a) { TURN *a = (void *)16; return 0; }
static OrtStatus *where_is(const OrtAllocator *a, const OrtMemoryInfo **w) { TURN *w = (void *)16; return 0; }
static OrtStatus *alloc(OrtAllocator *a, size_t n, void **m) { TURN *m = malloc(n); live++; return 0; }
static OrtStatus *give_back(OrtAllocator *a, void *m) {
  free(m), live--; /* Even if it then fails. */
  TURN return 0;
}
static OrtStatus *of_context(const OrtKernelContext *c, const OrtMemoryInfo *w, OrtAllocator **a) {
  TURN *a = (void *)16;
  live++;
  return 0;
}
static void release_allocator(OrtAllocator *a) { live--; }
static OrtStatus *count_inputs(const OrtKernelContext *c, size_t *n) { TURN *n = input_count; return 0; }
static OrtStatus *count_outputs(const OrtKernelContext *c, size_t *n) { TURN *n = output_count; return 0; }
static OrtStatus *count_info(const OrtKernelInfo *c, size_t *n) { TURN *n = input_count; return 0; }
static OrtStatus *get_input(const OrtKernelContext *c, size_t k, const OrtValue **v) { TURN *v = inputs[k]; return 0; }
static OrtStatus *get_output(OrtKernelContext *c, size_t k, const int64_t *dims, size_t rank, OrtValue **v) {
  TURN struct OrtValue *made = calloc(1, sizeof *made);
  int64_t elements = 1;
  made->shape.rank = (int64_t)rank;
  for (size_t i = 0; i < rank; i++)
    elements *= made->shape.dims[i] = dims[i];
  made->data = calloc((size_t)elements + 1, 4);
  *v = outputs[k] = made;
  return 0;
}
static OrtStatus *data_of(const OrtValue *v, void **data) { TURN *data = v->data; return 0; }
static OrtStatus *shape_of(const OrtValue *v, OrtShape **s) {
  TURN *s = malloc(sizeof **s);
  **s = v->shape;
  live++;
  return 0;
}
static OrtStatus *make_shape(OrtShape **s) { TURN *s = calloc(1, sizeof **s); live++; return 0; }
static void release_shape(OrtShape *s) { free(s), live--; }
static OrtStatus *type_of(const OrtShape *s, int32_t *type) { TURN *type = s->type; return 0; }
static OrtStatus *rank_of(const OrtShape *s, size_t *rank) { TURN *rank = (size_t)s->rank; return 0; }
static OrtStatus *dims_of(const OrtShape *s, int64_t *d, size_t n) { TURN memcpy(d, s->dims, 8 * n); return 0; }
static OrtStatus *names_of(const OrtShape *s, const char **d, size_t n) { TURN memcpy(d, s->names, 8 * n); return 0; }
static OrtStatus *set_type(OrtShape *s, int32_t type) { TURN s->type = type; return 0; }
static OrtStatus *set_dims(OrtShape *s, const int64_t *d, size_t n) {
  TURN s->rank = (int64_t)n;
  memcpy(s->dims, d, 8 * n);
  return 0;
}
static OrtStatus *set_names(OrtShape *s, const char **d, size_t n) { TURN memcpy(s->names, d, 8 * n); return 0; }
static OrtStatus *constant(const OrtKernelInfo *i, size_t k, int32_t *is, const OrtValue **v) {
  TURN *is = k == 1;
  *v = *is ? inputs[1] : 0;
  return 0;
}
static OrtStatus *count_shapes(const OrtShapeInferContext *c, size_t *n) { TURN *n = input_count; return 0; }
static OrtStatus *type_shape(const OrtShapeInferContext *c, size_t k, OrtShape **s) { TURN *s = shapes[k]; return 0; }
static OrtStatus *set_shape(const OrtShapeInferContext *c, size_t k, const OrtShape *s) { TURN inferred = *s; return 0; }
static OrtStatus *pool(const OrtKernelContext *c, void (*task)(void *, size_t), size_t n, size_t b, void *data) {
  TURN if (refuse_pool) return status(1, "the pool refuses");
  for (size_t k = 0; k < n; k++)
    task(data, k);
  return 0;
}

static const OrtApi api = {
    .CreateStatus = status, .ReleaseStatus = release_status, .HasSessionConfigEntry = has_entry,
    .AddSessionConfigEntry = add_entry, .CreateCustomOpDomain = make_domain, .CustomOpDomain_Add = add_op,
    .AddCustomOpDomain = add_domain, .ReleaseCustomOpDomain = release_domain,
    .GetAllocatorWithDefaultOptions = allocator, .AllocatorGetInfo = where_is, .AllocatorAlloc = alloc,
    .AllocatorFree = give_back, .KernelContext_GetAllocator = of_context, .ReleaseAllocator = release_allocator,
    .KernelContext_GetInputCount = count_inputs, .KernelContext_GetOutputCount = count_outputs,
    .KernelInfo_GetInputCount = count_info, .KernelContext_GetInput = get_input, .KernelContext_GetOutput = get_output,
    .GetTensorMutableData = data_of, .GetTensorTypeAndShape = shape_of, .CreateTensorTypeAndShapeInfo = make_shape,
    .ReleaseTensorTypeAndShapeInfo = release_shape, .GetTensorElementType = type_of, .GetDimensionsCount = rank_of,
    .GetDimensions = dims_of, .GetSymbolicDimensions = names_of, .SetTensorElementType = set_type,
    .SetDimensions = set_dims, .SetSymbolicDimensions = set_names, .KernelInfoGetConstantInput_tensor = constant,
    .ShapeInferContext_GetInputCount = count_shapes, .ShapeInferContext_GetInputTypeShape = type_shape,
    .ShapeInferContext_SetOutputTypeShape = set_shape, .KernelContext_ParallelFor = pool,
};
static const OrtApi *get_api(uint32_t version) { return &api; }

/* -- the library: y[n, 3] = x[n, 3] * w[3], and the sum of the variadic v... [n], checked ------------------------------ */

static int64_t scratch;

static void row(void *data, uint64_t k) {
  void **buffers = data;
  for (int i = 0; i < 3; i++)
    ((float *)buffers[3])[3 * k + (uint64_t)i] =
        ((float *)buffers[0])[3 * k + (uint64_t)i] * ((float *)buffers[1])[i] + ((float *)buffers[2])[k];
}
static void kernel(void **buffers, int64_t *symbols, void *memory, igniter_parallel_for parallel_for, void *context) {
  memset(memory, 1, (size_t)scratch);
  if ((uintptr_t)memory % 64)
    exit(4);
  parallel_for(context, row, (uint64_t)symbols[0], buffers);
  *(int64_t *)buffers[4] = symbols[0] == 5;
}
static int32_t sizes(const int64_t *dims, int64_t members, int64_t *symbols, int64_t *output_dims, int64_t *size,
                     struct igniter_failure *failure) {
  static const char *const pieces[] = {"at most ", " rows"};
  static const struct igniter_message message = {1, pieces};
  output_dims[0] = symbols[0];
  output_dims[1] = 3;
  *size = scratch;
  failure->message = &message;
  failure->numbers[0] = 6;
  return symbols[0] > 6 ? BROKEN_REQUIREMENT : 0;
}
static int32_t checks(const int64_t *found, const int64_t *symbols, struct igniter_failure *failure) {
  static const char *const pieces[] = {"five rows"};
  static const struct igniter_message message = {0, pieces};
  failure->message = &message;
  return found[0] ? BROKEN_REQUIREMENT : 0;
}

OrtStatus *igniter_compute(struct igniter_state *state, OrtKernelContext *context);
OrtStatus *igniter_infer(const OrtCustomOp *op, OrtShapeInferContext *context);
OrtStatus *igniter_run(struct igniter_state *state, const struct igniter_desc *desc, const OrtApi *a,
                       OrtKernelContext *context, void **buffers, int64_t *symbols, int64_t size);

static const char *const texts[] = {"n", "3"};
static const int64_t matrix[] = {-1, 3}, vector[] = {3}, rows[] = {-1};
static const struct igniter_port takes[] = {
    {"x", "[n, 3]", texts, matrix, 1, REQUIRED, 1, 0, 2, 0, -1},
    {"w", "[3]", texts + 1, vector, 1, REQUIRED, 1, 1, 1, 2, -1},
    {"v", "[n]", texts, rows, 1, VARIADIC, 1, 0, 1, 3, 1},
};
static const struct igniter_port gives[] = {{"y", "[n, 3]", texts, matrix, 1, REQUIRED, 1, 0, 2, 0, -1}};
static const struct igniter_desc desc = {"Mul", takes, gives, sizes, kernel, 3, 1, 2, 3, 2, 1, 0, 1, checks, igniter_run, 0, 1, 0, 0};
static const OrtCustomOp op = {17, 0, {0}, &desc};

const OrtCustomOp *const igniter_ops[] = {&op};
const int64_t igniter_op_count = 1;
const char igniter_domain_name[] = "igniter.test", igniter_too_old[] = "too old";
const uint32_t igniter_api_version = 17;
const struct {
  const char *name;
  int32_t word;
  uint32_t bits, saved, unused;
} igniter_features[] = {{"none", 0, 0, 0, 0}};
const int64_t igniter_feature_count = 1;
const struct {
  int32_t number, level;
  uint64_t features;
} igniter_variants[] = {{0, 0, 1}};
const int64_t igniter_variant_count = 1;
const char *const igniter_refusals[5][2] = {0};
const char *const igniter_type_names[] = {"of an unknown kind", "float"};
const uint64_t igniter_type_count = 2;
const char *igniter_violation;

#ifdef __x86_64__
void igniter_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t *out) {
  __asm__ volatile("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "a"(leaf), "c"(subleaf));
}
uint32_t igniter_xgetbv(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}
#endif

/* -- the calls ----------------------------------------------------------------------------------------------------- */

static struct OrtValue *value(int32_t type, int64_t rank, int64_t a, int64_t b) {
  struct OrtValue *made = calloc(1, sizeof *made);
  made->shape = (struct OrtShape){type, rank, {a, b}, {"batch", ""}};
  made->data = malloc((size_t)(4 * a * (rank > 1 ? b : 1)) + 1);
  for (int64_t i = 0; i < a * (rank > 1 ? b : 1); i++)
    ((float *)made->data)[i] = (float)i;
  return made;
}
static void drop(struct OrtValue **v) {
  if (*v)
    free((*v)->data), free(*v);
  *v = 0;
}

/* Registers, creates, infers, computes; returns the text of the first error. */
static const char *session(char *text, struct OrtValue *x) {
  static const OrtApiBase base = {get_api, 0};
  struct igniter_state *state = 0;
  void *made = 0;
  *text = 0;
  inputs[0] = x;
  inputs[1] = value(1, 1, 3, 0);
  inputs[2] = value(1, 1, x ? x->shape.dims[0] : 1, 0);
  input_count = 3, output_count = 1, marked = 0;
  for (int k = 0; k < 3; k++)
    shapes[k] = inputs[k] ? &inputs[k]->shape : &inferred;
  OrtStatus *error = RegisterCustomOps((void *)16, &base);
  if (!error)
    error = igniter_create(&op, &api, (void *)16, &made);
  state = made;
  if (!error)
    error = igniter_infer(&op, (void *)16);
  if (!error)
    error = igniter_compute(state, (void *)16);
  if (error) {
    strcpy(text, error->text);
    release_status(error);
  }
  fail_at = 0; /* No failure can be reported from here on. */
  if (state)
    igniter_destroy(state);
  for (int k = 0; k < 3; k++)
    drop(&inputs[k]);
  return text;
}

static void expect(const char *wanted, struct OrtValue *x) {
  char text[1200];
  session(text, x);
  drop(&outputs[0]);
  if (strcmp(text, wanted)) {
    printf("%s, expected %s\n", text, wanted);
    exit(1);
  }
}

int main(int count, char **arguments) {
  char text[1200];
  if (count > 1) { /* The first registration, with a failure. */
    fail_at = atoi(arguments[1]);
    session(text, value(1, 2, 4, 3));
    drop(&outputs[0]);
    puts(strcmp(text, "planned failure") || live || domains > 1 ? "no failure, or objects are lost" : "ok");
    return 0;
  }
  for (scratch = 0; scratch <= 8192; scratch += 4096) {
    expect("", value(1, 2, 4, 3));
    expect("", value(1, 2, 0, 3));
  }
  expect("Igniter op Mul: input 0 ('x') has element type of an unknown kind, expected float", value(9, 2, 4, 3));
  expect("Igniter op Mul: input 0 ('x') has rank 1, expected 2: [n, 3]", value(1, 1, 4, 0));
  expect("Igniter op Mul: input 0 ('x') has dim 1 = 2, expected 3: [n, 3]", value(1, 2, 4, 2));
  expect("Igniter op Mul: input 0 ('x') is missing", 0);
  expect("Igniter op Mul: at most 6 rows", value(1, 2, 7, 3));
  expect("Igniter op Mul: five rows", value(1, 2, 5, 3));
  refuse_pool = 1;
  expect("the pool refuses", value(1, 2, 4, 3));
  refuse_pool = 0;
  session(text, value(1, 2, 4, 3));
  if (*text || ((float *)outputs[0]->data)[10] != 13 || inferred.dims[0] != 4 || inferred.type != 1) {
    printf("%s: %f\n", text, outputs[0] ? ((float *)outputs[0]->data)[10] : 0.0F);
    return 1;
  }
  drop(&outputs[0]);
  if (live || domains != 1) {
    printf("%d objects, %d domains\n", live, domains);
    return 1;
  }
  for (int turn = 1; turn; turn++) {
    calls = 0;
    fail_at = turn;
    session(text, value(1, 2, 4, 3));
    drop(&outputs[0]);
    if (live) {
      printf("%d objects are lost if call %d fails\n", live, turn);
      return 1;
    }
    if (!*text && turn > 60)
      break;
  }
  puts("ok");
  return 0;
}
