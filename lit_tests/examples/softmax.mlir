// RUN: igniter-opt %s -p choose-schedule,lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,plan-buffers | filecheck %s

// Softmax over rows: four nests that share the rows become one loop over rows. What a row needs is a register or the
// row itself, in a task's memory; nothing of the size of the tensor is left.

// CHECK:      loop.func @softmax
// CHECK:      loop.for i = 0 to n threads(
// CHECK-DAG:    memref<f32, "register">
// CHECK-DAG:    memref<?xf32, #sym.dims<m>, "scratch">
// CHECK:        loop.for j = 0 to m reduction schedule [vector 16 accumulators 4]
// CHECK:          loop.accumulate max
// CHECK:        loop.for j1 = 0 to m reduction
// CHECK:          math.exp
// CHECK:          loop.accumulate add
// CHECK:        loop.for j3 = 0 to m
// CHECK-NOT:  loop.for i

builtin.module {
  loop.kernel @softmax symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
    %max = loop.nest "max" [i: parallel n, j: reduction m] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, j] : f32
      loop.yield max %a at [i]
    }
    %e = loop.nest "exp" [i: parallel n, j: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
      %a = loop.read %x[i, j] : f32
      %b = loop.read %max[i] : f32
      %c = arith.subf %a, %b : f32
      %d = math.exp %c : f32
      loop.yield none %d at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel n, j: reduction m] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %e[i, j] : f32
      loop.yield add %a at [i]
    }
    %o = loop.nest "div" [i: parallel n, j: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %sum[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, j]
    }
    loop.return %o : tensor<?x?xf32, #sym.dims<n, m>>
  }
}
