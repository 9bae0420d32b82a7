// RUN: igniter-opt %s --cse --dce --print-ir-after-change 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: igniter-opt %s -p cse,dce --print-ir-after-all 2>&1 | filecheck %s --check-prefix=ALL
// RUN: igniter-opt %s -p cse,dce --print-ir-before=dce 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: igniter-opt %s --emit=generic | filecheck %s --check-prefix=GENERIC
// RUN: igniter-opt %s -p cse --timing --emit=none 2>&1 | filecheck %s --check-prefix=TIMING

%0 = arith.constant 1 : i32
%1 = arith.constant 1 : i32
"test.op"(%0, %1) : (i32, i32) -> ()

// CHANGE: // -----// IR Dump After cse //----- //
// CHANGE: arith.constant
// CHANGE-NOT: arith.constant
// CHANGE: "test.op"(%0, %0) : (i32, i32) -> ()
// CHANGE: // -----// dce: no change //----- //

// ALL: IR Dump After cse
// ALL: "test.op"(%0, %0)
// ALL: IR Dump After dce
// ALL: "test.op"(%0, %0)

// BEFORE-NOT: IR Dump Before cse
// BEFORE: IR Dump Before dce
// BEFORE: "test.op"(%0, %0)

// GENERIC: "builtin.module"() ({
// GENERIC: "arith.constant"() <{value = 1 : i32}>

// TIMING: % step
// TIMING: (read)
// TIMING: cse
// TIMING: total
