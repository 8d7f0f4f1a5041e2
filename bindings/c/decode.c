/* Decodes tokens greedily with a llama-style model whose key-value cache is in this program's memory.
 *
 *     decode MODEL.pt2 TOKENS RESULTS
 *
 * The inputs of a step are a token and its position, its output the logits of the next token. The file of results gets the logits and
 * the cache after every step. */
#include "common.h"

#define VOCABULARY 128
#define MOST_BUFFERS 16

int main(int argc, char **argv) {
    restride_program *program = NULL;
    restride_compiled *compiled = NULL;
    restride_instance *instance = NULL;
    restride_session *session = NULL;
    restride_description about;
    restride_tensor state[MOST_BUFFERS], inputs[2], outputs[1];
    tensor buffers[MOST_BUFFERS], token_tensor, position_tensor, logits_tensor;
    void *memory[MOST_BUFFERS];
    int64_t token = 1, position = 0, one = 1, bytes;
    const int64_t token_sizes[2] = {1, 1}, logits_sizes[3] = {1, 1, VOCABULARY};
    float logits[VOCABULARY];
    size_t count, used = 0, i;
    FILE *results;

    if (argc != 4 || !(results = fopen(argv[3], "w"))) {
        fprintf(stderr, "usage: decode MODEL.pt2 TOKENS RESULTS\n");
        return 2;
    }
    check(restride_open(argv[1], NULL, &program));
    check(restride_compile(program, NULL, 0, NULL, &compiled));
    check(restride_instance_new(compiled, &instance));

    /* Every buffer that a step writes gets memory of this program: the cache, and the number of its tokens. */
    check(restride_program_count(program, RESTRIDE_ROLE_STATE, &count));
    for (i = 0; i < count && used < MOST_BUFFERS; i++) {
        check(restride_program_describe(program, RESTRIDE_ROLE_STATE, i, &about));
        if (about.mutated == 1) {
            memory[used] = malloc(about.storage_bytes);
            bytes = (int64_t)about.storage_bytes;
            lend(&buffers[used], memory[used], kDLUInt, 8, 1, &bytes);
            state[used] = named(about.name, &buffers[used].dl);
            used++;
        }
    }
    check(restride_instance_bind_state(instance, state, used, RESTRIDE_CONTENTS_COPY));

    /* A session is bound to the memory of its inputs and outputs: a step writes the inputs into it, runs, and reads the logits. */
    lend(&token_tensor, &token, kDLInt, 64, 2, token_sizes);
    lend(&position_tensor, &position, kDLInt, 64, 1, &one);
    lend(&logits_tensor, logits, kDLFloat, 32, 3, logits_sizes);
    inputs[0] = named(NULL, &token_tensor.dl);
    inputs[1] = named(NULL, &position_tensor.dl);
    outputs[0] = named("output.0", &logits_tensor.dl);
    check(restride_session_new(instance, inputs, 2, outputs, 1, &session));
    for (position = 0; position < atoi(argv[2]); position++) {
        check(restride_session_run(session));
        write_result(results, "output.0", logits, sizeof logits);
        for (i = 0; i < used; i++) {
            write_result(results, state[i].name, memory[i], (size_t)buffers[i].sizes[0]);
        }
        token = 0;
        for (i = 1; i < VOCABULARY; i++) {
            if (logits[i] >= logits[token]) {
                token = (int64_t)i;
            }
        }
        printf("%d ", (int)token);
    }
    printf("\n");

    restride_session_free(session);
    for (i = 0; i < used; i++) {
        free(memory[i]);
    }
    restride_compiled_free(compiled);
    restride_program_free(program);
    return fclose(results) ? 1 : 0;
}
