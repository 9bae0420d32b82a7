%x = "test.op"() : () -> tensor<?x?xf32, #sym.dims<2*(n + 1), m*n - n*m + "my dim">>
