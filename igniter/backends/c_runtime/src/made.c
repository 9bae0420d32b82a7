/* Constants that kernels of the library compute from other constants when a session is created: the model stores only
 * the latter, which are smaller.
 *
 * The results of an op are one block of memory. Sessions with the same op and equal constants share it: the blocks in
 * use are a list, and a block is found by its op and by 128 bits of a hash of the constants. The last session to end
 * frees it. A constant's address identifies nothing: ONNX Runtime frees the constants of a session before its ops. */

#include "library.h"
#include "subnormals.h"

/* The C library's: the first one lets the threads run that are ready on this CPU. */
int sched_yield(void);

int madvise(void *place, size_t size, int advice);

enum { ALIGNMENT = 64, LINE = 16, ADVICE_HUGE_PAGES = 14 };
#define HUGE_PAGE ((uintptr_t)2 << 20)

struct igniter_block {
  struct igniter_block *next;
  const struct igniter_desc *desc;
  uint64_t hash[2];
  int64_t users;
  void *buffers[]; /* By input; null for the inputs that are as given. */
};

static struct igniter_block *blocks;
static int32_t lock;

static void enter(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
    sched_yield();
}

static void leave(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

/* -- the hash ------------------------------------------------------------------------------------------------------ */

static uint64_t word(const uint8_t *bytes, uint64_t count) {
  uint64_t found = 0;
  if (count == 8) {
    __builtin_memcpy(&found, bytes, 8);
    return found;
  }
  for (uint64_t k = 0; k < count; k++)
    found |= (uint64_t)bytes[k] << (8 * k);
  return found;
}

/* Multiplies two numbers, and folds the product. */
static uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void add_words(uint64_t *hash, uint64_t a, uint64_t b) {
  hash[0] = mix(hash[0] ^ a ^ 0x9e3779b97f4a7c15u, b ^ 0xbf58476d1ce4e5b9u) + (a ^ b);
  hash[1] = mix(hash[1] ^ b ^ 0x94d049bb133111ebu, a ^ 0xd6e8feb86659fd93u) + (a - b);
}

/* Adds bytes and their number. */
static void add_bytes(uint64_t *hash, const uint8_t *bytes, uint64_t count) {
  uint64_t k = 0;
  for (; k + LINE <= count; k += LINE)
    add_words(hash, word(bytes + k, 8), word(bytes + k + 8, 8));
  uint64_t rest = count - k, first = rest < 8 ? rest : 8;
  add_words(hash, word(bytes + k, first), word(bytes + k + first, rest - first));
  add_words(hash, count, 0);
}

/* -- making -------------------------------------------------------------------------------------------------------- */

/* What is made for one op: the constants by row of its table, and the rows whose results serve for others. */
struct making {
  const OrtApi *api;
  const struct igniter_desc *desc;
  OrtAllocator *allocator;
  void **sources;
  int64_t *like; /* The first row with the same kernel and constant. */
  uint64_t hash[2];
};

static OrtStatus *constant_of(const struct making *m, const OrtKernelInfo *info, const struct igniter_state *state,
                              int64_t input, void **data) {
  int32_t constant = 0;
  const OrtValue *value = 0;
  if (state->checked[input])
    TRY(m->api->KernelInfoGetConstantInput_tensor(info, (size_t)input, &constant, &value));
  if (!constant || !value)
    return igniter_fail(m->api, m->desc, NOT_CONSTANT, &m->desc->inputs[input], input, 0, 0, 0);
  return m->api->GetTensorMutableData(value, data);
}

static int is_same(const struct making *m, int64_t j, int64_t k) {
  const struct igniter_made *a = &m->desc->made[j], *b = &m->desc->made[k];
  return m->sources[j] == m->sources[k] && a->kernel == b->kernel && a->source_bytes == b->source_bytes;
}

/* Takes the constants, and hashes them. */
static OrtStatus *take_constants(struct making *m, const OrtKernelInfo *info, const struct igniter_state *state) {
  m->hash[0] = m->hash[1] = 0;
  for (int64_t k = 0; k < m->desc->made_count; k++) {
    const struct igniter_made *made = &m->desc->made[k];
    TRY(constant_of(m, info, state, made->input, &m->sources[k]));
    m->like[k] = 0;
    while (!is_same(m, m->like[k], k))
      m->like[k]++;
    if (m->like[k] == k)
      add_bytes(m->hash, m->sources[k], (uint64_t)made->source_bytes);
    add_words(m->hash, (uint64_t)m->like[k], 0);
  }
  return 0;
}

static uint64_t aligned(uint64_t size) { return (size + (ALIGNMENT - 1)) & ~(uint64_t)(ALIGNMENT - 1); }

static char *align(char *place) { return place + (-(uintptr_t)place & (ALIGNMENT - 1)); }

/* Allocates memory, or fails with the text of this library in place of ONNX Runtime's. */
static OrtStatus *allocate(const struct making *m, uint64_t size, void **memory) {
  *memory = 0;
  if (!succeeds(m->api, m->api->AllocatorAlloc(m->allocator, size, memory)) || !*memory)
    return igniter_fail(m->api, m->desc, NO_MEMORY_TO_MAKE, 0, 0, 0, 0, (int64_t)size);
  return 0;
}

/* Asks the kernel for large pages where whole ones lie in a range: writing 100 MB for the first time takes 20 ms with
 * them and 80 ms with small ones, and readers need fewer entries of the TLB. They are not needed. */
static void use_large_pages(char *place, uint64_t size) {
  uintptr_t first = ((uintptr_t)place + (HUGE_PAGE - 1)) & -HUGE_PAGE, end = ((uintptr_t)place + size) & -HUGE_PAGE;
  if (first < end)
    madvise((void *)first, end - first, ADVICE_HUGE_PAGES);
}

/* Runs the kernels one after the other: an op has no threads before its first run. */
static OrtStatus *fill(const struct making *m, struct igniter_block *block) {
  uint64_t most = 0;
  void *memory = 0;
  for (int64_t k = 0; k < m->desc->made_count; k++)
    if ((uint64_t)m->desc->made[k].scratch > most)
      most = (uint64_t)m->desc->made[k].scratch;
  if (most)
    TRY(allocate(m, most + ALIGNMENT, &memory));
  uint64_t before = begin_exact();
  for (int64_t k = 0; k < m->desc->made_count; k++) {
    const struct igniter_made *made = &m->desc->made[k];
    void *buffers[] = {m->sources[k], block->buffers[made->input]};
    if (m->like[k] == k)
      made->kernel(buffers, (int64_t *)made->symbols, memory ? align(memory) : 0, 0, 0);
  }
  end_exact(before);
  if (memory)
    succeeds(m->api, m->api->AllocatorFree(m->allocator, memory));
  return 0;
}

static OrtStatus *make_block(const struct making *m, struct igniter_block **result) {
  const struct igniter_desc *desc = m->desc;
  uint64_t head = sizeof(struct igniter_block) + sizeof(void *) * (uint64_t)desc->input_count, size = head + ALIGNMENT;
  for (int64_t k = 0; k < desc->made_count; k++)
    if (m->like[k] == k)
      size += aligned((uint64_t)desc->made[k].bytes);
  void *memory;
  TRY(allocate(m, size, &memory));
  use_large_pages(memory, size);
  struct igniter_block *block = memory;
  char *place = align((char *)memory + head);
  for (int64_t k = 0; k < desc->input_count; k++)
    block->buffers[k] = 0;
  for (int64_t k = 0; k < desc->made_count; k++) {
    const struct igniter_made *made = &desc->made[k];
    block->buffers[made->input] = m->like[k] == k ? place : block->buffers[desc->made[m->like[k]].input];
    if (m->like[k] == k)
      place += aligned((uint64_t)made->bytes);
  }
  OrtStatus *status = fill(m, block);
  if (status)
    succeeds(m->api, m->api->AllocatorFree(m->allocator, memory));
  else
    *result = block;
  return status;
}

/* -- sharing ------------------------------------------------------------------------------------------------------- */

/* Gives a kernel object its block: one in use, or a new one. */
OrtStatus *igniter_make(const OrtApi *api, const struct igniter_desc *desc, const OrtKernelInfo *info,
                        OrtAllocator *allocator, struct igniter_state *state) {
  struct making m = {api, desc, allocator, ARRAY(void *, desc->made_count), ARRAY(int64_t, desc->made_count), {0, 0}};
  TRY(take_constants(&m, info, state));
  OrtStatus *status = 0;
  enter();
  struct igniter_block *block = blocks;
  while (block && (block->desc != desc || block->hash[0] != m.hash[0] || block->hash[1] != m.hash[1]))
    block = block->next;
  if (!block) {
    status = make_block(&m, &block);
    if (!status) {
      block->desc = desc;
      block->hash[0] = m.hash[0];
      block->hash[1] = m.hash[1];
      block->users = 0;
      block->next = blocks;
      blocks = block;
    }
  }
  if (!status) {
    block->users++;
    state->block = block;
    state->made = block->buffers;
  }
  leave();
  return status;
}

/* Ends the use of a block. */
void igniter_unmake(const OrtApi *api, OrtAllocator *allocator, struct igniter_state *state) {
  struct igniter_block *block = state->block, **link = &blocks;
  enter();
  int last = --block->users == 0;
  if (last) {
    while (*link != block)
      link = &(*link)->next;
    *link = block->next;
  }
  leave();
  if (last)
    succeeds(api, api->AllocatorFree(allocator, block));
}
