/* restride: run PyTorch programs (.pt2) without libtorch or Python.
 *
 * Written by cbindgen from crates/restride-capi; do not edit.
 *
 * In short
 *
 *     restride_program *program = NULL;
 *     restride_status *status = restride_open("model.pt2", NULL, &program);
 *     if (status) { fprintf(stderr, "%s\n", restride_status_text(status)); restride_status_free(status); }
 *
 *   program   what the file holds             restride_open, restride_program_describe, restride_grad, restride_save
 *   compiled  without mutation, planned       restride_compile
 *   instance  an arena and a state            restride_instance_new, restride_instance_run
 *   session   an instance bound to memory     restride_session_new, restride_session_run
 *   methods   several programs, one state     restride_methods_open, restride_methods_run
 *
 * Errors. A function that can fail returns a status: NULL is success, any other belongs to the caller, who frees it. After an error
 * a result (`program` above) is NULL, 0 or empty. No function ends the process, except where the system has no memory left for a
 * small allocation.
 *
 * Handles belong to the caller, who frees each once, in any order: a handle keeps what it needs of those that it was made from.
 * NULL is an error, and so are handles that were freed or are of another type, as far as can be told: memory that was freed may be in
 * other hands, so do not rely on it. Functions that free ignore NULL and what is no handle.
 *
 * Tensors are DLPack structs on the CPU. Memory of the caller is used where it is. A DLManagedTensorVersioned that a function gives
 * belongs to the caller: call its deleter, `tensor->deleter(tensor)`. It keeps the memory under it.
 *
 * Texts are UTF-8 and end with NUL. Lengths count elements where nothing else is said.
 *
 * Threads. There is no global state, and no function calls back but the functions of a restride_engine, on the thread that runs its
 * instance, and the deleters of managed tensors that were given away, which may run on any thread that uses or frees what holds the
 * tensor. Programs, compiled programs, outputs, lists of texts and statuses are
 * immutable: any number of threads may use one at the same time. Instances, sessions and methods may go from thread to thread, one
 * at a time: a second thread gets RESTRIDE_KIND_BUSY. Free a handle when no other thread is using it; one in use is not freed. Two
 * handles on the same memory of the caller must not run at the same time if one writes it: nothing detects that in foreign memory.
 */


#ifndef RESTRIDE_H
#define RESTRIDE_H

#include <stddef.h>
#include <stdint.h>

/* DLPack 1.0, https://github.com/dmlc/dlpack: what include/dlpack/dlpack.h declares. If you use that header, include it first. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)
#ifdef __cplusplus
extern "C" {
#endif
typedef struct {
    uint32_t major;
    uint32_t minor;
} DLPackVersion;
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
    kDLCPU = 1,
    kDLCUDA = 2,
    kDLCUDAHost = 3,
    kDLOpenCL = 4,
    kDLVulkan = 7,
    kDLMetal = 8,
    kDLVPI = 9,
    kDLROCM = 10,
    kDLROCMHost = 11,
    kDLExtDev = 12,
    kDLCUDAManaged = 13,
    kDLOneAPI = 14,
    kDLWebGPU = 15,
    kDLHexagon = 16,
    kDLMAIA = 17
} DLDeviceType;
typedef struct {
    DLDeviceType device_type;
    int32_t device_id;
} DLDevice;
typedef enum {
    kDLInt = 0U,
    kDLUInt = 1U,
    kDLFloat = 2U,
    kDLOpaqueHandle = 3U,
    kDLBfloat = 4U,
    kDLComplex = 5U,
    kDLBool = 6U
} DLDataTypeCode;
typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;
#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* DLPACK_DLPACK_H_ */


// Number of the ABI. A library with the same number has all functions and structs of this header, unchanged.
#define RESTRIDE_ABI 1

// A flag of restride_tensor: the memory may be read only. A program that writes it is refused.
#define RESTRIDE_TENSOR_READ_ONLY 1

// Kind of a described value.
enum restride_value_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // A tensor.
    RESTRIDE_VALUE_KIND_TENSOR = 0,
    // A number. As an input it is given as a tensor without dimensions: int64, float64 or bool.
    RESTRIDE_VALUE_KIND_NUMBER = 1,
    // An input that was fixed at export. It may be left out.
    RESTRIDE_VALUE_KIND_FIXED = 2,
    // None, a text, a token or a custom object. As an output it has no tensor.
    RESTRIDE_VALUE_KIND_OTHER = 3,
    // A parameter.
    RESTRIDE_VALUE_KIND_PARAMETER = 4,
    // A buffer.
    RESTRIDE_VALUE_KIND_BUFFER = 5,
    // A tensor constant.
    RESTRIDE_VALUE_KIND_CONSTANT = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum restride_value_kind restride_value_kind;
#else
typedef uint32_t restride_value_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What kind of error a status tells.
enum restride_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // No error: the kind of a NULL status.
    RESTRIDE_KIND_OK = 0,
    // An argument is NULL, out of range, no UTF-8, or a handle that was freed or is of another type.
    RESTRIDE_KIND_ARGUMENT = 1,
    // A file is damaged, missing, or of another format.
    RESTRIDE_KIND_FILE = 2,
    // A program breaks a rule of the intermediate representation.
    RESTRIDE_KIND_INVALID = 3,
    // PyTorch itself refuses the program, or refuses these inputs.
    RESTRIDE_KIND_PROGRAM = 4,
    // restride does not support a feature of the program.
    RESTRIDE_KIND_UNSUPPORTED = 5,
    // A program asks for more than its limits allow.
    RESTRIDE_KIND_LIMIT = 6,
    // Tensors do not fit the program: names, element types, sizes, strides, shared memory.
    RESTRIDE_KIND_INPUTS = 7,
    // A checker rejects a decision of a pass: a bug in restride.
    RESTRIDE_KIND_CHECK = 8,
    // Another thread is using the handle.
    RESTRIDE_KIND_BUSY = 9,
    // A panic inside of restride: a bug. The handle of the call may be lost for further use; free it.
    RESTRIDE_KIND_PANIC = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum restride_kind restride_kind;
#else
typedef uint32_t restride_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Which of a program's values a description is about.
enum restride_role
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // User inputs, in order.
    RESTRIDE_ROLE_INPUT = 0,
    // User outputs (`output.I`), in order, then gradients (`grad.NAME`).
    RESTRIDE_ROLE_OUTPUT = 1,
    // Parameters, buffers and constants, by name.
    RESTRIDE_ROLE_STATE = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum restride_role restride_role;
#else
typedef uint32_t restride_role;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The update of a training step.
enum restride_optimizer
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // None: the program gives gradients.
    RESTRIDE_OPTIMIZER_NONE = 0,
    // `torch.optim.SGD`.
    RESTRIDE_OPTIMIZER_SGD = 1,
    // `torch.optim.Adam`.
    RESTRIDE_OPTIMIZER_ADAM = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum restride_optimizer restride_optimizer;
#else
typedef uint32_t restride_optimizer;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Whether memory for the state gets the state's contents, or has them.
enum restride_contents
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The state's contents are copied into the memory.
    RESTRIDE_CONTENTS_COPY = 0,
    // The memory's contents become the state's: a run goes on from the contents that another one left.
    RESTRIDE_CONTENTS_KEEP = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum restride_contents restride_contents;
#else
typedef uint32_t restride_contents;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The ranks' parts in an exchange. Parts of ranks follow each other, in the order of restride_exchange.ranks.
enum restride_pattern
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Every rank gets the reduction of all ranks' operands.
    RESTRIDE_PATTERN_ALL_REDUCE = 0,
    // Every rank gets all ranks' operands.
    RESTRIDE_PATTERN_ALL_GATHER = 1,
    // Rank r gets part r of the reduction of all ranks' operands.
    RESTRIDE_PATTERN_REDUCE_SCATTER = 2,
    // Rank r gets part r of every rank's operand.
    RESTRIDE_PATTERN_ALL_TO_ALL = 3,
    // Every rank gets the operand of rank `root`.
    RESTRIDE_PATTERN_BROADCAST = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum restride_pattern restride_pattern;
#else
typedef uint32_t restride_pattern;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How an exchange reduces.
enum restride_reduce
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // The exchange reduces nothing.
    RESTRIDE_REDUCE_NONE = 0,
    // Sum.
    RESTRIDE_REDUCE_SUM = 1,
    // Mean: the sum, divided by the number of ranks.
    RESTRIDE_REDUCE_AVG = 2,
    // Product.
    RESTRIDE_REDUCE_PRODUCT = 3,
    // Minimum; NaN stays.
    RESTRIDE_REDUCE_MIN = 4,
    // Maximum; NaN stays.
    RESTRIDE_REDUCE_MAX = 5,
    // Bitwise and.
    RESTRIDE_REDUCE_BIT_AND = 6,
    // Bitwise or.
    RESTRIDE_REDUCE_BIT_OR = 7,
    // Bitwise exclusive or.
    RESTRIDE_REDUCE_BIT_XOR = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum restride_reduce restride_reduce;
#else
typedef uint32_t restride_reduce;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A compiled program. Immutable: any number of threads may use one, each with its own instance.
typedef struct restride_compiled restride_compiled;

// An arena and the state (parameters, buffers, optimizer state) of a compiled program. One thread at a time may use it, any thread;
// a second one gets RESTRIDE_KIND_BUSY.
typedef struct restride_instance restride_instance;

// The programs of one archive (`prefill`, `decode`) over one state and one arena: the next one reads the buffers that one writes. One
// thread at a time may use them, any thread; a second one gets RESTRIDE_KIND_BUSY.
typedef struct restride_methods restride_methods;

// The outputs of one run. Immutable: any number of threads may use them.
typedef struct restride_outputs restride_outputs;

// A program: what `torch.export.save` wrote, or what a transformation made of it. Immutable: any number of threads may use one.
typedef struct restride_program restride_program;

// An instance bound to inputs and outputs. One thread at a time may use it, any thread; a second one gets RESTRIDE_KIND_BUSY.
typedef struct restride_session restride_session;

// Why a call failed. NULL is success; any other status belongs to the caller, who frees it with restride_status_free.
// Immutable: any thread may read it.
typedef struct restride_status restride_status;

// A list of texts. Immutable: any number of threads may use one.
typedef struct restride_strings restride_strings;

// How to compile, and how its runs go. Initialise with restride_compile_options_init.
typedef struct restride_compile_options {
    // sizeof(restride_compile_options).
    size_t size;
    // The most bytes of the arena; 0 is no limit. Cheap values are recomputed until it fits; results stay the same. A budget
    // that cannot be met is an error with the smallest one that can.
    int64_t memory_budget;
    // Seed of random operators. Each run of an instance draws anew.
    uint64_t seed;
    // Threads of a run, at least 1. Results do not depend on it.
    uint32_t threads;
    // 1 checks every decision of the compiler by checkers of its own, 0 does not. A plan in a file is always checked.
    uint32_t check;
    // The most operators that run as one step: 0 leaves it to the compiler, 1 makes every operator a step of its own.
    uint32_t fusion;
    // 1 asks for the same bits in every run with the same seed, whatever the threads and layouts, as
    // torch.use_deterministic_algorithms does. With 0 a later version may choose faster kernels; this one gives the same bits.
    uint32_t determinism;
} restride_compile_options;

// A tensor of the caller: a name, and the memory as a DLPack struct. Set exactly one of `tensor` and `managed`, and the rest to 0.
//
// - `tensor` lends the memory. It is not copied. The struct itself may go when the call returns; the memory must stay until the call
//   returns, or, where a function says so, until a handle is freed.
// - `managed` gives the tensor away, if the call succeeds: restride calls its deleter after the last use, on the thread of that use.
//   If the call fails, the tensor is the caller's as before.
//
// Memory that a program writes must not be read or written by anybody else during a run, and memory that it reads must not be
// written.
typedef struct restride_tensor {
    // The name of an input, `output.I`, or a name of the state, UTF-8. NULL stands for the input or output at this position.
    const char *name;
    // The caller's memory, or NULL.
    const DLTensor *tensor;
    // A tensor to give away, or NULL.
    DLManagedTensorVersioned *managed;
    // Declares shared memory: tensors of one call with the same number, not 0, are views of one storage, from the lowest byte of
    // them to the highest, which must leave no gap. 0 is memory that no other tensor of the call overlaps; such overlaps are an
    // error where the program writes.
    uint32_t storage;
    // 0, or RESTRIDE_TENSOR_READ_ONLY.
    uint32_t flags;
} restride_tensor;

// One exchange of a group. It is valid during the call.
typedef struct restride_exchange {
    // A restride_pattern.
    uint32_t pattern;
    // A restride_reduce.
    uint32_t reduce;
    // For a broadcast, the position in `ranks` of the rank that sends.
    size_t root;
    // Name of the group.
    const char *group;
    // World ranks of the group, in its order.
    const size_t *ranks;
    // How many.
    size_t rank_count;
    // Element type.
    DLDataType dtype;
    // Row-major operand. The same address as `receive`, or no byte in common.
    const void *send;
    // Elements of the operand.
    size_t sent;
    // Row-major result.
    void *receive;
    // Elements of the result.
    size_t received;
    // For an all-to-all, the elements that go to each rank of the group; else NULL.
    const size_t *sent_to;
    // For an all-to-all, the elements that come from each rank of the group; else NULL.
    const size_t *received_from;
} restride_exchange;

// Functions of the caller that exchange elements between ranks. They are called by the thread that runs the instance, one call at a
// time, and all ranks of a group make the same calls in the same order. `context` must stay until the instance is freed or has
// another engine.
typedef struct restride_engine {
    // Given to each function.
    void *context;
    // Number of this rank among all.
    size_t rank;
    // Number of ranks.
    size_t size;
    // Writes the world ranks of this rank's group of that name to `ranks`, which has space for `size` of them, and returns how many;
    // 0 if it is in no such group. NULL: every name is the group of all ranks.
    size_t (*group)(void *context, const char *name, size_t *ranks);
    // Carries out an exchange. 0 is success; anything else ends the run with an error.
    int32_t (*exchange)(void *context, const struct restride_exchange *exchange);
    // Told that this rank's run failed: the other ranks' exchanges should end with an error. May be NULL.
    void (*abort)(void *context, const char *why);
} restride_engine;

// How to open a program. Initialise with restride_open_options_init.
typedef struct restride_open_options {
    // sizeof(restride_open_options).
    size_t size;
    // The model of an archive with several, UTF-8; NULL for the only one.
    const char *model;
    // A `.pt2` with the weights of a `.fx` text, UTF-8; NULL for none.
    const char *weights;
    // 1 reads files into memory instead of mapping them. A mapped file must stay as it is while programs of it are used.
    uint32_t no_mmap;
    // 0.
    uint32_t reserved;
} restride_open_options;

// A size or stride of a described tensor. `min` equals `max` where it is known.
typedef struct restride_size {
    // The number, or the expression over symbols, as the file has it.
    const char *text;
    // The least that it may be; INT64_MIN is unbounded.
    int64_t min;
    // The most that it may be; INT64_MAX is unbounded.
    int64_t max;
} restride_size;

// What restride_program_describe tells. All pointers live as long as the program.
typedef struct restride_description {
    // The name: an input's own, `output.I`, `grad.NAME`, or that of the state dict.
    const char *name;
    // Kind.
    restride_value_kind kind;
    // 1: a run writes it. 0: no run does. -1: not known before the program is compiled for inputs.
    int32_t mutated;
    // Element type of a tensor.
    DLDataType dtype;
    // Number of dimensions of a tensor.
    int32_t ndim;
    // Sizes: `ndim` of them.
    const struct restride_size *sizes;
    // Strides in elements: `ndim` of them.
    const struct restride_size *strides;
    // Bytes of the storage under a tensor of the state; 0 for others.
    size_t storage_bytes;
} restride_description;

// What to differentiate, and the optimizer. Initialise with restride_grad_options_init.
typedef struct restride_grad_options {
    // sizeof(restride_grad_options).
    size_t size;
    // Position of the loss among the user outputs.
    size_t loss;
    // Names of parameters and user inputs to differentiate by, UTF-8; NULL for every parameter and floating user input.
    const char *const *wrt;
    // Number of these names.
    size_t wrt_count;
    // The largest number of iterations of a `while_loop`; 0 where there is none.
    uint64_t max_trips;
    // The optimizer (restride_optimizer). Its state becomes buffers of the program.
    uint32_t optimizer;
    // SGD's Nesterov momentum: 0 or 1.
    uint32_t nesterov;
    // Adam's largest average of squares: 0 or 1.
    uint32_t amsgrad;
    // Weights decay by themselves, as in AdamW: 0 or 1.
    uint32_t decoupled_weight_decay;
    // Up the gradient instead of down: 0 or 1.
    uint32_t maximize;
    // 0.
    uint32_t reserved;
    // Learning rate.
    double lr;
    // L2 penalty.
    double weight_decay;
    // SGD's momentum.
    double momentum;
    // SGD's dampening of momentum.
    double dampening;
    // Adam's first decay of averages.
    double beta1;
    // Adam's second decay of averages.
    double beta2;
    // Added to Adam's denominator.
    double eps;
} restride_grad_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The library's RESTRIDE_ABI. Threads: any.
uint32_t restride_abi(void);

// The library's version, as `0.1.0`. Lives forever. Threads: any.
const char *restride_version(void);

// Frees a text that a function of this header gave as `char **`. NULL is allowed.
void restride_string_free(char *string);

// Writes the defaults.
void restride_compile_options_init(struct restride_compile_options *options);

// Compiles a program.
//
// `inputs` are tensors like those of later runs. They tell which inputs share memory, and strides other than the file's; their
// elements are not read, and they are not used after the call. With `count` 0 the sample inputs in the file stand for them, if it has
// any. Sizes that are symbols are placed, planned and checked in the first run with these sizes. `options` may be NULL.
// Threads: any.
struct restride_status *restride_compile(const struct restride_program *program,
                                         const struct restride_tensor *inputs,
                                         size_t count,
                                         const struct restride_compile_options *options,
                                         struct restride_compiled **compiled);

// The memory plan as JSON, as `restride plan --json` writes it: offset, bytes, steps and values of every buffer. With `count` 0 the
// sample inputs in the file tell sizes, or the declared sizes do. The caller frees the text with restride_string_free.
// Threads: any.
struct restride_status *restride_compiled_plan_json(const struct restride_compiled *compiled,
                                                    const struct restride_tensor *inputs,
                                                    size_t count,
                                                    char **json);

// Frees a compiled program. Its instances live on. NULL is allowed. Threads: no other thread may be using the handle.
void restride_compiled_free(struct restride_compiled *compiled);

// Runs exchange elements by the caller's functions from now on. NULL takes the engine away: the instance is alone then. The struct is
// copied; its functions are called by restride_instance_run, and by sessions that are made of the instance.
// Threads: one at a time for an instance.
struct restride_status *restride_instance_set_engine(struct restride_instance *instance,
                                                     const struct restride_engine *engine);

// Makes an instance with the state that the program was exported with. The arena is taken by the first run. Threads: any.
struct restride_status *restride_instance_new(const struct restride_compiled *compiled, struct restride_instance **instance);

// Frees an instance. Memory of the caller that it used is free then, unless a tensor that it gave is kept. NULL is allowed.
// Threads: no other thread may be using the handle.
void restride_instance_free(struct restride_instance *instance);

// Binds memory of the caller to tensors of the state. Later runs read and write the state in this memory. `contents` is a
// restride_contents. Each tensor must have the element type, sizes and strides of the state's, or be one dimension of uint8 for the
// whole storage: restride_description.storage_bytes. Tensors of the state that share the storage move with it. The memory must stay
// until the instance is freed or the state is bound elsewhere. After an error nothing is bound.
// Threads: one at a time for an instance.
struct restride_status *restride_instance_bind_state(struct restride_instance *instance,
                                                     const struct restride_tensor *state,
                                                     size_t count,
                                                     uint32_t contents);

// A tensor of the state by its name, without a copy. The caller frees it with its deleter, before or after the instance. Runs may
// write it. Threads: one at a time for an instance.
struct restride_status *restride_instance_state(struct restride_instance *instance,
                                                const char *name,
                                                DLManagedTensorVersioned **tensor);

// Runs the program once. `inputs` are read, and written where the program mutates them, in the caller's memory, which must stay until
// the call returns; for an output that is a view of an input, until that output is freed. `outputs` may be NULL.
//
// Inputs that do not fit (names, element types, sizes, strides, shared memory) are an error before anything is written. A kernel's
// own error, such as an index out of range, comes where it would come in PyTorch. Threads: one at a time for an instance.
struct restride_status *restride_instance_run(struct restride_instance *instance,
                                              const struct restride_tensor *inputs,
                                              size_t count,
                                              struct restride_outputs **outputs);

// Opens and compiles every model of an archive, over one state. `path` is UTF-8; `options` and `compile` may be NULL;
// `options->model` is not used. Threads: any.
struct restride_status *restride_methods_open(const char *path,
                                              const struct restride_open_options *options,
                                              const struct restride_compile_options *compile,
                                              struct restride_methods **methods);

// The names of the methods, in alphabetical order. Threads: one at a time for the methods.
struct restride_status *restride_methods_names(struct restride_methods *methods, struct restride_strings **names);

// The program of a method, without mutation: to describe it. Threads: one at a time for the methods.
struct restride_status *restride_methods_program(struct restride_methods *methods,
                                                 const char *name,
                                                 struct restride_program **program);

// Binds memory of the caller to tensors of the common state, as restride_instance_bind_state. The memory must stay until the methods
// are freed or the state is bound elsewhere. Threads: one at a time for the methods.
struct restride_status *restride_methods_bind_state(struct restride_methods *methods,
                                                    const struct restride_tensor *state,
                                                    size_t count,
                                                    uint32_t contents);

// A tensor of the common state by its name, without a copy, as restride_instance_state. Threads: one at a time for the methods.
struct restride_status *restride_methods_state(struct restride_methods *methods,
                                               const char *name,
                                               DLManagedTensorVersioned **tensor);

// Runs a method once, as restride_instance_run. Threads: one at a time for the methods.
struct restride_status *restride_methods_run(struct restride_methods *methods,
                                             const char *name,
                                             const struct restride_tensor *inputs,
                                             size_t count,
                                             struct restride_outputs **outputs);

// Frees methods with their state. NULL is allowed. Threads: no other thread may be using the handle.
void restride_methods_free(struct restride_methods *methods);

// The number of outputs, gradients included; 0 for what is no outputs. Threads: any.
size_t restride_outputs_count(const struct restride_outputs *outputs);

// The name of an output: `output.I` or `grad.NAME`; NULL past the end. Lives as long as the outputs. Threads: any.
const char *restride_outputs_name(const struct restride_outputs *outputs, size_t index);

// The tensor of an output, without a copy; a number is a tensor without dimensions. The caller frees it with its deleter, before or
// after the outputs. An output that the program returns as a view of an input is in the memory of that input. Threads: any.
struct restride_status *restride_outputs_tensor(const struct restride_outputs *outputs,
                                                size_t index,
                                                DLManagedTensorVersioned **tensor);

// Frees outputs. NULL is allowed. Threads: no other thread may be using the handle.
void restride_outputs_free(struct restride_outputs *outputs);

// The number of texts; 0 for what is no list.
size_t restride_strings_count(const struct restride_strings *strings);

// The text at a position; NULL past the end. Lives as long as the list.
const char *restride_strings_get(const struct restride_strings *strings, size_t index);

// Frees a list. NULL is allowed.
void restride_strings_free(struct restride_strings *strings);

// Writes the defaults.
void restride_open_options_init(struct restride_open_options *options);

// Opens a `.pt2` that `torch.export.save` wrote, or a `.fx` text. `path` is UTF-8, `options` may be NULL.
// Threads: any.
struct restride_status *restride_open(const char *path,
                                      const struct restride_open_options *options,
                                      struct restride_program **program);

// Opens a program in memory: the bytes of a `.pt2`, or of a `.fx` text.
//
// `borrow` 0 copies the bytes, which may go when the call returns. `borrow` 1 uses them where they are, weights included, without a
// copy: they must stay as they are until the program and every handle made of it, and every tensor that these gave, are freed.
// Threads: any.
struct restride_status *restride_open_bytes(const uint8_t *bytes,
                                            size_t size,
                                            uint32_t borrow,
                                            const struct restride_open_options *options,
                                            struct restride_program **program);

// The names of the models in an archive, for restride_open_options.model. Threads: any.
struct restride_status *restride_models(const char *path,
                                        const struct restride_open_options *options,
                                        struct restride_strings **models);

// Frees a program. What was made of it lives on. NULL is allowed. Threads: no other thread may be using the handle.
void restride_program_free(struct restride_program *program);

// The number of values in a role (restride_role). Threads: any.
struct restride_status *restride_program_count(const struct restride_program *program, uint32_t role, size_t *count);

// Describes the value at a position in a role (restride_role): name, element type, sizes and strides with their ranges, whether
// a run writes it. Threads: any.
struct restride_status *restride_program_describe(const struct restride_program *program,
                                                  uint32_t role,
                                                  size_t index,
                                                  struct restride_description *description);

// The sample input that the file holds for the input at a position, as a tensor in memory of its own, which the caller frees with
// its deleter. An error where the file holds none, or none that is a tensor. Threads: any.
struct restride_status *restride_program_sample(const struct restride_program *program,
                                                size_t index,
                                                DLManagedTensorVersioned **tensor);

// Writes a program as a `.pt2` that `torch.export.load` takes. `path` is UTF-8. Threads: any.
struct restride_status *restride_save(const struct restride_program *program, const char *path);

// Makes the program without mutation: input and buffer mutations become declared outputs. Sample inputs in the file that share
// memory are provided for. restride_save writes the result. Threads: any.
struct restride_status *restride_functionalize(const struct restride_program *program, struct restride_program **functional);

// Makes the program with in-place operators, and views, where they are right. `views` 1 overwrites nothing that has contents:
// copies of views become views, the parts of a `cat` slices of new memory. restride_save writes the result; run it in PyTorch
// under `torch.no_grad()`. Threads: any.
struct restride_status *restride_reinplace(const struct restride_program *program,
                                           uint32_t views,
                                           struct restride_program **reinplaced);

// Writes the defaults: PyTorch's, and no optimizer.
void restride_grad_options_init(struct restride_grad_options *options);

// Makes forward and backward one program; with an optimizer, a whole training step, which updates parameters and optimizer state
// in its own state at every run. `options` may be NULL. restride_save writes the result, restride_compile compiles it.
// Threads: any.
struct restride_status *restride_grad(const struct restride_program *program,
                                      const struct restride_grad_options *options,
                                      struct restride_program **joint);

// Binds an instance to memory of the caller: every run reads `inputs` and writes `outputs` (`output.I`), where they are. Outputs
// without memory of the caller get some of their own; those that are views of other memory cannot be given any. The memory must stay
// until the session is freed or ended. Write new inputs into the memory of the old ones, between runs.
//
// If the call succeeds, the instance belongs to the session: its handle is freed, and restride_session_end gives it back. If it fails,
// the instance is as before, but draws of random operators start over. Programs whose sizes a run tells anew cannot be bound:
// run these with restride_instance_run. Threads: one at a time for an instance.
struct restride_status *restride_session_new(struct restride_instance *instance,
                                             const struct restride_tensor *inputs,
                                             size_t input_count,
                                             const struct restride_tensor *outputs,
                                             size_t output_count,
                                             struct restride_session **session);

// Runs once: reads the inputs' memory, and writes the outputs' and the state's. Allocates nothing.
// Threads: one at a time for a session; sessions on other memory run beside it.
struct restride_status *restride_session_run(struct restride_session *session);

// The tensor of the output at a position (user outputs, then gradients), which every run leaves in the same memory, without a copy.
// The caller frees it with its deleter, before or after the session. Before the first run its elements mean nothing.
// Threads: one at a time for a session.
struct restride_status *restride_session_output(struct restride_session *session,
                                                size_t index,
                                                DLManagedTensorVersioned **tensor);

// A tensor of the state by its name: without a copy if runs write it, else a copy. The caller frees it with its deleter, before or
// after the session. Threads: one at a time for a session.
struct restride_status *restride_session_state(struct restride_session *session,
                                               const char *name,
                                               DLManagedTensorVersioned **tensor);

// Ends a session and gives its instance back, state included. The session's handle is freed. Threads: no other thread may be using
// the handle.
struct restride_status *restride_session_end(struct restride_session *session,
                                             struct restride_instance **instance);

// Frees a session with its instance. NULL is allowed. Threads: no other thread may be using the handle.
void restride_session_free(struct restride_session *session);

// The kind of a status: RESTRIDE_KIND_OK for NULL, RESTRIDE_KIND_ARGUMENT for what is no status.
restride_kind restride_status_kind(const struct restride_status *status);

// The whole error on one line: what is wrong, at which node and source line, what to do. The text lives as long as the status;
// NULL for a NULL status.
const char *restride_status_text(const struct restride_status *status);

// What is wrong, without place and advice. Lives as long as the status.
const char *restride_status_message(const struct restride_status *status);

// The node at which it is wrong, as `%name = op`; NULL where no node is to blame. Lives as long as the status.
const char *restride_status_node(const struct restride_status *status);

// The line of the model's source, as `file.py:12`; NULL where the file records none. Lives as long as the status.
const char *restride_status_source(const struct restride_status *status);

// The text of that line; NULL where the file records none. Lives as long as the status.
const char *restride_status_code(const struct restride_status *status);

// What to do about it; NULL without advice. Lives as long as the status.
const char *restride_status_help(const struct restride_status *status);

// Frees a status. NULL is allowed.
void restride_status_free(struct restride_status *status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RESTRIDE_H */
