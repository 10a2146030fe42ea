/* The keys of a JSON object. */
#pragma once

#include "scan/json.h"

/* Returns 0 if no key occurs twice; or -1 with the error's text, empty if memory is exhausted. */
int json_check_keys(const struct json *object, char error[JSON_ERROR_SIZE]);
