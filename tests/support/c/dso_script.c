/* Run a script of calls through dso.h, and print every outcome; dso_script.py does the same with
 * Python's runtime.
 *
 *     load PATH                 the tree of a file becomes the next slot
 *     system PREFIX             the same of a system library
 *     call SLOT NAME ARG ...    of a module; what it returns takes a slot if it is a
 *                               module, a function or a tensor on a device
 *     keep SLOT NAME ARG ...    the same where the result is a tensor on the CPU: it takes one, too
 *     apply SLOT ARG ...        a function
 *     weight SLOT NAME          a named tensor
 *     import SLOT SLOT          append an import
 *     drop SLOT
 *     listen NAME               register a function that prints its arguments and returns 41, or
 *                               raises "not seven"
 *
 * ARG: n (none), i:INT, f:FLOAT, b:0|1, s:TEXT, x:HEX (bytes), d:TYPE:ID, o:SLOT, h:INT,... (a
 * shape), ( ARG ... ) (a tuple), t:CODE.BITS:SHAPE:HEX for a tensor on the CPU, m:CODE.BITS:SHAPE:HEX
 * for one in an object, as tuples hold them, g:CODE.BITS:SHAPE:HEX for one on opencl:0. SHAPE may be
 * SHAPE/STRIDES. Tensors are printed after the call. */
#define _POSIX_C_SOURCE 200112L
#include "script_values.h"

static void show_error(void) { printf("error %s\n", dso_last_error()); }

static void call(dso_any *callee, const char *name, int is_kept) {
  dso_any result, args[MOST_ARGS];
  num_tensors = num_made = 0;
  int32_t count = read_arguments(args);
  int status = name ? dso_module_call(dso_module_of(callee), name, &result, args, count)
                    : dso_call_function((dso_object *)callee->v_ptr, &result, args, count);
  if (status != 0) {
    show_error();
  } else {
    show(&result);
    if (is_kept) slots[num_slots++] = result;
    else dso_release(&result);
  }
  for (int i = 0; i < num_tensors; i++) {
    if (tensors[i]->copy) dso_tensor_copy(&tensors[i]->tensor, tensors[i]->copy);
    show_tensor(&tensors[i]->tensor);
  }
  for (int i = 0; i < num_made; i++) dso_object_release(made[i]);
}

/* The function that "listen" registers. */
static int told(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle;
  printf("told %d\n", (int)num_args);
  for (int32_t i = 0; i < num_args; i++) {
    printf("told ");
    show(&args[i]);
  }
  for (int32_t i = 0; i < num_args; i++)
    if (args[i].type_index == DSO_INT && args[i].v_int64 == 7)
      return dso_set_error("ValueError", "not seven");
  *result = dso_int(41);
  return 0;
}

static void listen(const char *name) {
  dso_function *function = dso_function_new(told, NULL, NULL);
  if (!function || dso_register_function(name, function) != 0) show_error();
  dso_function_release(function);
}

static void open_tree(dso_module *module) {
  if (!module) {
    show_error();
    return;
  }
  dso_any value = dso_module_value(module);
  show(&value);
  dso_module_release(module);
}

static void show_weight(dso_module *module, const char *name) {
  DLTensor tensor;
  if (dso_module_weight(module, name, &tensor) != 0) show_error();
  else show_tensor(&tensor);
}

static void run(char *line) {
  char *verb = strtok(line, " ");
  if (!verb) return;
  char *word = strtok(NULL, " ");
  if (strcmp(verb, "load") == 0) open_tree(dso_load(word, NULL));
  else if (strcmp(verb, "system") == 0) open_tree(dso_system_library(word ? word : ""));
  else if (strcmp(verb, "call") == 0) call(slot_of(word), strtok(NULL, " "), 0);
  else if (strcmp(verb, "keep") == 0) call(slot_of(word), strtok(NULL, " "), 1);
  else if (strcmp(verb, "apply") == 0) call(slot_of(word), NULL, 0);
  else if (strcmp(verb, "drop") == 0) dso_release(slot_of(word));
  else if (strcmp(verb, "listen") == 0) listen(word);
  else if (strcmp(verb, "weight") == 0)
    show_weight(dso_module_of(slot_of(word)), strtok(NULL, " "));
  else if (strcmp(verb, "import") == 0) {
    dso_module *imported = dso_module_of(slot_of(strtok(NULL, " ")));
    if (dso_module_import(dso_module_of(slot_of(word)), imported) != 0) show_error();
  } else fail("not a verb", verb);
}

int main(void) {
  static char line[MOST_LINE];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = '\0';
    printf("> %s\n", line);
    fflush(stdout);
    run(line);
  }
  for (int i = 0; i < num_slots; i++) dso_release(&slots[i]);
  return 0;
}
