ort.library @broken {
  ort.op @igniter_r0 kernel @r0 symbols [n] ins ["x" : f32 [4]] outs ["y" : f32 [n]]
}
