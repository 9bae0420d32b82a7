// RUN: igniter-opt %s -p choose-schedule --target=x86-64-v3 | filecheck %s --check-prefix=AVX2
// RUN: igniter-opt %s -p choose-schedule --target=aarch64 | filecheck %s --check-prefix=NEON
// RUN: igniter-opt %s -p "choose-schedule{vector-bytes=16}" --target=x86-64-v3 | filecheck %s --check-prefix=NEON
// RUN: igniter-opt %s -p "choose-schedule{vector-bytes=64}" --target=x86-64-v3 | filecheck %s --check-prefix=SAID
// RUN: igniter-opt %s -p "form-fma" --target=x86-64 | filecheck %s --check-prefix=NOFMA
// RUN: igniter-opt %s -p "form-fma" --target=x86-64-v3 | filecheck %s --check-prefix=FMA

// --target is what passes work for: the width of its vectors, and whether it has FMA. What the pipeline says goes first.

// AVX2:   vector 8
// NEON:   vector 4
// SAID:   vector 16
// NOFMA:  arith.mulf
// NOFMA:  arith.addf
// FMA:    math.fma

builtin.module {
  loop.kernel @axpy symbols [n] (%x: tensor<?xf32, #sym.dims<n>>, %y: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %z = loop.nest "axpy" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = loop.read %y[i] : f32
      %c = arith.mulf %a, %a : f32
      %d = arith.addf %c, %b : f32
      loop.yield none %d at [i]
    }
    loop.return %z : tensor<?xf32, #sym.dims<n>>
  }
}
