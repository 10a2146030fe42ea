/* Graph JSON while it is read: the place in it, for messages. */
#pragma once

#include "graph/graph.h"

enum place {
  PLACE_WHOLE,  /* nothing precedes the field's name */
  PLACE_INDEX,  /* "node 1" */
  PLACE_NODE,   /* "node 1 'a'" */
  PLACE_INPUT,  /* "node 1 'a': input 2" */
  PLACE_OUTPUT, /* "node 'a': output 2" */
  PLACE_NAME,   /* "node 'a'" */
  PLACE_HEAD    /* "head 2" */
};

struct reading {
  struct graph *graph;
  const struct json *fields;
  const char *where; /* the graph's name in messages */
  enum place place;
  size_t node, number;
};

/* Raise BlobFormatError "<graph>: <place><field>, expected <expected>, found <found>". Returns
 * -1. */
__attribute__((format(printf, 4, 5))) int wrong(const struct reading *self, const char *field,
                                                const struct json *found, const char *expected,
                                                ...);

/* Raise BlobFormatError "<graph>: <text>", and free the text. Returns -1. */
int wrong_text(const struct reading *self, struct text *text);

/* Begin such a text: "<place><field>". */
void add_place(const struct reading *self, struct text *text, const char *field);

/* True for an integer from 0 to `stop` - 1; true and false are not integers. */
int is_index(const struct json *value, int64_t stop);

/* The entry that [node, output] or [node, output, version] names, of the first `num_nodes`. */
int read_entry(const struct reading *self, const struct json *ref, size_t num_nodes, size_t *entry);

/* Each reads a part of the graph: 0, or -1 with the error raised. */
int read_nodes(struct reading *self);   /* graph_nodes.c */
int read_entries(struct reading *self); /* graph_entries.c */
int check_storage(struct reading *self);
int check_own_functions(struct reading *self);
