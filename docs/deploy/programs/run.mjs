// Runs two compiled models in one process, with onnxruntime-node and the addon node_libraries.c.
//
//   npm install onnxruntime-node
//   cc -shared -fPIC node_libraries.c -o node_libraries.node
//   node run.mjs FIRST.igniter SECOND.igniter INPUT OUTPUT
//
// The models have one input f32[rows, columns] and one output. INPUT has the rows of the first model's input, as floats
// of this machine. OUTPUT gets three results: of the first model, of the first model into a given buffer, and of the
// second model, whose input is the first model's output.

import {readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const require = createRequire(import.meta.url);
const ort = require('onnxruntime-node');
const addon = require('./node_libraries.node');

function openModel(folder, withLibrary = true) {
  for (const name of withLibrary ? readdirSync(folder) : []) {
    if (/^libigniter_\w+\.so$/.test(name)) addon.register(join(folder, name));
  }
  // Two threads for this session. Sessions of onnxruntime-node do not share a pool.
  const options = {intraOpNumThreads: 2, interOpNumThreads: 1, logSeverityLevel: 4};
  return ort.InferenceSession.create(join(folder, 'model.onnx'), options);
}

const [firstFolder, secondFolder, given, output] = process.argv.slice(2);
if (!output) {
  console.error('usage: node run.mjs FIRST.igniter SECOND.igniter INPUT OUTPUT');
  process.exit(2);
}

// Without its library the model does not load, and the message names the file to register.
const unregistered = await openModel(firstFolder, false).then(() => 'no error', (error) => error.message);

const first = await openModel(firstFolder);
const second = await openModel(secondFolder);
const bytes = readFileSync(given);
const data = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const columns = first.inputMetadata[0].shape[1];
const x = new ort.Tensor('float32', data, [data.length / columns, columns]);

const middle = (await first.run({[first.inputNames[0]]: x}))[first.outputNames[0]];
console.log(`first: ${middle.dims.join(' x ')}`);

// The counterpart of IO binding: the output is written into a tensor of the caller, without an allocation.
const bound = new ort.Tensor('float32', new Float32Array(middle.data.length), middle.dims);
for (let i = 0; i < 3; i++) {
  await first.run({[first.inputNames[0]]: x}, {[first.outputNames[0]]: bound});
}

const last = (await second.run({[second.inputNames[0]]: middle}))[second.outputNames[0]];
console.log(`second: ${last.dims.join(' x ')}`);
writeFileSync(output, Buffer.concat([middle, bound, last].map((t) => Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength))));

console.log(`not registered: ${unregistered}`);
const wrong = new ort.Tensor('float32', data.slice(0, columns - 1), [1, columns - 1]);
await first.run({[first.inputNames[0]]: wrong}).catch((error) => console.log(`wrong input: ${error.message}`));
