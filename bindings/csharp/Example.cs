// The two examples: `Example.exe decode MODEL.pt2 TOKENS RESULTS` and `Example.exe train MODEL.pt2 STEP.pt2 RESULTS`, as bindings/c has them.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using Restride;

static class Example
{
    /// <summary>A line of a results file: a name, and bytes as hexadecimal digits.</summary>
    static void Write(TextWriter results, string name, byte[] bytes)
    {
        results.Write(name + " " + BitConverter.ToString(bytes).Replace("-", "").ToLowerInvariant() + "\n");
    }

    static void Decode(string model, long tokens, TextWriter results)
    {
        using (var program = Program.Open(model))
        using (var compiled = new Compiled(program))
        using (var instance = new Instance(compiled))
        {
            // Every buffer that a step writes gets memory of this program.
            var written = program.Describe(Role.State).Where(d => d.Mutated == 1).ToArray();
            var memory = written.Select(d => new byte[d.StorageBytes]).ToArray();
            instance.BindState(Contents.Copy, written.Select((d, i) => new Argument(d.Name, memory[i], new long[] { memory[i].Length })).ToArray());

            long[] token = { 1 }, position = { 0 };
            var logits = new float[128];
            var inputs = new[] { new Argument("", token, new long[] { 1, 1 }), new Argument("", position, new long[] { 1 }) };
            using (var session = new Session(instance, inputs, new Argument("output.0", logits, new long[] { 1, 1, 128 })))
            {
                for (long at = 0; at < tokens; at++)
                {
                    position[0] = at;
                    session.Run();
                    var bytes = new byte[4 * logits.Length];
                    Buffer.BlockCopy(logits, 0, bytes, 0, bytes.Length);
                    Write(results, "output.0", bytes);
                    for (int i = 0; i < written.Length; i++) Write(results, written[i].Name, memory[i]);
                    token[0] = Array.LastIndexOf(logits, logits.Max());
                    Console.Write(token[0] + " ");
                }
                Console.WriteLine();
            }
        }
    }

    static void Train(string model, string to, TextWriter results)
    {
        var how = GradOptions.Default();
        how.Optimizer = OptimizerKind.Adam;
        how.LearningRate = 0.01;
        using (var program = Program.Open(model))
        using (var step = program.Grad(how))
        using (var compiled = new Compiled(step))
        using (var instance = new Instance(compiled))
        {
            step.Save(to);
            var samples = step.Describe(Role.Input).Select((d, i) => step.Sample(i)).ToArray();
            var state = step.Describe(Role.State);
            for (int at = 0; at < 10; at++)
            {
                var outputs = instance.Run(samples.Select(s => new Argument("", s)).ToArray());
                var loss = outputs[0].ToBytes();
                Console.Write(BitConverter.ToSingle(loss, 0) + " ");
                Write(results, "output.0", loss);
                foreach (var o in outputs) o.Dispose();
                if (at != 0 && at != 9) continue;
                foreach (var d in state)
                {
                    using (var now = instance.State(d.Name)) Write(results, at + "." + d.Name, now.ToBytes());
                }
            }
            Console.WriteLine();
            foreach (var s in samples) s.Dispose();
        }
    }

    static int Main(string[] args)
    {
        if (args.Length != 4)
        {
            Console.Error.WriteLine("usage: Example.exe decode MODEL.pt2 TOKENS RESULTS | Example.exe train MODEL.pt2 STEP.pt2 RESULTS");
            return 2;
        }
        try
        {
            // An error is an exception with a message.
            Program.Open("/nowhere/x.pt2");
            return 1;
        }
        catch (RestrideException e)
        {
            if (e.Kind != Kind.File || e.Message.Length == 0) throw;
        }
        using (var results = new StreamWriter(args[3]))
        {
            if (args[0] == "decode") Decode(args[1], long.Parse(args[2]), results);
            else Train(args[1], args[2], results);
        }
        return 0;
    }
}
