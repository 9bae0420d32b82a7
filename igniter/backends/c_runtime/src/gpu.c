/* Ops that launch GPU kernels: CUDA's driver, loaded and called through its own API.
 *
 *   igniter_gpu_create    loads the modules of an op's func, in the context of the device that ORT chose
 *   igniter_gpu_run       runs the func on ORT's stream, with an arena that belongs to that stream; nothing waits
 *   igniter_launch        called by the func, once for each launch
 *   igniter_gpu_destroy   unloads them
 *
 * `libcuda.so.1` is loaded with the first kernel object, so the library itself also loads on machines without it. A
 * kernel object has its own modules. They belong to the current context if this is on the device of ORT's allocator,
 * otherwise to the device's primary context, which is then retained.
 *
 * The arena is freed while its kernels are still queued. This is safe only because the arena belongs to the stream of
 * the run: `KernelContext_GetScratchBuffer` records the stream with the memory, and ONNX Runtime does not give it to
 * another stream before the two are synchronised. Memory of plain `AllocatorAlloc` has no stream, and would be reused
 * by another run at once. A run without a stream (a provider with host memory) has nothing queued, and takes plain
 * memory: `GetScratchBuffer` reads the stream without a check. */

#include "library.h"

/* A tensor map of a kernel. */
struct map {
  uint32_t parameter; /* The map's; the sizes and the strides of its tensor follow. */
  uint32_t rank;
  uint32_t type;      /* CUtensorMapDataType */
  uint32_t swizzle;   /* CUtensorMapSwizzle */
  uint32_t bytes;     /* Of an element. */
  uint32_t box[5];    /* The elements that one copy loads, the last dim first. */
};

/* A kernel's code for one kind of GPU (`igniter/backends/launches.py`). */
struct kernel {
  const char *label; /* Its name in messages. */
  const void *code; /* PTX, or machine code (a cubin). */
  const char *entry;
  uint32_t threads;
  uint32_t shared;      /* Bytes of shared memory. */
  uint64_t addresses;   /* Addresses at the start of its parameters. */
  int32_t least, most;  /* Compute capabilities, times ten. */
  const struct kernel *others; /* The same kernel's code for other capabilities, or null. */
  uint64_t map_count;
  const struct map *maps;
};

/* Generated: the kernels of the library by number, and the execution provider of the ops. */
extern const struct kernel *const igniter_kernels[];
extern const int64_t igniter_kernel_count;
extern const char igniter_gpu_name[];

/* Generated: the numbers of the kernels that an op launches. */
struct launched {
  int64_t count;
  int64_t numbers[];
};

struct loaded {
  void *module;
  void *function;
  const struct kernel *kernel;
};

/* What a kernel object has on a device. */
struct device {
  OrtAllocator *allocator; /* ORT's, of the device. */
  void *context;
  int32_t number;
  int32_t retained;       /* The context is the primary one, retained by this object. */
  struct loaded kernels[]; /* Of the library; null for those that the op does not launch. */
};

/* The context of a func on the host. */
struct launches {
  const OrtApi *api;
  OrtKernelContext *context;
  OrtStatus *error; /* The first one: nothing more of the op is launched. */
  const struct igniter_desc *desc;
  struct device *device;
  void *stream;
};

enum {
  MOST_PROGRAMS = INT32_MAX,       /* The limit of a grid along its first dim. */
  FREE_SHARED = 48 << 10,          /* Bytes of shared memory without `cuFuncSetAttribute`. */
  MAX_DYNAMIC_SHARED = 8,          /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  CAPABILITY_MAJOR = 75,           /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
  CAPABILITY_MINOR = 76,
  ALIGNMENT = 16,                  /* Of the addresses that kernels get. */
  ON_HOST = -2,                    /* OrtMemTypeCPUInput */
  MOST_DIMS = 5,                   /* Of a tensor map. */
  PROMOTION_128 = 2,               /* CU_TENSOR_MAP_L2_PROMOTION_L2_128B */
  RTLD_NOW = 2,
  CAPACITY = 1024,
};

/* -- the driver ---------------------------------------------------------------------------------------------------- */

void *dlopen(const char *name, int flags);
void *dlsym(void *library, const char *name);
char *dlerror(void);

/* The functions that are called; drivers have all of them since CUDA 11, but the last one since CUDA 12, which only
 * kernels with tensor maps need. `igniter/backends/ort/driver_calls.py` has the same names for the tests. */
#define DRIVER(CALL)                                                                                                   \
  CALL(cuInit, (uint32_t flags))                                                                                       \
  CALL(cuGetErrorName, (int32_t code, const char **name))                                                              \
  CALL(cuGetErrorString, (int32_t code, const char **text))                                                            \
  CALL(cuDeviceGet, (int32_t * device, int32_t id))                                                                    \
  CALL(cuDeviceGetAttribute, (int32_t * value, int32_t attribute, int32_t device))                                     \
  CALL(cuDevicePrimaryCtxRetain, (void **context, int32_t device))                                                     \
  CALL(cuDevicePrimaryCtxRelease_v2, (int32_t device))                                                                 \
  CALL(cuCtxGetCurrent, (void **context))                                                                              \
  CALL(cuCtxGetDevice, (int32_t * device))                                                                             \
  CALL(cuCtxPushCurrent_v2, (void *context))                                                                           \
  CALL(cuCtxPopCurrent_v2, (void **context))                                                                           \
  CALL(cuModuleLoadData, (void **module, const void *code))                                                            \
  CALL(cuModuleUnload, (void *module))                                                                                 \
  CALL(cuModuleGetFunction, (void **function, void *module, const char *name))                                         \
  CALL(cuFuncSetAttribute, (void *function, int32_t attribute, int32_t value))                                         \
  CALL(cuLaunchKernel, (void *function, uint32_t x, uint32_t y, uint32_t z, uint32_t threads_x, uint32_t threads_y,    \
                        uint32_t threads_z, uint32_t shared, void *stream, void **parameters, void **extra))           \
  CALL(cuTensorMapEncodeTiled, (void *map, uint32_t type, uint32_t rank, void *address, const uint64_t *sizes,         \
                                const uint64_t *strides, const uint32_t *box, const uint32_t *steps,                   \
                                uint32_t interleave, uint32_t swizzle, uint32_t promotion, uint32_t fill))

#define PLACE(name, parameters) int32_t(*name) parameters;
#define NAME(name, parameters) #name,
static union {
  struct {
    DRIVER(PLACE)
  };
  void *functions[17];
} driver;
static const char *const names[] = {DRIVER(NAME)};
_Static_assert(sizeof driver == sizeof names, "as many functions as names");
static const uint64_t NEEDED = sizeof names / sizeof *names - 1; /* All but the one that encodes tensor maps. */
static int32_t driver_ready;

/* What was called when the driver failed. */
struct trouble {
  const char *label; /* The kernel. */
  const char *function;
  int32_t code;
};

/* Calls a function of the driver; on failure notes it and is false. */
#define CALL(trouble, name, ...) works(trouble, #name, driver.name(__VA_ARGS__))

static int works(struct trouble *trouble, const char *function, int32_t code) {
  trouble->function = function;
  trouble->code = code;
  return !code;
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

struct text {
  struct igniter_string string;
  char buffer[CAPACITY];
};

static COLD void begin(struct text *text, const struct igniter_desc *desc, const char *first) {
  igniter_begin(&text->string, text->buffer, CAPACITY, desc);
  igniter_text(&text->string, first);
}

static COLD OrtStatus *finish(struct text *text, const OrtApi *api, int32_t code, const char *last) {
  igniter_text(&text->string, last);
  return api->CreateStatus(code, text->buffer);
}

static COLD OrtStatus *simple(const OrtApi *api, const struct igniter_desc *desc, const char *first, const char *last) {
  struct text text;
  begin(&text, desc, first);
  return finish(&text, api, ORT_RUNTIME_EXCEPTION, last);
}

static COLD OrtStatus *numbered(const OrtApi *api, const struct igniter_desc *desc, const char *label,
                                const char *between, int64_t number, const char *last) {
  struct text text;
  begin(&text, desc, label);
  igniter_text(&text.string, between);
  igniter_number(&text.string, number);
  return finish(&text, api, ORT_RUNTIME_EXCEPTION, last);
}

/* "KERNEL: cuFunction gives CUDA_ERROR_NAME: text" */
static COLD OrtStatus *driver_failed(const OrtApi *api, const struct igniter_desc *desc,
                                     const struct trouble *trouble) {
  const char *name = 0, *reason = 0;
  struct text text;
  driver.cuGetErrorName(trouble->code, &name);
  driver.cuGetErrorString(trouble->code, &reason);
  begin(&text, desc, trouble->label);
  igniter_text(&text.string, ": ");
  igniter_text(&text.string, trouble->function);
  igniter_text(&text.string, " gives ");
  igniter_text(&text.string, name ? name : "an unknown error");
  igniter_text(&text.string, ": ");
  return finish(&text, api, ORT_RUNTIME_EXCEPTION, reason ? reason : "an unknown error");
}

static COLD OrtStatus *bad_address(const OrtApi *api, const struct igniter_desc *desc, const char *label,
                                   int64_t index, int64_t address) {
  struct text text;
  begin(&text, desc, label);
  igniter_text(&text.string, ": its buffer ");
  igniter_number(&text.string, index);
  igniter_text(&text.string, " is at address ");
  igniter_number(&text.string, address);
  return finish(&text, api, ORT_RUNTIME_EXCEPTION,
                ", which is no multiple of 16: give ONNX Runtime memory that is");
}

static const char LOADING[] = "loading its kernels";

/* Loads the driver; two threads that come here at once find the same functions. */
static OrtStatus *open_driver(const OrtApi *api, const struct igniter_desc *desc) {
  struct trouble trouble = {LOADING, 0, 0};
  if (__atomic_load_n(&driver_ready, __ATOMIC_ACQUIRE))
    return 0;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    const char *why = dlerror();
    return simple(api, desc, "it runs on GPUs of NVIDIA, and their driver cannot be loaded: ",
                  why ? why : "an unknown error");
  }
  for (uint64_t k = 0; k < sizeof names / sizeof *names; k++) {
    void *found = dlsym(library, names[k]);
    if (!found && k < NEEDED)
      return simple(api, desc, "the driver of NVIDIA is too old: it has no ", names[k]);
    __atomic_store_n(&driver.functions[k], found, __ATOMIC_RELAXED);
  }
  if (!CALL(&trouble, cuInit, 0))
    return driver_failed(api, desc, &trouble);
  __atomic_store_n(&driver_ready, 1, __ATOMIC_RELEASE);
  return 0;
}

/* -- the kernel object --------------------------------------------------------------------------------------------- */

const char *igniter_gpu_provider(const OrtCustomOp *op) { return igniter_gpu_name; }

/* A carrier has no bytes, and its dims are known on the host: there is nothing to copy to the device. */
int32_t igniter_gpu_input_memory(const OrtCustomOp *op, size_t k) {
  const struct igniter_port *port = &op->desc->inputs[k];
  return port->rank && !port->dims[0] ? ON_HOST : 0;
}

/* Gives back all that a device has, as far as it has it. */
static void close_device(const OrtApi *api, struct device *device) {
  void *popped;
  OrtAllocator *standard;
  if (device->context) {
    driver.cuCtxPushCurrent_v2(device->context);
    for (int64_t k = 0; k < igniter_kernel_count; k++)
      if (device->kernels[k].module)
        driver.cuModuleUnload(device->kernels[k].module);
    driver.cuCtxPopCurrent_v2(&popped);
  }
  if (device->retained)
    driver.cuDevicePrimaryCtxRelease_v2(device->number);
  api->ReleaseAllocator(device->allocator);
  if (succeeds(api, api->GetAllocatorWithDefaultOptions(&standard)))
    succeeds(api, api->AllocatorFree(standard, device));
}

/* Makes the current context the device's, and notes it: the one that is current if it is on this device, otherwise the
 * primary one. */
static int enter_context(struct trouble *trouble, struct device *device) {
  void *context = 0;
  int32_t its = -1;
  if (!CALL(trouble, cuCtxGetCurrent, &context) || (context && !CALL(trouble, cuCtxGetDevice, &its)))
    return 0;
  if (!context || its != device->number) {
    if (!CALL(trouble, cuDevicePrimaryCtxRetain, &context, device->number))
      return 0;
    device->retained = 1;
  }
  if (!CALL(trouble, cuCtxPushCurrent_v2, context))
    return 0;
  device->context = context;
  return 1;
}

/* Finds the first code for a GPU, beginning with `kernel`; null if there is none. */
static const struct kernel *fitting(const struct kernel *kernel, int32_t capability) {
  while (kernel && (capability < kernel->least || capability > kernel->most))
    kernel = kernel->others;
  return kernel;
}

/* Loads the first code of a kernel that the driver accepts: machine code of a later CUDA than the driver's is refused,
 * and the PTX after it is compiled by the driver. */
static int load(struct trouble *trouble, struct loaded *loaded, const struct kernel *kernel, int32_t capability) {
  while (!CALL(trouble, cuModuleLoadData, &loaded->module, kernel->code)) {
    kernel = fitting(kernel->others, capability);
    if (!kernel)
      return 0;
  }
  loaded->kernel = kernel;
  return CALL(trouble, cuModuleGetFunction, &loaded->function, loaded->module, kernel->entry) &&
         (kernel->shared <= FREE_SHARED ||
          CALL(trouble, cuFuncSetAttribute, loaded->function, MAX_DYNAMIC_SHARED, (int32_t)kernel->shared));
}

/* Loads the kernels that the op launches, in the current context: of each the first code for the GPU. */
static OrtStatus *load_all(const OrtApi *api, const struct igniter_desc *desc, struct device *device,
                           int32_t capability) {
  const struct launched *launched = desc->launched;
  for (int64_t k = 0; k < launched->count; k++) {
    int64_t number = launched->numbers[k];
    const struct kernel *kernel = fitting(igniter_kernels[number], capability);
    struct trouble trouble = {igniter_kernels[number]->label, 0, 0};
    if (!kernel)
      return numbered(api, desc, trouble.label, ": the library has no code for a GPU of compute capability ",
                      capability, " (in tenths): compile for it, or with the target cuda for all since 80");
    if (kernel->map_count && !driver.cuTensorMapEncodeTiled)
      return simple(api, desc, trouble.label, ": the driver of NVIDIA is too old: it has no cuTensorMapEncodeTiled");
    if (!load(&trouble, &device->kernels[number], kernel, capability))
      return driver_failed(api, desc, &trouble);
  }
  return 0;
}

static OrtStatus *open_device(const OrtApi *api, const struct igniter_desc *desc, struct device *device, int32_t id) {
  struct trouble trouble = {LOADING, 0, 0};
  int32_t major, minor;
  void *popped;
  if (!CALL(&trouble, cuDeviceGet, &device->number, id) ||
      !CALL(&trouble, cuDeviceGetAttribute, &major, CAPABILITY_MAJOR, device->number) ||
      !CALL(&trouble, cuDeviceGetAttribute, &minor, CAPABILITY_MINOR, device->number) ||
      !enter_context(&trouble, device))
    return driver_failed(api, desc, &trouble);
  OrtStatus *status = load_all(api, desc, device, 10 * major + minor);
  driver.cuCtxPopCurrent_v2(&popped);
  return status;
}

/* Makes the record of a device, which then has the allocator. */
static OrtStatus *make_device(const OrtApi *api, OrtAllocator *allocator, int32_t *id, struct device **made) {
  const OrtMemoryInfo *where;
  OrtAllocator *standard;
  void *memory;
  TRY(api->AllocatorGetInfo(allocator, &where));
  TRY(api->MemoryInfoGetId(where, id));
  TRY(api->GetAllocatorWithDefaultOptions(&standard));
  uint64_t size = sizeof(struct device) + (uint64_t)igniter_kernel_count * sizeof(struct loaded);
  TRY(api->AllocatorAlloc(standard, size, &memory));
  struct device *device = memory;
  device->allocator = allocator;
  device->context = 0;
  device->number = 0;
  device->retained = 0;
  for (int64_t k = 0; k < igniter_kernel_count; k++)
    device->kernels[k].module = 0;
  *made = device;
  return 0;
}

static OrtStatus *attach_device(const OrtApi *api, const struct igniter_desc *desc, const OrtKernelInfo *info,
                                struct igniter_state *state) {
  OrtAllocator *allocator;
  struct device *device;
  int32_t id;
  TRY(open_driver(api, desc));
  TRY(api->KernelInfoGetAllocator(info, 0, &allocator));
  OrtStatus *status = make_device(api, allocator, &id, &device);
  if (status) {
    api->ReleaseAllocator(allocator);
    return status;
  }
  status = open_device(api, desc, device, id);
  if (status)
    close_device(api, device);
  else
    state->device = device;
  return status;
}

OrtStatus *igniter_gpu_create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info, void **made) {
  TRY(igniter_create(op, api, info, made));
  OrtStatus *status = attach_device(api, op->desc, info, *made);
  if (status) {
    igniter_destroy(*made);
    *made = 0;
  }
  return status;
}

void igniter_gpu_destroy(struct igniter_state *state) {
  close_device(state->api, state->device);
  igniter_destroy(state);
}

/* -- running ------------------------------------------------------------------------------------------------------- */

/* Takes memory for the arena, of the stream if there is one. */
static OrtStatus *allocate(struct launches *call, int64_t size, void **memory) {
  const OrtApi *api = call->api;
  const OrtMemoryInfo *where;
  uint64_t padded = (uint64_t)size + 64;
  if (call->stream) {
    TRY(api->AllocatorGetInfo(call->device->allocator, &where));
    TRY(api->KernelContext_GetScratchBuffer(call->context, where, padded, memory));
  } else {
    TRY(api->AllocatorAlloc(call->device->allocator, padded, memory));
  }
  return *memory ? 0 : igniter_fail(api, call->desc, NO_MEMORY, 0, 0, 0, 0, size);
}

static OrtStatus *run_func(struct launches *call, void **buffers, int64_t *symbols, void *memory) {
  struct trouble trouble = {LOADING, 0, 0};
  void *popped;
  if (!CALL(&trouble, cuCtxPushCurrent_v2, call->device->context))
    return driver_failed(call->api, call->desc, &trouble);
  void *arena = (void *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
  call->desc->kernel(buffers, symbols, arena, 0, call);
  driver.cuCtxPopCurrent_v2(&popped);
  return call->error;
}

OrtStatus *igniter_gpu_run(struct igniter_state *state, const struct igniter_desc *desc, const OrtApi *api,
                           OrtKernelContext *context, void **buffers, int64_t *symbols, int64_t size) {
  struct device *device = state->device;
  struct launches call = {api, context, 0, desc, device, 0};
  void *memory = 0;
  TRY(api->KernelContext_GetGPUComputeStream(context, &call.stream));
  if (size)
    TRY(allocate(&call, size, &memory));
  OrtStatus *status = run_func(&call, buffers, symbols, memory);
  /* What was launched may still run: the memory is the stream's, so ORT gives it to later work of this stream alone. */
  if (memory)
    succeeds(api, api->AllocatorFree(device->allocator, memory));
  return status;
}

/* Encodes a tensor map in the parameter that begins with the address of its tensor. The elements lie row after row. */
static int encode(struct trouble *trouble, const struct map *map, void **parameters) {
  void **place = parameters + map->parameter;
  void *address = *(void **)*place;
  uint64_t sizes[MOST_DIMS], strides[MOST_DIMS];
  uint32_t steps[MOST_DIMS];
  for (uint32_t k = 0; k < map->rank; k++) {
    uint32_t dim = map->rank - 1 - k; /* CUDA's first dim is the last one. */
    sizes[k] = *(const uint32_t *)place[1 + dim];
    strides[k] = *(const uint64_t *)place[1 + map->rank + dim] * map->bytes;
    steps[k] = 1;
  }
  return CALL(trouble, cuTensorMapEncodeTiled, *place, map->type, map->rank, address, sizes, strides + 1, map->box,
              steps, 0, map->swizzle, PROMOTION_128, 0);
}

/* Launches `grid` programs of a kernel; `parameters` are the addresses of its parameters. */
void igniter_launch(struct launches *call, int64_t number, int64_t grid, void **parameters) {
  const OrtApi *api = call->api;
  if (call->error || grid < 1)
    return;
  const struct loaded *loaded = &call->device->kernels[number];
  const struct kernel *kernel = loaded->kernel;
  struct trouble trouble = {kernel->label, 0, 0};
  if (grid > MOST_PROGRAMS) {
    call->error =
        numbered(api, call->desc, kernel->label, ": ", grid, " programs are more than a GPU launches at a time");
    return;
  }
  for (uint64_t k = 0; k < kernel->addresses + kernel->map_count; k++) {
    uint64_t place = k < kernel->addresses ? k : kernel->maps[k - kernel->addresses].parameter;
    int64_t address = *(const int64_t *)parameters[place];
    if (address & (ALIGNMENT - 1)) {
      call->error = bad_address(api, call->desc, kernel->label, (int64_t)k, address);
      return;
    }
  }
  for (uint64_t k = 0; k < kernel->map_count; k++)
    if (!encode(&trouble, &kernel->maps[k], parameters)) {
      call->error = driver_failed(api, call->desc, &trouble);
      return;
    }
  if (!CALL(&trouble, cuLaunchKernel, loaded->function, (uint32_t)grid, 1, 1, kernel->threads, 1, 1, kernel->shared,
            call->stream, parameters, 0))
    call->error = driver_failed(api, call->desc, &trouble);
}
