/* Runs two compiled models in one process by ONNX Runtime's C API.
 *
 *   cc run.c -o run -L DIRECTORY -l:libonnxruntime.so.1.VERSION
 *   ./run FIRST.igniter SECOND.igniter INPUT OUTPUT
 *
 * The models have one input f32[rows, columns] and one output. INPUT has the rows of the first model's input, as floats
 * of this machine. OUTPUT gets three results: of the first model, of the first model with IO binding, and of the second
 * model, whose input is the first model's output. -DOFFICIAL_HEADER includes ONNX Runtime's own header. */

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef OFFICIAL_HEADER
#include "onnxruntime_c_api.h"
#else
#include "ort.h"
#endif

static const OrtApi *api;

/* Every function of the API returns a status: null, or an error with a message that its caller releases. */
static void check(OrtStatus *status) {
  if (!status)
    return;
  fprintf(stderr, "ONNX Runtime: %s\n", api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  exit(1);
}

static void print_error(const char *what, OrtStatus *status) {
  printf("%s: %s\n", what, status ? api->GetErrorMessage(status) : "no error");
  if (status)
    api->ReleaseStatus(status);
}

/* Creates the session of a folder: the library is registered in the options, and the model is loaded with them. */
static OrtStatus *open_model(OrtEnv *env, const char *folder, int with_library, OrtSession **session) {
  char path[4096];
  OrtSessionOptions *options;
  check(api->CreateSessionOptions(&options));
  /* All sessions use the threads of `env`. For threads of its own: SetIntraOpNumThreads(options, n). */
  check(api->DisablePerSessionThreads(options));
  if (with_library) {
    glob_t found;
    snprintf(path, sizeof path, "%s/libigniter_*.so", folder);
    if (glob(path, 0, 0, &found) == 0) {
      for (size_t i = 0; i < found.gl_pathc; i++)
        check(api->RegisterCustomOpsLibrary_V2(options, found.gl_pathv[i]));
      globfree(&found);
    }
  }
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  OrtStatus *status = api->CreateSession(env, path, options, session);
  api->ReleaseSessionOptions(options);
  return status;
}

typedef struct {
  OrtSession *session;
  char *input, *output;
  int64_t columns; /* of the input; its rows vary */
} Model;

static Model describe(OrtSession *session, OrtAllocator *allocator) {
  Model model = {session, 0, 0, 0};
  OrtTypeInfo *type;
  const OrtTensorTypeAndShapeInfo *shape;
  int64_t dims[2];
  check(api->SessionGetInputName(session, 0, allocator, &model.input));
  check(api->SessionGetOutputName(session, 0, allocator, &model.output));
  check(api->SessionGetInputTypeInfo(session, 0, &type));
  check(api->CastTypeInfoToTensorInfo(type, &shape));
  check(api->GetDimensions(shape, dims, 2)); /* -1 is a symbolic dim */
  api->ReleaseTypeInfo(type);
  model.columns = dims[1];
  return model;
}

static void forget(Model *model, OrtAllocator *allocator) {
  check(api->AllocatorFree(allocator, model->input));
  check(api->AllocatorFree(allocator, model->output));
  api->ReleaseSession(model->session);
}

/* Returns a tensor over the caller's memory; the memory must outlive it. */
static OrtValue *tensor(const OrtMemoryInfo *where, float *data, int64_t rows, int64_t columns) {
  int64_t dims[2] = {rows, columns};
  OrtValue *made;
  check(api->CreateTensorWithDataAsOrtValue(where, data, rows * columns * sizeof(float), dims, 2,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &made));
  return made;
}

static OrtStatus *run(const Model *model, const OrtValue *input, OrtValue **output) {
  *output = 0; /* ONNX Runtime allocates it */
  return api->Run(model->session, 0, (const char *const *)&model->input, &input, 1,
                  (const char *const *)&model->output, 1, output);
}

static float *elements(OrtValue *value, int64_t dims[2]) {
  OrtTensorTypeAndShapeInfo *shape;
  void *data;
  check(api->GetTensorTypeAndShape(value, &shape));
  check(api->GetDimensions(shape, dims, 2));
  api->ReleaseTensorTypeAndShapeInfo(shape);
  check(api->GetTensorMutableData(value, &data));
  return data;
}

/* The buffers are bound once; each run reads the one and writes the other, without a copy or an allocation. */
static void run_bound(const Model *model, const OrtValue *input, OrtValue *output, int times) {
  OrtIoBinding *binding;
  check(api->CreateIoBinding(model->session, &binding));
  check(api->BindInput(binding, model->input, input));
  check(api->BindOutput(binding, model->output, output));
  for (int i = 0; i < times; i++)
    check(api->RunWithBinding(model->session, 0, binding));
  api->ReleaseIoBinding(binding);
}

static float *read_all(const char *path, size_t *count) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) {
    perror(path);
    exit(1);
  }
  *count = (size_t)ftell(file) / sizeof(float);
  rewind(file);
  float *data = malloc(*count * sizeof(float));
  if (!data || fread(data, sizeof(float), *count, file) != *count)
    exit(1);
  fclose(file);
  return data;
}

int main(int count, char **arguments) {
  if (count != 5) {
    fprintf(stderr, "usage: run FIRST.igniter SECOND.igniter INPUT OUTPUT\n");
    return 2;
  }
  api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (!api) {
    fprintf(stderr, "this ONNX Runtime is too old: %s\n", OrtGetApiBase()->GetVersionString());
    return 1;
  }

  /* One thread pool for the process: two threads, which sleep between runs. */
  OrtThreadingOptions *threads;
  OrtEnv *env;
  check(api->CreateThreadingOptions(&threads));
  check(api->SetGlobalIntraOpNumThreads(threads, 2));
  check(api->SetGlobalSpinControl(threads, 0));
  check(api->CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_FATAL, "run", threads, &env));
  api->ReleaseThreadingOptions(threads);

  OrtAllocator *allocator;
  OrtMemoryInfo *memory;
  check(api->GetAllocatorWithDefaultOptions(&allocator));
  check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));

  OrtSession *sessions[2], *none;
  check(open_model(env, arguments[1], 1, &sessions[0]));
  check(open_model(env, arguments[2], 1, &sessions[1]));
  Model first = describe(sessions[0], allocator), second = describe(sessions[1], allocator);

  size_t given;
  float *data = read_all(arguments[3], &given);
  int64_t rows = (int64_t)given / first.columns, dims[2];
  OrtValue *input = tensor(memory, data, rows, first.columns), *middle, *last;
  check(run(&first, input, &middle));
  float *result = elements(middle, dims);
  size_t size = (size_t)(dims[0] * dims[1]);
  printf("first: %lld x %lld\n", (long long)dims[0], (long long)dims[1]);

  float *buffer = malloc(size * sizeof(float));
  OrtValue *bound = tensor(memory, buffer, dims[0], dims[1]);
  run_bound(&first, input, bound, 3);

  check(run(&second, middle, &last));
  float *end = elements(last, dims);
  printf("second: %lld x %lld\n", (long long)dims[0], (long long)dims[1]);

  FILE *file = fopen(arguments[4], "wb");
  if (!file) {
    perror(arguments[4]);
    return 1;
  }
  fwrite(result, sizeof(float), size, file);
  fwrite(buffer, sizeof(float), size, file);
  fwrite(end, sizeof(float), (size_t)(dims[0] * dims[1]), file);
  fclose(file);

  /* Errors are values. Without its library the model does not load, and the message names the file to register. */
  print_error("not registered", open_model(env, arguments[1], 0, &none));
  OrtValue *wrong = tensor(memory, data, rows - 1, first.columns - 1), *nothing;
  print_error("wrong input", run(&first, wrong, &nothing));

  OrtValue *values[] = {input, middle, bound, last, wrong};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    api->ReleaseValue(values[i]);
  forget(&first, allocator);
  forget(&second, allocator);
  api->ReleaseMemoryInfo(memory);
  api->ReleaseEnv(env);
  free(data);
  free(buffer);
  return 0;
}
