/* What the C examples share: errors, tensors in memory of the program, and a file of results. */
#ifndef COMMON_H
#define COMMON_H

#include "restride.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with an error's text. */
static inline void check(restride_status *status) {
    if (status) {
        fprintf(stderr, "error: %s\n", restride_status_text(status));
        restride_status_free(status);
        exit(1);
    }
}

/* A tensor of up to four dimensions. */
typedef struct {
    DLTensor dl;
    int64_t sizes[4];
} tensor;

/* Row-major memory as a tensor. `t` must stay where it is as long as it is used. */
static inline void lend(tensor *t, void *data, uint8_t code, uint8_t bits, int ndim, const int64_t *sizes) {
    memset(t, 0, sizeof *t);
    memcpy(t->sizes, sizes, (size_t)ndim * sizeof *sizes);
    t->dl.data = data;
    t->dl.device.device_type = kDLCPU;
    t->dl.ndim = ndim;
    t->dl.dtype.code = code;
    t->dl.dtype.bits = bits;
    t->dl.dtype.lanes = 1;
    t->dl.shape = t->sizes;
}

/* The tensor under its name. */
static inline restride_tensor named(const char *name, const DLTensor *dl) {
    restride_tensor t;
    memset(&t, 0, sizeof t);
    t.name = name;
    t.tensor = dl;
    return t;
}

/* A line of a results file: a name, and bytes as hexadecimal digits. The check compares these files. */
static inline void write_result(FILE *file, const char *name, const void *data, size_t bytes) {
    const unsigned char *at = data;
    size_t i;
    fprintf(file, "%s ", name);
    for (i = 0; i < bytes; i++) {
        fprintf(file, "%02x", at[i]);
    }
    fprintf(file, "\n");
}

#endif
