// Passes that schedule-kernels runs on each kernel are seen from outside.

// RUN: igniter-opt %s -p schedule-kernels --emit=none --print-ir-after=fuse-loops 2>&1 | filecheck %s --check-prefix=AFTER
// RUN: igniter-opt %s -p schedule-kernels --emit=none --print-ir-before-all --filter-kernel=twice 2>&1 | filecheck %s --check-prefix=ONE
// RUN: igniter-opt %s -p schedule-kernels --emit=none --print-ir-after-change --filter-kernel=@o* 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: not igniter-opt %s -p schedule-kernels --emit=none --timing --filter-kernel=thrice 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not igniter-opt %s -p schedule-kernels --filter-kernel=once 2>&1 | filecheck %s --check-prefix=IDLE
// RUN: igniter-opt %s -p schedule-kernels --emit=none --timing 2>&1 | filecheck %s --check-prefix=TREE
// RUN: igniter-opt %s -p schedule-kernels --emit=none --timing=kernels --filter-kernel=once 2>&1 | filecheck %s --check-prefix=KERNELS
// RUN: igniter-opt %s -p schedule-kernels --emit=none --timing=list 2>&1 | filecheck %s --check-prefix=LIST
// RUN: igniter-opt %s -p schedule-kernels --emit=none --timing=json 2>&1 | filecheck %s --check-prefix=JSON
// RUN: igniter-opt %s -p schedule-kernels --emit=none --pass-statistics 2>&1 | filecheck %s --check-prefix=COUNTS
// RUN: igniter-opt %s -p schedule-kernels --emit=none --pass-statistics=kernels --filter-kernel=once 2>&1 | filecheck %s --check-prefix=COUNTED
// RUN: igniter-opt %s -p schedule-kernels --emit=none --pass-statistics=json 2>&1 | filecheck %s --check-prefix=COUNTJSON
// RUN: igniter-opt %s -p schedule-kernels --emit=none --remarks --filter-kernel=twice 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p schedule-kernels --emit=none --debug-only=canonicalize-loop,choose-schedule 2>&1 | filecheck %s --check-prefix=LOG
// RUN: not igniter-opt %s -p schedule-kernels --print-ir-tree-dir=%t 2>&1 | filecheck %s --check-prefix=NODUMP

// AFTER: IR Dump After fuse-loops on loop.kernel @once //----- //
// AFTER-NEXT: builtin.module {
// AFTER-NEXT: loop.func @once
// AFTER-NOT: loop.func @twice
// AFTER: IR Dump After fuse-loops on loop.kernel @twice //----- //
// AFTER-NEXT: builtin.module {
// AFTER-NEXT: loop.func @twice

// ONE: IR Dump Before schedule-kernels //----- //
// ONE-NEXT: loop.kernel @twice
// ONE-NOT: @once
// ONE: IR Dump Before canonicalize-loop on loop.kernel @twice //----- //

// CHANGE: split-axes on loop.kernel @once: no change
// CHANGE: IR Dump After lower-to-loops on loop.kernel @once
// CHANGE-NOT: @twice

// NONE: error: there is no kernel 'thrice' for --filter-kernel; there are once, twice
// IDLE: error: --filter-kernel selects from printed IR, times, counts and remarks

// TREE: ms % step
// TREE: schedule-kernels
// TREE-NEXT: {{^.*}} loop.kernel x 2
// TREE-NEXT: {{^.*}} canonicalize-loop x 2
// TREE: total

// KERNELS: schedule-kernels
// KERNELS-NEXT: {{^.*}} @once
// KERNELS-NEXT: {{^.*}} canonicalize-loop{{$}}
// KERNELS-NOT: @twice

// LIST-DAG: canonicalize-loop x 4
// LIST-DAG: loop.kernel (rest) x 2
// LIST: total

// JSON: "name": "schedule-kernels",
// JSON-NEXT: "kind": "pass",
// JSON: "name": "@once",
// JSON-NEXT: "kind": "kernel",
// JSON: "op": "loop.kernel",
// JSON: "name": "canonicalize-loop",

// COUNTS: choose-schedule
// COUNTS-NEXT: 2 rewrites: a nest or a procedure scheduled
// COUNTS: lower-to-loops
// COUNTS-NEXT: 2 nests lowered to loops
// COUNTED: @once
// COUNTED: choose-schedule
// COUNTED-NEXT: 1 rewrites: a nest or a procedure scheduled
// COUNTED-NOT: @twice
// COUNTJSON: "pass": "choose-schedule",
// COUNTJSON-NEXT: "kernel": "once",
// COUNTJSON-NEXT: "what": "rewrites: a nest or a procedure scheduled",
// COUNTJSON-NEXT: "count": 1

// REMARKS-NOT: 'once'
// REMARKS: remark: collapse-axes: 'twice'

// LOG: [canonicalize-loop] ran on loop.kernel @once in {{.*}} ms
// LOG: [choose-schedule] rewrite 1: 'once'
// LOG: [choose-schedule] ran on loop.kernel @once in

// NODUMP: error: --print-ir-tree-dir is the folder of printed IR

builtin.module {
  loop.kernel @once symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "once" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = arith.addf %a, %a : f32
      loop.yield none %b at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
  loop.kernel @twice symbols [m, n] (%x: tensor<?x?xf32, #sym.dims<m, n>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) {
    %y = loop.nest "twice" [i: parallel m, j: parallel n] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %a = loop.read %x[i, j] : f32
      %b = arith.addf %a, %a : f32
      loop.yield none %b at [i, j]
    }
    loop.return %y : tensor<?x?xf32, #sym.dims<m, n>>
  }
}
