// Runs two compiled models in one process, in C++ over ONNX Runtime's C API.
//
//   c++ -std=c++17 run.cpp -o run -L DIRECTORY -l:libonnxruntime.so.1.VERSION
//   ./run FIRST.igniter SECOND.igniter INPUT OUTPUT
//
// The models have one input f32[rows, columns] and one output. INPUT has the rows of the first model's input, as floats
// of this machine. OUTPUT gets three results: of the first model, of the first model with IO binding, and of the second
// model, whose input is the first model's output. `run_official.cpp` is the same with ONNX Runtime's C++ header.

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ort.h"

namespace {

const OrtApi *api;

// Every function of the API returns a status: null, or an error with a message that its caller releases.
void check(OrtStatus *status) {
  if (!status)
    return;
  std::string message = api->GetErrorMessage(status);
  api->ReleaseStatus(status);
  throw std::runtime_error(message);
}

// An owner of an object of the API, released by the function at `Release` of the table.
template <typename T, void (*OrtApi::*Release)(T *)> struct Releaser {
  void operator()(T *object) const { (api->*Release)(object); }
};
template <typename T, void (*OrtApi::*Release)(T *)> using Owned = std::unique_ptr<T, Releaser<T, Release>>;
using Env = Owned<OrtEnv, &OrtApi::ReleaseEnv>;
using Threads = Owned<OrtThreadingOptions, &OrtApi::ReleaseThreadingOptions>;
using Options = Owned<OrtSessionOptions, &OrtApi::ReleaseSessionOptions>;
using Session = Owned<OrtSession, &OrtApi::ReleaseSession>;
using Value = Owned<OrtValue, &OrtApi::ReleaseValue>;
using Memory = Owned<OrtMemoryInfo, &OrtApi::ReleaseMemoryInfo>;
using Binding = Owned<OrtIoBinding, &OrtApi::ReleaseIoBinding>;
using Type = Owned<OrtTypeInfo, &OrtApi::ReleaseTypeInfo>;
using Shape = Owned<OrtTensorTypeAndShapeInfo, &OrtApi::ReleaseTensorTypeAndShapeInfo>;

// Returns the object that a function of the API makes.
template <typename Owner, typename Function, typename... Arguments> Owner make(Function function, Arguments... arguments) {
  typename Owner::pointer made = nullptr;
  check(function(arguments..., &made));
  return Owner(made);
}

struct Tensor {
  Value value;
  std::array<int64_t, 2> dims{};
  float *data = nullptr;

  explicit Tensor(OrtValue *given) : value(given) {
    Shape shape = make<Shape>(api->GetTensorTypeAndShape, static_cast<const OrtValue *>(given));
    check(api->GetDimensions(shape.get(), dims.data(), dims.size()));
    void *memory = nullptr;
    check(api->GetTensorMutableData(given, &memory));
    data = static_cast<float *>(memory);
  }
  std::size_t size() const { return static_cast<std::size_t>(dims[0] * dims[1]); }
};

// A tensor over the caller's memory, which must outlive it.
Tensor tensor_over(const Memory &memory, std::vector<float> &data, int64_t rows, int64_t columns) {
  const std::array<int64_t, 2> dims{rows, columns};
  OrtValue *made = nullptr;
  check(api->CreateTensorWithDataAsOrtValue(memory.get(), data.data(), data.size() * sizeof(float), dims.data(),
                                            dims.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &made));
  return Tensor(made);
}

class Model {
public:
  Model(const Env &env, const std::filesystem::path &folder, bool with_library = true) {
    Options options = make<Options>(api->CreateSessionOptions);
    // All sessions use the threads of `env`. For threads of its own: SetIntraOpNumThreads(options.get(), n).
    check(api->DisablePerSessionThreads(options.get()));
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      if (with_library && entry.path().extension() == ".so")
        check(api->RegisterCustomOpsLibrary_V2(options.get(), entry.path().c_str()));
    const std::string path = folder / "model.onnx";
    session = make<Session>(api->CreateSession, static_cast<const OrtEnv *>(env.get()), path.c_str(),
                            static_cast<const OrtSessionOptions *>(options.get()));
    input = name(api->SessionGetInputName);
    output = name(api->SessionGetOutputName);
  }

  // The width of the input; its rows vary.
  int64_t columns() const {
    Type type = make<Type>(api->SessionGetInputTypeInfo, static_cast<const OrtSession *>(session.get()), std::size_t{0});
    const OrtTensorTypeAndShapeInfo *shape = nullptr;
    std::array<int64_t, 2> dims{};
    check(api->CastTypeInfoToTensorInfo(type.get(), &shape));
    check(api->GetDimensions(shape, dims.data(), dims.size()));
    return dims[1];
  }

  Tensor run(const Tensor &given) const {
    const char *in = input.c_str(), *out = output.c_str();
    const OrtValue *value = given.value.get();
    OrtValue *made = nullptr; // ONNX Runtime allocates it
    check(api->Run(session.get(), nullptr, &in, &value, 1, &out, 1, &made));
    return Tensor(made);
  }

  // The buffers are bound once; each run reads the one and writes the other, without a copy or an allocation.
  void run_bound(const Tensor &from, const Tensor &into, int times) const {
    Binding binding = make<Binding>(api->CreateIoBinding, session.get());
    check(api->BindInput(binding.get(), input.c_str(), from.value.get()));
    check(api->BindOutput(binding.get(), output.c_str(), into.value.get()));
    for (int i = 0; i < times; i++)
      check(api->RunWithBinding(session.get(), nullptr, binding.get()));
  }

private:
  template <typename Function> std::string name(Function function) const {
    OrtAllocator *allocator = nullptr;
    char *text = nullptr;
    check(api->GetAllocatorWithDefaultOptions(&allocator));
    check(function(session.get(), 0, allocator, &text));
    std::string copied = text;
    check(api->AllocatorFree(allocator, text));
    return copied;
  }

  Session session;
  std::string input, output;
};

std::vector<float> read_floats(const char *path) {
  std::vector<float> data(std::filesystem::file_size(path) / sizeof(float));
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char *>(data.data()), data.size() * sizeof(float));
  return data;
}

void write_floats(std::ofstream &file, const float *data, std::size_t count) {
  file.write(reinterpret_cast<const char *>(data), static_cast<std::streamsize>(count * sizeof(float)));
}

void run_all(char **arguments) {
  // One thread pool for the process: two threads, which sleep between runs.
  Threads threads = make<Threads>(api->CreateThreadingOptions);
  check(api->SetGlobalIntraOpNumThreads(threads.get(), 2));
  check(api->SetGlobalSpinControl(threads.get(), 0));
  Env env = make<Env>(api->CreateEnvWithGlobalThreadPools, ORT_LOGGING_LEVEL_FATAL, "run",
                      static_cast<const OrtThreadingOptions *>(threads.get()));
  Memory memory = make<Memory>(api->CreateCpuMemoryInfo, OrtArenaAllocator, OrtMemTypeDefault);

  Model first(env, arguments[1]), second(env, arguments[2]);
  std::vector<float> given = read_floats(arguments[3]);
  const int64_t columns = first.columns(), rows = static_cast<int64_t>(given.size()) / columns;
  Tensor input = tensor_over(memory, given, rows, columns);

  Tensor middle = first.run(input);
  std::printf("first: %lld x %lld\n", (long long)middle.dims[0], (long long)middle.dims[1]);
  std::vector<float> buffer(middle.size());
  first.run_bound(input, tensor_over(memory, buffer, middle.dims[0], middle.dims[1]), 3);
  Tensor last = second.run(middle);
  std::printf("second: %lld x %lld\n", (long long)last.dims[0], (long long)last.dims[1]);

  std::ofstream file(arguments[4], std::ios::binary);
  write_floats(file, middle.data, middle.size());
  write_floats(file, buffer.data(), buffer.size());
  write_floats(file, last.data, last.size());

  // Without its library the model does not load, and the message names the file to register.
  try {
    Model(env, arguments[1], false);
  } catch (const std::runtime_error &error) {
    std::printf("not registered: %s\n", error.what());
  }
  try {
    first.run(tensor_over(memory, given, rows - 1, columns - 1));
  } catch (const std::runtime_error &error) {
    std::printf("wrong input: %s\n", error.what());
  }
}

} // namespace

int main(int count, char **arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: run FIRST.igniter SECOND.igniter INPUT OUTPUT\n");
    return 2;
  }
  api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (!api) {
    std::fprintf(stderr, "this ONNX Runtime is too old: %s\n", OrtGetApiBase()->GetVersionString());
    return 1;
  }
  try {
    run_all(arguments);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
