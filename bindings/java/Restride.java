// restride for Java 22 and later, by the foreign function and memory API: classes that own the handles of restride.h (AutoCloseable),
// and exceptions for its statuses. Thread rules are those of restride.h.
//
// The library is librestride_capi in the folder of the property `restride.library`, or of java.library.path's first folder.
import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The API: {@link Program}, {@link Compiled}, {@link Instance}, {@link Session}. */
public final class Restride {
    public static final int INPUT = 0, OUTPUT = 1, STATE = 2;
    public static final int COPY = 0, KEEP = 1;
    public static final int NO_OPTIMIZER = 0, SGD = 1, ADAM = 2;
    /** Kinds of errors. */
    public static final int ARGUMENT = 1, FILE = 2, INVALID = 3, PROGRAM = 4, UNSUPPORTED = 5, LIMIT = 6, INPUTS = 7, CHECK = 8, BUSY = 9, PANIC = 10;

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final AddressLayout POINTER = ValueLayout.ADDRESS;
    private static final MemorySegment NULL = MemorySegment.NULL;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final SymbolLookup LIBRARY = SymbolLookup.libraryLookup(
        Path.of(System.getProperty("restride.library", System.getProperty("java.library.path").split(":")[0]), System.mapLibraryName("restride_capi")),
        Arena.global());
    private static final Map<String, MethodHandle> FUNCTIONS = new ConcurrentHashMap<>();

    private Restride() {}

    private static MethodHandle function(String name, MemoryLayout result, MemoryLayout... arguments) {
        return FUNCTIONS.computeIfAbsent(name, n -> {
            FunctionDescriptor type = result == null ? FunctionDescriptor.ofVoid(arguments) : FunctionDescriptor.of(result, arguments);
            return LINKER.downcallHandle(LIBRARY.find(n).orElseThrow(), type);
        });
    }

    private static MemoryLayout[] layouts(Object[] arguments) {
        MemoryLayout[] out = new MemoryLayout[arguments.length];
        for (int i = 0; i < arguments.length; i++) {
            out[i] = arguments[i] instanceof Long ? LONG : arguments[i] instanceof Integer ? INT : POINTER;
        }
        return out;
    }

    private static Object invoke(String name, MemoryLayout result, Object... arguments) {
        try {
            return function(name, result, layouts(arguments)).invokeWithArguments(arguments);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /** Calls a function that returns a status. */
    private static void check(String name, Object... arguments) {
        MemorySegment status = (MemorySegment) invoke(name, POINTER, arguments);
        if (status.address() != 0) {
            RestrideException e = new RestrideException((int) invoke("restride_status_kind", INT, status), text((MemorySegment) invoke("restride_status_text", POINTER, status)),
                text((MemorySegment) invoke("restride_status_node", POINTER, status)), text((MemorySegment) invoke("restride_status_source", POINTER, status)));
            invoke("restride_status_free", null, status);
            throw e;
        }
    }

    /** Calls a function that gives a pointer through its last argument. */
    private static MemorySegment made(String name, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(POINTER);
            Object[] all = java.util.Arrays.copyOf(arguments, arguments.length + 1);
            all[arguments.length] = out;
            check(name, all);
            return out.get(POINTER, 0);
        }
    }

    private static String text(MemorySegment text) {
        return text.address() == 0 ? null : text.reinterpret(Long.MAX_VALUE).getString(0);
    }

    /** An error of restride: the message is the whole of it. */
    public static final class RestrideException extends RuntimeException {
        private static final long serialVersionUID = 1;
        public final int kind;
        /** The node and the source line at which it is wrong, or null. */
        public final String node, source;

        RestrideException(int kind, String text, String node, String source) {
            super(text);
            this.kind = kind;
            this.node = node;
            this.source = source;
        }
    }

    /** Owner of a handle. */
    public abstract static class Handle implements AutoCloseable {
        MemorySegment handle;
        private final String free;

        Handle(MemorySegment handle, String free) {
            this.handle = handle;
            this.free = free;
        }

        @Override
        public void close() {
            if (handle.address() != 0) {
                invoke(free, null, handle);
                handle = NULL;
            }
        }
    }

    // DLTensor: data, device (two ints), ndim, dtype, shape, strides, byte_offset.
    private static final long TENSOR_BYTES = 48, DL_NDIM = 16, DL_DTYPE = 20, DL_SHAPE = 24;
    // DLManagedTensorVersioned: version (two ints), manager_ctx, deleter, flags, dl_tensor.
    private static final long MANAGED_DELETER = 16, MANAGED_TENSOR = 32;
    // restride_tensor: name, tensor, managed, storage, flags.
    private static final long RAW_BYTES = 32;

    /** A tensor that restride gave: its memory stays until close. */
    public static final class Tensor implements AutoCloseable {
        private MemorySegment managed;

        Tensor(MemorySegment managed) {
            this.managed = managed.reinterpret(MANAGED_TENSOR + TENSOR_BYTES);
        }

        MemorySegment dl() {
            return managed.asSlice(MANAGED_TENSOR, TENSOR_BYTES);
        }

        public long[] sizes() {
            int rank = dl().get(INT, DL_NDIM);
            return rank == 0 ? new long[0] : dl().get(POINTER, DL_SHAPE).reinterpret(8L * rank).toArray(LONG);
        }

        /** The bytes of a row-major tensor, where they are, until close. */
        public MemorySegment memory() {
            long bytes = Byte.toUnsignedInt(dl().get(ValueLayout.JAVA_BYTE, DL_DTYPE + 1)) / 8;
            for (long size : sizes()) {
                bytes *= size;
            }
            return dl().get(POINTER, 0).reinterpret(bytes);
        }

        @Override
        public void close() {
            if (managed.address() == 0) {
                return;
            }
            try {
                MemorySegment deleter = managed.get(POINTER, MANAGED_DELETER);
                LINKER.downcallHandle(deleter, FunctionDescriptor.ofVoid(POINTER)).invokeWithArguments(managed);
            } catch (RuntimeException | Error e) {
                throw e;
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
            managed = NULL;
        }
    }

    /** Element types: the code, and the bits of an element. */
    public enum Type {
        INT8(0, 8), INT16(0, 16), INT32(0, 32), INT64(0, 64), UINT8(1, 8), FLOAT16(2, 16), FLOAT32(2, 32), FLOAT64(2, 64), BFLOAT16(4, 16), BOOL(6, 8);

        final int code, bits;

        Type(int code, int bits) {
            this.code = code;
            this.bits = bits;
        }
    }

    /** A name, and native memory that must stay as long as restride.h says. An empty name stands for the position. */
    public record Argument(String name, MemorySegment memory, Type type, long[] sizes, Tensor given) {
        public Argument(String name, MemorySegment memory, Type type, long... sizes) {
            this(name, memory, type, sizes, null);
            long bytes = type.bits / 8;
            for (long size : sizes) {
                bytes = Math.multiplyExact(bytes, size);
            }
            if (!memory.isNative() || memory.byteSize() < bytes) {
                throw new IllegalArgumentException("native memory of " + bytes + " bytes is needed");
            }
        }

        public Argument(String name, Tensor given) {
            this(name, null, null, null, given);
        }
    }

    /** Arguments as C takes them, in memory of an arena. */
    private static MemorySegment raw(Arena arena, List<Argument> all) {
        if (all.isEmpty()) {
            return NULL;
        }
        MemorySegment out = arena.allocate(RAW_BYTES * all.size(), 8);
        for (int i = 0; i < all.size(); i++) {
            Argument a = all.get(i);
            MemorySegment tensor;
            if (a.given() != null) {
                tensor = a.given().dl();
            } else {
                tensor = arena.allocate(TENSOR_BYTES, 8);
                tensor.set(POINTER, 0, a.memory());
                tensor.set(INT, 8, 1);
                tensor.set(INT, DL_NDIM, a.sizes().length);
                tensor.set(ValueLayout.JAVA_BYTE, DL_DTYPE, (byte) a.type().code);
                tensor.set(ValueLayout.JAVA_BYTE, DL_DTYPE + 1, (byte) a.type().bits);
                tensor.set(ValueLayout.JAVA_SHORT, DL_DTYPE + 2, (short) 1);
                tensor.set(POINTER, DL_SHAPE, a.sizes().length == 0 ? NULL : arena.allocateFrom(LONG, a.sizes()));
            }
            out.set(POINTER, i * RAW_BYTES, a.name().isEmpty() ? NULL : arena.allocateFrom(a.name()));
            out.set(POINTER, i * RAW_BYTES + 8, tensor);
        }
        return out;
    }

    /** An input, an output or a tensor of the state: `mutated` 1 if a run writes it; the least and the most that each size may be. */
    public record Description(String name, int kind, int mutated, long[] least, long[] most, long storageBytes) {}

    /** What to differentiate by, and the optimizer; zeros are restride's defaults. */
    public record GradOptions(int optimizer, double learningRate) {}

    public static final class Program extends Handle {
        Program(MemorySegment handle) {
            super(handle, "restride_program_free");
        }

        public static Program open(String path) {
            try (Arena arena = Arena.ofConfined()) {
                return new Program(made("restride_open", arena.allocateFrom(path), NULL));
            }
        }

        public void save(String path) {
            try (Arena arena = Arena.ofConfined()) {
                check("restride_save", handle, arena.allocateFrom(path));
            }
        }

        public Program functionalize() {
            return new Program(made("restride_functionalize", handle));
        }

        public Program grad(GradOptions options) {
            try (Arena arena = Arena.ofConfined()) {
                // size, loss, wrt, wrt_count, max_trips, six ints, seven doubles.
                MemorySegment raw = arena.allocate(5 * 8 + 6 * 4 + 7 * 8, 8);
                invoke("restride_grad_options_init", null, raw);
                raw.set(INT, 40, options.optimizer());
                if (options.learningRate() != 0) {
                    raw.set(ValueLayout.JAVA_DOUBLE, 64, options.learningRate());
                }
                return new Program(made("restride_grad", handle, raw));
            }
        }

        public List<Description> describe(int role) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment count = arena.allocate(LONG), d = arena.allocate(56, 8);
                check("restride_program_count", handle, role, count);
                List<Description> all = new ArrayList<>();
                for (long i = 0; i < count.get(LONG, 0); i++) {
                    check("restride_program_describe", handle, role, i, d);
                    int rank = d.get(INT, 20);
                    long[] least = new long[rank], most = new long[rank];
                    MemorySegment sizes = d.get(POINTER, 24).reinterpret(24L * rank);
                    for (int k = 0; k < rank; k++) {
                        least[k] = sizes.get(LONG, 24L * k + 8);
                        most[k] = sizes.get(LONG, 24L * k + 16);
                    }
                    all.add(new Description(text(d.get(POINTER, 0)), d.get(INT, 8), d.get(INT, 12), least, most, d.get(LONG, 40)));
                }
                return all;
            }
        }

        public Tensor sample(int index) {
            return new Tensor(made("restride_program_sample", handle, (long) index));
        }
    }

    /** A compiled program. Any number of threads may use one. */
    public static final class Compiled extends Handle {
        public Compiled(Program program) {
            super(made("restride_compile", program.handle, NULL, 0L, NULL), "restride_compiled_free");
        }

        public String planJson() {
            MemorySegment json = made("restride_compiled_plan_json", handle, NULL, 0L);
            String out = text(json);
            invoke("restride_string_free", null, json);
            return out;
        }
    }

    /** An arena and a state. */
    public static final class Instance extends Handle {
        public Instance(Compiled compiled) {
            super(made("restride_instance_new", compiled.handle), "restride_instance_free");
        }

        /** Memory that must stay until the instance, or the session made of it, is closed. */
        public void bindState(int contents, List<Argument> state) {
            try (Arena arena = Arena.ofConfined()) {
                check("restride_instance_bind_state", handle, raw(arena, state), (long) state.size(), contents);
            }
        }

        public Tensor state(String name) {
            try (Arena arena = Arena.ofConfined()) {
                return new Tensor(made("restride_instance_state", handle, arena.allocateFrom(name)));
            }
        }

        /** Runs once. The caller closes the outputs. */
        public List<Tensor> run(List<Argument> inputs) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment outputs = made("restride_instance_run", handle, raw(arena, inputs), (long) inputs.size());
                List<Tensor> all = new ArrayList<>();
                long count = (long) invoke("restride_outputs_count", LONG, outputs);
                for (long i = 0; i < count; i++) {
                    all.add(new Tensor(made("restride_outputs_tensor", outputs, i)));
                }
                invoke("restride_outputs_free", null, outputs);
                return all;
            }
        }
    }

    /** An instance bound to native memory, which must stay until the session is closed. */
    public static final class Session extends Handle {
        /** Takes the instance, if it succeeds. */
        public Session(Instance instance, List<Argument> inputs, List<Argument> outputs) {
            super(create(instance, inputs, outputs), "restride_session_free");
        }

        private static MemorySegment create(Instance instance, List<Argument> inputs, List<Argument> outputs) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment made = made("restride_session_new", instance.handle, raw(arena, inputs), (long) inputs.size(), raw(arena, outputs), (long) outputs.size());
                instance.handle = NULL;
                return made;
            }
        }

        public void run() {
            check("restride_session_run", handle);
        }
    }
}
