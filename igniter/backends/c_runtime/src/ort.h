/* The part of ONNX Runtime's C API that a library calls, declared by index.
 *
 * `OrtApi` is a table of function pointers that only grows at its end, so an index holds for every version of ONNX
 * Runtime with the function. Every function that CPU kernels call is in version 17 of the API (ONNX Runtime 1.17);
 * `MayInplace` and the functions for GPUs are in version 18. `igniter/backends/ort/api.py` has the same indices for the
 * tests, and a test compares them. */

#ifndef IGNITER_ORT_H
#define IGNITER_ORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct OrtStatus OrtStatus;
typedef struct OrtValue OrtValue;
typedef struct OrtShape OrtShape; /* OrtTensorTypeAndShapeInfo */
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtCustomOp OrtCustomOp;

enum { ORT_INVALID_ARGUMENT = 2, ORT_RUNTIME_EXCEPTION = 6, ORT_NOT_IMPLEMENTED = 9 };

/* A function of the API at a place of the table, and places that are not used. */
#define GAP(first, next) void *unused_##first[(next) - (first)]

typedef struct OrtApi {
  OrtStatus *(*CreateStatus)(int32_t code, const char *message);
  GAP(1, 26);
  OrtStatus *(*CreateCustomOpDomain)(const char *name, OrtCustomOpDomain **made);
  OrtStatus *(*CustomOpDomain_Add)(OrtCustomOpDomain *domain, const OrtCustomOp *op);
  OrtStatus *(*AddCustomOpDomain)(OrtSessionOptions *options, OrtCustomOpDomain *domain);
  GAP(29, 51);
  OrtStatus *(*GetTensorMutableData)(const OrtValue *value, void **data);
  GAP(52, 57);
  OrtStatus *(*CreateTensorTypeAndShapeInfo)(OrtShape **made);
  OrtStatus *(*SetTensorElementType)(OrtShape *shape, int32_t type);
  OrtStatus *(*SetDimensions)(OrtShape *shape, const int64_t *dims, size_t rank);
  OrtStatus *(*GetTensorElementType)(const OrtShape *shape, int32_t *type);
  OrtStatus *(*GetDimensionsCount)(const OrtShape *shape, size_t *rank);
  OrtStatus *(*GetDimensions)(const OrtShape *shape, int64_t *dims, size_t rank);
  OrtStatus *(*GetSymbolicDimensions)(const OrtShape *shape, const char **names, size_t rank);
  GAP(64, 65);
  OrtStatus *(*GetTensorTypeAndShape)(const OrtValue *value, OrtShape **shape);
  GAP(66, 72);
  OrtStatus *(*MemoryInfoGetId)(const OrtMemoryInfo *where, int32_t *id);
  GAP(73, 75);
  OrtStatus *(*AllocatorAlloc)(OrtAllocator *allocator, size_t bytes, void **memory);
  OrtStatus *(*AllocatorFree)(OrtAllocator *allocator, void *memory);
  OrtStatus *(*AllocatorGetInfo)(const OrtAllocator *allocator, const OrtMemoryInfo **where);
  OrtStatus *(*GetAllocatorWithDefaultOptions)(OrtAllocator **allocator);
  GAP(79, 88);
  OrtStatus *(*KernelContext_GetInputCount)(const OrtKernelContext *context, size_t *count);
  OrtStatus *(*KernelContext_GetOutputCount)(const OrtKernelContext *context, size_t *count);
  OrtStatus *(*KernelContext_GetInput)(const OrtKernelContext *context, size_t index, const OrtValue **value);
  OrtStatus *(*KernelContext_GetOutput)(OrtKernelContext *context, size_t index, const int64_t *dims, size_t rank,
                                        OrtValue **value);
  GAP(92, 93);
  void (*ReleaseStatus)(OrtStatus *status);
  GAP(94, 99);
  void (*ReleaseTensorTypeAndShapeInfo)(OrtShape *shape);
  GAP(100, 101);
  void (*ReleaseCustomOpDomain)(OrtCustomOpDomain *domain);
  GAP(102, 130);
  OrtStatus *(*AddSessionConfigEntry)(OrtSessionOptions *options, const char *key, const char *value);
  GAP(131, 132);
  void (*ReleaseAllocator)(OrtAllocator *allocator);
  GAP(133, 193);
  OrtStatus *(*KernelContext_GetGPUComputeStream)(const OrtKernelContext *context, void **stream);
  GAP(194, 230);
  OrtStatus *(*KernelInfo_GetInputCount)(const OrtKernelInfo *info, size_t *count);
  GAP(231, 237);
  OrtStatus *(*HasSessionConfigEntry)(const OrtSessionOptions *options, const char *key, int32_t *has);
  GAP(238, 249);
  OrtStatus *(*KernelInfoGetConstantInput_tensor)(const OrtKernelInfo *info, size_t index, int32_t *constant,
                                                  const OrtValue **value);
  GAP(250, 253);
  OrtStatus *(*KernelContext_GetAllocator)(const OrtKernelContext *context, const OrtMemoryInfo *where,
                                           OrtAllocator **allocator);
  GAP(254, 267);
  OrtStatus *(*ShapeInferContext_GetInputCount)(const OrtShapeInferContext *context, size_t *count);
  OrtStatus *(*ShapeInferContext_GetInputTypeShape)(const OrtShapeInferContext *context, size_t index,
                                                    OrtShape **shape);
  GAP(269, 270);
  OrtStatus *(*ShapeInferContext_SetOutputTypeShape)(const OrtShapeInferContext *context, size_t index,
                                                     const OrtShape *shape);
  OrtStatus *(*SetSymbolicDimensions)(OrtShape *shape, const char **names, size_t rank);
  GAP(272, 274);
  OrtStatus *(*KernelContext_ParallelFor)(const OrtKernelContext *context, void (*task)(void *data, size_t index),
                                          size_t count, size_t batches, void *data);
  GAP(275, 277);
  OrtStatus *(*KernelContext_GetScratchBuffer)(const OrtKernelContext *context, const OrtMemoryInfo *where,
                                               size_t bytes, void **memory);
  OrtStatus *(*KernelInfoGetAllocator)(const OrtKernelInfo *info, int32_t kind, OrtAllocator **allocator);
} OrtApi;

#define AT(name, index) _Static_assert(offsetof(OrtApi, name) == 8 * (index), #name)
AT(CreateStatus, 0);
AT(CreateCustomOpDomain, 26);
AT(CustomOpDomain_Add, 27);
AT(AddCustomOpDomain, 28);
AT(GetTensorMutableData, 51);
AT(CreateTensorTypeAndShapeInfo, 57);
AT(SetTensorElementType, 58);
AT(SetDimensions, 59);
AT(GetTensorElementType, 60);
AT(GetDimensionsCount, 61);
AT(GetDimensions, 62);
AT(GetSymbolicDimensions, 63);
AT(GetTensorTypeAndShape, 65);
AT(MemoryInfoGetId, 72);
AT(AllocatorAlloc, 75);
AT(AllocatorFree, 76);
AT(AllocatorGetInfo, 77);
AT(GetAllocatorWithDefaultOptions, 78);
AT(KernelContext_GetInputCount, 88);
AT(KernelContext_GetOutputCount, 89);
AT(KernelContext_GetInput, 90);
AT(KernelContext_GetOutput, 91);
AT(ReleaseStatus, 93);
AT(ReleaseTensorTypeAndShapeInfo, 99);
AT(ReleaseCustomOpDomain, 101);
AT(AddSessionConfigEntry, 130);
AT(ReleaseAllocator, 132);
AT(KernelContext_GetGPUComputeStream, 193);
AT(KernelInfo_GetInputCount, 230);
AT(HasSessionConfigEntry, 237);
AT(KernelInfoGetConstantInput_tensor, 249);
AT(KernelContext_GetAllocator, 253);
AT(ShapeInferContext_GetInputCount, 267);
AT(ShapeInferContext_GetInputTypeShape, 268);
AT(ShapeInferContext_SetOutputTypeShape, 270);
AT(SetSymbolicDimensions, 271);
AT(KernelContext_ParallelFor, 274);
AT(KernelContext_GetScratchBuffer, 277);
AT(KernelInfoGetAllocator, 278);

typedef struct OrtApiBase {
  const OrtApi *(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

#endif
