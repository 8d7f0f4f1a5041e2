/* Writes a program functional and reinplaced, and its memory plan, as the commands of these names do.
 *
 *     convert MODEL.pt2 FUNCTIONAL.pt2 REINPLACED.pt2 PLAN.json */
#include "common.h"

int main(int argc, char **argv) {
    restride_program *program = NULL, *functional = NULL, *reinplaced = NULL;
    restride_compiled *compiled = NULL;
    char *plan = NULL;
    FILE *file;
    if (argc != 5 || !(file = fopen(argv[4], "w"))) {
        fprintf(stderr, "usage: convert MODEL.pt2 FUNCTIONAL.pt2 REINPLACED.pt2 PLAN.json\n");
        return 2;
    }
    if (restride_abi() != RESTRIDE_ABI) {
        fprintf(stderr, "the library %s is of another ABI than the header\n", restride_version());
        return 1;
    }
    check(restride_open(argv[1], NULL, &program));
    check(restride_functionalize(program, &functional));
    check(restride_save(functional, argv[2]));
    check(restride_reinplace(program, 0, &reinplaced));
    check(restride_save(reinplaced, argv[3]));
    check(restride_compile(program, NULL, 0, NULL, &compiled));
    check(restride_compiled_plan_json(compiled, NULL, 0, &plan));
    fputs(plan, file);
    restride_string_free(plan);
    restride_compiled_free(compiled);
    restride_program_free(reinplaced);
    restride_program_free(functional);
    restride_program_free(program);
    return fclose(file) ? 1 : 0;
}
