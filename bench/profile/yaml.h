/*
 * yaml.h: JSON as YAML that people like to read: blocks by indentation, texts in JSON's quotes, which YAML has, too.
 */
#ifndef WF_BENCH_PROFILE_YAML_H
#define WF_BENCH_PROFILE_YAML_H

#include <jansson.h>
#include <stdio.h>

/* Puts an object or an array, in the order in which it was filled. */
void bench_put_yaml(const json_t *root, FILE *file);

#endif
