// RUN: python %S/Inputs/record.py %s %t.db znver4 "[i by 8 threads, k, i vector 8]" "[i, l]" && igniter-opt %s -p "apply-tuned-schedules{db=\"%t.db\" cpu=znver4}" --remarks 2>&1 | filecheck %s
// RUN: igniter-opt %s -p "apply-tuned-schedules{db=\"%t.db\"}" --target znver4 | filecheck %s --check-prefix TARGET
// RUN: igniter-opt %s -p "apply-tuned-schedules{db=\"%t.db\" cpu=haswell}" | filecheck %s --check-prefix OTHER
// RUN: not igniter-opt %s -p "apply-tuned-schedules{db=\"%t.none\" cpu=znver4}" 2>&1 | filecheck %s --check-prefix NONE

// A kernel that was tuned gets what was found; what no longer fits and what was not tuned are left to choose-schedule.

// CHECK-DAG:  remark: apply-tuned-schedules: 'tuned' applied: tuned: 2.00 times as fast as the default at n<=64, threads=1
// CHECK-DAG:  remark: apply-tuned-schedules: 'stale' missed: the schedule found at n<=64, threads=1 is stale: {{.*}} unknown axis 'l'
// CHECK-DAG:  remark: apply-tuned-schedules: 'other' missed: it was not tuned for znver4
// CHECK-DAG:  loop.nest "tuned" [i: parallel n, k: reduction 64] schedule [i by 8 threads, k, i vector 8] ->
// CHECK-DAG:  loop.nest "stale" [i: parallel n, k: reduction 64] ->
// CHECK-DAG:  loop.nest "other" [i: parallel n, k: reduction 64] ->

// TARGET:     loop.nest "tuned" [i: parallel n, k: reduction 64] schedule [i by 8 threads, k, i vector 8] ->

// OTHER-NOT:  schedule [

// NONE:       there is no database of schedules at {{.*}}; create one with `igniter tune MODEL`

builtin.module {
  loop.kernel @tuned symbols [n] (%x: tensor<64x?xf32, #sym.dims<64, n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "tuned" [i: parallel n, k: reduction 64] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[k, i] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
  loop.kernel @stale symbols [n] (%x: tensor<64x?xf32, #sym.dims<64, n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "stale" [i: parallel n, k: reduction 64] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[k, i] : f32
      loop.yield max %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
  loop.kernel @other symbols [n] (%x: tensor<64x?xf32, #sym.dims<64, n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "other" [i: parallel n, k: reduction 64] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[k, i] : f32
      loop.yield min %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
}
