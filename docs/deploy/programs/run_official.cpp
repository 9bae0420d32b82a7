// Runs two compiled models in one process, with ONNX Runtime's own C++ header (onnxruntime_cxx_api.h, 1.17 or newer).
//
//   c++ -std=c++17 -I ONNXRUNTIME/include run_official.cpp -o run -L ONNXRUNTIME/lib -lonnxruntime
//   ./run FIRST.igniter SECOND.igniter INPUT OUTPUT
//
// The models, INPUT and OUTPUT are the same as in run.cpp.

#include <onnxruntime_cxx_api.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

Ort::Session open_model(const Ort::Env &env, const std::filesystem::path &folder, bool with_library = true) {
  Ort::SessionOptions options;
  // All sessions use the threads of `env`. For threads of its own: options.SetIntraOpNumThreads(n).
  options.DisablePerSessionThreads();
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    if (with_library && entry.path().extension() == ".so")
      options.RegisterCustomOpsLibrary(entry.path().c_str());
  return Ort::Session(env, (folder / "model.onnx").c_str(), options);
}

std::vector<Ort::Value> run(Ort::Session &session, const Ort::Value &input) {
  Ort::AllocatorWithDefaultOptions allocator;
  const auto in = session.GetInputNameAllocated(0, allocator), out = session.GetOutputNameAllocated(0, allocator);
  const char *inputs[] = {in.get()}, *outputs[] = {out.get()};
  return session.Run(Ort::RunOptions{nullptr}, inputs, &input, 1, outputs, 1);
}

// The buffers are bound once; each run reads the one and writes the other, without a copy or an allocation.
void run_bound(Ort::Session &session, const Ort::Value &input, const Ort::Value &output, int times) {
  Ort::AllocatorWithDefaultOptions allocator;
  Ort::IoBinding binding(session);
  binding.BindInput(session.GetInputNameAllocated(0, allocator).get(), input);
  binding.BindOutput(session.GetOutputNameAllocated(0, allocator).get(), output);
  for (int i = 0; i < times; i++)
    session.Run(Ort::RunOptions{}, binding);
}

// A tensor over the caller's memory, which must outlive it.
Ort::Value tensor_over(std::vector<float> &data, int64_t rows, int64_t columns) {
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const int64_t dims[] = {rows, columns};
  return Ort::Value::CreateTensor<float>(memory, data.data(), data.size(), dims, 2);
}

void write_floats(std::ofstream &file, const float *data, std::size_t count) {
  file.write(reinterpret_cast<const char *>(data), static_cast<std::streamsize>(count * sizeof(float)));
}

void run_all(char **arguments) {
  // One thread pool for the process: two threads, which sleep between runs.
  Ort::ThreadingOptions threads;
  threads.SetGlobalIntraOpNumThreads(2);
  threads.SetGlobalSpinControl(0);
  Ort::Env env(threads, ORT_LOGGING_LEVEL_FATAL, "run");

  Ort::Session first = open_model(env, arguments[1]), second = open_model(env, arguments[2]);
  std::vector<float> given(std::filesystem::file_size(arguments[3]) / sizeof(float));
  std::ifstream(arguments[3], std::ios::binary).read(reinterpret_cast<char *>(given.data()), given.size() * sizeof(float));
  const int64_t columns = first.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape()[1];
  const int64_t rows = static_cast<int64_t>(given.size()) / columns;
  const Ort::Value input = tensor_over(given, rows, columns);

  const auto middle = run(first, input);
  const auto dims = middle[0].GetTensorTypeAndShapeInfo().GetShape();
  std::printf("first: %lld x %lld\n", (long long)dims[0], (long long)dims[1]);
  std::vector<float> buffer(middle[0].GetTensorTypeAndShapeInfo().GetElementCount());
  run_bound(first, input, tensor_over(buffer, dims[0], dims[1]), 3);
  const auto last = run(second, middle[0]);
  const auto ends = last[0].GetTensorTypeAndShapeInfo().GetShape();
  std::printf("second: %lld x %lld\n", (long long)ends[0], (long long)ends[1]);

  std::ofstream file(arguments[4], std::ios::binary);
  write_floats(file, middle[0].GetTensorData<float>(), buffer.size());
  write_floats(file, buffer.data(), buffer.size());
  write_floats(file, last[0].GetTensorData<float>(), last[0].GetTensorTypeAndShapeInfo().GetElementCount());

  // Without its library the model does not load, and the message names the file to register.
  try {
    open_model(env, arguments[1], false);
  } catch (const Ort::Exception &error) {
    std::printf("not registered: %s\n", error.what());
  }
  try {
    run(first, tensor_over(given, rows - 1, columns - 1));
  } catch (const Ort::Exception &error) {
    std::printf("wrong input: %s\n", error.what());
  }
}

} // namespace

int main(int count, char **arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: run FIRST.igniter SECOND.igniter INPUT OUTPUT\n");
    return 2;
  }
  try {
    run_all(arguments);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
