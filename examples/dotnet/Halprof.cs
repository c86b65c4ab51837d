// Hardware performance counters of the current thread on Windows, by halprof.dll and P/Invoke.
//
//     using (var group = new Halprof.Group("instructions", "cycles"))
//     {
//         Halprof.Counts counts = group.Measure(() => Work());
//         Console.WriteLine($"{counts["instructions"]} {counts.Quality}");
//     }
//
// A group can only be used by the thread that opened it, so an asynchronous method must not await while it is open.

using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Halprof
{
    /// <summary>How exact counts are.</summary>
    public enum Quality : uint { Virtualized = 1, Undisturbed = 2, Disturbed = 3 }

    /// <summary>What halprof_error_text() says.</summary>
    public sealed class HalprofException : Exception
    {
        public int Status { get; }
        internal HalprofException(int status) : base(Native.Text(Native.halprof_error_text())) { Status = status; }
    }

    internal static class Native
    {
        private const string Dll = "halprof";
        internal const uint AbiVersion = 1;
        internal const uint User = 1;

        /// <summary>halprof_result.</summary>
        [StructLayout(LayoutKind.Sequential)]
        internal struct Result
        {
            internal uint Size;
            internal uint Quality;
            internal uint Flags;
            internal uint Events;
            internal ulong TimeEnabled;
            internal ulong TimeRunning;
        }

        private const CallingConvention C = CallingConvention.Cdecl;
        [DllImport(Dll, CallingConvention = C)]
        internal static extern int halprof_open(uint version, byte[] events, uint flags, out ulong group);
        [DllImport(Dll, CallingConvention = C)]
        internal static extern int halprof_availability(ulong group, out uint quality, out IntPtr reason);
        [DllImport(Dll, CallingConvention = C)] internal static extern int halprof_calibrate(ulong group);
        [DllImport(Dll, CallingConvention = C)] internal static extern int halprof_begin(ulong group);
        [DllImport(Dll, CallingConvention = C)] internal static extern int halprof_end(ulong group, ref Result result);
        [DllImport(Dll, CallingConvention = C)]
        internal static extern int halprof_count(ulong group, uint index, out ulong count);
        [DllImport(Dll, CallingConvention = C)] internal static extern IntPtr halprof_reason(ulong group);
        [DllImport(Dll, CallingConvention = C)] internal static extern IntPtr halprof_error_text();
        [DllImport(Dll, CallingConvention = C)] internal static extern int halprof_close(ulong group);

        internal static void Check(int status)
        {
            if (status != 0) throw new HalprofException(status);
        }

        /// <summary>Reads a string in UTF-8, also where Marshal.PtrToStringUTF8 does not exist.</summary>
        internal static string Text(IntPtr text)
        {
            if (text == IntPtr.Zero) return "";
            var length = 0;
            while (Marshal.ReadByte(text, length) != 0) length++;
            var bytes = new byte[length];
            Marshal.Copy(text, bytes, 0, length);
            return Encoding.UTF8.GetString(bytes);
        }
    }

    /// <summary>The counts of a region.</summary>
    public sealed class Counts
    {
        private readonly Dictionary<string, ulong> counts;
        public Quality Quality { get; }
        /// <summary>Why the quality is Disturbed; empty otherwise.</summary>
        public string Reason { get; }
        /// <summary>Whether `.\client selftest` has proved virtualized counts on this machine.</summary>
        public bool IsVerified { get; }
        public TimeSpan Time { get; }
        public ulong this[string name] => counts[name];

        internal Counts(Dictionary<string, ulong> counts, Native.Result result, string reason)
        {
            this.counts = counts;
            Quality = (Quality)result.Quality;
            IsVerified = (result.Flags & 1) != 0;
            Reason = reason;
            Time = TimeSpan.FromTicks((long)(result.TimeEnabled / 100));
        }
    }

    /// <summary>A group of events of the current thread, in user mode.</summary>
    public sealed class Group : IDisposable
    {
        private readonly string[] events;
        private ulong handle;

        public Group(params string[] events)
        {
            this.events = events;
            var names = Encoding.UTF8.GetBytes(string.Join(",", events) + "\0");
            Native.Check(Native.halprof_open(Native.AbiVersion, names, Native.User, out handle));
            Native.Check(Native.halprof_calibrate(handle));
        }

        /// <summary>Returns the best quality of this group, and why it has no better one.</summary>
        public Quality Availability(out string reason)
        {
            Native.Check(Native.halprof_availability(handle, out var quality, out var text));
            reason = Native.Text(text);
            return (Quality)quality;
        }

        /// <summary>Calls the work and returns its counts. Call it once before, so that it is compiled.</summary>
        public Counts Measure(Action work)
        {
            var result = new Native.Result { Size = (uint)Marshal.SizeOf(typeof(Native.Result)) };
            int status;
            Native.Check(Native.halprof_begin(handle));
            try { work(); }
            finally { status = Native.halprof_end(handle, ref result); }
            Native.Check(status);
            var counts = new Dictionary<string, ulong>();
            for (var i = 0; i < events.Length; i++)
            {
                Native.Check(Native.halprof_count(handle, (uint)i, out var count));
                counts[events[i]] = count;
            }
            return new Counts(counts, result, Native.Text(Native.halprof_reason(handle)));
        }

        /// <summary>Closes the group. Its counters are free afterwards.</summary>
        public void Dispose()
        {
            Native.halprof_close(handle);
            handle = 0;
        }
    }

    internal static class Program
    {
        private static long sum;

        private static void Work()
        {
            for (var i = 0; i < 100000; i++) sum += i;
        }

        private static int Main()
        {
            try
            {
                using (var group = new Group("instructions", "cycles"))
                {
                    var best = group.Availability(out var reason);
                    Console.WriteLine($"best quality: {best} {reason}");
                    Work();
                    for (var i = 0; i < 5; i++)
                    {
                        var counts = group.Measure(Work);
                        Console.WriteLine($"{counts["instructions"]} instructions, {counts["cycles"]} cycles, " +
                                          $"{counts.Quality} {counts.Reason}");
                    }
                }
                return 0;
            }
            catch (HalprofException error)
            {
                Console.Error.WriteLine($"error {error.Status}: {error.Message}");
                return 1;
            }
        }
    }
}
