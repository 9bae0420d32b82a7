/* The part of ONNX Runtime's C API that the programs here call, for machines with the library and no headers.
 *
 * `OrtApi` is a table of function pointers. It only grows at its end, so an index holds for every version with the
 * function. These functions are in version 17 of the API: ONNX Runtime 1.17 and newer has them. Prefer the official
 * header `onnxruntime_c_api.h` where it is available; programs compile with either. */

#ifndef ORT_H
#define ORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORT_API_VERSION 17

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtThreadingOptions OrtThreadingOptions;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtValue OrtValue;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;

typedef enum { ORT_LOGGING_LEVEL_WARNING = 2, ORT_LOGGING_LEVEL_ERROR = 3, ORT_LOGGING_LEVEL_FATAL = 4 } OrtLoggingLevel;
typedef enum { ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1 } ONNXTensorElementDataType;
typedef enum { OrtDeviceAllocator = 0, OrtArenaAllocator = 1 } OrtAllocatorType;
typedef enum { OrtMemTypeDefault = 0 } OrtMemType;

/* Places of the table that are not used: from the index `first` up to `next`. */
#define GAP(first, next) void *unused_##first[(next) - (first)]

typedef struct OrtApi {
  GAP(0, 2);
  const char *(*GetErrorMessage)(const OrtStatus *status);
  OrtStatus *(*CreateEnv)(OrtLoggingLevel level, const char *name, OrtEnv **made);
  GAP(4, 7);
  OrtStatus *(*CreateSession)(const OrtEnv *env, const char *path, const OrtSessionOptions *options, OrtSession **made);
  GAP(8, 9);
  OrtStatus *(*Run)(OrtSession *session, const OrtRunOptions *options, const char *const *input_names,
                    const OrtValue *const *inputs, size_t input_count, const char *const *output_names,
                    size_t output_count, OrtValue **outputs);
  OrtStatus *(*CreateSessionOptions)(OrtSessionOptions **made);
  GAP(11, 24);
  OrtStatus *(*SetIntraOpNumThreads)(OrtSessionOptions *options, int threads);
  GAP(25, 33);
  OrtStatus *(*SessionGetInputTypeInfo)(const OrtSession *session, size_t index, OrtTypeInfo **type);
  GAP(34, 36);
  OrtStatus *(*SessionGetInputName)(const OrtSession *session, size_t index, OrtAllocator *allocator, char **name);
  OrtStatus *(*SessionGetOutputName)(const OrtSession *session, size_t index, OrtAllocator *allocator, char **name);
  GAP(38, 49);
  OrtStatus *(*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo *where, void *data, size_t bytes,
                                               const int64_t *dims, size_t rank, ONNXTensorElementDataType type,
                                               OrtValue **made);
  GAP(50, 51);
  OrtStatus *(*GetTensorMutableData)(OrtValue *value, void **data);
  GAP(52, 55);
  OrtStatus *(*CastTypeInfoToTensorInfo)(const OrtTypeInfo *type, const OrtTensorTypeAndShapeInfo **shape);
  GAP(56, 61);
  OrtStatus *(*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo *shape, size_t *rank);
  OrtStatus *(*GetDimensions)(const OrtTensorTypeAndShapeInfo *shape, int64_t *dims, size_t rank);
  GAP(63, 64);
  OrtStatus *(*GetTensorShapeElementCount)(const OrtTensorTypeAndShapeInfo *shape, size_t *count);
  OrtStatus *(*GetTensorTypeAndShape)(const OrtValue *value, OrtTensorTypeAndShapeInfo **shape);
  GAP(66, 69);
  OrtStatus *(*CreateCpuMemoryInfo)(OrtAllocatorType allocator, OrtMemType memory, OrtMemoryInfo **made);
  GAP(70, 76);
  OrtStatus *(*AllocatorFree)(OrtAllocator *allocator, void *memory);
  GAP(77, 78);
  OrtStatus *(*GetAllocatorWithDefaultOptions)(OrtAllocator **allocator);
  GAP(79, 92);
  void (*ReleaseEnv)(OrtEnv *env);
  void (*ReleaseStatus)(OrtStatus *status);
  void (*ReleaseMemoryInfo)(OrtMemoryInfo *where);
  void (*ReleaseSession)(OrtSession *session);
  void (*ReleaseValue)(OrtValue *value);
  GAP(97, 98);
  void (*ReleaseTypeInfo)(OrtTypeInfo *type);
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo *shape);
  void (*ReleaseSessionOptions)(OrtSessionOptions *options);
  GAP(101, 119);
  OrtStatus *(*CreateEnvWithGlobalThreadPools)(OrtLoggingLevel level, const char *name,
                                               const OrtThreadingOptions *threads, OrtEnv **made);
  OrtStatus *(*DisablePerSessionThreads)(OrtSessionOptions *options);
  OrtStatus *(*CreateThreadingOptions)(OrtThreadingOptions **made);
  void (*ReleaseThreadingOptions)(OrtThreadingOptions *threads);
  GAP(123, 130);
  OrtStatus *(*AddSessionConfigEntry)(OrtSessionOptions *options, const char *key, const char *value);
  GAP(131, 133);
  OrtStatus *(*RunWithBinding)(OrtSession *session, const OrtRunOptions *options, const OrtIoBinding *binding);
  OrtStatus *(*CreateIoBinding)(OrtSession *session, OrtIoBinding **made);
  void (*ReleaseIoBinding)(OrtIoBinding *binding);
  OrtStatus *(*BindInput)(OrtIoBinding *binding, const char *name, const OrtValue *value);
  OrtStatus *(*BindOutput)(OrtIoBinding *binding, const char *name, const OrtValue *value);
  GAP(138, 147);
  OrtStatus *(*SetGlobalIntraOpNumThreads)(OrtThreadingOptions *threads, int count);
  GAP(148, 149);
  OrtStatus *(*SetGlobalSpinControl)(OrtThreadingOptions *threads, int spins);
  GAP(150, 228);
  OrtStatus *(*RegisterCustomOpsLibrary_V2)(OrtSessionOptions *options, const char *path);
} OrtApi;

typedef struct OrtApiBase {
  const OrtApi *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

const OrtApiBase *OrtGetApiBase(void);

#ifdef __cplusplus
}
#endif

#endif
