/* Ten training steps of a classifier with Adam, on the inputs that its file holds.
 *
 *     train MODEL.pt2 STEP.pt2 RESULTS
 *
 * Writes the training step to STEP.pt2, which PyTorch and the command `restride` take too. The file of results gets the loss of every
 * step, and the parameters and the optimizer's state after the first and the last one. */
#include "common.h"

#define STEPS 10
#define MOST_INPUTS 8

static void write_state(FILE *results, restride_program *step, restride_instance *instance, int at) {
    restride_description about;
    DLManagedTensorVersioned *t = NULL;
    size_t count, i, bytes;
    char name[256];
    int d;
    check(restride_program_count(step, RESTRIDE_ROLE_STATE, &count));
    for (i = 0; i < count; i++) {
        check(restride_program_describe(step, RESTRIDE_ROLE_STATE, i, &about));
        check(restride_instance_state(instance, about.name, &t));
        bytes = t->dl_tensor.dtype.bits / 8;
        for (d = 0; d < t->dl_tensor.ndim; d++) {
            bytes *= (size_t)t->dl_tensor.shape[d];
        }
        sprintf(name, "%d.%.200s", at, about.name);
        write_result(results, name, t->dl_tensor.data, bytes);
        t->deleter(t);
    }
}

int main(int argc, char **argv) {
    restride_program *program = NULL, *step = NULL;
    restride_compiled *compiled = NULL;
    restride_instance *instance = NULL;
    restride_outputs *outputs = NULL;
    restride_grad_options how;
    restride_tensor inputs[MOST_INPUTS];
    DLManagedTensorVersioned *samples[MOST_INPUTS], *loss = NULL;
    size_t count, i;
    int at;
    FILE *results;

    if (argc != 4 || !(results = fopen(argv[3], "w"))) {
        fprintf(stderr, "usage: train MODEL.pt2 STEP.pt2 RESULTS\n");
        return 2;
    }
    check(restride_open(argv[1], NULL, &program));
    restride_grad_options_init(&how);
    how.optimizer = RESTRIDE_OPTIMIZER_ADAM;
    how.lr = 0.01;
    check(restride_grad(program, &how, &step));
    check(restride_save(step, argv[2]));
    check(restride_compile(step, NULL, 0, NULL, &compiled));
    check(restride_instance_new(compiled, &instance));

    check(restride_program_count(step, RESTRIDE_ROLE_INPUT, &count));
    for (i = 0; i < count && i < MOST_INPUTS; i++) {
        check(restride_program_sample(step, i, &samples[i]));
        inputs[i] = named(NULL, &samples[i]->dl_tensor);
    }
    for (at = 0; at < STEPS; at++) {
        check(restride_instance_run(instance, inputs, count, &outputs));
        check(restride_outputs_tensor(outputs, 0, &loss));
        restride_outputs_free(outputs);
        printf("%g ", (double)*(float *)loss->dl_tensor.data);
        write_result(results, "output.0", loss->dl_tensor.data, sizeof(float));
        loss->deleter(loss);
        if (at == 0 || at == STEPS - 1) {
            write_state(results, step, instance, at);
        }
    }
    printf("\n");

    for (i = 0; i < count; i++) {
        samples[i]->deleter(samples[i]);
    }
    restride_instance_free(instance);
    restride_compiled_free(compiled);
    restride_program_free(step);
    restride_program_free(program);
    return fclose(results) ? 1 : 0;
}
