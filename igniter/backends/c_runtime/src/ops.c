/* The callbacks of an op: its description, the life of a kernel object, and one call of its kernel. */

#include "cpus.h"
#include "library.h"
#include "subnormals.h"

#define INPUT(desc, k) (&(desc)->inputs[k])
#define OUTPUT(desc, k) (&(desc)->outputs[k])

/* Scratch memory up to this size is on the stack; larger blocks come from ORT's allocator. */
enum { STACK_SCRATCH = 4096 };

/* -- the description ----------------------------------------------------------------------------------------------- */

const char *igniter_name(const OrtCustomOp *op) { return op->desc->name; }
const char *igniter_provider(const OrtCustomOp *op) { return 0; }
size_t igniter_input_count(const OrtCustomOp *op) { return (size_t)op->desc->input_count; }
size_t igniter_output_count(const OrtCustomOp *op) { return (size_t)op->desc->output_count; }
int32_t igniter_input_type(const OrtCustomOp *op, size_t k) { return INPUT(op->desc, k)->type; }
int32_t igniter_output_type(const OrtCustomOp *op, size_t k) { return OUTPUT(op->desc, k)->type; }
int32_t igniter_input_mode(const OrtCustomOp *op, size_t k) { return INPUT(op->desc, k)->mode; }
int32_t igniter_output_mode(const OrtCustomOp *op, size_t k) { return OUTPUT(op->desc, k)->mode; }
int32_t igniter_input_memory(const OrtCustomOp *op, size_t k) { return 0; }
int32_t igniter_input_least(const OrtCustomOp *op) { return INPUT(op->desc, op->desc->input_count - 1)->least; }
int32_t igniter_output_least(const OrtCustomOp *op) { return OUTPUT(op->desc, op->desc->output_count - 1)->least; }
int32_t igniter_homogeneous(const OrtCustomOp *op) { return 1; }
int32_t igniter_first_version(const OrtCustomOp *op) { return 1; }
int32_t igniter_last_version(const OrtCustomOp *op) { return INT32_MAX; }
void igniter_release_inplace(int32_t *inputs, int32_t *outputs) {}

/* -- the kernel object --------------------------------------------------------------------------------------------- */

/* Compares dims with those of a port, as far as these are integers or symbols. A symbol gets its first value. */
static OrtStatus *match(const OrtApi *api, const struct igniter_desc *desc, const struct igniter_port *port,
                        int64_t index, const int64_t *dims, int64_t *symbols) {
  for (int64_t axis = 0; axis < port->rank; axis++) {
    int64_t expected = port->dims[axis];
    if (expected >= 0) {
      if (expected != dims[axis])
        return igniter_fail(api, desc, WRONG_DIM, port, index, axis, expected, dims[axis]);
    } else if (expected != COMPOUND) {
      int64_t *symbol = &symbols[SYMBOL_OF(expected)];
      if (*symbol < 0)
        *symbol = dims[axis];
      else if (*symbol != dims[axis])
        return igniter_fail(api, desc, WRONG_SYMBOL, port, index, axis, *symbol, dims[axis]);
    }
  }
  return 0;
}

static OrtStatus *check_shape(const OrtApi *api, const struct igniter_desc *desc, const struct igniter_port *port,
                              int64_t index, const OrtShape *shape, int64_t *dims, int64_t *symbols) {
  int32_t type;
  size_t rank;
  TRY(api->GetTensorElementType(shape, &type));
  if (type != port->type)
    return igniter_fail(api, desc, WRONG_TYPE, port, index, 0, port->type, type);
  TRY(api->GetDimensionsCount(shape, &rank));
  if ((int64_t)rank != port->rank)
    return igniter_fail(api, desc, WRONG_RANK, port, index, 0, port->rank, (int64_t)rank);
  TRY(api->GetDimensions(shape, dims, rank));
  return match(api, desc, port, index, dims, symbols);
}

/* Checks that a value has the element type, the rank and the dims of its port, and writes its dims. */
OrtStatus *igniter_check(const OrtApi *api, const struct igniter_desc *desc, const struct igniter_port *port,
                         int64_t index, const OrtValue *value, int64_t *dims, int64_t *symbols) {
  OrtShape *shape;
  TRY(api->GetTensorTypeAndShape(value, &shape));
  OrtStatus *status = check_shape(api, desc, port, index, shape, dims, symbols);
  api->ReleaseTensorTypeAndShapeInfo(shape);
  return status;
}

/* Checks a constant input; `*checked` stays 0 if it is no constant, or unknown. */
static OrtStatus *check_constant(const OrtApi *api, const struct igniter_desc *desc, const OrtKernelInfo *info,
                                 int64_t index, uint8_t *checked) {
  const struct igniter_port *port = INPUT(desc, index);
  int32_t constant = 0;
  const OrtValue *value = 0;
  if (!succeeds(api, api->KernelInfoGetConstantInput_tensor(info, (size_t)index, &constant, &value)))
    return 0;
  if (!constant || !value)
    return 0;
  TRY(igniter_check(api, desc, port, index, value, ARRAY(int64_t, port->rank), 0));
  *checked = 1;
  return 0;
}

static OrtStatus *check_constants(const OrtApi *api, const struct igniter_desc *desc, const OrtKernelInfo *info,
                                  struct igniter_state *state) {
  size_t given = 0;
  TRY(api->KernelInfo_GetInputCount(info, &given));
  for (int64_t k = 0; k < desc->input_count; k++) {
    state->checked[k] = 0;
    if (INPUT(desc, k)->is_fixed && (uint64_t)k < given)
      TRY(check_constant(api, desc, info, k, &state->checked[k]));
  }
  return 0;
}

/* Makes the kernel object of a node. Constant inputs are checked here, once, so that weights cost little in a call. */
OrtStatus *igniter_create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info, void **made) {
  const struct igniter_desc *desc = op->desc;
  OrtAllocator *allocator;
  void *memory;
  TRY(api->GetAllocatorWithDefaultOptions(&allocator));
  TRY(api->AllocatorAlloc(allocator, sizeof(struct igniter_state) + (uint64_t)desc->input_count, &memory));
  struct igniter_state *state = memory;
  state->op = op;
  state->api = api;
  state->device = 0;
  state->block = 0;
  state->made = 0;
  OrtStatus *status = check_constants(api, desc, info, state);
  if (!status && desc->made_count)
    status = igniter_make(api, desc, info, allocator, state);
  if (status)
    succeeds(api, api->AllocatorFree(allocator, state));
  else
    *made = state;
  return status;
}

void igniter_destroy(struct igniter_state *state) {
  const OrtApi *api = state->api;
  OrtAllocator *allocator;
  if (!succeeds(api, api->GetAllocatorWithDefaultOptions(&allocator)))
    return;
  if (state->block)
    igniter_unmake(api, allocator, state);
  succeeds(api, api->AllocatorFree(allocator, state));
}

/* -- running ------------------------------------------------------------------------------------------------------- */

static struct igniter_cpus cpus;

/* A loop's tasks, for the threads of ORT's pool. */
struct shared {
  igniter_task task;
  void *data;
  uint64_t count, next;
  int64_t flushes; /* They run with subnormal numbers as 0. */
  int shows;       /* The threads record their CPUs. */
};

/* Takes tasks until none is left. ORT would give each thread its part in advance, and everyone would wait for a thread
 * that the kernel puts to sleep in the middle of its part. */
static void take_tasks(void *data, uint64_t index) {
  struct shared *shared = data;
  uint64_t k = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED);
  if (k >= shared->count)
    return;
  if (shared->shows)
    igniter_cpus_seen(&cpus);
  uint64_t before = shared->flushes ? begin_flush() : 0;
  do
    shared->task(shared->data, k);
  while ((k = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED)) < shared->count);
  if (shared->flushes)
    end_flush(before);
}

/* ORT's thread pool, with at most as many threads as there are CPUs. Should ORT refuse, the tasks still run, so that no
 * later step reads what was never written. */
static void parallel_for(void *context, igniter_task task, uint64_t count, void *data) {
  struct igniter_call *call = context;
  struct shared shared = {task, data, count, 0, call->flushes, 0};
  uint64_t limit = igniter_cpus_limit(&cpus, &shared.shows);
  if (count > 1 && limit > 1) {
    /* Without a number of batches there are as many as threads. */
    OrtStatus *error = call->api->KernelContext_ParallelFor(call->context, take_tasks, count,
                                                            limit < count ? (size_t)limit : 0, &shared);
    if (!error)
      return;
    if (call->error)
      call->api->ReleaseStatus(call->error);
    call->error = error;
  }
  take_tasks(&shared, 0);
}

static OrtStatus *run_with(struct igniter_call *call, const struct igniter_desc *desc, void **buffers,
                           int64_t *symbols, void *scratch) {
  if (!desc->flushes) {
    desc->kernel(buffers, symbols, scratch, parallel_for, call);
    return call->error;
  }
  uint64_t before = begin_flush();
  desc->kernel(buffers, symbols, scratch, parallel_for, call);
  end_flush(before);
  return call->error;
}

static OrtStatus *run_on_heap(struct igniter_call *call, const struct igniter_desc *desc, OrtAllocator *allocator,
                              void **buffers, int64_t *symbols, int64_t size) {
  const OrtApi *api = call->api;
  void *memory = 0;
  TRY(api->AllocatorAlloc(allocator, (uint64_t)size + 64, &memory));
  if (!memory)
    return igniter_fail(api, desc, NO_MEMORY, 0, 0, 0, 0, size);
  char *aligned = (char *)memory + (-(uintptr_t)memory & 63);
  OrtStatus *status = run_with(call, desc, buffers, symbols, aligned);
  succeeds(api, api->AllocatorFree(allocator, memory));
  return status;
}

/* Runs the kernel with `size` bytes of scratch memory, aligned to 64 bytes. */
OrtStatus *igniter_run(struct igniter_state *state, const struct igniter_desc *desc, const OrtApi *api,
                       OrtKernelContext *context, void **buffers, int64_t *symbols, int64_t size) {
  struct igniter_call call = {api, context, 0, desc->flushes};
  if ((uint64_t)size <= STACK_SCRATCH)
    return run_with(&call, desc, buffers, symbols, __builtin_alloca_with_align((uint64_t)size, 8 * 64));
  OrtAllocator *standard, *allocator;
  const OrtMemoryInfo *where;
  TRY(api->GetAllocatorWithDefaultOptions(&standard));
  TRY(api->AllocatorGetInfo(standard, &where));
  TRY(api->KernelContext_GetAllocator(context, where, &allocator));
  OrtStatus *status = run_on_heap(&call, desc, allocator, buffers, symbols, size);
  api->ReleaseAllocator(allocator);
  return status;
}

/* One call of an op. An array has a place for every value, whether it is there or not; a variadic port has as many as
 * are given. */
struct values {
  size_t given, asked;
  int64_t inputs, outputs; /* Places. */
  int64_t members;         /* Values of the variadic input. */
  void **buffers;          /* Inputs, outputs, then what the checks find. */
  int64_t *dims, *output_dims, *symbols;
};

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Fetches and checks input `k`. */
static OrtStatus *take_input(struct igniter_state *state, OrtKernelContext *context, struct values *v, int64_t k) {
  const OrtApi *api = state->api;
  const struct igniter_desc *desc = state->op->desc;
  int64_t formal = smaller(k, desc->input_count - 1);
  const struct igniter_port *port = INPUT(desc, formal);
  const OrtValue *value = 0;
  if (state->made && state->made[formal]) {
    v->buffers[k] = state->made[formal];
    return 0;
  }
  if ((uint64_t)k < v->given)
    TRY(api->KernelContext_GetInput(context, (size_t)k, &value));
  if (port->mode == OPTIONAL)
    v->symbols[port->symbol] = value != 0;
  v->buffers[k] = 0;
  if (!value)
    return port->mode == OPTIONAL ? 0 : igniter_fail(api, desc, MISSING, port, k, 0, 0, 0);
  TRY(api->GetTensorMutableData(value, &v->buffers[k]));
  int64_t member = k - formal;
  if (state->checked[formal] && !member)
    return 0;
  int64_t place = port->offset + member * larger(desc->spread, 0);
  return igniter_check(api, desc, port, k, value, v->dims + place, v->symbols);
}

/* Allocates output `k`. */
static OrtStatus *make_output(const OrtApi *api, const struct igniter_desc *desc, OrtKernelContext *context,
                              struct values *v, int64_t k) {
  int64_t formal = smaller(k, desc->output_count - 1);
  const struct igniter_port *port = OUTPUT(desc, formal);
  OrtValue *value = 0;
  if ((uint64_t)k < v->asked)
    TRY(api->KernelContext_GetOutput(context, (size_t)k, v->output_dims + port->offset, (size_t)port->rank, &value));
  if (!value && port->mode != OPTIONAL)
    return igniter_fail(api, desc, MISSING_OUTPUT, port, k, 0, 0, 0);
  if (port->symbol >= 0)
    v->symbols[port->symbol] = port->mode == VARIADIC ? k + 1 - (desc->output_count - 1) : value != 0;
  void **buffer = &v->buffers[v->inputs + k];
  *buffer = 0;
  return value ? api->GetTensorMutableData(value, buffer) : 0;
}

/* Turns the dims of the inputs into symbols, dims of the outputs and the size of the scratch memory. */
static OrtStatus *infer_sizes(const OrtApi *api, const struct igniter_desc *desc, struct values *v, int64_t *size) {
  struct igniter_failure failure;
  *size = 0;
  int32_t kind = desc->shapes(v->dims, v->members, v->symbols, v->output_dims, size, &failure);
  if (!kind)
    return 0;
  /* A requirement is about no port, and its message is in the failure. */
  if (kind == BROKEN_REQUIREMENT)
    return igniter_fail(api, desc, kind, &failure, 0, 0, 0, 0);
  const struct igniter_port *port = kind == BAD_OUTPUT ? OUTPUT(desc, failure.port) : INPUT(desc, failure.port);
  return igniter_fail(api, desc, kind, port, failure.index, failure.axis, failure.want, failure.got);
}

static OrtStatus *count_values(const OrtApi *api, const struct igniter_desc *desc, OrtKernelContext *context,
                               struct values *v) {
  TRY(api->KernelContext_GetInputCount(context, &v->given));
  TRY(api->KernelContext_GetOutputCount(context, &v->asked));
  int64_t given = (int64_t)v->given, asked = (int64_t)v->asked;
  int variadic = desc->spread >= 0;
  if (given > desc->input_count && !variadic)
    return igniter_fail(api, desc, TOO_MANY_INPUTS, 0, 0, 0, desc->input_count, given);
  if (asked > desc->output_count && !desc->is_open)
    return igniter_fail(api, desc, TOO_MANY_OUTPUTS, 0, 0, 0, desc->output_count, asked);
  v->inputs = variadic ? larger(given, desc->input_count - 1) : desc->input_count;
  v->outputs = desc->is_open ? larger(asked, desc->output_count - 1) : desc->output_count;
  v->members = variadic ? v->inputs - (desc->input_count - 1) : 0;
  return 0;
}

/* `KernelComputeV2`: the inputs are fetched and checked one by one, sizes are inferred, the outputs are allocated, and
 * the kernel runs. A mismatch ends the call with an error; at that point the call holds no resources. */
OrtStatus *igniter_compute(struct igniter_state *state, OrtKernelContext *context) {
  const OrtApi *api = state->api;
  const struct igniter_desc *desc = state->op->desc;
  struct values v;
  int64_t size;
  TRY(count_values(api, desc, context, &v));
  int64_t places = v.inputs + v.outputs;
  int64_t *found = ARRAY(int64_t, desc->check_count);
  v.buffers = ARRAY(void *, places + desc->check_count);
  v.dims = ARRAY(int64_t, desc->input_dims + v.members * larger(desc->spread, 0));
  v.output_dims = ARRAY(int64_t, desc->output_dims);
  v.symbols = ARRAY(int64_t, desc->symbol_count);
  for (int64_t k = 0; k < desc->symbol_count; k++)
    v.symbols[k] = -1; /* Without a value. */
  if (desc->spread >= 0)
    v.symbols[INPUT(desc, desc->input_count - 1)->symbol] = v.members;
  for (int64_t k = 0; k < v.inputs; k++)
    TRY(take_input(state, context, &v, k));
  TRY(infer_sizes(api, desc, &v, &size));
  for (int64_t k = 0; k < v.outputs; k++)
    TRY(make_output(api, desc, context, &v, k));
  for (int64_t k = 0; k < desc->check_count; k++)
    v.buffers[places + k] = &found[k];
  TRY(desc->run(state, desc, api, context, v.buffers, v.symbols, size));
  struct igniter_failure failure;
  int32_t kind = desc->check_count ? desc->checks(found, v.symbols, &failure) : 0;
  return kind ? igniter_fail(api, desc, kind, &failure, 0, 0, 0, 0) : 0;
}

/* `KernelComputeV2` of the op for carriers (docs/explanation/values.md): the elements of its input, except the first,
 * become the dims of an output without bytes, whose first dim is 0. */
OrtStatus *igniter_values(struct igniter_state *state, OrtKernelContext *context) {
  const OrtApi *api = state->api;
  const struct igniter_desc *desc = state->op->desc;
  const struct igniter_port *input = INPUT(desc, 0), *output = OUTPUT(desc, 0);
  int64_t *dims = ARRAY(int64_t, output->rank);
  const OrtValue *value = 0;
  OrtValue *made;
  void *data;
  TRY(api->KernelContext_GetInput(context, 0, &value));
  if (!value)
    return igniter_fail(api, desc, MISSING, input, 0, 0, 0, 0);
  TRY(igniter_check(api, desc, input, 0, value, dims, 0));
  TRY(api->GetTensorMutableData(value, &data));
  dims[0] = 0;
  for (int64_t k = 1; k < output->rank; k++) {
    dims[k] = ((const int64_t *)data)[k];
    if (dims[k] < 0)
      return igniter_fail(api, desc, NEGATIVE_VALUE, output, k - 1, 0, 0, dims[k]);
  }
  return api->KernelContext_GetOutput(context, 0, dims, (size_t)output->rank, &made);
}
