/* The loaders of the type keys that libdso knows: each family of types has a file. */
#pragma once

#include "module/module.h"

int load_const_loader(struct reader *, struct span, dso_module **);    /* const_loader, metadata */
int load_metadata_module(struct reader *, struct span, dso_module **); /* metadata_module */
int load_safetensors(struct reader *, struct span, dso_module **);
int load_graph_factory(struct reader *, struct span, dso_module **); /* GraphExecutorFactory, ... */
int load_aot_factory(struct reader *, struct span, dso_module **);
int load_vm_executable(struct reader *, struct span, dso_module **);
int load_device(struct reader *, struct span, dso_module **); /* cuda, opencl, metal, ... */
int load_shared_library(struct reader *, struct span, dso_module **);
int load_source(struct reader *, struct span, dso_module **);       /* c, static_library */
int load_json_runtime(struct reader *, struct span, dso_module **); /* *_json */
