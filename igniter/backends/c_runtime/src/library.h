/* The tables that describe a library's ops, generated for each model (`igniter/backends/ort/emit_library.py`), and the
 * run time's functions around them. `igniter/backends/ort/glue.py` declares the same structs as LLVM types; a test
 * compares the layouts. */

#ifndef IGNITER_LIBRARY_H
#define IGNITER_LIBRARY_H

#include "kernel.h"
#include "ort.h"

enum { REQUIRED, OPTIONAL, VARIADIC };

/* A formal input or output. A dim as a number is the dim itself, or -1 - n for symbol n, or COMPOUND. */
struct igniter_port {
  const char *name;
  const char *shape;            /* Its dims as text. */
  const char *const *dim_texts; /* The text of every dim. */
  const int64_t *dims;          /* Every dim as a number. */
  int32_t type;                 /* ONNX's element type. */
  int32_t mode;
  int32_t least;    /* Least number of values. */
  int32_t is_fixed; /* All dims are constant. */
  int64_t rank;
  int64_t offset; /* Of its dims in the array of all dims. */
  int64_t symbol; /* The symbol that gets its presence or count, or -1. */
};

#define COMPOUND INT64_MIN
#define SYMBOL_OF(dim) (-1 - (dim))

/* A text with numbers between its pieces: one piece more than numbers. */
struct igniter_message {
  int64_t numbers;
  const char *const *pieces;
};

/* The details of a failure, for its message. */
struct igniter_failure {
  int64_t port, index, axis, want, got;
  const struct igniter_message *message;
  int64_t numbers[8];
};

/* The numbers of failures. `igniter/backends/ort/messages.py` has those that generated code returns. */
enum {
  TOO_MANY_INPUTS = 1,
  MISSING = 2,
  WRONG_TYPE = 3,
  WRONG_RANK = 4,
  WRONG_DIM = 5,
  WRONG_SYMBOL = 6,
  BAD_OUTPUT = 7,
  BAD_SCRATCH = 8,
  NO_MEMORY = 9,
  TOO_MANY_OUTPUTS = 10,
  MISSING_OUTPUT = 11,
  UNSOLVABLE = 12,
  BROKEN_REQUIREMENT = 13,
  NEGATIVE_VALUE = 14,
  NOT_CONSTANT = 15,
  NO_MEMORY_TO_MAKE = 16,
};

/* A string in a buffer: capacity includes the terminating zero. */
struct igniter_string {
  char *buffer;
  int64_t capacity;
  int64_t length;
};

struct igniter_state;
struct igniter_desc;
struct igniter_block;

/* The op's own functions. Both return 0 or the number of a failure, with its details. */
typedef int32_t (*igniter_shapes)(const int64_t *dims, int64_t members, int64_t *symbols, int64_t *output_dims,
                                  int64_t *scratch, struct igniter_failure *failure);
typedef int32_t (*igniter_checks)(const int64_t *found, const int64_t *symbols, struct igniter_failure *failure);
typedef OrtStatus *(*igniter_runner)(struct igniter_state *state, const struct igniter_desc *desc, const OrtApi *api,
                                     OrtKernelContext *context, void **buffers, int64_t *symbols, int64_t scratch);

/* An input that the op's kernel gets not as given, but as another kernel computes it when a session is created
 * (`made.c`). */
struct igniter_made {
  igniter_kernel kernel; /* Its buffers are the given constant and the result. */
  const int64_t *symbols;
  int64_t input;
  int64_t source_bytes;
  int64_t bytes;
  int64_t scratch;
};

/* An op. The kernel's symbols come first, so that one array serves the kernel and the shapes. */
struct igniter_desc {
  const char *name;
  const struct igniter_port *inputs;
  const struct igniter_port *outputs;
  igniter_shapes shapes;
  igniter_kernel kernel;
  int64_t input_count;
  int64_t output_count;
  int64_t symbol_count;
  int64_t input_dims;   /* Dims of the inputs that are not variadic. */
  int64_t output_dims;  /* Dims of the outputs. */
  int64_t spread;       /* Rank of the variadic input, or -1. */
  int64_t is_open;      /* The last output is variadic. */
  int64_t check_count;  /* Checks on the data. */
  igniter_checks checks; /* Or null. */
  igniter_runner run;
  const void *launched; /* The GPU kernels that it launches, or null. */
  int64_t flushes;      /* Its kernel takes subnormal numbers for 0. */
  const struct igniter_made *made; /* Inputs that are computed, or null. */
  int64_t made_count;
};

/* The sizes of the generated tables' types (`igniter/backends/ort/glue.py`). */
_Static_assert(sizeof(struct igniter_port) == 72, "%Port");
_Static_assert(sizeof(struct igniter_desc) == 152, "%Desc");
_Static_assert(sizeof(struct igniter_made) == 48, "%Made");
_Static_assert(sizeof(struct igniter_failure) == 112, "%Failure");
_Static_assert(sizeof(struct igniter_message) == 16, "%Message");
_Static_assert(sizeof(struct igniter_string) == 24, "%Text");

struct OrtCustomOp {
  uint32_t version;
  uint32_t padding;
  const void *callbacks[25];
  const struct igniter_desc *desc;
};

/* The kernel object of a node: written when it is made, and only read afterwards. */
struct igniter_state {
  const OrtCustomOp *op;
  const OrtApi *api;
  void *device;        /* Of a kernel on a GPU, or null. */
  struct igniter_block *block; /* Of computed inputs, or null. */
  void *const *made;   /* By input: what the kernel gets in its place, or null. Null without a block. */
  uint8_t checked[]; /* Per input: a constant whose type and dims have been checked. */
};

/* The context of a kernel's `parallel_for`. */
struct igniter_call {
  const OrtApi *api;
  OrtKernelContext *context;
  OrtStatus *error; /* The first one. */
  int64_t flushes;  /* Of the op. */
};

OrtStatus *igniter_fail(const OrtApi *api, const struct igniter_desc *desc, int32_t kind, const void *about,
                        int64_t index, int64_t axis, int64_t want, int64_t got);
void igniter_begin(struct igniter_string *string, char *buffer, int64_t capacity, const struct igniter_desc *desc);
void igniter_text(struct igniter_string *string, const char *text);
void igniter_number(struct igniter_string *string, int64_t value);
OrtStatus *igniter_check(const OrtApi *api, const struct igniter_desc *desc, const struct igniter_port *port,
                         int64_t index, const OrtValue *value, int64_t *dims, int64_t *symbols);
OrtStatus *igniter_create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info, void **made);
void igniter_destroy(struct igniter_state *state);
OrtStatus *igniter_make(const OrtApi *api, const struct igniter_desc *desc, const OrtKernelInfo *info,
                        OrtAllocator *allocator, struct igniter_state *state);
void igniter_unmake(const OrtApi *api, OrtAllocator *allocator, struct igniter_state *state);

/* A function that runs before an error only, or as rarely: it is not inlined. */
#define COLD __attribute__((noinline, cold))

/* Memory of the caller's stack, for arrays whose size is the op's. It may be empty. */
#define ARRAY(type, count) ((type *)__builtin_alloca(sizeof(type) * (uint64_t)(count)))

/* Returns from the function with the error of a call, if it has one. */
#define TRY(call)                                                                                                      \
  do {                                                                                                                 \
    OrtStatus *error_ = (call);                                                                                        \
    if (error_)                                                                                                        \
      return error_;                                                                                                   \
  } while (0)

/* True if a call succeeds; its error is released. */
static inline int succeeds(const OrtApi *api, OrtStatus *error) {
  if (error)
    api->ReleaseStatus(error);
  return !error;
}

#endif
