// %one is not defined: the parser reports its first use.

%zero = arith.constant 0 : i32
"test.op"(%zero, %one) : (i32, i32) -> ()
