/* The current stream of each thread and device: TVM FFI's c_env_api.h.
 *
 * NULL means no stream. With a real tvm_ffi in the process its table is the only one, so that both
 * give the same answer; a stream that was set here before moves there. Where none is set, the
 * embedder may know the current one (PyTorch's). */
#include <inttypes.h>

#include "abi/embedder.h"
#include "abi/raised.h"
#include "abi/tvm_ffi.h"
#include "library/provided.h"

enum { MOST_STREAMS = 64, LAST_TYPE = 255, LAST_ID = 65535 };

struct entry {
  int32_t device_type, device_id;
  void *stream; /* NULL: the entry is free */
};

static _Thread_local struct entry entries[MOST_STREAMS];

/* The entry of a device, or a free one; NULL if all are used by others. */
static struct entry *find(int32_t device_type, int32_t device_id) {
  struct entry *unused = NULL;
  for (size_t i = 0; i < MOST_STREAMS; i++) {
    struct entry *entry = &entries[i];
    if (entry->stream == NULL) unused = entry;
    else if (entry->device_type == device_type && entry->device_id == device_id) return entry;
  }
  return unused;
}

/* Return 1 if there is a real tvm_ffi; what was set here is set there, unless it has a stream. */
static int find_theirs(int32_t device_type, int32_t device_id, struct tvm_ffi_streams *theirs) {
  if (!tvm_ffi_streams(theirs)) return 0;
  struct entry *own = find(device_type, device_id);
  if (own != NULL && own->stream != NULL) {
    if (theirs->get(device_type, device_id) == NULL)
      (void)theirs->set(device_type, device_id, own->stream, NULL);
    own->stream = NULL;
  }
  return 1;
}

static int is_device(int32_t device_type, int32_t device_id) {
  return device_type >= 0 && device_type <= LAST_TYPE && device_id >= 0 && device_id <= LAST_ID;
}

int TVMFFIEnvSetStream(int32_t device_type, int32_t device_id, void *stream, void **original) {
  struct tvm_ffi_streams theirs;
  if (!is_device(device_type, device_id))
    return raised_format(
        "ValueError", "TVMFFIEnvSetStream: expected a device, found type %" PRId32 ", id %" PRId32,
        device_type, device_id);
  if (find_theirs(device_type, device_id, &theirs))
    return theirs.set(device_type, device_id, stream, original);
  struct entry *entry = find(device_type, device_id);
  if (original != NULL) *original = entry != NULL ? entry->stream : NULL;
  if (entry != NULL) *entry = (struct entry){device_type, device_id, stream};
  else if (stream != NULL)
    return raised_format("RuntimeError",
                         "TVMFFIEnvSetStream: expected streams of at most %d devices in a thread; "
                         "set the streams of other devices to NULL",
                         MOST_STREAMS);
  return 0;
}

void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id) {
  struct tvm_ffi_streams theirs;
  void *stream = NULL;
  if (!is_device(device_type, device_id)) return NULL;
  if (find_theirs(device_type, device_id, &theirs)) {
    stream = theirs.get(device_type, device_id);
  } else {
    const struct entry *entry = find(device_type, device_id);
    if (entry != NULL) stream = entry->stream;
  }
  return stream != NULL ? stream : embedder.current_stream(device_type, device_id);
}
