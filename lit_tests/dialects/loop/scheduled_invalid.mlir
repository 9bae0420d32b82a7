// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// What the verifier of the scheduled level refuses.

// expected-error {{the arguments of a loop.func must be memrefs in the caller's memory, not memref<4xf32, "local">}}
loop.func @space symbols [] (%x: memref<4xf32, "local">) outputs 1 {
}

// -----

// expected-error {{2 outputs, but 1 buffers}}
loop.func @outputs symbols [] (%x: memref<4xf32>) outputs 2 {
}

// -----

loop.func @alloc symbols [] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{unknown memory space 'heap'; known: local, register, scratch}}
  %a = loop.alloc "a" : memref<4xf32, "heap">
}

// -----

loop.func @dims symbols [n] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{a register buffer must have constant dims}}
  %a = loop.alloc "a" : memref<?xf32, #sym.dims<n>, "register">
}

// -----

loop.func @step symbols [] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{loop 'i' has step 0; it must be positive}}
  loop.for i = 0 to 4 step 0 {
    %a = arith.constant 0 : i32
  }
}

// -----

loop.func @meet symbols [] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{loop 'i' is a reduction; it cannot have 'threads' (split it with split_reduction first)}}
  loop.for i = 0 to 4 reduction threads(1) {
    %a = arith.constant 0 : i32
  }
}

// -----

loop.func @lane symbols [] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{a vector access must name a lane variable}}
  %a = loop.load %x[0] : vector<4xf32>
}

// -----

loop.func @scalar symbols [] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{a scalar access cannot name the lane variable 'v'}}
  %a = loop.load %x[0] lane v : f32
}

// -----

loop.func @element symbols [] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{cannot access f64 in memref<4xf32>}}
  %a = loop.load %x[0] : f64
}

// -----

loop.func @rank symbols [] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{2 subscripts for memref<4xf32>}}
  %a = loop.load %x[0, 0] : f32
}

// -----

loop.func @index symbols [] (%x: memref<4xf32>) outputs 1 {
  %i = arith.constant 0 : i32
  // expected-error {{an indirect subscript must be an i64, not i32}}
  %a = loop.load %x[_0] with %i : f32
}

// -----

loop.func @otherwise symbols [] (%x: memref<4xf32>) outputs 1 {
  %i = arith.constant 0 : i32
  // expected-error {{the value after 'else' is i32, not f32}}
  %a = loop.load %x[0] if [1] else %i : f32
}

// -----

loop.func @combiner symbols [] (%x: memref<4xf32>) outputs 1 {
  %a = arith.constant 0.0 : f32
  // expected-error {{cannot accumulate with 'none'}}
  loop.accumulate none %a, %x[0]
}

// -----

loop.func @lanes symbols [] (%x: memref<4xf32>) outputs 1 {
  %a = loop.load %x[v] lane v : vector<4xf32>
  // expected-error {{cannot reduce with 'mean'}}
  %b = loop.reduce_lanes mean %a : vector<4xf32> to f32
}

// -----

loop.func @square symbols [] (%x: memref<4xf32>) outputs 1 {
  %a = loop.load %x[v] lane v : vector<4xf32>
  // expected-error {{a matrix of 4 elements cannot have 3 rows}}
  %b = loop.transpose %a : vector<4xf32> to vector<4xf32> rows 3
}

// -----

// expected-error {{'loop.load' names ['j'], which is neither an enclosing loop nor a symbol}}
loop.func @names symbols [n] (%x: memref<4xf32>) outputs 1 {
  %a = loop.load %x[j] : f32
}

// -----

// expected-error {{two loops or symbols are named 'i'}}
loop.func @twice symbols [] (%x: memref<4xf32>) outputs 1 {
  loop.for i = 0 to 4 {
    %a = arith.constant 0 : i32
  }
  loop.for i = 0 to 4 {
    %a = arith.constant 0 : i32
  }
}

// -----

// expected-error {{'builtin.module' cannot be in a loop.func}}
loop.func @foreign symbols [] (%x: memref<4xf32>) outputs 1 {
  builtin.module {
  }
}

// -----

loop.func @select symbols [] (%x: memref<4xf32>) outputs 1 {
  %a = loop.load %x[v] lane v : vector<4xf32>
  %b = loop.load %x[v] lane v : vector<2xf32>
  %c = arith.cmpf olt, %b, %b : vector<2xf32>
  // expected-error {{'arith.select' of vector<4xf32> cannot take a condition of type vector<2xi1>}}
  %d = arith.select %c, %a, %a : vector<4xf32>
}

// -----

loop.func @names symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{a tile needs four different axes (row, panel, lane, depth), or five with another reduction axis, and an extent for each}}
  loop.tile_product %c[r, 16*r + l] = %a[r, k] * %b[r, k, l] over r = 8, r = 3, l = 16, k = 64 tile [8, 3]
}

// -----

loop.func @lanes symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{the lanes of a panel must be a constant, not n}}
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 8, p = 3, l = n, k = 64 tile [8, 3]
}

// -----

loop.func @rows symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{8 rows exceed the 6 of the tile}}
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 8, p = 3, l = 16, k = 64 tile [6, 3]
}

// -----

loop.func @panels symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{3 panels exceed the 2 of the tile}}
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = n, p = 3, l = 16, k = 64 tile [8, 2]
}

// -----

loop.func @rank symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{1 subscripts of memref<8x64xf32>}}
  loop.tile_product %c[r, 16*p + l] = %a[r] * %b[p, k, l] over r = 8, p = 3, l = 16, k = 64 tile [8, 3]
}

// -----

loop.func @left symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{the subscripts of a name p, which is not one of its axes}}
  loop.tile_product %c[r, 16*p + l] = %a[p, k] * %b[p, k, l] over r = 8, p = 3, l = 16, k = 64 tile [8, 3]
}

// -----

loop.func @right symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{the subscripts of b name r, which is not one of its axes}}
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[r, k, l] over r = 8, p = 3, l = 16, k = 64 tile [8, 3]
}

// -----

loop.func @sums symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{the subscripts of c name k, which is not one of its axes}}
  loop.tile_product %c[k, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 8, p = 3, l = 16, k = 64 tile [8, 3]
}

// -----

loop.func @fetched symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{2 subscripts of memref<3x64x16xf32>}}
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 8, p = 3, l = 16, k = 64 tile [8, 3] fetch [0, 0]
}

// -----

// expected-error {{'loop.tile_product' names ['j'], which is neither an enclosing loop nor a symbol}}
loop.func @unknown symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = n, p = j, l = 16, k = 64 tile [8, 3]
}

// -----

// expected-error {{'loop.tile_product' names ['p'], which is neither an enclosing loop nor a symbol}}
loop.func @ahead symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = n, p = 3, l = 16, k = 64 tile [8, 3] fetch [p, 0, 0]
}

// -----

loop.func @unknown symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{there is no micro-kernel called 'f33'; there are bf16, f16, f32, f32bf16, f32f16, f64, i16, i8i8, u8i8; did you mean 'f32'?}}
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 8, p = 3, l = 16, k = 64 tile [8, 3] kernel "f33"
}

// -----

loop.func @others symbols [n] (%a: memref<8x64xf32>, %b: memref<3x64x16xf32>, %c: memref<8x48xf32>) outputs 1 {
  // expected-error {{micro-kernel 'f16' takes elements of f16 and f16 and folds f32, not f32, f32, f32}}
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 8, p = 3, l = 16, k = 64 tile [8, 3] kernel "f16"
}

// -----

loop.func @where symbols [n] (%a: memref<8xf32>) outputs 1 {
  // expected-error {{buffer 't': 'store' needs 'at' with a number of loops, or 'in' with a memory}}
  %t = loop.alloc "t" store on stack : memref<8xf32, "local">
}

// -----

loop.func @where symbols [n] (%a: memref<8xf32>) outputs 1 {
  // expected-error {{buffer 't': unknown memory 'heap'; known: registers, stack, arena}}
  %t = loop.alloc "t" store in heap : memref<8xf32, "local">
}

// -----

loop.func @where symbols [n] (%a: memref<8xf32>) outputs 1 {
  // expected-error {{Expected integer literal}}
  %t = loop.alloc "t" store at "one" : memref<8xf32, "local">
}
