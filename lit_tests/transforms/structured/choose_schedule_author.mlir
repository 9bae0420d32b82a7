// RUN: igniter-opt %s -p "choose-schedule{author=default}" | filecheck %s
// RUN: igniter-opt %s -p "choose-schedule{author=nobody}" --verify-diagnostics | filecheck %s --check-prefix=NOBODY
// RUN: igniter-opt %s -p "choose-schedule{author=\"default{tile=8}\"}" --verify-diagnostics | filecheck %s --check-prefix=OPTION
// RUN: igniter-opt %s -p "choose-schedule{author=\"default,default\"}" --verify-diagnostics | filecheck %s --check-prefix=SEVERAL

// The author of schedules by name; without one it is the backend's, for CPUs the same.

// CHECK: loop.nest "neg" [i: parallel n] schedule [i threads vector 16] ->
// NOBODY: pass 'choose-schedule': there is no schedule author called 'nobody'; there are default
// OPTION: pass 'choose-schedule': the schedule author 'default' has no option 'tile': it has no options
// SEVERAL: pass 'choose-schedule': 'default,default' is not a schedule author; write NAME

builtin.module {
  loop.kernel @neg symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "neg" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = arith.negf %a : f32
      loop.yield none %b at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
}
