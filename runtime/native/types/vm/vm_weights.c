/* The weights that the code of an executable uses, from its imports. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "device/tensor_object.h"
#include "module/names.h"
#include "module/weights.h"
#include "types/vm/vm_executable.h"

/* A constant that is not text, or contains a NUL, is not the name of a weight. */
static const char *name_of(const dso_any *constant) {
  const char *text;
  size_t nbytes;
  if (!vm_read_text(constant, &text, &nbytes)) return NULL;
  return strlen(text) == nbytes ? text : NULL;
}

static int not_found(struct vm_executable *self, const char *name) {
  struct names names = {.count = 0};
  struct text text = {0};
  text_check(&text, module_import_weight_names(&self->module, &names));
  text_format(&text, "<VMExecutable '%s'>: its code uses the weight '%s', which no import has",
              self->module.type_key, name);
  names_add_near(&text, &names, NULL, name);
  names_clear(&names);
  return text_raise(&text, "KeyError");
}

/* A read-only view that keeps the module of the weight. */
static int view(const DLTensor *found, dso_module *owner, dso_any *value) {
  module_retain(owner);
  dso_tensor_object *made =
      tensor_object_view(found->dtype, found->ndim, found->shape, &owner->object);
  if (made == NULL) return -1;
  made->tensor.data = found->data;
  made->tensor.device = found->device;
  made->tensor.byte_offset = found->byte_offset;
  tensor_object_mark(&made->object, TENSOR_READ_ONLY);
  *value = any_of_object(made);
  return 0;
}

static int find_weight(struct vm_executable *self, const char *name, dso_any *value) {
  DLTensor found;
  dso_module *owner;
  int status = module_import_weight(&self->module, name, &found, &owner);
  if (status == 0) return not_found(self, name);
  return status > 0 ? view(&found, owner, value) : -1;
}

static int find_marked(struct vm_executable *self, const unsigned char *marks, dso_any *weights) {
  for (size_t i = 0; i < self->code.num_constants; i++) {
    const char *name = marks[i] ? name_of(&self->constants[i]) : NULL;
    if (name != NULL && find_weight(self, name, &weights[i]) != 0) return -1;
  }
  return 0;
}

int vm_weights_find(struct vm_executable *self, dso_any **weights) {
  *weights = NULL;
  if (vm_weight_row(&self->code) < 0) return 0;
  unsigned char *marks = heap_new_zeroed(self->code.num_constants + 1, 1);
  *weights = heap_new_zeroed(self->code.num_constants + 1, sizeof **weights);
  int status = -1;
  if (marks != NULL && *weights != NULL) {
    vm_mark_weights(&self->code, marks);
    status = find_marked(self, marks, *weights);
  } else {
    (void)raised_format("OutOfMemoryError", "no memory for a virtual machine");
  }
  free(marks);
  if (status != 0) vm_weights_free(self, weights);
  return status;
}

void vm_weights_free(const struct vm_executable *self, dso_any **weights) {
  for (size_t i = 0; *weights != NULL && i < self->code.num_constants; i++)
    any_release(&(*weights)[i]);
  free(*weights);
  *weights = NULL;
}
