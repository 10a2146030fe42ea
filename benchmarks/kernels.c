/* The called functions: as little work as possible, so that the benchmark measures calls. */
#include <stdint.h>

void noop(void) {}

int64_t add(int64_t a, int64_t b) { return a + b; }

void pair(const float *x, float *y) { y[0] = x[0]; }

int64_t first(const char *text) { return text[0]; }

double mixed(int64_t a, double b, _Bool c, const char *text, const float *x, float *y, int32_t n,
             int64_t d) {
  y[0] = x[0];
  return (double)(a + d) + b * c + text[0] + n;
}

int64_t apply(int64_t (*function)(int64_t), int64_t value) { return function(value); }
