/* Two threads: each with an instance of its own of one compiled program, then both on one instance, where the second one is refused.
 *
 *     stress MODEL.pt2
 *
 * Results of both threads are the same, bit for bit. */
#define _POSIX_C_SOURCE 200809L
#include "common.h"
#include <pthread.h>

#define VOCABULARY 128
#define STEPS 30

static restride_compiled *compiled;
static restride_instance *common;

typedef struct {
    float logits[STEPS][VOCABULARY];
    int ran;
} work;

static restride_status *run(restride_instance *instance, int64_t token, int64_t position, float *logits) {
    const int64_t sizes[2] = {1, 1}, one = 1;
    restride_outputs *outputs = NULL;
    DLManagedTensorVersioned *given = NULL;
    restride_status *status;
    restride_tensor inputs[2];
    tensor t, p;
    lend(&t, &token, kDLInt, 64, 2, sizes);
    lend(&p, &position, kDLInt, 64, 1, &one);
    inputs[0] = named(NULL, &t.dl);
    inputs[1] = named(NULL, &p.dl);
    status = restride_instance_run(instance, inputs, 2, &outputs);
    if (!status && logits) {
        check(restride_outputs_tensor(outputs, 0, &given));
        memcpy(logits, given->dl_tensor.data, VOCABULARY * sizeof *logits);
        given->deleter(given);
    }
    restride_outputs_free(outputs);
    return status;
}

static void *alone(void *data) {
    work *w = data;
    restride_instance *instance = NULL;
    int i;
    check(restride_instance_new(compiled, &instance));
    for (i = 0; i < STEPS; i++) {
        check(run(instance, i + 1, i % 16, w->logits[i]));
    }
    restride_instance_free(instance);
    return NULL;
}

static void *together(void *data) {
    work *w = data;
    int i;
    for (i = 0; i < STEPS; i++) {
        restride_status *status = run(common, 1, i % 16, NULL);
        if (!status) {
            w->ran++;
        } else if (restride_status_kind(status) != RESTRIDE_KIND_BUSY) {
            check(status);
        }
        restride_status_free(status);
    }
    return NULL;
}

static void both(void *(*body)(void *), work *all) {
    pthread_t threads[2];
    int i;
    for (i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, body, &all[i])) {
            exit(1);
        }
    }
    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv) {
    static work all[2];
    restride_program *program = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: stress MODEL.pt2\n");
        return 2;
    }
    check(restride_open(argv[1], NULL, &program));
    check(restride_compile(program, NULL, 0, NULL, &compiled));
    restride_program_free(program);
    both(alone, all);
    if (memcmp(all[0].logits, all[1].logits, sizeof all[0].logits)) {
        fprintf(stderr, "two threads have two results\n");
        return 1;
    }
    check(restride_instance_new(compiled, &common));
    both(together, all);
    printf("%d and %d of %d runs of two threads on one instance\n", all[0].ran, all[1].ran, STEPS);
    restride_instance_free(common);
    restride_compiled_free(compiled);
    return all[0].ran + all[1].ran > 0 ? 0 : 1;
}
