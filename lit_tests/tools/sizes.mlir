// RUN: igniter-opt %s -p choose-schedule,lower-to-loops,parallelize-loops | filecheck %s --check-prefix=NONE
// RUN: igniter-opt %s -p choose-schedule,lower-to-loops,parallelize-loops --sizes m=16384,k=64 | filecheck %s --check-prefix=LONG
// RUN: igniter-opt %s -p choose-schedule --sizes n=8,m=4096 --remarks --emit=none 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s --sizes n=5 | filecheck %s --check-prefix=INSTEAD
// RUN: not igniter-opt %s --sizes rows=8 2>&1 | filecheck %s --check-prefix=MISSPELT
// RUN: not igniter-opt %s --sizes n=0 2>&1 | filecheck %s --check-prefix=ZERO
// RUN: not igniter-opt %s --sizes n=1,n=2 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not igniter-opt %s --sizes n 2>&1 | filecheck %s --check-prefix=NOSIZE

// --sizes says what symbols typically are. A loop has its grain for them: one row of 16384 is worth a task, of 64 rows of
// 64 many are needed. A remark says how long it takes at these sizes. What a kernel says itself gives way to it.

// NONE:  loop.func @sum symbols [n, m] {{.*}} outputs 1 {
// NONE:  loop.for i = 0 to n threads(max(((n + 63) floordiv 64), {{[1-9][0-9]+}}))
// LONG:  loop.func @sum symbols [n, m] {{.*}} outputs 1 typical [m = 16384] {
// LONG:  loop.for i = 0 to n threads(max(((n + 63) floordiv 64), {{[1-9]}}))
// LONG:  loop.func @own symbols [n] {{.*}} outputs 1 typical [n = 3] {

// REMARKS: 'sum' applied: scheduled: vectors of 16 along 'j', with 4 partial sums; about {{[0-9.]+}} us at n=8, m=4096, bound by {{arithmetic|memory}}

// INSTEAD: loop.kernel @sum {{.*}} typical [n = 5] {
// INSTEAD: loop.kernel @own {{.*}} typical [n = 5] {

// MISSPELT: error: the model has no dim rows; its dims are k, m, n
// ZERO:     error: the typical size of 'n' is 0; it must be positive
// TWICE:    error: 'n=1,n=2' gives 'n' two sizes: write each symbol once
// NOSIZE:   error: 'n' is not a choice of sizes: write dim=number,... as in batch=1,seq=128, or the shape of an input, image=1x3x224x224

builtin.module {
  loop.kernel @sum symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %z = loop.nest "sum" [i: parallel n, j: reduction m] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, j] : f32
      loop.yield add %a at [i]
    }
    loop.return %z : tensor<?xf32, #sym.dims<n>>
  }
  loop.kernel @own symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) typical [n = 3] {
    %z = loop.nest "copy" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %z : tensor<?xf32, #sym.dims<n>>
  }
  loop.kernel @third symbols [k] (%x: tensor<?xf32, #sym.dims<k>>) -> (tensor<?xf32, #sym.dims<k>>) {
    %z = loop.nest "copy" [i: parallel k] -> tensor<?xf32, #sym.dims<k>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %z : tensor<?xf32, #sym.dims<k>>
  }
}
