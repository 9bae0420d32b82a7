/* Runs a compiled model on Windows: loads onnxruntime.dll, registers the library of custom ops, runs, writes the
 * outputs.
 *
 *     runner ORT.dll MODEL.onnx LIBRARY.dll THREADS RUNS INPUTS OUTPUT
 *
 * INPUTS is a file of tensors: the number of tensors; for each the length of its name and the name, its element type
 * and rank, its dims, its bytes and the data. OUTPUT gets the outputs in the same form, without names. All numbers are
 * 64-bit. The table of functions is declared as far as it is called: it only grows at its end. */

#include <stddef.h>
#include <stdint.h>

/* Of msvcrt.dll and kernel32.dll: linked by name, without headers and start-up code. */
typedef struct FILE FILE;
int printf(const char *format, ...);
FILE *fopen(const char *name, const char *mode);
size_t fread(void *data, size_t size, size_t count, FILE *file);
size_t fwrite(const void *data, size_t size, size_t count, FILE *file);
int fclose(FILE *file);
void *calloc(size_t count, size_t size);
void exit(int code);
int atoi(const char *text);
int strcmp(const char *a, const char *b);
int __getmainargs(int *count, char ***arguments, char ***environment, int wildcards, void *info);
void *LoadLibraryW(const uint16_t *name);
void *GetProcAddress(void *library, const char *name);
uint32_t GetLastError(void);
int MultiByteToWideChar(uint32_t page, uint32_t flags, const char *text, int size, uint16_t *made, int count);
enum { UTF_8 = 65001 };

enum {
  GET_ERROR_MESSAGE = 2,
  CREATE_ENV = 3,
  CREATE_SESSION = 7,
  RUN = 9,
  CREATE_SESSION_OPTIONS = 10,
  SET_INTRA_OP_NUM_THREADS = 24,
  SESSION_GET_OUTPUT_COUNT = 31,
  SESSION_GET_OUTPUT_NAME = 37,
  CREATE_TENSOR_WITH_DATA = 49,
  GET_TENSOR_MUTABLE_DATA = 51,
  GET_TENSOR_ELEMENT_TYPE = 60,
  GET_DIMENSIONS_COUNT = 61,
  GET_DIMENSIONS = 62,
  GET_TENSOR_SHAPE_ELEMENT_COUNT = 64,
  GET_TENSOR_TYPE_AND_SHAPE = 65,
  CREATE_CPU_MEMORY_INFO = 69,
  GET_ALLOCATOR = 78,
  RELEASE_VALUE = 96,
  REGISTER_CUSTOM_OPS_LIBRARY = 228,
  API_VERSION = 17,
  MOST = 64
};

struct base {
  void **(*get_api)(uint32_t version);
  const char *(*get_version)(void);
};

static void **api;

static void check(void *status) {
  if (status) {
    printf("error: %s\n", ((const char *(*)(void *))api[GET_ERROR_MESSAGE])(status));
    exit(2);
  }
}

#define CALL(number, ...) check(((void *(*)())api[number])(__VA_ARGS__))

static int64_t number(FILE *file) {
  int64_t value;
  if (fread(&value, 8, 1, file) != 1)
    exit(3);
  return value;
}

static void *bytes(FILE *file, int64_t count) {
  char *data = calloc(1, (size_t)count + 1);
  if (count && fread(data, 1, (size_t)count, file) != (size_t)count)
    exit(3);
  return data;
}

static uint16_t *wide(const char *text) {
  int count = MultiByteToWideChar(UTF_8, 0, text, -1, NULL, 0);
  uint16_t *made = calloc((size_t)count, sizeof(uint16_t));
  MultiByteToWideChar(UTF_8, 0, text, -1, made, count);
  return made;
}

static int64_t size_of(int type) {
  static const int64_t sizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2};
  return sizes[type];
}

static int run(int count, char **arguments) {
  if (count != 8)
    return 1;
  void *library = LoadLibraryW(wide(arguments[1]));
  if (!library) {
    printf("error: %s does not load: %u\n", arguments[1], GetLastError());
    return 4;
  }
  struct base *base = ((struct base * (*)(void)) GetProcAddress(library, "OrtGetApiBase"))();
  api = base->get_api(API_VERSION);
  void *env, *options, *session, *memory, *allocator, *inputs[MOST], *outputs[MOST];
  char *input_names[MOST], *output_names[MOST];
  CALL(CREATE_ENV, 3, "runner", &env);
  CALL(CREATE_SESSION_OPTIONS, &options);
  CALL(SET_INTRA_OP_NUM_THREADS, options, atoi(arguments[4]));
  if (strcmp(arguments[3], "-"))
    CALL(REGISTER_CUSTOM_OPS_LIBRARY, options, wide(arguments[3]));
  CALL(CREATE_SESSION, env, wide(arguments[2]), options, &session);
  CALL(CREATE_CPU_MEMORY_INFO, 1, 0, &memory);
  FILE *file = fopen(arguments[6], "rb");
  int64_t input_count = number(file);
  for (int64_t k = 0; k < input_count; k++) {
    input_names[k] = bytes(file, number(file));
    int64_t type = number(file), rank = number(file);
    int64_t *dims = bytes(file, 8 * rank);
    int64_t size = number(file);
    void *data = bytes(file, size);
    CALL(CREATE_TENSOR_WITH_DATA, memory, data, (size_t)size, dims, (size_t)rank, (int)type, &inputs[k]);
  }
  fclose(file);
  size_t output_count;
  CALL(SESSION_GET_OUTPUT_COUNT, session, &output_count);
  CALL(GET_ALLOCATOR, &allocator);
  for (size_t k = 0; k < output_count; k++)
    CALL(SESSION_GET_OUTPUT_NAME, session, k, allocator, &output_names[k]);
  for (int run = 0; run < atoi(arguments[5]); run++) {
    for (size_t k = 0; k < output_count; k++) {
      if (run)
        ((void (*)(void *))api[RELEASE_VALUE])(outputs[k]);
      outputs[k] = NULL;
    }
    CALL(RUN, session, (void *)0, input_names, inputs, (size_t)input_count, output_names, output_count, outputs);
  }
  file = fopen(arguments[7], "wb");
  fwrite(&(int64_t){(int64_t)output_count}, 8, 1, file);
  for (size_t k = 0; k < output_count; k++) {
    void *shape, *data;
    int type;
    size_t rank, elements;
    int64_t dims[MOST];
    CALL(GET_TENSOR_TYPE_AND_SHAPE, outputs[k], &shape);
    CALL(GET_TENSOR_ELEMENT_TYPE, shape, &type);
    CALL(GET_DIMENSIONS_COUNT, shape, &rank);
    CALL(GET_DIMENSIONS, shape, dims, rank);
    CALL(GET_TENSOR_SHAPE_ELEMENT_COUNT, shape, &elements);
    CALL(GET_TENSOR_MUTABLE_DATA, outputs[k], &data);
    int64_t head[] = {type, (int64_t)rank}, size = (int64_t)elements * size_of(type);
    fwrite(head, 8, 2, file);
    fwrite(dims, 8, rank, file);
    fwrite(&size, 8, 1, file);
    fwrite(data, 1, (size_t)size, file);
  }
  fclose(file);
  printf("onnxruntime %s\n", base->get_version());
  return 0;
}

/* The entry point. */
void start(void) {
  int count, info[2] = {0};
  char **arguments, **environment;
  __getmainargs(&count, &arguments, &environment, 0, info);
  exit(run(count, arguments));
}
