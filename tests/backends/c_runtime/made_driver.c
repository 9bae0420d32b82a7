/* Creates and destroys kernel objects whose inputs are computed by kernels (made.c), for the sanitizers: in an ONNX
 * Runtime of its own whose every call fails once, and from many threads with a few different constants at a time. Objects
 * are from malloc, so the address sanitizer reports what is lost. Prints "ok" and exits with 0. The arguments are the
 * numbers of threads and of rounds. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

enum { COUNT = 1000, INPUTS = 4 };

struct OrtStatus {
  char text[1200];
};
struct OrtValue {
  void *data;
};
/* The constants of a session; an input without data is none. */
struct OrtKernelInfo {
  struct OrtValue inputs[INPUTS];
};

static int live, calls, fail_at, made_blocks;
static size_t too_large = SIZE_MAX;

static OrtStatus *status(int32_t code, const char *text) {
  OrtStatus *made = calloc(1, sizeof *made);
  strncpy(made->text, text, sizeof made->text - 1);
  __atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
  return made;
}
static void release_status(OrtStatus *s) { free(s), __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED); }

#define TURN                                                                                                           \
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == fail_at)                                                      \
    return status(1, "planned failure");
static OrtStatus *allocator(OrtAllocator **a) { TURN *a = (void *)16; return 0; }
static OrtStatus *alloc(OrtAllocator *a, size_t n, void **m) {
  TURN if (n >= too_large) return status(1, "std::bad_alloc");
  *m = malloc(n);
  __atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
  return 0;
}
static OrtStatus *give_back(OrtAllocator *a, void *m) {
  free(m), __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
  TURN return 0;
}
static OrtStatus *count_info(const OrtKernelInfo *c, size_t *n) { TURN *n = INPUTS; return 0; }
static OrtStatus *constant(const OrtKernelInfo *i, size_t k, int32_t *is, const OrtValue **v) {
  TURN *is = i->inputs[k].data != 0;
  *v = &i->inputs[k];
  return 0;
}
static OrtStatus *data_of(const OrtValue *v, void **data) { TURN *data = v->data; return 0; }
static OrtStatus *shape_of(const OrtValue *v, OrtShape **s) { TURN *s = (void *)16; return 0; }
static void release_shape(OrtShape *s) {}
static OrtStatus *type_of(const OrtShape *s, int32_t *type) { TURN *type = 1; return 0; }
static OrtStatus *rank_of(const OrtShape *s, size_t *rank) { TURN *rank = 1; return 0; }
static OrtStatus *dims_of(const OrtShape *s, int64_t *d, size_t n) { TURN d[0] = COUNT; return 0; }

static const OrtApi api = {
    .CreateStatus = status, .ReleaseStatus = release_status, .GetAllocatorWithDefaultOptions = allocator,
    .AllocatorAlloc = alloc, .AllocatorFree = give_back, .KernelInfo_GetInputCount = count_info,
    .KernelInfoGetConstantInput_tensor = constant, .GetTensorMutableData = data_of, .GetTensorTypeAndShape = shape_of,
    .ReleaseTensorTypeAndShapeInfo = release_shape, .GetTensorElementType = type_of, .GetDimensionsCount = rank_of,
    .GetDimensions = dims_of,
};

/* -- the library: inputs 1 to 3 are constants; the kernel gets input 1 as it is, 2 doubled, 3 tripled or doubled -------- */

static void multiply(void **buffers, int64_t *symbols, void *scratch, igniter_parallel_for parallel_for, void *context) {
  const float *from = buffers[0];
  float *to = buffers[1], *between = scratch;
  if ((uintptr_t)to % 64 || (uintptr_t)between % 64)
    exit(4);
  for (int64_t k = 0; k < COUNT; k++)
    between[k] = from[k] * (float)symbols[0];
  memcpy(to, between, 4 * COUNT);
  __atomic_add_fetch(&made_blocks, 1, __ATOMIC_RELAXED);
}

const char *const igniter_type_names[] = {"of an unknown kind", "float"};
const uint64_t igniter_type_count = 2;

static const char *const texts[] = {"1000"};
static const int64_t dims[] = {COUNT}, two[] = {2}, three[] = {3};
#define PORT(name, fixed) {name, "[1000]", texts, dims, 1, REQUIRED, 1, fixed, 1, 0, -1}
static const struct igniter_port takes[] = {PORT("x", 0), PORT("w", 1), PORT("v", 1), PORT("u", 1)};
static const struct igniter_port gives[] = {PORT("y", 0)};
static const struct igniter_made table[] = {
    {multiply, two, 2, 4 * COUNT, 4 * COUNT, 4 * COUNT},
    {multiply, three, 3, 4 * COUNT, 4 * COUNT, 0},
};
static const struct igniter_desc desc = {.name = "Mul", .inputs = takes, .outputs = gives, .input_count = INPUTS,
                                         .output_count = 1, .spread = -1, .made = table, .made_count = 2};
static const OrtCustomOp op = {17, 0, {0}, &desc};

/* Creates an object; returns the text of the error, or "". */
static const char *create(const struct OrtKernelInfo *info, void **made, char *text) {
  OrtStatus *error = igniter_create(&op, &api, info, made);
  strcpy(text, error ? error->text : "");
  if (error)
    release_status(error);
  return text;
}

static struct OrtKernelInfo constants(float *w, float first) {
  for (int k = 0; k < COUNT; k++)
    w[k] = first + (float)k, w[COUNT + k] = first - (float)k;
  return (struct OrtKernelInfo){{{0}, {w}, {w}, {w + COUNT}}};
}

static int is_right(void *made, float first) {
  const struct igniter_state *state = made;
  const float *twice = state->made[2], *thrice = state->made[3];
  for (int k = 0; k < COUNT; k++)
    if (twice[k] != 2 * (first + (float)k) || thrice[k] != 3 * (first - (float)k))
      return 0;
  return !state->made[0] && !state->made[1];
}

static int rounds;

static void *work(void *number) {
  float *w = malloc(2 * 4 * COUNT);
  for (int k = 0; k < rounds; k++) {
    float first = (float)(((int)(intptr_t)number + k) % 3);
    struct OrtKernelInfo info = constants(w, first);
    void *made = 0;
    char text[1200];
    if (*create(&info, &made, text) || !is_right(made, first)) {
      printf("%s in a thread\n", text);
      exit(1);
    }
    /* ONNX Runtime frees constants before ops. */
    memset(w, 0, 2 * 4 * COUNT);
    igniter_destroy(made);
  }
  free(w);
  return 0;
}

static void expect(const char *wanted, const struct OrtKernelInfo *info) {
  char text[1200];
  void *made = 0;
  if (strcmp(create(info, &made, text), wanted)) {
    printf("'%s', expected '%s'\n", text, wanted);
    exit(1);
  }
  if (made)
    igniter_destroy(made);
}

static void check(int good, const char *what) {
  if (!good)
    printf("%s\n", what), exit(1);
}

int main(int count, char **arguments) {
  float w[2 * COUNT], other[2 * COUNT];
  char text[1200];
  void *first = 0, *second = 0, *third = 0;
  struct OrtKernelInfo info = constants(w, 1), copy = constants(other, 1), none = info;
  /* Equal constants, wherever they are, share their block; others have their own. */
  create(&info, &first, text);
  create(&copy, &second, text);
  copy = constants(other, 5);
  create(&copy, &third, text);
  check(is_right(first, 1) && is_right(third, 5), "wrong results");
  check(((struct igniter_state *)first)->block == ((struct igniter_state *)second)->block, "nothing is shared");
  check(((struct igniter_state *)first)->block != ((struct igniter_state *)third)->block, "another's is shared");
  check(made_blocks == 4, "made again");
  igniter_destroy(first);
  check(is_right(second, 1), "lost with its first user");
  igniter_destroy(second);
  igniter_destroy(third);
  check(!live, "objects are lost");
  expect("", &info);
  check(made_blocks == 6, "the block was kept without a user");
  none.inputs[3].data = 0;
  expect("Igniter op Mul: input 3 ('u') must be a constant of the model (an initializer that is no input of the graph): a "
         "kernel transforms it when the session is created; compile with --tile-weights=file to store it transformed",
         &none);
  too_large = 4 * COUNT;
  create(&info, &first, text);
  check(!strncmp(text, "Igniter op Mul: no memory for ", 30), text);
  too_large = SIZE_MAX;
  check(!live, "objects are lost without memory");
  int without_memory = 0;
  for (int turn = 1; turn < 60; turn++) {
    calls = 0;
    fail_at = turn;
    first = 0;
    create(&info, &first, text);
    fail_at = 0;
    without_memory += strstr(text, "computes when the session is created") != 0;
    if (first)
      igniter_destroy(first);
    check(!live, "objects are lost after a failure");
  }
  check(without_memory == 2, "of the block and of the scratch memory, one can be had always");
  pthread_t threads[16];
  int number = atoi(arguments[1]);
  rounds = atoi(arguments[2]);
  for (int k = 0; k < number; k++)
    pthread_create(&threads[k], 0, work, (void *)(intptr_t)k);
  for (int k = 0; k < number; k++)
    pthread_join(threads[k], 0);
  check(!live && count == 3, "objects are lost by threads");
  puts("ok");
  return 0;
}
