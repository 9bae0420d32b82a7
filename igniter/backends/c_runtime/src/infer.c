/* Shape inference for ORT's graph. A symbol has a value, negative if unknown, and the model's name for it, null if it
 * has none. Ops with dims that are neither integers nor symbols have an inference of their own, generated around the
 * functions here (`igniter/backends/ort/infer.py`). */

#include "library.h"

extern const OrtApi *igniter_api;

static const OrtApi *get_api(void) { return __atomic_load_n(&igniter_api, __ATOMIC_ACQUIRE); }

/* Writes dims and names of an input; false if its rank is unknown or another one. */
COLD _Bool igniter_infer_input(const OrtApi *api, const OrtShapeInferContext *context, int64_t index, int64_t rank,
                          int64_t *dims, const char **names) {
  OrtShape *shape;
  size_t count;
  return succeeds(api, api->ShapeInferContext_GetInputTypeShape(context, (size_t)index, &shape)) &&
         succeeds(api, api->GetDimensionsCount(shape, &count)) && (int64_t)count == rank &&
         succeeds(api, api->GetDimensions(shape, dims, (size_t)rank)) &&
         succeeds(api, api->GetSymbolicDimensions(shape, names, (size_t)rank));
}

/* Appends a symbol's value or its name in parentheses; false if it has neither. */
COLD _Bool igniter_infer_text(struct igniter_string *string, int64_t value, const char *name) {
  if (value >= 0) {
    igniter_number(string, value);
    return 1;
  }
  if (!name)
    return 0;
  igniter_text(string, "(");
  igniter_text(string, name);
  igniter_text(string, ")");
  return 1;
}

_Bool igniter_text_fits(const struct igniter_string *string) { return string->length < string->capacity - 1; }

static OrtStatus *set_output(const OrtApi *api, OrtShapeInferContext *context, int64_t index, int32_t type,
                             int64_t rank, const int64_t *dims, const char **names, OrtShape *shape) {
  TRY(api->SetTensorElementType(shape, type));
  TRY(api->SetDimensions(shape, dims, (size_t)rank));
  TRY(api->SetSymbolicDimensions(shape, names, (size_t)rank));
  return api->ShapeInferContext_SetOutputTypeShape(context, (size_t)index, shape);
}

/* Tells ORT the shape of an output. An error leaves the output unknown. */
COLD
void igniter_infer_output(const OrtApi *api, OrtShapeInferContext *context, int64_t index, int32_t type, int64_t rank,
                          const int64_t *dims, const char **names) {
  OrtShape *shape;
  if (!succeeds(api, api->CreateTensorTypeAndShapeInfo(&shape)))
    return;
  succeeds(api, set_output(api, context, index, type, rank, dims, names, shape));
  api->ReleaseTensorTypeAndShapeInfo(shape);
}

/* Learns symbols from the type of one input. */
static void learn(const OrtApi *api, const OrtShapeInferContext *context, const struct igniter_port *port,
                  int64_t index, int64_t *values, const char **known) {
  int64_t *dims = ARRAY(int64_t, port->rank);
  const char **names = ARRAY(const char *, port->rank);
  if (!igniter_infer_input(api, context, index, port->rank, dims, names))
    return;
  for (int64_t axis = 0; axis < port->rank; axis++) {
    if (port->dims[axis] >= 0 || port->dims[axis] == COMPOUND)
      continue;
    int64_t symbol = SYMBOL_OF(port->dims[axis]);
    if (values[symbol] < 0)
      values[symbol] = dims[axis];
    if (!known[symbol] && names[axis] && *names[axis])
      known[symbol] = names[axis];
  }
}

/* Clears the symbols, then learns them from the types of the inputs. */
COLD void igniter_infer_inputs(const OrtCustomOp *op, const OrtShapeInferContext *context, int64_t *values,
                          const char **known) {
  const OrtApi *api = get_api();
  const struct igniter_desc *desc = op->desc;
  size_t count = 0;
  for (int64_t k = 0; k < desc->symbol_count; k++) {
    values[k] = -1;
    known[k] = 0;
  }
  if (!succeeds(api, api->ShapeInferContext_GetInputCount(context, &count)))
    return;
  for (int64_t k = 0; k < desc->input_count; k++) {
    const struct igniter_port *port = &desc->inputs[k];
    if (port->mode == VARIADIC)
      values[port->symbol] = (int64_t)count - k;
    if ((uint64_t)k < count)
      learn(api, context, port, k, values, known);
  }
}

/* Infers an output of which every dim is an integer or a symbol. */
COLD
void igniter_infer_plain(const OrtCustomOp *op, OrtShapeInferContext *context, int64_t index, const int64_t *values,
                         const char *const *known) {
  const struct igniter_port *port = &op->desc->outputs[index];
  int64_t *dims = ARRAY(int64_t, port->rank);
  const char **names = ARRAY(const char *, port->rank);
  for (int64_t axis = 0; axis < port->rank; axis++) {
    dims[axis] = port->dims[axis];
    names[axis] = "";
    if (dims[axis] >= 0)
      continue;
    int64_t symbol = SYMBOL_OF(dims[axis]);
    dims[axis] = values[symbol];
    if (dims[axis] >= 0)
      continue;
    names[axis] = known[symbol];
    if (!names[axis])
      return;
  }
  igniter_infer_output(get_api(), context, index, port->type, port->rank, dims, names);
}

/* `InferOutputShapeFn` of ops whose dims are integers and symbols. */
OrtStatus *igniter_infer(const OrtCustomOp *op, OrtShapeInferContext *context) {
  const struct igniter_desc *desc = op->desc;
  int64_t *values = ARRAY(int64_t, desc->symbol_count);
  const char **known = ARRAY(const char *, desc->symbol_count);
  igniter_infer_inputs(op, context, values, known);
  for (int64_t k = 0; k < desc->output_count; k++)
    if (desc->outputs[k].mode != VARIADIC)
      igniter_infer_plain(op, context, k, values, known);
  return 0;
}
