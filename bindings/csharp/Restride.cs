// restride for C#: classes that own the handles of restride.h (IDisposable), exceptions for its statuses. Runs on .NET and Mono.
//
// Memory that is bound is pinned as long as a session or an instance uses it. Thread rules are those of restride.h.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Restride
{
    public enum Kind : uint { Ok, Argument, File, Invalid, Program, Unsupported, Limit, Inputs, Check, Busy, Panic }
    public enum Role : uint { Input, Output, State }
    public enum Contents : uint { Copy, Keep }
    public enum OptimizerKind : uint { None, Sgd, Adam }

    /// <summary>An error of restride: Message is the whole of it.</summary>
    public sealed class RestrideException : Exception
    {
        public Kind Kind { get; }
        /// <summary>The node and the source line at which it is wrong, or null.</summary>
        public string Node { get; }
        public string SourceLine { get; }

        RestrideException(string text, Kind kind, string node, string source) : base(text)
        {
            Kind = kind;
            Node = node;
            SourceLine = source;
        }

        internal static void Check(IntPtr status)
        {
            if (status == IntPtr.Zero) return;
            var error = new RestrideException(Text.From(Native.restride_status_text(status)), (Kind)Native.restride_status_kind(status),
                Text.From(Native.restride_status_node(status)), Text.From(Native.restride_status_source(status)));
            Native.restride_status_free(status);
            throw error;
        }
    }

    static class Text
    {
        internal static string From(IntPtr text)
        {
            if (text == IntPtr.Zero) return null;
            int length = 0;
            while (Marshal.ReadByte(text, length) != 0) length++;
            var bytes = new byte[length];
            Marshal.Copy(text, bytes, 0, length);
            return Encoding.UTF8.GetString(bytes);
        }

        internal static byte[] To(string text) { return text == null ? null : Encoding.UTF8.GetBytes(text + "\0"); }
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct DataType
    {
        public byte Code, Bits;
        public ushort Lanes;

        internal static DataType Of(Type type)
        {
            if (type == typeof(float)) return Make(2, 4);
            if (type == typeof(double)) return Make(2, 8);
            if (type == typeof(long)) return Make(0, 8);
            if (type == typeof(int)) return Make(0, 4);
            if (type == typeof(short)) return Make(0, 2);
            if (type == typeof(sbyte)) return Make(0, 1);
            if (type == typeof(byte)) return Make(1, 1);
            throw new ArgumentException("tensors have no elements of type " + type);
        }

        static DataType Make(byte code, byte bytes) { return new DataType { Code = code, Bits = (byte)(8 * bytes), Lanes = 1 }; }
    }

    [StructLayout(LayoutKind.Sequential)]
    struct DLTensor
    {
        internal IntPtr Data;
        internal int DeviceType, DeviceId, Ndim;
        internal DataType Type;
        internal IntPtr Shape, Strides;
        internal ulong ByteOffset;
    }

    [StructLayout(LayoutKind.Sequential)]
    struct DLManagedTensor
    {
        internal uint Major, Minor;
        internal IntPtr Context, Deleter;
        internal ulong Flags;
        internal DLTensor Tensor;
    }

    [StructLayout(LayoutKind.Sequential)]
    struct RawTensor
    {
        internal IntPtr Name, Tensor, Managed;
        internal uint Storage, Flags;
    }

    [StructLayout(LayoutKind.Sequential)]
    struct RawDescription
    {
        internal IntPtr Name;
        internal uint Kind;
        internal int Mutated;
        internal DataType Type;
        internal int Ndim;
        internal IntPtr Sizes, Strides;
        internal UIntPtr StorageBytes;
    }

    /// <summary>What to differentiate, and the optimizer.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct GradOptions
    {
        UIntPtr size;
        public UIntPtr Loss;
        IntPtr wrt;
        UIntPtr wrtCount;
        public ulong MaxTrips;
        public OptimizerKind Optimizer;
        public uint Nesterov, Amsgrad, DecoupledWeightDecay, Maximize;
        uint reserved;
        public double LearningRate, WeightDecay, Momentum, Dampening, Beta1, Beta2, Epsilon;

        public static GradOptions Default()
        {
            GradOptions options;
            Native.restride_grad_options_init(out options);
            return options;
        }
    }

    static class Native
    {
        const string Library = "restride_capi";

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        internal delegate void Deleter(IntPtr managed);

        [DllImport(Library)] internal static extern uint restride_status_kind(IntPtr status);
        [DllImport(Library)] internal static extern IntPtr restride_status_text(IntPtr status);
        [DllImport(Library)] internal static extern IntPtr restride_status_node(IntPtr status);
        [DllImport(Library)] internal static extern IntPtr restride_status_source(IntPtr status);
        [DllImport(Library)] internal static extern void restride_status_free(IntPtr status);
        [DllImport(Library)] internal static extern void restride_string_free(IntPtr text);
        [DllImport(Library)] internal static extern IntPtr restride_open(byte[] path, IntPtr options, out IntPtr program);
        [DllImport(Library)] internal static extern IntPtr restride_save(ProgramHandle program, byte[] path);
        [DllImport(Library)] internal static extern IntPtr restride_functionalize(ProgramHandle program, out IntPtr made);
        [DllImport(Library)] internal static extern IntPtr restride_reinplace(ProgramHandle program, uint views, out IntPtr made);
        [DllImport(Library)] internal static extern void restride_grad_options_init(out GradOptions options);
        [DllImport(Library)] internal static extern IntPtr restride_grad(ProgramHandle program, ref GradOptions options, out IntPtr made);
        [DllImport(Library)] internal static extern IntPtr restride_program_count(ProgramHandle program, uint role, out UIntPtr count);
        [DllImport(Library)] internal static extern IntPtr restride_program_describe(ProgramHandle program, uint role, UIntPtr index, out RawDescription d);
        [DllImport(Library)] internal static extern IntPtr restride_program_sample(ProgramHandle program, UIntPtr index, out IntPtr tensor);
        [DllImport(Library)] internal static extern void restride_program_free(IntPtr program);
        [DllImport(Library)] internal static extern IntPtr restride_compile(ProgramHandle program, RawTensor[] inputs, UIntPtr count, IntPtr options, out IntPtr compiled);
        [DllImport(Library)] internal static extern IntPtr restride_compiled_plan_json(CompiledHandle compiled, IntPtr inputs, UIntPtr count, out IntPtr json);
        [DllImport(Library)] internal static extern void restride_compiled_free(IntPtr compiled);
        [DllImport(Library)] internal static extern IntPtr restride_instance_new(CompiledHandle compiled, out IntPtr instance);
        [DllImport(Library)] internal static extern IntPtr restride_instance_bind_state(InstanceHandle instance, RawTensor[] state, UIntPtr count, uint contents);
        [DllImport(Library)] internal static extern IntPtr restride_instance_state(InstanceHandle instance, byte[] name, out IntPtr tensor);
        [DllImport(Library)] internal static extern IntPtr restride_instance_run(InstanceHandle instance, RawTensor[] inputs, UIntPtr count, out IntPtr outputs);
        [DllImport(Library)] internal static extern void restride_instance_free(IntPtr instance);
        [DllImport(Library)] internal static extern UIntPtr restride_outputs_count(IntPtr outputs);
        [DllImport(Library)] internal static extern IntPtr restride_outputs_tensor(IntPtr outputs, UIntPtr index, out IntPtr tensor);
        [DllImport(Library)] internal static extern void restride_outputs_free(IntPtr outputs);
        [DllImport(Library)] internal static extern IntPtr restride_session_new(InstanceHandle instance, RawTensor[] inputs, UIntPtr inputCount, RawTensor[] outputs, UIntPtr outputCount, out IntPtr session);
        [DllImport(Library)] internal static extern IntPtr restride_session_run(SessionHandle session);
        [DllImport(Library)] internal static extern void restride_session_free(IntPtr session);
    }

    public abstract class RestrideHandle : SafeHandle
    {
        protected RestrideHandle(IntPtr handle) : base(IntPtr.Zero, true) { SetHandle(handle); }
        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }
    }

    sealed class ProgramHandle : RestrideHandle
    {
        internal ProgramHandle(IntPtr h) : base(h) { }
        protected override bool ReleaseHandle() { Native.restride_program_free(handle); return true; }
    }

    sealed class CompiledHandle : RestrideHandle
    {
        internal CompiledHandle(IntPtr h) : base(h) { }
        protected override bool ReleaseHandle() { Native.restride_compiled_free(handle); return true; }
    }

    sealed class InstanceHandle : RestrideHandle
    {
        internal InstanceHandle(IntPtr h) : base(h) { }
        protected override bool ReleaseHandle() { Native.restride_instance_free(handle); return true; }
    }

    sealed class SessionHandle : RestrideHandle
    {
        internal SessionHandle(IntPtr h) : base(h) { }
        protected override bool ReleaseHandle() { Native.restride_session_free(handle); return true; }
    }

    /// <summary>A tensor that restride gave: its memory stays until Dispose.</summary>
    public sealed class Tensor : SafeHandle
    {
        internal Tensor(IntPtr managed) : base(IntPtr.Zero, true) { SetHandle(managed); }
        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }

        DLManagedTensor Managed { get { return (DLManagedTensor)Marshal.PtrToStructure(handle, typeof(DLManagedTensor)); } }
        internal IntPtr DL { get { return new IntPtr(handle.ToInt64() + Marshal.OffsetOf(typeof(DLManagedTensor), "Tensor").ToInt64()); } }
        public DataType Type { get { return Managed.Tensor.Type; } }

        public long[] Sizes
        {
            get
            {
                var t = Managed.Tensor;
                var sizes = new long[t.Ndim];
                if (t.Ndim > 0) Marshal.Copy(t.Shape, sizes, 0, t.Ndim);
                return sizes;
            }
        }

        /// <summary>A copy of the bytes of a row-major tensor.</summary>
        public byte[] ToBytes()
        {
            var t = Managed.Tensor;
            long count = t.Type.Bits / 8;
            foreach (long size in Sizes) count *= size;
            var bytes = new byte[count];
            if (count > 0) Marshal.Copy(t.Data, bytes, 0, (int)count);
            return bytes;
        }

        protected override bool ReleaseHandle()
        {
            var deleter = (Native.Deleter)Marshal.GetDelegateForFunctionPointer(Managed.Deleter, typeof(Native.Deleter));
            deleter(handle);
            return true;
        }
    }

    /// <summary>A name, and memory of the program: an array, or a tensor that restride gave. An empty name stands for the position.</summary>
    public sealed class Argument
    {
        internal readonly string Name;
        internal readonly Array Memory;
        internal readonly long[] Sizes;
        internal readonly Tensor Given;
        internal readonly uint Storage;

        public Argument(string name, Array memory, long[] sizes, uint storage = 0)
        {
            long count = 1;
            foreach (long size in sizes) count *= size;
            if (count != memory.Length) throw new ArgumentException("the array has " + memory.Length + " elements, the sizes say " + count);
            Name = name;
            Memory = memory;
            Sizes = sizes;
            Storage = storage;
        }

        public Argument(string name, Tensor tensor)
        {
            Name = name;
            Given = tensor;
        }
    }

    /// <summary>Arguments as C takes them; memory is pinned until Dispose.</summary>
    sealed class Pinned : IDisposable
    {
        readonly List<GCHandle> pins = new List<GCHandle>();
        readonly List<Tensor> given = new List<Tensor>();
        internal readonly RawTensor[] Raw;

        internal UIntPtr Count { get { return (UIntPtr)(uint)Raw.Length; } }

        internal Pinned(IList<Argument> all)
        {
            Raw = new RawTensor[all.Count];
            for (int i = 0; i < all.Count; i++)
            {
                var a = all[i];
                Raw[i].Name = string.IsNullOrEmpty(a.Name) ? IntPtr.Zero : Pin(Text.To(a.Name));
                Raw[i].Storage = a.Storage;
                if (a.Given != null)
                {
                    given.Add(a.Given);
                    Raw[i].Tensor = a.Given.DL;
                    continue;
                }
                var t = new DLTensor { Data = Pin(a.Memory), DeviceType = 1, Ndim = a.Sizes.Length, Type = DataType.Of(a.Memory.GetType().GetElementType()), Shape = Pin(a.Sizes.Clone()) };
                Raw[i].Tensor = Pin(t);
            }
        }

        IntPtr Pin(object o)
        {
            var pin = GCHandle.Alloc(o, GCHandleType.Pinned);
            pins.Add(pin);
            return pin.AddrOfPinnedObject();
        }

        public void Dispose()
        {
            foreach (var pin in pins) pin.Free();
            pins.Clear();
            GC.KeepAlive(given);
        }
    }

    /// <summary>An input, an output or a tensor of the state.</summary>
    public sealed class Description
    {
        public string Name { get; internal set; }
        /// <summary>1: a run writes it; 0: none does; -1: not known.</summary>
        public int Mutated { get; internal set; }
        public DataType Type { get; internal set; }
        /// <summary>The least and the most that each size may be.</summary>
        public long[] Least { get; internal set; }
        public long[] Most { get; internal set; }
        public long StorageBytes { get; internal set; }
    }

    public sealed class Program : IDisposable
    {
        internal readonly ProgramHandle Handle;

        Program(IntPtr h) { Handle = new ProgramHandle(h); }

        public static Program Open(string path)
        {
            IntPtr made;
            RestrideException.Check(Native.restride_open(Text.To(path), IntPtr.Zero, out made));
            return new Program(made);
        }

        public void Save(string path) { RestrideException.Check(Native.restride_save(Handle, Text.To(path))); }

        public Program Functionalize()
        {
            IntPtr made;
            RestrideException.Check(Native.restride_functionalize(Handle, out made));
            return new Program(made);
        }

        public Program Reinplace(bool views = false)
        {
            IntPtr made;
            RestrideException.Check(Native.restride_reinplace(Handle, views ? 1u : 0u, out made));
            return new Program(made);
        }

        public Program Grad(GradOptions options)
        {
            IntPtr made;
            RestrideException.Check(Native.restride_grad(Handle, ref options, out made));
            return new Program(made);
        }

        public IList<Description> Describe(Role role)
        {
            UIntPtr count;
            RestrideException.Check(Native.restride_program_count(Handle, (uint)role, out count));
            var all = new List<Description>();
            for (uint i = 0; i < count.ToUInt32(); i++)
            {
                RawDescription d;
                RestrideException.Check(Native.restride_program_describe(Handle, (uint)role, (UIntPtr)i, out d));
                var least = new long[d.Ndim];
                var most = new long[d.Ndim];
                for (int k = 0; k < d.Ndim; k++)
                {
                    // A size is a text and two numbers.
                    int at = k * (IntPtr.Size + 16) + IntPtr.Size;
                    least[k] = Marshal.ReadInt64(d.Sizes, at);
                    most[k] = Marshal.ReadInt64(d.Sizes, at + 8);
                }
                all.Add(new Description { Name = Text.From(d.Name), Mutated = d.Mutated, Type = d.Type, Least = least, Most = most, StorageBytes = (long)d.StorageBytes });
            }
            return all;
        }

        public Tensor Sample(int index)
        {
            IntPtr tensor;
            RestrideException.Check(Native.restride_program_sample(Handle, (UIntPtr)(uint)index, out tensor));
            return new Tensor(tensor);
        }

        public void Dispose() { Handle.Dispose(); }
    }

    /// <summary>A compiled program. Any number of threads may use one.</summary>
    public sealed class Compiled : IDisposable
    {
        internal readonly CompiledHandle Handle;

        public Compiled(Program program, params Argument[] inputs)
        {
            using (var raw = new Pinned(inputs))
            {
                IntPtr made;
                RestrideException.Check(Native.restride_compile(program.Handle, raw.Raw, raw.Count, IntPtr.Zero, out made));
                Handle = new CompiledHandle(made);
            }
        }

        public string PlanJson()
        {
            IntPtr text;
            RestrideException.Check(Native.restride_compiled_plan_json(Handle, IntPtr.Zero, UIntPtr.Zero, out text));
            try { return Text.From(text); }
            finally { Native.restride_string_free(text); }
        }

        public void Dispose() { Handle.Dispose(); }
    }

    /// <summary>An arena and a state.</summary>
    public sealed class Instance : IDisposable
    {
        internal InstanceHandle Handle;
        internal readonly List<IDisposable> Bound = new List<IDisposable>();

        public Instance(Compiled compiled)
        {
            IntPtr made;
            RestrideException.Check(Native.restride_instance_new(compiled.Handle, out made));
            Handle = new InstanceHandle(made);
        }

        /// <summary>Binds arrays to tensors of the state, until the instance, or the session made of it, is disposed of.</summary>
        public void BindState(Contents contents, params Argument[] state)
        {
            var raw = new Pinned(state);
            Bound.Add(raw);
            RestrideException.Check(Native.restride_instance_bind_state(Handle, raw.Raw, raw.Count, (uint)contents));
        }

        public Tensor State(string name)
        {
            IntPtr tensor;
            RestrideException.Check(Native.restride_instance_state(Handle, Text.To(name), out tensor));
            return new Tensor(tensor);
        }

        /// <summary>Runs once. An output that the program returns as a view of an input is in that input's array: read it before the array moves, or give a Tensor.</summary>
        public Tensor[] Run(params Argument[] inputs)
        {
            using (var raw = new Pinned(inputs))
            {
                IntPtr outputs;
                RestrideException.Check(Native.restride_instance_run(Handle, raw.Raw, raw.Count, out outputs));
                try
                {
                    var all = new Tensor[Native.restride_outputs_count(outputs).ToUInt32()];
                    for (uint i = 0; i < all.Length; i++)
                    {
                        IntPtr tensor;
                        RestrideException.Check(Native.restride_outputs_tensor(outputs, (UIntPtr)i, out tensor));
                        all[i] = new Tensor(tensor);
                    }
                    return all;
                }
                finally { Native.restride_outputs_free(outputs); }
            }
        }

        public void Dispose()
        {
            if (Handle != null) Handle.Dispose();
            foreach (var b in Bound) b.Dispose();
            Bound.Clear();
        }
    }

    /// <summary>An instance bound to arrays, which runs read and write where they are.</summary>
    public sealed class Session : IDisposable
    {
        readonly SessionHandle handle;
        readonly List<IDisposable> bound = new List<IDisposable>();

        /// <summary>Takes the instance, if it succeeds.</summary>
        public Session(Instance instance, Argument[] inputs, params Argument[] outputs)
        {
            Pinned from = new Pinned(inputs), to = new Pinned(outputs);
            bound.Add(from);
            bound.Add(to);
            IntPtr made;
            RestrideException.Check(Native.restride_session_new(instance.Handle, from.Raw, from.Count, to.Raw, to.Count, out made));
            handle = new SessionHandle(made);
            bound.AddRange(instance.Bound);
            instance.Bound.Clear();
            instance.Handle.SetHandleAsInvalid();
            instance.Handle = null;
        }

        public void Run() { RestrideException.Check(Native.restride_session_run(handle)); }

        public void Dispose()
        {
            handle.Dispose();
            foreach (var b in bound) b.Dispose();
            bound.Clear();
        }
    }
}
