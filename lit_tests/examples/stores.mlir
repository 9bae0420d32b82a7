// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,vectorize-loops,unroll-loops,plan-buffers | filecheck %s

// Where results live: `%e` in the arena, a row of it for each task, `%s` in a register, and `%o` as a whole, because all
// rows are there before the columns are summed.

// CHECK:      loop.func @stores
// CHECK-NEXT:   %o = loop.alloc "div" offset {{.*}} : memref<?x64xf32, #sym.dims<n, 64>, "scratch">
// CHECK-NEXT:   loop.for i = 0 to n threads(
// CHECK-DAG:      %s = loop.alloc "sum" : memref<f32, "register">
// CHECK-DAG:      %e = loop.alloc "exp" offset {{.*}} : memref<64xf32, "scratch">
// CHECK:          loop.store {{.*}}, %e[
// CHECK:          loop.store {{.*}}, %o[i
// CHECK:        loop.for

builtin.module {
  loop.kernel @stores symbols [n] (%x: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<64xf32>) {
    %e = loop.nest "exp" [i: parallel n, j: parallel 64] schedule [
        i threads fuse "g0", store in arena, j vector 16] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %a = loop.read %x[i, j] : f32
      %b = math.exp %a : f32
      loop.yield none %b at [i, j]
    }
    %s = loop.nest "sum" [i: parallel n, k: reduction 64] schedule [
        i threads fuse "g0", store in registers, k vector 16] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %e[i, k] : f32
      loop.yield add %a at [i]
    }
    %o = loop.nest "div" [i: parallel n, j: parallel 64] schedule [
        store, i threads fuse "g0", j vector 16] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %s[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, j]
    }
    %t = loop.nest "total" [j: parallel 64, i: reduction n] schedule [j by 16 threads, i, j vector 16] -> tensor<64xf32> {
      %a = loop.read %o[i, j] : f32
      loop.yield add %a at [j]
    }
    loop.return %t : tensor<64xf32>
  }
}
