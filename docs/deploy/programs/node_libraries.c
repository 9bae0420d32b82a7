/* A Node-API addon that registers libraries of custom ops with the sessions of `onnxruntime-node`, on Linux.
 *
 *   cc -shared -fPIC node_libraries.c -o node_libraries.node
 *
 * The JavaScript API of ONNX Runtime has no function for libraries of custom ops. `register(path)` of this addon adds a
 * library to those that every session created from then on registers. For this it replaces two functions in the table of
 * ONNX Runtime's C API, in this process: the ones that create a session, by functions that register the libraries
 * first. `onnxruntime-node` has to be loaded before the first call. The addon needs no header of Node.js: Node-API is a
 * stable C interface, and the few functions that it uses are declared here. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);
int napi_create_function(napi_env, const char *name, size_t length, napi_callback, void *data, napi_value *made);
int napi_set_named_property(napi_env, napi_value object, const char *name, napi_value value);
int napi_get_cb_info(napi_env, napi_callback_info, size_t *count, napi_value *arguments, napi_value *self, void **data);
int napi_get_value_string_utf8(napi_env, napi_value, char *text, size_t room, size_t *length);
int napi_throw_error(napi_env, const char *code, const char *message);

typedef struct OrtStatus OrtStatus;
typedef struct OrtApiBase {
  void **(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

/* Indices of the table, which hold for every version: it only grows at its end. */
enum { CREATE_SESSION = 7, CREATE_SESSION_FROM_ARRAY = 8, REGISTER_CUSTOM_OPS_LIBRARY_V2 = 228, API_VERSION = 17 };
enum { MOST = 256 };

typedef OrtStatus *(*Register)(void *options, const char *path);
typedef OrtStatus *(*Create)(const void *env, const char *path, const void *options, void **made);
typedef OrtStatus *(*CreateFromArray)(const void *env, const void *data, size_t bytes, const void *options, void **made);

static char *libraries[MOST];
static int count; /* the libraries below it are complete */
static void **api;
static Create create;
static CreateFromArray create_from_array;

/* A library registers nothing in options that have it. */
static OrtStatus *register_all(const void *options) {
  int known = __atomic_load_n(&count, __ATOMIC_ACQUIRE);
  for (int i = 0; i < known; i++) {
    OrtStatus *status = ((Register)api[REGISTER_CUSTOM_OPS_LIBRARY_V2])((void *)options, libraries[i]);
    if (status)
      return status;
  }
  return 0;
}

static OrtStatus *create_with_libraries(const void *env, const char *path, const void *options, void **made) {
  OrtStatus *status = register_all(options);
  return status ? status : create(env, path, options, made);
}

static OrtStatus *create_from_array_with_libraries(const void *env, const void *data, size_t bytes, const void *options,
                                                   void **made) {
  OrtStatus *status = register_all(options);
  return status ? status : create_from_array(env, data, bytes, options, made);
}

/* Replaces the functions; returns null, or the reason why it cannot. */
static const char *replace(void) {
  if (api)
    return 0;
  void *onnxruntime = dlopen("libonnxruntime.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!onnxruntime)
    return "onnxruntime-node is not loaded: require it before the first register()";
  const OrtApiBase *(*base)(void) = (const OrtApiBase *(*)(void))dlsym(onnxruntime, "OrtGetApiBase");
  void **found = base ? base()->GetApi(API_VERSION) : 0;
  if (!found)
    return "this ONNX Runtime is too old: version 1.17 or newer is needed";
  /* The table is constant data: its pages are made writable for the change. */
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)found & -page;
  size_t bytes = (uintptr_t)(found + CREATE_SESSION_FROM_ARRAY + 1) - start;
  if (mprotect((void *)start, bytes, PROT_READ | PROT_WRITE))
    return "the system forbids changes of ONNX Runtime's function table";
  create = (Create)found[CREATE_SESSION];
  create_from_array = (CreateFromArray)found[CREATE_SESSION_FROM_ARRAY];
  api = found;
  found[CREATE_SESSION] = (void *)create_with_libraries;
  found[CREATE_SESSION_FROM_ARRAY] = (void *)create_from_array_with_libraries;
  mprotect((void *)start, bytes, PROT_READ);
  return 0;
}

static napi_value add_library(napi_env env, napi_callback_info info) {
  char path[4096];
  size_t given = 1, length = 0;
  napi_value argument;
  if (napi_get_cb_info(env, info, &given, &argument, 0, 0) || given != 1 ||
      napi_get_value_string_utf8(env, argument, path, sizeof path, &length)) {
    napi_throw_error(env, 0, "register(path) takes the path of a library");
    return 0;
  }
  const char *reason = replace();
  for (int i = 0; i < count; i++)
    if (!strcmp(libraries[i], path))
      return 0;
  if (!reason && count == MOST)
    reason = "too many libraries";
  if (reason) {
    napi_throw_error(env, 0, reason);
    return 0;
  }
  libraries[count] = strdup(path);
  __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
  return 0;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  napi_value function;
  napi_create_function(env, "register", 8, add_library, 0, &function);
  napi_set_named_property(env, exports, "register", function);
  return exports;
}
