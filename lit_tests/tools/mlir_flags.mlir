// What users of mlir-opt type.

// RUN: igniter-opt %s -cse -mlir-print-ir-before-all -mlir-print-ir-after-all 2>&1 | filecheck %s --check-prefix=ALL
// RUN: igniter-opt %s --cse --dce --mlir-print-ir-after-change 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: igniter-opt %s --cse --dce --mlir-print-ir-before=dce --mlir-print-ir-after=cse,dce 2>&1 | filecheck %s --check-prefix=SOME
// RUN: not igniter-opt %s -p tile-loops,form-variants{ratio=x} --mlir-print-ir-after-failure 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: igniter-opt --mlir-timing %s -cse --emit=none 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: igniter-opt --mlir-timing --mlir-timing-display=list --mlir-output-format=json %s -cse --emit=none 2>&1 | filecheck %s --check-prefix=JSON
// RUN: not igniter-opt --mlir-timing-display=bars %s 2>&1 | filecheck %s --check-prefix=DISPLAY
// RUN: igniter-opt --mlir-pass-statistics %s -cse --emit=none 2>&1 | filecheck %s --check-prefix=COUNTS
// RUN: igniter-opt --mlir-disable-threading --mlir-print-local-scope %s --emit=none 2>&1 | filecheck %s --check-prefix=NOTES
// RUN: igniter-opt --mlir-print-op-generic %s -cse --mlir-print-ir-after-all 2>&1 | filecheck %s --check-prefix=GENERIC
// RUN: not igniter-opt --mlir-print-ir-module-scope %s 2>&1 | filecheck %s --check-prefix=SCOPE
// RUN: not igniter-opt --mlir-elide-elementsattrs-if-larger=8 %s 2>&1 | filecheck %s --check-prefix=ELIDE
// RUN: igniter-opt --pass-pipeline='builtin.module(cse,dce)' --dump-pass-pipeline --emit=none %s 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: igniter-opt -pass-pipeline='builtin.module(cse,dce)' --verify-each=false --emit=none --timing=list %s 2>&1 | filecheck %s --check-prefix=UNVERIFIED
// RUN: not igniter-opt --verify-each=perhaps %s 2>&1 | filecheck %s --check-prefix=PERHAPS
// RUN: not igniter-opt --no-implicit-module %s 2>&1 | filecheck %s --check-prefix=MODULE
// RUN: igniter-opt --verify-roundtrip %s | filecheck %s --check-prefix=ROUND
// RUN: igniter-opt --split-input-file=//==== --output-split-marker=#### %s | filecheck %s --check-prefix=SPLIT
// RUN: igniter-opt --show-dialects | filecheck %s --check-prefix=DIALECTS
// RUN: igniter-opt --help cse | filecheck %s --check-prefix=HELP
// RUN: igniter-opt --help fuse-loops | filecheck %s --check-prefix=HELPOPTIONS
// RUN: not igniter-opt --help fuse-lops 2>&1 | filecheck %s --check-prefix=HELPNAME
// RUN: igniter-opt --list-passes=json | filecheck %s --check-prefix=PASSJSON
// RUN: igniter-opt --list-pipelines=json | filecheck %s --check-prefix=PIPEJSON

"test.op"() : () -> ()
//====
%0 = arith.constant 1 : i32
%1 = arith.constant 1 : i32
"test.op"(%0, %1) : (i32, i32) -> ()

// ALL: IR Dump Before cse //----- //
// ALL: "test.op"(%0, %1)
// ALL: IR Dump After cse //----- //
// ALL: "test.op"(%0, %0)
// CHANGE: IR Dump After cse
// CHANGE: dce: no change
// SOME: IR Dump After cse
// SOME: IR Dump Before dce
// SOME: IR Dump After dce
// OPTION: error: pass 'form-variants'
// TIMING: cse
// TIMING: total
// JSON: "name": "cse",
// DISPLAY: error: --mlir-timing-display is one of list, tree, not 'bars'
// COUNTS: no pass counted anything
// NOTES: note: --mlir-disable-threading has no effect: passes run on one thread
// NOTES: note: --mlir-print-local-scope has no effect
// GENERIC: IR Dump After cse
// GENERIC-NEXT: "builtin.module"() ({
// GENERIC: "builtin.module"() ({
// SCOPE: error: --mlir-print-ir-module-scope is a flag of mlir-opt, not of igniter-opt
// ELIDE: error: --mlir-elide-elementsattrs-if-larger is a flag of mlir-opt, not of igniter-opt: the pass does it: -p elide-weights{limit=N}
// DUMP: builtin.module(cse,dce)
// UNVERIFIED-NOT: (verify)
// UNVERIFIED: total
// PERHAPS: 'perhaps' is neither true nor false
// MODULE: error: {{.*}}mlir_flags.mlir:
// MODULE: builtin.module
// ROUND: "test.op"(%0, %1)
// SPLIT: "test.op"() : () -> ()
// SPLIT: ####
// SPLIT: "test.op"(%0, %1)
// DIALECTS: loop igniter.dialects.loop:Loop
// DIALECTS: onnx igniter.dialects.onnx:Onnx
// HELP: class: xdsl.transforms.common_subexpression_elimination
// HELPOPTIONS: `fuse-loops`:
// HELPOPTIONS: options:
// HELPOPTIONS: strict: bool = false Makes it an error if a pair with `fuse` cannot fuse.
// HELPOPTIONS: one rewrite, for --stop-after: two loops fused
// HELPNAME: error: there is no pass or pipeline called 'fuse-lops'; did you mean 'fuse-loops'
// PASSJSON: "name": "fuse-loops",
// PASSJSON: "options": [
// PASSJSON-NEXT: {
// PASSJSON-NEXT: "name": "all",
// PASSJSON-NEXT: "type": "bool",
// PASSJSON-NEXT: "default": "false",
// PASSJSON-NEXT: "description": "Fuses every legal pair
// PIPEJSON: "cpu-onnx": [
// PIPEJSON-NEXT: "inline-functions",
