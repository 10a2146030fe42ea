/* JSON runtimes (dnnl_json, tensorrt_json, ...): a subgraph for an external library.
 *
 * string symbol, string graph_json, vector<string> const_names */
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "types/carried.h"
#include "types/families.h"

int load_json_runtime(struct reader *reader, struct span type_key, dso_module **module) {
  struct span symbol, graph;
  if (reader_string(reader, &symbol) != 0 || reader_string(reader, &graph) != 0 ||
      texts_skip(reader) != 0)
    return -1;
  struct texts names = {.count = 1, .items = heap_new(sizeof *names.items + symbol.size + 1)};
  if (names.items == NULL) return raised_format("OutOfMemoryError", "no memory for a name");
  char *name = (char *)(names.items + 1);
  memcpy(name, symbol.data, symbol.size);
  name[symbol.size] = '\0';
  names.items[0] = name;
  return carried_module_new(type_key, names, reader->owner, module);
}
