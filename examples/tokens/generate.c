/* Choose the best tokens after some ids; the model is in the program. generate COUNT ID ... */
#define DSO_SYSTEM_LIB_IMPLEMENTATION
#include <dso_packer_system_lib.h>

#include <dso.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_IDS = 256 };

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Give the model `count` ids; store the best token after the last one. Return 0, or -1. */
static int next(dso_session *session, int64_t *ids, int64_t count, int64_t *token) {
  int64_t shape[] = {1, count};
  DLTensor given = {ids, {1, 0}, 2, {0, 64, 1}, shape, NULL, 0}; /* int64, in the CPU's memory */
  dso_any logits = dso_none(), arguments[] = {dso_tensor(&given)};
  if (dso_session_call(session, "main", &logits, arguments, 1)) return -1;
  const DLTensor *found = dso_tensor_of(&logits); /* float32[1, count, vocabulary] */
  const float *row = (const float *)found->data + (count - 1) * found->shape[2];
  *token = 0;
  for (int64_t i = 1; i < found->shape[2]; i++)
    if (row[i] > row[*token]) *token = i;
  dso_release(&logits);
  return 0;
}

int main(int argc, char **argv) {
  int64_t ids[MOST_IDS], count = 0, token;
  if (argc < 3 || argc - 2 > MOST_IDS) return fputs("usage: generate COUNT ID ...\n", stderr), 2;
  for (; count < argc - 2; count++) ids[count] = atoll(argv[count + 2]);

  dso_module *model = dso_system_library("tokens_"); /* the model's weights are read in place */
  dso_session *session = model ? dso_session_new(model, 4096) : NULL;
  if (!session || next(session, ids, count, &token)) return fputs(dso_last_error(), stderr), 1;
  const long most = atol(argv[1]);
  const double start = seconds();
  for (long i = 1; i <= most; i++) {
    printf("%lld\n", (long long)token);
    if (i < most && next(session, &token, 1, &token)) return fputs(dso_last_error(), stderr), 1;
  }
  fprintf(stderr, "%.0f tokens per second\n", (double)(most - 1) / (seconds() - start));

  dso_session_release(session);
  dso_module_release(model);
  return 0;
}
