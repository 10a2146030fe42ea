/* Functions of every code of a type, for the tests of wrappers. */
#include "dso_packer.h"
#include <complex.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
char next_char(char c) { return (char)(c + 1); }
float half(float x) { return x / 2; }
_Float16 half16(_Float16 x) { return x / 2; }
double _Complex turned(double _Complex z) { return z * 1i; }
float _Complex turned_float(float _Complex z) { return z * 1i; }
double total(const double *x, long n) {
  double s = 0;
  while (n-- > 0) s += x[n];
  return s;
}
double trace(double x[], long n, long m) {
  double s = 0;
  for (long i = 0; i < n && i < m; i++) s += x[i * m + i];
  return s;
}
double four(const float x[4]) { return x[0] + x[1] + x[2] + x[3]; }
uint64_t counted(const uint8_t *x, uint64_t n) { return x ? n : 99; }
void fill(char *text, long n) {
  if (text) memset(text, 'x', (size_t)n);
}
uintptr_t address(const unsigned char *p) { return (uintptr_t)p; }
uintptr_t writable(unsigned char *p) { return (uintptr_t)p; }
uintptr_t anything(const void *p) { return (uintptr_t)p; }
uintptr_t anything_writable(void *p) { return (uintptr_t)p; }
int first(const void *p) { return p ? *(const unsigned char *)p : -1; }
long joined(const char *const *names) {
  long n = 0;
  while (names && *names) n += (long)strlen(*names++);
  return n;
}
long joined_n(char **names, long n) {
  long s = 0;
  for (long i = 0; i < n; i++) s += (long)strlen(names[i]);
  return s;
}
typedef struct counter {
  long value;
} counter;
static int alive;
int living(void) { return alive; }
counter *counter_new(long value) {
  if (value < 0) return NULL;
  counter *c = malloc(sizeof *c);
  c->value = value;
  alive++;
  return c;
}
long counter_next(counter *c) { return c ? c->value++ : -1; }
void counter_free(counter *c) {
  alive--;
  free(c);
}
int counter_open(long value, counter **out) {
  *out = counter_new(value);
  return *out ? 0 : -1;
}
typedef struct {
  double x;
  float y;
} point;
typedef struct {
  point low, high;
  int8_t flags[3];
  bool ok;
  const char *name;
} box;
typedef struct {
  float _Complex z;
  int32_t grid[2][2];
  _Float16 h;
} odd;
point mirrored(point p) {
  point q = {-p.x, -p.y};
  return q;
}
box grown(box b) {
  b.high.x += 1;
  b.flags[2]++;
  b.ok = !b.ok;
  return b;
}
odd oddly(odd o) {
  o.z *= 2;
  o.grid[1][0] = 7;
  return o;
}
double norm(const point *p) { return p ? sqrt(p->x * p->x + (double)p->y * (double)p->y) : -1; }
void shift(point *p, long n) {
  for (long i = 0; i < n; i++) p[i].x += 1;
}
long stats(const double *x, long n, double *mean, double *peak) {
  *mean = *peak = 0;
  for (long i = 0; i < n; i++) {
    *mean += x[i] / (double)n;
    if (x[i] > *peak) *peak = x[i];
  }
  return n;
}
void only_mean(const double *x, long n, double *mean) { *mean = total(x, n) / (double)n; }
dso_status checked(long n, long *half, bool *even, char *letter) {
  if (n < 0) return dso_raise("ValueError", "negative");
  *half = n / 2;
  *even = n % 2 == 0;
  *letter = 'a';
  return 0;
}
static int freed;
int frees(void) { return freed; }
void text_free(char *text) {
  freed++;
  free(text);
}
char *repeated(const char *text, long n) {
  if (n < 0 || !text) return NULL;
  char *s = calloc(1, strlen(text) * (size_t)n + 1);
  for (long i = 0; i < n; i++) strcat(s, text);
  return s;
}
int described(long n, char **text, point *p) {
  *text = repeated("ab", n);
  p->x = (double)n;
  p->y = 1;
  return 5;
}
const char *named(long n, const char **what) {
  *what = n ? "one" : NULL;
  return "name";
}
int opened(const char *path) {
  if (!path || strcmp(path, "ok")) {
    errno = ENOENT;
    return -1;
  }
  return 3;
}
void *found(long n) {
  if (n) return (void *)n;
  errno = EINVAL;
  return NULL;
}
long scaled(long x, long by, double add, const char *text, bool minus) {
  return (minus ? -1 : 1) * (x * by + (long)add + (text ? (long)strlen(text) : 0));
}
double integral(double (*f)(double, void *), void *data, double a, double b) {
  return (f(a, data) + f(b, data)) / 2 * (b - a);
}
static int visits;
int visited(void) { return visits; }
long each(const double *x, long n,
          bool (*visit)(const double *, long, const char *, char **, point, float _Complex,
                        DLTensor *, uint64_t)) {
  char *names[] = {"a", NULL, "long enough"};
  point p = {1, 2};
  long count = 0;
  if (!visit) return -1;
  for (long i = 0; i < n; i++) {
    visits++;
    count += visit(x + i, n - i, "text", names, p, 2.0f + 1i, NULL, UINT64_MAX);
  }
  return count;
}
void sorted(void (*swap)(void), int8_t (*compare)(int8_t, int8_t)) {
  swap();
  compare(1, -1);
}
static void *(*thread_of)(void *);
void elsewhere(void *(*run)(void *)) {
  pthread_t t;
  thread_of = run;
  pthread_create(&t, NULL, run, NULL);
  pthread_join(t, NULL);
}
void later(void) { thread_of(NULL); }
int print_call(int a) { return a * 10; }
dso_status asks(dso_status (*ask)(long)) { return ask(4); }
