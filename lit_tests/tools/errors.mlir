// RUN: not igniter-opt %s -p canonicalise 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not igniter-opt %s -p "cse{size=3}" 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not igniter-opt %s -p "cse{" 2>&1 | filecheck %s --check-prefix=SYNTAX
// RUN: not igniter-opt no_such_file.mlir 2>&1 | filecheck %s --check-prefix=FILE
// RUN: igniter-opt %s --verify-diagnostics --split-input-file | filecheck %s --check-prefix=DIAG

// NAME: igniter-opt: error: there is no pass or pipeline called 'canonicalise'; did you mean 'canonicalize'
// OPTION: igniter-opt: error: pass 'cse': Provided arguments ["size"] not found
// SYNTAX: igniter-opt: error: cannot read the pipeline 'cse{'
// FILE: igniter-opt: error: no_such_file.mlir: No such file or directory

"test.op"() : () -> ()

// -----

// Without any expectation in the chunk the error is printed and may be checked as text.

// DIAG: "test.op"() : () -> ()
// DIAG: // -----
// DIAG: test.nothing is not registered
"test.nothing"() : () -> ()
