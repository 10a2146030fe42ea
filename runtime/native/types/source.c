/* Host code that a blob carries uncompiled; a load never compiles or links.
 *
 * c               string code, string fmt, vector<string> func_names, vector<string> const_vars
 * static_library  string data, vector<string> func_names */
#include "blob/key.h"
#include "types/carried.h"
#include "types/families.h"

static int read_c(struct reader *reader, struct texts *names) {
  struct span code, fmt;
  if (reader_string(reader, &code) != 0 || reader_string(reader, &fmt) != 0 ||
      texts_read(reader, names) != 0)
    return -1;
  return texts_skip(reader);
}

static int read_static_library(struct reader *reader, struct texts *names) {
  struct span data;
  return reader_bytes(reader, &data) == 0 ? texts_read(reader, names) : -1;
}

int load_source(struct reader *reader, struct span type_key, dso_module **module) {
  struct texts names = {0};
  int status = key_is(type_key, "c") ? read_c(reader, &names) : read_static_library(reader, &names);
  if (status == 0) return carried_module_new(type_key, names, reader->owner, module);
  texts_clear(&names);
  return -1;
}
