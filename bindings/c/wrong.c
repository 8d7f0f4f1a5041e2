/* What a C program can get wrong: each is an error with a message, and the process goes on.
 *
 *     wrong FIXTURES [freed]
 *
 * `freed` also calls functions with handles that were freed: their memory is read, which tools like valgrind report. */
#include "common.h"

static int calls;

/* Passes if the status is an error of this kind, and frees it. */
static void refused_at(int line, restride_status *status, restride_kind kind) {
    if (!status || restride_status_kind(status) != kind || !restride_status_text(status)[0]) {
        fprintf(stderr, "line %d: kind %d: %s\n", line, (int)restride_status_kind(status), status ? restride_status_text(status) : "accepted");
        exit(1);
    }
    restride_status_free(status);
    calls++;
}
#define refused(status, kind) refused_at(__LINE__, status, kind)

/* A file of the fixtures in memory. */
static unsigned char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = malloc(1 << 20);
    if (!file || !bytes) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

int main(int argc, char **argv) {
    restride_program *program = NULL, *other = NULL;
    restride_compiled *compiled = NULL;
    restride_instance *instance = NULL, *none = NULL;
    restride_session *session = NULL;
    restride_methods *methods = NULL;
    restride_status *status = NULL;
    restride_compile_options options;
    restride_tensor inputs[2];
    tensor t, p;
    int64_t token = 1, position = 0, more[2] = {1, 1}, sizes[2] = {1, 1}, one = 1, two[2] = {1, 2};
    unsigned char *bytes;
    char path[4096];
    size_t size, i;

    if (argc < 2) {
        fprintf(stderr, "usage: wrong FIXTURES [freed]\n");
        return 2;
    }
    /* Pointers and texts. */
    refused(restride_open(NULL, NULL, &program), RESTRIDE_KIND_ARGUMENT);
    refused(restride_open("x", NULL, NULL), RESTRIDE_KIND_ARGUMENT);
    refused(restride_open("\xff", NULL, &program), RESTRIDE_KIND_ARGUMENT);
    refused(restride_open("/nowhere/x.pt2", NULL, &program), RESTRIDE_KIND_FILE);
    refused(restride_open_bytes(NULL, 1, 0, NULL, &program), RESTRIDE_KIND_ARGUMENT);
    refused(restride_open_bytes((const uint8_t *)"x", 1, 2, NULL, &program), RESTRIDE_KIND_ARGUMENT);
    refused(restride_methods_open("/nowhere/x.pt2", NULL, NULL, &methods), RESTRIDE_KIND_FILE);
    refused(restride_compile(NULL, NULL, 0, NULL, &compiled), RESTRIDE_KIND_ARGUMENT);
    refused(restride_instance_new(NULL, &instance), RESTRIDE_KIND_ARGUMENT);
    refused(restride_session_run(NULL), RESTRIDE_KIND_ARGUMENT);

    sprintf(path, "%.4000s/examples/llama_decode.pt2", argv[1]);
    check(restride_open(path, NULL, &program));
    /* Options. */
    memset(&options, 0, sizeof options);
    refused(restride_compile(program, NULL, 0, &options, &compiled), RESTRIDE_KIND_ARGUMENT);
    restride_compile_options_init(&options);
    options.threads = 0;
    refused(restride_compile(program, NULL, 0, &options, &compiled), RESTRIDE_KIND_ARGUMENT);
    restride_compile_options_init(&options);
    options.determinism = 2;
    refused(restride_compile(program, NULL, 0, &options, &compiled), RESTRIDE_KIND_ARGUMENT);
    restride_compile_options_init(&options);
    options.memory_budget = 16;
    check(restride_compile(program, NULL, 0, &options, &compiled));
    check(restride_instance_new(compiled, &instance));
    lend(&t, &token, kDLInt, 64, 2, sizes);
    lend(&p, &position, kDLInt, 64, 1, &one);
    inputs[0] = named(NULL, &t.dl);
    inputs[1] = named(NULL, &p.dl);
    status = restride_instance_run(instance, inputs, 2, NULL);
    if (!status || !strstr(restride_status_text(status), "16")) {
        fprintf(stderr, "a budget that cannot be met is accepted\n");
        return 1;
    }
    restride_status_free(status);
    restride_instance_free(instance);
    restride_compiled_free(compiled);
    check(restride_compile(program, NULL, 0, NULL, &compiled));
    check(restride_instance_new(compiled, &instance));

    /* Handles of another type. */
    refused(restride_instance_new((restride_compiled *)program, &none), RESTRIDE_KIND_ARGUMENT);

    /* Tensors. */
    refused(restride_instance_run(instance, inputs, 1, NULL), RESTRIDE_KIND_INPUTS);
    refused(restride_instance_run(instance, NULL, 2, NULL), RESTRIDE_KIND_ARGUMENT);
    t.dl.dtype.code = kDLFloat;
    refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_INPUTS);
    t.dl.dtype.bits = 63;
    refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_ARGUMENT);
    lend(&t, more, kDLInt, 64, 2, two);
    refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_INPUTS);
    lend(&t, NULL, kDLInt, 64, 2, sizes);
    refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_ARGUMENT);
    lend(&t, (char *)more + 1, kDLInt, 64, 2, sizes);
    refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_ARGUMENT);
    lend(&t, &token, kDLInt, 64, 2, sizes);
    t.dl.ndim = 65;
    refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_ARGUMENT);
    lend(&t, &token, kDLInt, 64, 2, sizes);
    t.dl.device.device_type = kDLCUDA;
    refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_ARGUMENT);
    lend(&t, &token, kDLInt, 64, 2, sizes);
    inputs[0].name = "nothing";
    refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_INPUTS);
    refused(restride_instance_bind_state(instance, inputs, 1, RESTRIDE_CONTENTS_COPY), RESTRIDE_KIND_INPUTS);
    inputs[0].name = "key_cache_0";
    refused(restride_instance_bind_state(instance, inputs, 1, RESTRIDE_CONTENTS_COPY), RESTRIDE_KIND_INPUTS);
    inputs[0].name = NULL;
    inputs[1].name = "output.0";
    refused(restride_session_new(instance, inputs, 1, inputs + 1, 1, &session), RESTRIDE_KIND_INPUTS);
    inputs[1].name = NULL;
    /* A token that the vocabulary does not have: an error of the kernel, with its node and source line. */
    token = 1 << 20;
    status = restride_instance_run(instance, inputs, 2, NULL);
    if (!restride_status_node(status) || !restride_status_source(status)) {
        fprintf(stderr, "no node: %s\n", status ? restride_status_text(status) : "accepted");
        return 1;
    }
    printf("%s: %s, %s\n", restride_status_message(status), restride_status_node(status), restride_status_source(status));
    restride_status_free(status);
    token = 1;
    check(restride_instance_run(instance, inputs, 2, NULL));

    /* Files that were damaged. */
    bytes = read_file(path, &size);
    for (i = 0; i < 40; i++) {
        unsigned char *at = &bytes[size * i / 40];
        *at ^= 0x55;
        status = restride_open_bytes(bytes, i % 2 ? size : size * i / 40, i / 2 % 2, NULL, &other);
        if ((status == NULL) == (other == NULL) || restride_status_kind(status) == RESTRIDE_KIND_PANIC) {
            fprintf(stderr, "damage %d: %s\n", (int)i, status ? restride_status_text(status) : "no program");
            return 1;
        }
        restride_status_free(status);
        restride_program_free(other);
        *at ^= 0x55;
        calls++;
    }
    free(bytes);

    restride_instance_free(instance);
    restride_compiled_free(compiled);
    restride_program_free(program);
    if (argc > 2 && !strcmp(argv[2], "freed")) {
        refused(restride_instance_run(instance, inputs, 2, NULL), RESTRIDE_KIND_ARGUMENT);
        refused(restride_program_count(program, RESTRIDE_ROLE_INPUT, &size), RESTRIDE_KIND_ARGUMENT);
        restride_instance_free(instance);
        restride_program_free(program);
    }
    printf("%d wrong calls, each an error\n", calls);
    return 0;
}
