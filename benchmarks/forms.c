/* One function for each form of a declaration; as little work as possible. */
#include <stdint.h>

typedef struct counter counter;
typedef struct {
  double x, y;
} point;

static int64_t count = 1;

int64_t of_int(int64_t a) { return a; }

counter *make_counter(void) { return (counter *)&count; }

int64_t of_handle(const counter *c) { return *(const int64_t *)c; }

int64_t of_callback(int64_t (*f)(int64_t), int64_t a) { return f(a); }

int of_out(double x, double *twice) {
  *twice = 2 * x;
  return 0;
}

double of_struct(point p) { return p.x + p.y; }

const char *of_text(const char *text) { return text; }
