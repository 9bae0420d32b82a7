// RUN: igniter-opt %s -p choose-schedule --target=x86-64-v3 --split-input-file | filecheck %s
// RUN: igniter-opt %s -p choose-schedule --target=x86-64-v3 --remarks --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=REMARKS

// The lines of a panel of a large weight that is stored row by row crowd the caches. For few places, typically, its rows
// are streamed once for a block of places. Readers of the sums have loops of their own.

// CHECK: loop.kernel @few
// CHECK:   loop.nest "conv" {{.*}} schedule [o by 256 {{.*}}threads, b, y by 4 {{.*}}, x by 4 {{.*}}, v, uk by 8 {{.*}}, y, x, o vector 8, uk unroll]
// CHECK:   loop.nest "bias" {{.*}} schedule [b threads, y, x, o vector 8]
// REMARKS: remark: choose-schedule: 'conv' applied: scheduled with 'bias': rows of its weight are read once for a block of places

builtin.module {
  loop.kernel @few symbols [n, h, w] (%x: tensor<?x?x?xf32, #sym.dims<n, h + 2, 256*w + 512>>, %f: tensor<3x768x256xf32>, %c: tensor<256xf32>) -> (tensor<?x?x?x256xf32, #sym.dims<n, h, w, 256>>) typical [n = 1, h = 1, w = 1] {
    %s = loop.nest "conv" [b: parallel n, y: parallel h, x: parallel w, o: parallel 256, uk: reduction 768, v: reduction 3] -> tensor<?x?x?x256xf32, #sym.dims<n, h, w, 256>> {
      %a = loop.read %f[v, uk, o] : f32
      %i = loop.read %x[b, y + v, 256*x + uk] : f32
      %p = arith.mulf %a, %i : f32
      loop.yield add %p at [b, y, x, o]
    }
    %r = loop.nest "bias" [b: parallel n, y: parallel h, x: parallel w, o: parallel 256] -> tensor<?x?x?x256xf32, #sym.dims<n, h, w, 256>> {
      %a = loop.read %s[b, y, x, o] : f32
      %i = loop.read %c[o] : f32
      %p = arith.addf %a, %i : f32
      loop.yield none %p at [b, y, x, o]
    }
    loop.return %r : tensor<?x?x?x256xf32, #sym.dims<n, h, w, 256>>
  }
}

// -----

// The lines of a small weight stay in the caches, and many places repay all of them.

// CHECK: loop.kernel @small
// CHECK:   product(x, o, uk)

builtin.module {
  loop.kernel @small symbols [n, h, w] (%x: tensor<?x?x?xf32, #sym.dims<n, h + 2, 64*w + 128>>, %f: tensor<3x192x64xf32>) -> (tensor<?x?x?x64xf32, #sym.dims<n, h, w, 64>>) typical [n = 1, h = 1, w = 1] {
    %s = loop.nest "conv" [b: parallel n, y: parallel h, x: parallel w, o: parallel 64, uk: reduction 192, v: reduction 3] -> tensor<?x?x?x64xf32, #sym.dims<n, h, w, 64>> {
      %a = loop.read %f[v, uk, o] : f32
      %i = loop.read %x[b, y + v, 64*x + uk] : f32
      %p = arith.mulf %a, %i : f32
      loop.yield add %p at [b, y, x, o]
    }
    loop.return %s : tensor<?x?x?x64xf32, #sym.dims<n, h, w, 64>>
  }
}

// -----

// CHECK: loop.kernel @many
// CHECK:   product(x, o, uk)

builtin.module {
  loop.kernel @many symbols [n, h, w] (%x: tensor<?x?x?xf32, #sym.dims<n, h + 2, 256*w + 512>>, %f: tensor<3x768x256xf32>) -> (tensor<?x?x?x256xf32, #sym.dims<n, h, w, 256>>) typical [n = 1, h = 3, w = 3] {
    %s = loop.nest "conv" [b: parallel n, y: parallel h, x: parallel w, o: parallel 256, uk: reduction 768, v: reduction 3] -> tensor<?x?x?x256xf32, #sym.dims<n, h, w, 256>> {
      %a = loop.read %f[v, uk, o] : f32
      %i = loop.read %x[b, y + v, 256*x + uk] : f32
      %p = arith.mulf %a, %i : f32
      loop.yield add %p at [b, y, x, o]
    }
    loop.return %s : tensor<?x?x?x256xf32, #sym.dims<n, h, w, 256>>
  }
}
