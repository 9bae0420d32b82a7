// RUN: igniter-opt %s | igniter-opt | filecheck %s
// RUN: igniter-opt %s --emit=generic | igniter-opt | filecheck %s
// RUN: igniter-opt %s -p lower-to-loops | filecheck %s --check-prefix=LOOPS
// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,plan-buffers | filecheck %s --check-prefix=PLAN
// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,plan-buffers --check-each --check-sizes n=1 --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED
// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,plan-buffers --check-each --check-sizes n=3 --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED
// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,plan-buffers --check-each --check-sizes n=9 --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED
// RUN: igniter-opt %s -p deduplicate-kernels | filecheck %s --check-prefix=RENAMED
// RUN: igniter-opt %s -p cpu-schedule --check-each --check-sizes n=3 --emit=none 2>&1 | filecheck %s --check-prefix=SCHEDULED

// A kernel and two variants of it: the sizes of a call choose, the first one whose condition holds. They are loop.ifs of
// one func, each with loops of its own names that fuse among themselves. Only one runs, so their buffers share memory.

// CHECK:      loop.kernel @k symbols [n] (%x: tensor<?x40xf32, #sym.dims<n, 40>>) -> (tensor<?x40xf32, #sym.dims<n, 40>>) {
// CHECK:      } variants {
// CHECK-NEXT:   loop.kernel @one symbols [n] ({{.*}}: tensor<?x40xf32, #sym.dims<n, 40>>) -> (tensor<?x40xf32, #sym.dims<n, 40>>) typical [n = 1] when n <= 1 {
// CHECK:        loop.kernel @few symbols [n] ({{.*}}: tensor<?x40xf32, #sym.dims<n, 40>>) -> (tensor<?x40xf32, #sym.dims<n, 40>>) when 2*n <= 9 {

// LOOPS:      loop.func @k symbols [n] (%x: memref<?x40xf32, #sym.dims<n, 40>>, %0: memref<?x40xf32, #sym.dims<n, 40>>) outputs 1 {
// LOOPS-NEXT:   loop.if [-n + 1] {
// LOOPS:          loop.for i = 0 to n
// LOOPS:        loop.if [n - 2, -2*n + 9] {
// LOOPS:          loop.for j2 = 0 to 40 {
// LOOPS:        loop.if [n - 2, 2*n - 10] {

// PLAN:       outputs 1 scratch(64*((160*n + 63) floordiv 64)) {
// PLAN:         loop.if [-n + 1] {
// PLAN:           loop.alloc "e" : memref<40xf32, "local">
// PLAN:         loop.if [n - 2, -2*n + 9] {
// PLAN:           loop.alloc "e" offset 0 : memref<?x40xf32, #sym.dims<n, 40>, "scratch">
// PLAN:         loop.if [n - 2, 2*n - 10] {
// PLAN:           loop.alloc "e" offset 0 : memref<?x40xf32, #sym.dims<n, 40>, "scratch">

// CHECKED: check: fuse-loops: 1 results agree
// CHECKED: check: promote-buffers: 1 results agree
// CHECKED: check: parallelize-loops: 1 results agree
// CHECKED: check: plan-buffers: 1 results agree

// RENAMED: loop.kernel @k symbols [d0]
// RENAMED: loop.kernel @one symbols [d0] {{.*}} typical [d0 = 1] when d0 <= 1 {
// RENAMED: [i: parallel d0
// RENAMED: loop.kernel @few symbols [d0] {{.*}} when 2*d0 <= 9 {

// SCHEDULED: check: form-ort-library: 1 results agree

builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<?x40xf32, #sym.dims<n, 40>>) -> (tensor<?x40xf32, #sym.dims<n, 40>>) {
    %e = loop.nest "e" [i: parallel n, j: parallel 40] schedule [i, j] -> tensor<?x40xf32, #sym.dims<n, 40>> {
      %a = loop.read %x[i, j] : f32
      %b = math.exp %a : f32
      loop.yield none %b at [i, j]
    }
    %y = loop.nest "y" [i: parallel n, j: parallel 40] schedule [i, j] -> tensor<?x40xf32, #sym.dims<n, 40>> {
      %a = loop.read %e[i, -j + 39] : f32
      loop.yield none %a at [i, j]
    }
    loop.return %y : tensor<?x40xf32, #sym.dims<n, 40>>
  } variants {
    loop.kernel @one symbols [n] (%x: tensor<?x40xf32, #sym.dims<n, 40>>) -> (tensor<?x40xf32, #sym.dims<n, 40>>) typical [n = 1] when n <= 1 {
      %e = loop.nest "e" [i: parallel n, j: parallel 40] schedule [i fuse "g", j] -> tensor<?x40xf32, #sym.dims<n, 40>> {
        %a = loop.read %x[i, j] : f32
        %b = math.exp %a : f32
        loop.yield none %b at [i, j]
      }
      %y = loop.nest "y" [i: parallel n, j: parallel 40] schedule [i fuse "g", j] -> tensor<?x40xf32, #sym.dims<n, 40>> {
        %a = loop.read %e[i, -j + 39] : f32
        loop.yield none %a at [i, j]
      }
      loop.return %y : tensor<?x40xf32, #sym.dims<n, 40>>
    }
    loop.kernel @few symbols [n] (%x: tensor<?x40xf32, #sym.dims<n, 40>>) -> (tensor<?x40xf32, #sym.dims<n, 40>>) when 2*n <= 9 {
      %e = loop.nest "e" [i: parallel n, j: parallel 40] schedule [j, i] -> tensor<?x40xf32, #sym.dims<n, 40>> {
        %a = loop.read %x[i, j] : f32
        %b = math.exp %a : f32
        loop.yield none %b at [i, j]
      }
      %y = loop.nest "y" [i: parallel n, j: parallel 40] schedule [i threads, j] -> tensor<?x40xf32, #sym.dims<n, 40>> {
        %a = loop.read %e[i, -j + 39] : f32
        loop.yield none %a at [i, j]
      }
      loop.return %y : tensor<?x40xf32, #sym.dims<n, 40>>
    }
  }
}
