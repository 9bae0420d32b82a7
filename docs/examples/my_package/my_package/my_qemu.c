/* Calls one kernel in a process of its own, without a C library.
 *
 * Standard input: the numbers of buffers and symbols, the bytes of scratch memory, whether there is a pool; the bytes of
 * each buffer; the symbols (all of 64 bits); then the contents of the buffers. Standard output: the buffers after the
 * call. Each buffer ends right before a page without access, so an access past its end ends the process. */
#include <stddef.h>
#include <stdint.h>

typedef void task_fn(void *data, int64_t index);
typedef void pool_fn(void *context, task_fn *task, int64_t count, void *data);
void kernel(void **buffers, int64_t *symbols, void *scratch, pool_fn *pool, void *context);

enum { READ = 63, WRITE = 64, EXIT = 93, MAP = 222, PROTECT = 226 };
enum { PAGE = 4096, MOST = 64 };

static long sys(long number, long a, long b, long c, long d, long e, long f)
{
    register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d, a4 __asm__("a4") = e, a5 __asm__("a5") = f;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
    return a0;
}

static void leave(int status)
{
    sys(EXIT, status, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

static void transfer(long number, int file, char *data, size_t size)
{
    while (size) {
        long done = sys(number, file, (long)data, size, 0, 0, 0);
        if (done <= 0)
            leave(3);
        data += done;
        size -= done;
    }
}

/* Memory that ends right before a page without access. */
static char *at_an_end(size_t size)
{
    size_t pages = (size + PAGE - 1) / PAGE * PAGE + PAGE;
    long place = sys(MAP, 0, pages + PAGE, 3 /* read, write */, 0x22 /* private, anonymous */, -1, 0);
    if (place < 0 && place > -PAGE)
        leave(4);
    char *end = (char *)place + pages;
    sys(PROTECT, (long)end, PAGE, 0, 0, 0, 0);
    return end - size;
}

/* A pool of one thread. */
static void serial(void *context, task_fn *task, int64_t count, void *data)
{
    for (int64_t i = 0; i < count; i++)
        task(data, i);
}

void *memset(void *to, int value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = value;
    return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

static int64_t head[4], sizes[MOST], symbols[MOST];
static void *buffers[MOST];

void _start(void)
{
    transfer(READ, 0, (char *)head, sizeof head);
    if (head[0] > MOST || head[1] > MOST)
        leave(5);
    transfer(READ, 0, (char *)sizes, head[0] * 8);
    transfer(READ, 0, (char *)symbols, head[1] * 8);
    for (int i = 0; i < head[0]; i++) {
        buffers[i] = at_an_end(sizes[i]);
        transfer(READ, 0, buffers[i], sizes[i]);
    }
    void *scratch = at_an_end((head[2] + 63) / 64 * 64);
    kernel(buffers, symbols, scratch, head[3] ? serial : 0, 0);
    for (int i = 0; i < head[0]; i++)
        transfer(WRITE, 1, buffers[i], sizes[i]);
    leave(0);
}
