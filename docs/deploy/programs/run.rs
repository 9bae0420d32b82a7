// Runs two compiled models in one process, in Rust over ONNX Runtime's C API, without a crate.
//
//   rustc --edition 2021 -O run.rs -o run -L DIRECTORY -l onnxruntime
//   ./run FIRST.igniter SECOND.igniter INPUT OUTPUT
//
// The models have one input f32[rows, columns] and one output. INPUT has the rows of the first model's input, as floats
// of this machine. OUTPUT gets three results: of the first model, of the first model with IO binding, and of the second
// model, whose input is the first model's output.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{env, fs, mem, process, ptr};

#[repr(C)]
struct ApiBase {
    get_api: extern "C" fn(u32) -> *const *const c_void,
    version: extern "C" fn() -> *const c_char,
}

extern "C" {
    fn OrtGetApiBase() -> *const ApiBase;
}

const API_VERSION: u32 = 17; // ONNX Runtime 1.17 and newer
const FLOAT: c_int = 1; // ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
const FATAL: c_int = 4; // ORT_LOGGING_LEVEL_FATAL

/// ONNX Runtime's table of functions. It only grows at its end, so an index holds for every version with the function.
#[derive(Clone, Copy)]
struct Api(*const *const c_void);

type Status = *mut c_void;
type Object = *mut c_void;
type Made = *mut Object;

/// A function of the table: `function!(api, 7, Object, ...)` has the type `fn(Object, ...) -> Status`.
macro_rules! function {
    ($api:expr, $index:expr $(, $type:ty)*) => {
        mem::transmute::<*const c_void, extern "C" fn($($type),*) -> Status>(*$api.0.add($index))
    };
}

impl Api {
    fn new() -> Result<Api, String> {
        unsafe {
            let base = &*OrtGetApiBase();
            let table = (base.get_api)(API_VERSION);
            let version = CStr::from_ptr((base.version)()).to_string_lossy();
            if table.is_null() { Err(format!("ONNX Runtime {version} is too old")) } else { Ok(Api(table)) }
        }
    }

    /// Every function returns a status: null, or an error with a message that its caller releases.
    fn check(self, status: Status) -> Result<(), String> {
        if status.is_null() {
            return Ok(());
        }
        unsafe {
            let message = mem::transmute::<_, extern "C" fn(Status) -> *const c_char>(*self.0.add(2))(status);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            self.release(93, status);
            Err(text)
        }
    }

    /// Returns the object that a function makes through its last argument.
    fn make(self, function: impl FnOnce(Made) -> Status) -> Result<Object, String> {
        let mut made = ptr::null_mut();
        self.check(function(&mut made))?;
        Ok(made)
    }

    fn release(self, index: usize, object: Object) {
        unsafe { mem::transmute::<_, extern "C" fn(Object)>(*self.0.add(index))(object) }
    }
}

/// An object with the index of the function that releases it.
struct Owned(Api, Object, usize);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.release(self.2, self.1)
    }
}

const ENV: usize = 92;
const MEMORY: usize = 94;
const SESSION: usize = 95;
const VALUE: usize = 96;
const TYPE: usize = 98;
const SHAPE: usize = 99;
const OPTIONS: usize = 100;
const THREADS: usize = 122;
const BINDING: usize = 135;

struct Tensor {
    value: Owned,
    dims: [i64; 2],
}

impl Tensor {
    /// A tensor over the caller's memory, which must outlive it.
    fn over(api: Api, memory: &Owned, data: &mut [f32], dims: [i64; 2]) -> Result<Tensor, String> {
        let create = unsafe { function!(api, 49, Object, *mut c_void, usize, *const i64, usize, c_int, Made) };
        let bytes = mem::size_of_val(data);
        let made = api.make(|out| create(memory.1, data.as_mut_ptr().cast(), bytes, dims.as_ptr(), 2, FLOAT, out))?;
        Ok(Tensor { value: Owned(api, made, VALUE), dims })
    }

    fn of(api: Api, value: Object) -> Result<Tensor, String> {
        let value = Owned(api, value, VALUE);
        let shape = Owned(api, api.make(|out| unsafe { function!(api, 65, Object, Made)(value.1, out) })?, SHAPE);
        let mut dims = [0i64; 2];
        api.check(unsafe { function!(api, 62, Object, *mut i64, usize)(shape.1, dims.as_mut_ptr(), 2) })?;
        Ok(Tensor { value, dims })
    }

    fn elements(&self) -> Result<&[f32], String> {
        let api = self.value.0;
        let data = api.make(|out| unsafe { function!(api, 51, Object, Made)(self.value.1, out) })?;
        Ok(unsafe { std::slice::from_raw_parts(data.cast::<f32>(), (self.dims[0] * self.dims[1]) as usize) })
    }
}

struct Model {
    session: Owned,
    input: CString,
    output: CString,
}

fn path_text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path without NUL")
}

impl Model {
    fn open(api: Api, env: &Owned, folder: &str, with_library: bool) -> Result<Model, String> {
        let options = Owned(api, api.make(|out| unsafe { function!(api, 10, Made)(out) })?, OPTIONS);
        // All sessions use the threads of `env`. For threads of its own: SetIntraOpNumThreads, index 24.
        api.check(unsafe { function!(api, 120, Object)(options.1) })?;
        for entry in fs::read_dir(folder).map_err(|e| format!("{folder}: {e}"))?.flatten() {
            if with_library && entry.path().extension().is_some_and(|e| e == "so") {
                let library = path_text(&entry.path());
                api.check(unsafe { function!(api, 228, Object, *const c_char)(options.1, library.as_ptr()) })?;
            }
        }
        let path = path_text(&Path::new(folder).join("model.onnx"));
        let create = unsafe { function!(api, 7, Object, *const c_char, Object, Made) };
        let session = Owned(api, api.make(|out| create(env.1, path.as_ptr(), options.1, out))?, SESSION);
        let (input, output) = (Model::name(&session, 36)?, Model::name(&session, 37)?);
        Ok(Model { session, input, output })
    }

    fn name(session: &Owned, index: usize) -> Result<CString, String> {
        let api = session.0;
        let allocator = api.make(|out| unsafe { function!(api, 78, Made)(out) })?;
        let text = api.make(|out| unsafe { function!(api, index, Object, usize, Object, Made)(session.1, 0, allocator, out) })?;
        let copied = unsafe { CStr::from_ptr(text.cast()) }.to_owned();
        api.check(unsafe { function!(api, 76, Object, *mut c_void)(allocator, text) })?;
        Ok(copied)
    }

    /// The width of the input; its rows vary.
    fn columns(&self) -> Result<i64, String> {
        let api = self.session.0;
        let type_info = unsafe { function!(api, 33, Object, usize, Made) };
        let kind = Owned(api, api.make(|out| type_info(self.session.1, 0, out))?, TYPE);
        let shape = api.make(|out| unsafe { function!(api, 55, Object, Made)(kind.1, out) })?;
        let mut dims = [0i64; 2];
        api.check(unsafe { function!(api, 62, Object, *mut i64, usize)(shape, dims.as_mut_ptr(), 2) })?;
        Ok(dims[1])
    }

    fn run(&self, given: &Tensor) -> Result<Tensor, String> {
        let api = self.session.0;
        type Names = *const *const c_char;
        let run = unsafe { function!(api, 9, Object, Object, Names, *const Object, usize, Names, usize, Made) };
        let (inputs, outputs, values) = ([self.input.as_ptr()], [self.output.as_ptr()], [given.value.1]);
        // ONNX Runtime allocates the output, because it is given as null.
        let made = api.make(|out| {
            run(self.session.1, ptr::null_mut(), inputs.as_ptr(), values.as_ptr(), 1, outputs.as_ptr(), 1, out)
        })?;
        Tensor::of(api, made)
    }

    /// The buffers are bound once; each run reads the one and writes the other, without a copy or an allocation.
    fn run_bound(&self, from: &Tensor, into: &Tensor, times: usize) -> Result<(), String> {
        let api = self.session.0;
        let made = api.make(|out| unsafe { function!(api, 134, Object, Made)(self.session.1, out) })?;
        let binding = Owned(api, made, BINDING);
        let bind = |index, name: &CString, tensor: &Tensor| {
            let call = unsafe { function!(api, index, Object, *const c_char, Object) };
            api.check(call(binding.1, name.as_ptr(), tensor.value.1))
        };
        bind(136, &self.input, from)?;
        bind(137, &self.output, into)?;
        for _ in 0..times {
            let run = unsafe { function!(api, 133, Object, Object, Object) };
            api.check(run(self.session.1, ptr::null_mut(), binding.1))?;
        }
        Ok(())
    }
}

fn run_all(arguments: &[String]) -> Result<(), String> {
    let api = Api::new()?;
    // One thread pool for the process: two threads, which sleep between runs.
    let threads = Owned(api, api.make(|out| unsafe { function!(api, 121, Made)(out) })?, THREADS);
    api.check(unsafe { function!(api, 147, Object, c_int)(threads.1, 2) })?;
    api.check(unsafe { function!(api, 149, Object, c_int)(threads.1, 0) })?;
    let create = unsafe { function!(api, 119, c_int, *const c_char, Object, Made) };
    let env = Owned(api, api.make(|out| create(FATAL, c"run".as_ptr(), threads.1, out))?, ENV);
    let cpu = unsafe { function!(api, 69, c_int, c_int, Made) };
    let memory = Owned(api, api.make(|out| cpu(1, 0, out))?, MEMORY);

    let first = Model::open(api, &env, &arguments[0], true)?;
    let second = Model::open(api, &env, &arguments[1], true)?;
    let bytes = fs::read(&arguments[2]).map_err(|e| format!("{}: {e}", arguments[2]))?;
    let mut given: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect();
    let columns = first.columns()?;
    let rows = given.len() as i64 / columns;
    let input = Tensor::over(api, &memory, &mut given, [rows, columns])?;

    let middle = first.run(&input)?;
    println!("first: {} x {}", middle.dims[0], middle.dims[1]);
    let mut buffer = vec![0f32; middle.elements()?.len()];
    let bound = Tensor::over(api, &memory, &mut buffer, middle.dims)?;
    first.run_bound(&input, &bound, 3)?;
    let last = second.run(&middle)?;
    println!("second: {} x {}", last.dims[0], last.dims[1]);

    let results = [middle.elements()?, bound.elements()?, last.elements()?].concat();
    let bytes: Vec<u8> = results.iter().flat_map(|value| value.to_ne_bytes()).collect();
    fs::write(&arguments[3], bytes).map_err(|e| format!("{}: {e}", arguments[3]))?;

    // Without its library the model does not load, and the message names the file to register.
    if let Err(message) = Model::open(api, &env, &arguments[0], false) {
        println!("not registered: {message}");
    }
    let wrong = Tensor::over(api, &memory, &mut given, [rows - 1, columns - 1])?;
    if let Err(message) = first.run(&wrong) {
        println!("wrong input: {message}");
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.len() != 4 {
        eprintln!("usage: run FIRST.igniter SECOND.igniter INPUT OUTPUT");
        process::exit(2);
    }
    if let Err(message) = run_all(&arguments) {
        eprintln!("ONNX Runtime: {message}");
        process::exit(1);
    }
}
