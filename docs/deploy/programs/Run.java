// Not run by a test: ONNX Runtime's Java package is in Maven's registry. Its classes of version 1.29 accept this program.
//
// Runs two compiled models in one process, with the Java API (com.microsoft.onnxruntime:onnxruntime, 1.18 or newer).
//
//   javac -cp onnxruntime.jar Run.java
//   java -cp onnxruntime.jar:. Run FIRST.igniter SECOND.igniter INPUT OUTPUT
//
// The models have one input f32[rows, columns] and one output. INPUT has the rows of the first model's input, as floats
// of this machine. OUTPUT gets three results: of the first model, of the first model into a given buffer, and of the
// second model, whose input is the first model's output.

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;

public final class Run {
  private final OrtEnvironment env;

  private Run() throws OrtException {
    // One thread pool for the process: two threads, which sleep between runs.
    OrtEnvironment.ThreadingOptions threads = new OrtEnvironment.ThreadingOptions();
    threads.setGlobalIntraOpNumThreads(2);
    threads.setGlobalSpinControl(false);
    env = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL, "run", threads);
  }

  private OrtSession open(String folder, boolean withLibrary) throws OrtException, IOException {
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      // All sessions use the threads of `env`. For threads of its own: options.setIntraOpNumThreads(n).
      options.disablePerSessionThreads();
      try (DirectoryStream<Path> libraries = Files.newDirectoryStream(Path.of(folder), "libigniter_*.so")) {
        for (Path library : libraries) {
          if (withLibrary) {
            options.registerCustomOpLibrary(library.toString());
          }
        }
      }
      return env.createSession(Path.of(folder, "model.onnx").toString(), options);
    }
  }

  private static String input(OrtSession session) {
    return session.getInputNames().iterator().next();
  }

  private static FloatBuffer direct(int floats) {
    return ByteBuffer.allocateDirect(4 * floats).order(ByteOrder.nativeOrder()).asFloatBuffer();
  }

  private static void write(OutputStream file, FloatBuffer data) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(4 * data.remaining()).order(ByteOrder.nativeOrder());
    bytes.asFloatBuffer().put(data.duplicate());
    file.write(bytes.array());
  }

  private static String shape(OnnxTensor tensor) {
    long[] dims = tensor.getInfo().getShape();
    return dims[0] + " x " + dims[1];
  }

  private void runAll(String[] arguments) throws OrtException, IOException {
    try (OrtSession first = open(arguments[0], true);
        OrtSession second = open(arguments[1], true)) {
      TensorInfo info = (TensorInfo) first.getInputInfo().get(input(first)).getInfo();
      long columns = info.getShape()[1];
      byte[] bytes = Files.readAllBytes(Path.of(arguments[2]));
      // A direct buffer is read in place; another one is copied.
      FloatBuffer given = direct(bytes.length / 4);
      given.put(ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()).asFloatBuffer()).flip();
      long[] dims = {given.remaining() / columns, columns};
      try (OnnxTensor x = OnnxTensor.createTensor(env, given, dims);
          OrtSession.Result results = first.run(Map.of(input(first), x))) {
        OnnxTensor middle = (OnnxTensor) results.get(0);
        System.out.println("first: " + shape(middle));

        // The counterpart of IO binding: a pinned output, which each run writes without an allocation.
        FloatBuffer buffer = direct(middle.getFloatBuffer().remaining());
        try (OnnxTensor bound = OnnxTensor.createTensor(env, buffer, middle.getInfo().getShape())) {
          String output = first.getOutputNames().iterator().next();
          for (int i = 0; i < 3; i++) {
            first.run(Map.of(input(first), x), Set.of(), Map.of(output, bound)).close();
          }
        }

        try (OrtSession.Result end = second.run(Map.of(input(second), middle));
            OutputStream file = Files.newOutputStream(Path.of(arguments[3]))) {
          OnnxTensor last = (OnnxTensor) end.get(0);
          System.out.println("second: " + shape(last));
          for (FloatBuffer data : Arrays.asList(middle.getFloatBuffer(), buffer, last.getFloatBuffer())) {
            write(file, data);
          }
        }
      }

      // Without its library the model does not load, and the message names the file to register.
      try (OrtSession none = open(arguments[0], false)) {
        System.out.println("not registered: no error");
      } catch (OrtException error) {
        System.out.println("not registered: " + error.getMessage());
      }
      try (OnnxTensor wrong = OnnxTensor.createTensor(env, direct((int) columns - 1), new long[] {1, columns - 1})) {
        first.run(Map.of(input(first), wrong)).close();
      } catch (OrtException error) {
        System.out.println("wrong input: " + error.getMessage());
      }
    }
  }

  public static void main(String[] arguments) throws OrtException, IOException {
    if (arguments.length != 4) {
      System.err.println("usage: Run FIRST.igniter SECOND.igniter INPUT OUTPUT");
      System.exit(2);
    }
    new Run().runAll(arguments);
  }
}
