#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d1)>
#map3 = affine_map<(d0, d1) -> (0, d1)>
#map4 = affine_map<(d0) -> (d0)>
module {
  func.func @mixed(%arg0: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<4xi64>, tensor<6xf32>) {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 0.000000e+00 : f64
    %cst_2 = arith.constant 3.000000e+00 : f64
    %cst_3 = arith.constant -1.000000e+00 : f32
    %cst_4 = arith.constant 1.000000e+00 : f32
    %cst_5 = arith.constant 4.000000e+00 : f64
    %0 = tensor.empty() : tensor<4xi64>
    %1 = linalg.fill ins(%c0_i64 : i64) outs(%0 : tensor<4xi64>) -> tensor<4xi64>
    %2 = tensor.empty() : tensor<4xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%3, %1 : tensor<4xf32>, tensor<4xi64>) {
    ^bb0(%in: f32, %out: f32, %out_6: i64):
      %31 = linalg.index 1 : index
      %32 = arith.index_cast %31 : index to i64
      %33 = arith.maximumf %in, %out : f32
      %34 = arith.cmpf ogt, %in, %out : f32
      %35 = arith.select %34, %32, %out_6 : i64
      linalg.yield %33, %35 : f32, i64
    } -> (tensor<4xf32>, tensor<4xi64>)
    %5 = tensor.empty() : tensor<4x6xi1>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%5 : tensor<4x6xi1>) {
    ^bb0(%in: f32, %out: i1):
      %31 = arith.cmpf ogt, %in, %cst_0 : f32
      linalg.yield %31 : i1
    } -> tensor<4x6xi1>
    %7 = tensor.empty() : tensor<4x6xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%7 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.negf %in : f32
      linalg.yield %31 : f32
    } -> tensor<4x6xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %arg0, %8 : tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) outs(%7 : tensor<4x6xf32>) {
    ^bb0(%in: i1, %in_6: f32, %in_7: f32, %out: f32):
      %31 = arith.select %in, %in_6, %in_7 : f32
      linalg.yield %31 : f32
    } -> tensor<4x6xf32>
    %10 = tensor.empty() : tensor<6x4xf32>
    %transposed = linalg.transpose ins(%arg0 : tensor<4x6xf32>) outs(%10 : tensor<6x4xf32>) permutation = [1, 0] 
    %collapsed = tensor.collapse_shape %transposed [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>
    %expanded = tensor.expand_shape %collapsed [[0, 1]] output_shape [4, 6] : tensor<24xf32> into tensor<4x6xf32>
    %concat = tensor.concat dim(0) %9, %expanded : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %11 = tensor.empty() : tensor<8x6xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%concat : tensor<8x6xf32>) outs(%11 : tensor<8x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.cmpf ult, %in, %cst_3 : f32
      %32 = arith.select %31, %cst_3, %in : f32
      %33 = arith.cmpf ugt, %32, %cst_4 : f32
      %34 = arith.select %33, %cst_4, %32 : f32
      linalg.yield %34 : f32
    } -> tensor<8x6xf32>
    %13 = tensor.empty() : tensor<6xf32>
    %14 = linalg.fill ins(%cst_0 : f32) outs(%13 : tensor<6xf32>) -> tensor<6xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%14 : tensor<6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.addf %in, %out : f32
      linalg.yield %31 : f32
    } -> tensor<6xf32>
    %16 = tensor.empty() : tensor<4x6xf64>
    %17 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4x6xf32>) outs(%16 : tensor<4x6xf64>) {
    ^bb0(%in: f32, %out: f64):
      %31 = arith.extf %in : f32 to f64
      linalg.yield %31 : f64
    } -> tensor<4x6xf64>
    %18 = tensor.empty() : tensor<1x6xf64>
    %19 = linalg.fill ins(%cst_1 : f64) outs(%18 : tensor<1x6xf64>) -> tensor<1x6xf64>
    %20 = linalg.generic {indexing_maps = [#map, #map3], iterator_types = ["reduction", "parallel"]} ins(%17 : tensor<4x6xf64>) outs(%19 : tensor<1x6xf64>) {
    ^bb0(%in: f64, %out: f64):
      %31 = arith.addf %in, %out : f64
      linalg.yield %31 : f64
    } -> tensor<1x6xf64>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%20 : tensor<1x6xf64>) outs(%18 : tensor<1x6xf64>) {
    ^bb0(%in: f64, %out: f64):
      %31 = arith.divf %in, %cst_5 : f64
      linalg.yield %31 : f64
    } -> tensor<1x6xf64>
    %22 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%17, %21 : tensor<4x6xf64>, tensor<1x6xf64>) outs(%16 : tensor<4x6xf64>) {
    ^bb0(%in: f64, %in_6: f64, %out: f64):
      %31 = arith.subf %in, %in_6 : f64
      linalg.yield %31 : f64
    } -> tensor<4x6xf64>
    %23 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%22, %22 : tensor<4x6xf64>, tensor<4x6xf64>) outs(%16 : tensor<4x6xf64>) {
    ^bb0(%in: f64, %in_6: f64, %out: f64):
      %31 = arith.mulf %in, %in_6 : f64
      linalg.yield %31 : f64
    } -> tensor<4x6xf64>
    %24 = tensor.empty() : tensor<6xf64>
    %25 = linalg.fill ins(%cst_1 : f64) outs(%24 : tensor<6xf64>) -> tensor<6xf64>
    %26 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["reduction", "parallel"]} ins(%23 : tensor<4x6xf64>) outs(%25 : tensor<6xf64>) {
    ^bb0(%in: f64, %out: f64):
      %31 = arith.addf %in, %out : f64
      linalg.yield %31 : f64
    } -> tensor<6xf64>
    %27 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel"]} ins(%26 : tensor<6xf64>) outs(%24 : tensor<6xf64>) {
    ^bb0(%in: f64, %out: f64):
      %31 = arith.divf %in, %cst_2 : f64
      linalg.yield %31 : f64
    } -> tensor<6xf64>
    %28 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel"]} ins(%27 : tensor<6xf64>) outs(%13 : tensor<6xf32>) {
    ^bb0(%in: f64, %out: f32):
      %31 = arith.truncf %in : f64 to f32
      linalg.yield %31 : f32
    } -> tensor<6xf32>
    %29 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel"]} ins(%28 : tensor<6xf32>) outs(%13 : tensor<6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = math.sqrt %in : f32
      linalg.yield %31 : f32
    } -> tensor<6xf32>
    %30 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel"]} ins(%15, %29 : tensor<6xf32>, tensor<6xf32>) outs(%13 : tensor<6xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %31 = arith.divf %in, %in_6 : f32
      linalg.yield %31 : f32
    } -> tensor<6xf32>
    return %12, %4#1, %30 : tensor<8x6xf32>, tensor<4xi64>, tensor<6xf32>
  }
}
