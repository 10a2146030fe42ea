/* Load model.so, call its function, and read one of its weights. */
#include <stdio.h>

#include <dso.h>

int main(void) {
  float values[] = {1, 2, 3};
  int64_t shape[] = {3};
  DLTensor x = {values, {1, 0}, 1, {2, 32, 1}, shape, NULL, 0}; /* float32, in the CPU's memory */

  dso_module *m = dso_load("model.so", NULL); /* NULL: dso_last_error() says why */
  dso_any y = dso_none(), args[] = {dso_tensor(&x)};
  if (!m || dso_module_call(m, "predict", &y, args, 1)) return puts(dso_last_error()), 1;
  printf("predict([1, 2, 3]) = %g\n", y.v_float64);

  DLTensor w; /* borrowed from m, mapped, not copied */
  if (dso_module_weight(m, "layer1.weight", &w)) return puts(dso_last_error()), 1;
  printf("layer1.weight has %d values, the first is %g\n", (int)w.shape[0], *(float *)w.data);

  dso_release(&y);
  dso_module_release(m);
  return 0;
}
