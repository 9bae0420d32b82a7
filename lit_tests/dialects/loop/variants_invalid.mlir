// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// What a variant has to be.

// expected-error {{only a variant of a kernel has a condition ('when')}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 3 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}

// -----

// expected-error {{variant @v needs a condition, as in 'when n <= 8'}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @v symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
}

// -----

// expected-error {{variant @v cannot have variants of its own}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @v symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 3 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @w symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 2 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
}
}

// -----

// expected-error {{the condition of variant @v names 'm', which is not one of its symbols}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @v symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when m <= 3 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
}

// -----

// expected-error {{4 variants: a kernel has at most 3 besides itself}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @a symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 1 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
loop.kernel @b symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 2 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
loop.kernel @c symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 3 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
loop.kernel @d symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 4 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
}

// -----

// expected-error {{two variants are named @v}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @v symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 1 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
loop.kernel @v symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 2 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
}

// -----

// expected-error {{variant @v and its kernel have different symbols}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @v symbols [n, m] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 1 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
}

// -----

// expected-error {{variant @v and its kernel have different requirements}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @v symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) requires [3 <= n "it is too small"] when n <= 1 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
}

// -----

// expected-error {{variant @v and its kernel have different inputs}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
loop.kernel @v symbols [n] (%x: tensor<?xf32, #sym.dims<n>>, %z: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 1 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
}
}

// -----

// expected-error {{a variant must be a loop.kernel, not 'arith.constant'}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
%c = arith.constant 1 : i64
}
