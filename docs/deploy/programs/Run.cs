// Not run by a test: ONNX Runtime's package is in NuGet's registry. Its calls were compared with the sources of version 1.29.
//
// Runs two compiled models in one process, with the C# API (Microsoft.ML.OnnxRuntime, 1.17 or newer).
//
//   dotnet add package Microsoft.ML.OnnxRuntime
//   dotnet run FIRST.igniter SECOND.igniter INPUT OUTPUT
//
// The models have one input f32[rows, columns] and one output. INPUT has the rows of the first model's input, as floats
// of this machine. OUTPUT gets three results: of the first model, of the first model with IO binding, and of the second
// model, whose input is the first model's output.

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using Microsoft.ML.OnnxRuntime;

static class Program
{
    static InferenceSession Open(string folder, bool withLibrary = true)
    {
        using var options = new SessionOptions();
        // All sessions use the threads of the environment. For threads of its own: options.IntraOpNumThreads = n.
        options.DisablePerSessionThreads();
        foreach (var library in Directory.GetFiles(folder, "libigniter_*"))
        {
            if (withLibrary)
                options.RegisterCustomOpLibrary(Path.GetFullPath(library));
        }
        return new InferenceSession(Path.Combine(folder, "model.onnx"), options);
    }

    static void Write(Stream file, ReadOnlySpan<float> data) => file.Write(MemoryMarshal.AsBytes(data));

    static string Shape(OrtValue value) => string.Join(" x ", value.GetTensorTypeAndShape().Shape);

    static IDisposableReadOnlyCollection<OrtValue> Run(InferenceSession session, RunOptions how, OrtValue input) =>
        session.Run(how, new Dictionary<string, OrtValue> { [session.InputNames[0]] = input }, session.OutputNames);

    static int Main(string[] arguments)
    {
        if (arguments.Length != 4)
        {
            Console.Error.WriteLine("usage: Run FIRST.igniter SECOND.igniter INPUT OUTPUT");
            return 2;
        }

        // One thread pool for the process: two threads, which sleep between runs.
        using var threads = new OrtThreadingOptions { GlobalIntraOpNumThreads = 2, GlobalSpinControl = false };
        var creation = new EnvironmentCreationOptions
        {
            logId = "run",
            logLevel = OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL,
            threadOptions = threads,
        };
        using var env = OrtEnv.CreateInstanceWithOptions(ref creation);
        using var how = new RunOptions();

        using var first = Open(arguments[0]);
        using var second = Open(arguments[1]);
        long columns = first.InputMetadata[first.InputNames[0]].Dimensions[1];
        float[] given = MemoryMarshal.Cast<byte, float>(File.ReadAllBytes(arguments[2])).ToArray();
        using var x = OrtValue.CreateTensorValueFromMemory(given, new[] { given.Length / columns, columns });

        using var results = Run(first, how, x);
        var middle = results[0];
        Console.WriteLine($"first: {Shape(middle)}");

        // The buffers are bound once; each run reads the one and writes the other, without a copy or an allocation.
        var buffer = new float[middle.GetTensorDataAsSpan<float>().Length];
        using var bound = OrtValue.CreateTensorValueFromMemory(buffer, middle.GetTensorTypeAndShape().Shape);
        using (var binding = first.CreateIoBinding())
        {
            binding.BindInput(first.InputNames[0], x);
            binding.BindOutput(first.OutputNames[0], bound);
            for (int i = 0; i < 3; i++)
                first.RunWithBinding(how, binding);
        }

        using var end = Run(second, how, middle);
        Console.WriteLine($"second: {Shape(end[0])}");
        using (var file = File.Create(arguments[3]))
        {
            Write(file, middle.GetTensorDataAsSpan<float>());
            Write(file, buffer);
            Write(file, end[0].GetTensorDataAsSpan<float>());
        }

        // Without its library the model does not load, and the message names the file to register.
        try
        {
            using var none = Open(arguments[0], withLibrary: false);
        }
        catch (OnnxRuntimeException error)
        {
            Console.WriteLine($"not registered: {error.Message}");
        }
        try
        {
            using var wrong = OrtValue.CreateTensorValueFromMemory(new float[columns - 1], new[] { 1, columns - 1 });
            using var nothing = Run(first, how, wrong);
        }
        catch (OnnxRuntimeException error)
        {
            Console.WriteLine($"wrong input: {error.Message}");
        }
        return 0;
    }
}
