// The two examples: `Example decode MODEL.pt2 TOKENS RESULTS` and `Example train MODEL.pt2 STEP.pt2 RESULTS`, as bindings/c has them.
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

final class Example {
    private Example() {}

    /** A line of a results file: a name, and bytes as hexadecimal digits. */
    private static void write(PrintWriter results, String name, MemorySegment bytes) {
        results.print(name + " " + HexFormat.of().formatHex(bytes.toArray(ValueLayout.JAVA_BYTE)) + "\n");
    }

    private static void decode(String model, long tokens, PrintWriter results) {
        try (Arena arena = Arena.ofConfined();
             Restride.Program program = Restride.Program.open(model);
             Restride.Compiled compiled = new Restride.Compiled(program);
             Restride.Instance instance = new Restride.Instance(compiled)) {
            // Every buffer that a step writes gets memory of this program.
            List<Restride.Argument> state = new ArrayList<>();
            for (Restride.Description d : program.describe(Restride.STATE)) {
                if (d.mutated() == 1) {
                    state.add(new Restride.Argument(d.name(), arena.allocate(d.storageBytes(), 64), Restride.Type.UINT8, d.storageBytes()));
                }
            }
            instance.bindState(Restride.COPY, state);

            MemorySegment token = arena.allocateFrom(ValueLayout.JAVA_LONG, 1), position = arena.allocateFrom(ValueLayout.JAVA_LONG, 0);
            MemorySegment logits = arena.allocate(ValueLayout.JAVA_FLOAT, 128);
            List<Restride.Argument> inputs = List.of(new Restride.Argument("", token, Restride.Type.INT64, 1, 1), new Restride.Argument("", position, Restride.Type.INT64, 1));
            List<Restride.Argument> outputs = List.of(new Restride.Argument("output.0", logits, Restride.Type.FLOAT32, 1, 1, 128));
            try (Restride.Session session = new Restride.Session(instance, inputs, outputs)) {
                for (long at = 0; at < tokens; at++) {
                    position.set(ValueLayout.JAVA_LONG, 0, at);
                    session.run();
                    write(results, "output.0", logits);
                    for (Restride.Argument s : state) {
                        write(results, s.name(), s.memory());
                    }
                    long best = 0;
                    for (int i = 1; i < 128; i++) {
                        if (logits.getAtIndex(ValueLayout.JAVA_FLOAT, i) >= logits.getAtIndex(ValueLayout.JAVA_FLOAT, best)) {
                            best = i;
                        }
                    }
                    token.set(ValueLayout.JAVA_LONG, 0, best);
                    System.out.print(best + " ");
                }
                System.out.println();
            }
        }
    }

    private static void train(String model, String to, PrintWriter results) {
        try (Restride.Program program = Restride.Program.open(model);
             Restride.Program step = program.grad(new Restride.GradOptions(Restride.ADAM, 0.01));
             Restride.Compiled compiled = new Restride.Compiled(step);
             Restride.Instance instance = new Restride.Instance(compiled)) {
            step.save(to);
            List<Restride.Tensor> samples = new ArrayList<>();
            List<Restride.Argument> inputs = new ArrayList<>();
            for (int i = 0; i < step.describe(Restride.INPUT).size(); i++) {
                samples.add(step.sample(i));
                inputs.add(new Restride.Argument("", samples.get(i)));
            }
            for (int at = 0; at < 10; at++) {
                List<Restride.Tensor> outputs = instance.run(inputs);
                MemorySegment loss = outputs.get(0).memory();
                System.out.print(loss.get(ValueLayout.JAVA_FLOAT, 0) + " ");
                write(results, "output.0", loss);
                outputs.forEach(Restride.Tensor::close);
                if (at == 0 || at == 9) {
                    for (Restride.Description d : step.describe(Restride.STATE)) {
                        try (Restride.Tensor now = instance.state(d.name())) {
                            write(results, at + "." + d.name(), now.memory());
                        }
                    }
                }
            }
            System.out.println();
            samples.forEach(Restride.Tensor::close);
        }
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 4) {
            System.err.println("usage: Example decode MODEL.pt2 TOKENS RESULTS | Example train MODEL.pt2 STEP.pt2 RESULTS");
            System.exit(2);
        }
        try {
            // An error is an exception with a message.
            Restride.Program.open("/nowhere/x.pt2");
            System.exit(1);
        } catch (Restride.RestrideException e) {
            if (e.kind != Restride.FILE) {
                throw e;
            }
        }
        try (PrintWriter results = new PrintWriter(args[3], "UTF-8")) {
            if (args[0].equals("decode")) {
                decode(args[1], Long.parseLong(args[2]), results);
            } else {
                train(args[1], args[2], results);
            }
        }
    }
}
