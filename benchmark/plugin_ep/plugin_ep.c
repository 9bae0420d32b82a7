/* A prototype of a plugin execution provider that runs a compiled folder in place of a whole ONNX graph.
 *
 * ONNX Runtime loads this library by `RegisterExecutionProviderLibrary`. A session of the original model that appends
 * the provider, with the option `plan` (a file that `benchmark.plugin_ep` writes), gives the provider its whole graph.
 * The provider runs the one op of the folder's library for it: it registers the library with a copy of ONNX Runtime's
 * function table, so that the library's own op reads the graph's inputs and the folder's weights.
 *
 * Declarations are by index, of version 23 of the API (ONNX Runtime 1.23) and newer. It is a measurement, not a product:
 * one op, one domain, CPUs, no subgraphs. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef void OrtStatus;
enum { VERSION = 23, TABLE = 300, MOST = 4096, FAIL = 1 };

typedef struct {
  void **(*GetApi)(uint32_t version);
  const char *(*GetVersionString)(void);
} OrtApiBase;

/* Indices of OrtApi, of OrtEpApi, and the fields of OrtCustomOp. */
enum {
  CREATE_STATUS = 0, CREATE_DOMAIN = 26, DOMAIN_ADD = 27, ADD_DOMAIN = 28, CREATE_TENSOR = 49, CPU_MEMORY = 69,
  INPUT_COUNT = 88, OUTPUT_COUNT = 89, GET_INPUT = 90, GET_OUTPUT = 91, ADD_CONFIG = 130, INFO_INPUT_COUNT = 230,
  HAS_CONFIG = 237, GET_CONFIG = 238, CONSTANT_INPUT = 249, GET_ALLOCATOR = 253, PARALLEL_FOR = 274, VALUE_NAME = 289,
  HARDWARE_TYPE = 307, EP_API = 317, NODE_COUNT = 344, NODES = 345, NODE_INPUT_COUNT = 353, NODE_INPUTS = 354,
  NODE_OUTPUT_COUNT = 355, NODE_OUTPUTS = 356, EP_CREATE_DEVICE = 0, EP_NODES_TO_FUSE = 2
};
typedef struct OrtCustomOp {
  uint32_t version;
  void *fields[25];
} OrtCustomOp;
enum { OP_NAME = 1, OP_DESTROY = 8, OP_CREATE = 16, OP_COMPUTE = 17 };

#define CALL(table, index, ...) ((OrtStatus * (*)())(table)[index])(__VA_ARGS__)
#define TRY(...) do { OrtStatus *failed = (__VA_ARGS__); if (failed) return failed; } while (0)

static void **api; /* ONNX Runtime's table */
static void *table[TABLE]; /* its copy for the library */

static OrtStatus *error(const char *text) { return CALL(api, CREATE_STATUS, FAIL, text); }

/* -- the plan: the library's op, its inputs and outputs by name, and the weights ---------------------------------- */

typedef struct {
  char name[512];
  void *weight; /* an OrtValue over the mapped file; null for an input of the graph */
  int place; /* among the fused node's inputs or outputs */
} Port;

typedef struct {
  char library[MOST], weights[MOST], op[512];
  int input_count, output_count;
  Port *inputs, *outputs;
  const OrtCustomOp *custom;
  void *kernel;
} Plan;

static OrtStatus *read_plan(const char *path, Plan **made) {
  FILE *file = fopen(path, "r");
  Plan *plan = calloc(1, sizeof *plan);
  char kind[16];
  if (!file || fscanf(file, "%4095[^\n] %4095[^\n] %511s %d %d", plan->library, plan->weights, plan->op,
                      &plan->input_count, &plan->output_count) != 5)
    return error("the plan cannot be read");
  plan->inputs = calloc(plan->input_count, sizeof(Port));
  plan->outputs = calloc(plan->output_count, sizeof(Port));
  int descriptor = open(plan->weights, O_RDONLY);
  struct stat status;
  fstat(descriptor, &status);
  char *mapped = status.st_size ? mmap(0, status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0) : 0;
  close(descriptor);
  void *memory;
  TRY(CALL(api, CPU_MEMORY, 0, 0, &memory));
  for (int i = 0; i < plan->input_count; i++) {
    Port *port = &plan->inputs[i];
    if (fscanf(file, "%15s %511s", kind, port->name) != 2)
      return error("the plan is cut");
    if (strcmp(kind, "weight"))
      continue;
    long long offset, bytes, dims[16];
    int type, rank;
    if (fscanf(file, "%d %lld %lld %d", &type, &offset, &bytes, &rank) != 4 || rank > 16)
      return error("a weight of the plan is wrong");
    for (int k = 0; k < rank; k++)
      if (fscanf(file, "%lld", &dims[k]) != 1)
        return error("a dim of the plan is wrong");
    TRY(CALL(api, CREATE_TENSOR, memory, mapped + offset, (size_t)bytes, dims, (size_t)rank, type, &port->weight));
  }
  for (int i = 0; i < plan->output_count; i++)
    if (fscanf(file, "%511s", plan->outputs[i].name) != 1)
      return error("the plan is cut");
  fclose(file);
  *made = plan;
  return 0;
}

/* -- the table that the library sees ------------------------------------------------------------------------------ */

typedef struct {
  const void *real;
  const Plan *plan;
} Context; /* the library gets it as its OrtKernelContext */

static Plan *registering, *creating;

static OrtStatus *add_op(void *domain, const OrtCustomOp *op) {
  (void)domain;
  if (!strcmp(((const char *(*)(const OrtCustomOp *))op->fields[OP_NAME])(op), registering->op))
    registering->custom = op;
  return 0;
}
static OrtStatus *make_domain(const char *name, void **made) { (void)name; *made = &table; return 0; }
static OrtStatus *nothing(void) { return 0; }
static OrtStatus *no_entry(const void *options, const char *key, int *has) { (void)options; (void)key; *has = 0; return 0; }
static OrtStatus *input_count(const Context *c, size_t *n) { *n = c->plan->input_count; return 0; }
static OrtStatus *output_count(const Context *c, size_t *n) { *n = c->plan->output_count; return 0; }
static OrtStatus *get_input(const Context *c, size_t i, const void **value) {
  const Port *port = &c->plan->inputs[i];
  if (!port->weight)
    return CALL(api, GET_INPUT, c->real, (size_t)port->place, value);
  *value = port->weight;
  return 0;
}
static OrtStatus *get_output(Context *c, size_t i, const int64_t *dims, size_t rank, void **value) {
  return CALL(api, GET_OUTPUT, c->real, (size_t)c->plan->outputs[i].place, dims, rank, value);
}
static OrtStatus *get_allocator(const Context *c, const void *memory, void **made) {
  return CALL(api, GET_ALLOCATOR, c->real, memory, made);
}
static OrtStatus *parallel_for(const Context *c, void (*f)(void *, size_t), size_t n, size_t batch, void *data) {
  return CALL(api, PARALLEL_FOR, c->real, f, n, batch, data);
}
static OrtStatus *info_input_count(const void *info, size_t *n) { (void)info; *n = creating->input_count; return 0; }
static OrtStatus *constant_input(const void *info, size_t i, int *constant, const void **value) {
  (void)info;
  *value = creating->inputs[i].weight;
  *constant = *value != 0;
  return 0;
}

static void **get_table(uint32_t version) { (void)version; return table; }
static const OrtApiBase base_for_library = {get_table, 0};

static void make_table(void) {
  memcpy(table, api, sizeof table);
  table[CREATE_DOMAIN] = (void *)make_domain;
  table[DOMAIN_ADD] = (void *)add_op;
  table[ADD_DOMAIN] = table[ADD_CONFIG] = (void *)nothing;
  table[HAS_CONFIG] = (void *)no_entry;
  table[INPUT_COUNT] = (void *)input_count;
  table[OUTPUT_COUNT] = (void *)output_count;
  table[GET_INPUT] = (void *)get_input;
  table[GET_OUTPUT] = (void *)get_output;
  table[GET_ALLOCATOR] = (void *)get_allocator;
  table[PARALLEL_FOR] = (void *)parallel_for;
  table[INFO_INPUT_COUNT] = (void *)info_input_count;
  table[CONSTANT_INPUT] = (void *)constant_input;
}

static OrtStatus *load_library(Plan *plan) {
  void *library = dlopen(plan->library, RTLD_NOW);
  OrtStatus *(*enter)(void *, const OrtApiBase *) = library ? dlsym(library, "RegisterCustomOps") : 0;
  if (!enter)
    return error("the library of the plan does not load");
  registering = creating = plan;
  TRY(enter(0, &base_for_library));
  if (!plan->custom)
    return error("the library has no op of the plan's name");
  return ((OrtStatus * (*)())plan->custom->fields[OP_CREATE])(plan->custom, table, 0, &plan->kernel);
}

/* -- the provider ------------------------------------------------------------------------------------------------- */

typedef struct {
  uint32_t version;
  OrtStatus *(*CreateState)(void *self, void *context, void **state);
  OrtStatus *(*Compute)(void *self, void *state, void *context);
  void (*ReleaseState)(void *self, void *state);
  Plan *plan;
} ComputeInfo;

static OrtStatus *create_state(void *self, void *context, void **state) { (void)self; (void)context; *state = 0; return 0; }
static void release_state(void *self, void *state) { (void)self; (void)state; }
static OrtStatus *compute(void *self, void *state, void *context) {
  Plan *plan = ((ComputeInfo *)self)->plan;
  Context wrapped = {context, plan};
  (void)state;
  return ((OrtStatus * (*)())plan->custom->fields[OP_COMPUTE])(plan->kernel, &wrapped);
}

typedef struct {
  uint32_t version;
  void *fields[32];
  Plan *plan;
} Ep; /* OrtEp and OrtEpFactory have the same form */
enum { NAME = 0, CAPABILITY, COMPILE, RELEASE_INFOS };
enum { VENDOR = 1, DEVICES, CREATE_EP, RELEASE_EP, VENDOR_ID, VERSION_TEXT, ALLOCATOR = 8, RELEASE_ALLOCATOR, TRANSFER, STREAM_AWARE };

static const char *name(const void *self) { (void)self; return "Igniter"; }

static OrtStatus *capability(void *self, const void *graph, void *support) {
  (void)self;
  size_t count = 0;
  struct { uint32_t version; bool drop_constants; } options = {VERSION, true};
  void **ep_api = ((void **(*)(void))api[EP_API])();
  TRY(CALL(api, NODE_COUNT, graph, &count));
  const void **nodes = calloc(count + 1, sizeof *nodes);
  TRY(CALL(api, NODES, graph, nodes, count));
  OrtStatus *status = count ? CALL(ep_api, EP_NODES_TO_FUSE, support, nodes, count, &options) : 0;
  free(nodes);
  return status;
}

/* Finds the places of the plan's ports among the values of the fused node. */
static OrtStatus *place(const void *node, int counts, int values, Port *ports, int ports_count) {
  size_t count = 0;
  const char *text;
  TRY(CALL(api, counts, node, &count));
  const void **found = calloc(count + 1, sizeof *found);
  TRY(CALL(api, values, node, found, count));
  for (int i = 0; i < ports_count; i++) {
    ports[i].place = -1;
    for (size_t k = 0; k < count && !ports[i].weight; k++) {
      TRY(CALL(api, VALUE_NAME, found[k], &text));
      if (!strcmp(text, ports[i].name))
        ports[i].place = (int)k;
    }
    if (!ports[i].weight && ports[i].place < 0)
      return error("a value of the plan is not one of the graph");
  }
  free(found);
  return 0;
}

static OrtStatus *compile(Ep *self, const void **graphs, const void **fused, size_t count, ComputeInfo **infos,
                          void **context_nodes) {
  (void)graphs;
  (void)context_nodes;
  if (count != 1)
    return error("the graph is not one piece");
  TRY(place(fused[0], NODE_INPUT_COUNT, NODE_INPUTS, self->plan->inputs, self->plan->input_count));
  TRY(place(fused[0], NODE_OUTPUT_COUNT, NODE_OUTPUTS, self->plan->outputs, self->plan->output_count));
  infos[0] = calloc(1, sizeof(ComputeInfo));
  *infos[0] = (ComputeInfo){VERSION, create_state, compute, release_state, self->plan};
  return 0;
}

static void release_infos(void *self, ComputeInfo **infos, size_t count) {
  (void)self;
  for (size_t i = 0; i < count; i++)
    free(infos[i]);
}

static OrtStatus *devices(void *factory, const void *const *given, size_t count, void **made, size_t room, size_t *n) {
  void **ep_api = ((void **(*)(void))api[EP_API])();
  *n = 0;
  for (size_t i = 0; i < count && *n < room; i++)
    if (((int (*)(const void *))api[HARDWARE_TYPE])(given[i]) == 0) /* a CPU */
      TRY(CALL(ep_api, EP_CREATE_DEVICE, factory, given[i], (void *)0, (void *)0, &made[(*n)++]));
  return 0;
}

static OrtStatus *create_ep(void *factory, const void *const *given, const void *const *pairs, size_t count,
                            const void *options, const void *logger, Ep **made) {
  char path[MOST];
  size_t size = sizeof path;
  (void)factory, (void)given, (void)pairs, (void)count, (void)logger;
  TRY(CALL(api, GET_CONFIG, options, "ep.igniter.plan", path, &size));
  Ep *ep = calloc(1, sizeof *ep);
  ep->version = VERSION;
  ep->fields[NAME] = (void *)name;
  ep->fields[CAPABILITY] = (void *)capability;
  ep->fields[COMPILE] = (void *)compile;
  ep->fields[RELEASE_INFOS] = (void *)release_infos;
  TRY(read_plan(path, &ep->plan));
  TRY(load_library(ep->plan));
  *made = ep;
  return 0;
}

static void release_ep(void *factory, Ep *ep) {
  (void)factory;
  ((void (*)(void *))ep->plan->custom->fields[OP_DESTROY])(ep->plan->kernel);
  free(ep);
}

static uint32_t vendor_id(const void *self) { (void)self; return 0; }
static const char *version_text(const void *self) { (void)self; return "0.1.0"; }
static OrtStatus *no_allocator(void *self, const void *memory, const void *options, void **made) {
  (void)self, (void)memory, (void)options;
  *made = 0;
  return 0;
}
static void release_allocator(void *self, void *allocator) { (void)self; (void)allocator; }
static OrtStatus *no_transfer(void *self, void **made) { (void)self; *made = 0; return 0; }
static bool stream_aware(const void *self) { (void)self; return false; }

__attribute__((visibility("default"))) OrtStatus *CreateEpFactories(const char *registered, const OrtApiBase *base,
                                                                     const void *logger, void **factories, size_t room,
                                                                     size_t *count) {
  static Ep factory;
  (void)registered, (void)logger, (void)room;
  api = base->GetApi(VERSION);
  if (!api)
    return CALL(base->GetApi(1), CREATE_STATUS, FAIL, "this provider needs ONNX Runtime 1.23 or newer");
  make_table();
  factory.version = VERSION;
  factory.fields[NAME] = factory.fields[VENDOR] = (void *)name;
  factory.fields[DEVICES] = (void *)devices;
  factory.fields[CREATE_EP] = (void *)create_ep;
  factory.fields[RELEASE_EP] = (void *)release_ep;
  factory.fields[VENDOR_ID] = (void *)vendor_id;
  factory.fields[VERSION_TEXT] = (void *)version_text;
  factory.fields[ALLOCATOR] = (void *)no_allocator;
  factory.fields[RELEASE_ALLOCATOR] = (void *)release_allocator;
  factory.fields[TRANSFER] = (void *)no_transfer;
  factory.fields[STREAM_AWARE] = (void *)stream_aware;
  factories[0] = &factory;
  *count = 1;
  return 0;
}

__attribute__((visibility("default"))) OrtStatus *ReleaseEpFactory(void *factory) { (void)factory; return 0; }
