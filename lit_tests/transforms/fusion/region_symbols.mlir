// RUN: igniter-opt %s -p "form-fusion-regions{singletons=all}" | filecheck %s

// A region learns the symbols of `d0*d2` from a tensor all of whose dims are told: %e, not the nearer %r, whose last dim
// is a product of two that nothing tells.

onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
  %e = onnx.custom(%x) <{domain = "test", op_type = "Open"}> : (tensor<4xf32>) -> tensor<?x?x?x?xf32, #sym.dims<d0, d1, d2, d3>>
  %r = onnx.custom(%e) <{domain = "test", op_type = "Join"}> : (tensor<?x?x?x?xf32, #sym.dims<d0, d1, d2, d3>>) -> tensor<?x?x?xf32, #sym.dims<d0, d2, d1*d3>>
  %m = onnx.custom(%r) <{domain = "test", op_type = "Product"}> : (tensor<?x?x?xf32, #sym.dims<d0, d2, d1*d3>>) -> tensor<?x8xf32, #sym.dims<d0*d2, 8>>
  %y = onnx.Relu(%m) : (tensor<?x8xf32, #sym.dims<d0*d2, 8>>) -> tensor<?x8xf32, #sym.dims<d0*d2, 8>>
  onnx.return %y : tensor<?x8xf32, #sym.dims<d0*d2, 8>>
}
// CHECK: fusion.region @r0 (%{{.*}} = %m : {{.*}}, %{{.*}} = %e : {{.*}}) ->
