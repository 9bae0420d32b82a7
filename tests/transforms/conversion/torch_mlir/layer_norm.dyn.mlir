#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @layer_norm(%arg0: tensor<?x12xf32>) -> tensor<?x12xf32> {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %c3_i64 = arith.constant 3 : i64
    %cst_1 = arith.constant 4.471500e-02 : f32
    %cst_2 = arith.constant 7.977240e-01 : f32
    %cst_3 = arith.constant 1.000000e+00 : f32
    %cst_4 = arith.constant 5.000000e-01 : f32
    %cst_5 = arith.constant dense_resource<torch_tensor_12_torch.float32_2> : tensor<12xf32>
    %cst_6 = arith.constant dense_resource<torch_tensor_12_12_torch.float32> : tensor<12x12xf32>
    %cst_7 = arith.constant dense_resource<torch_tensor_12_torch.float32_1> : tensor<12xf32>
    %cst_8 = arith.constant dense_resource<torch_tensor_12_torch.float32> : tensor<12xf32>
    %cst_9 = arith.constant 1.000000e-05 : f64
    %cst_10 = arith.constant 1.200000e+01 : f64
    %cst_11 = arith.constant 1.200000e+01 : f32
    %dim = tensor.dim %arg0, %c0 : tensor<?x12xf32>
    %0 = tensor.empty(%dim) : tensor<?x12xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<?x12xf32>) outs(%0 : tensor<?x12xf64>) {
    ^bb0(%in: f32, %out: f64):
      %28 = arith.extf %in : f32 to f64
      linalg.yield %28 : f64
    } -> tensor<?x12xf64>
    %2 = tensor.empty(%dim) : tensor<?x1xf64>
    %3 = linalg.fill ins(%cst : f64) outs(%2 : tensor<?x1xf64>) -> tensor<?x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<?x12xf64>) outs(%3 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %28 = arith.addf %in, %out : f64
      linalg.yield %28 : f64
    } -> tensor<?x1xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<?x1xf64>) outs(%2 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %28 = arith.divf %in, %cst_10 : f64
      linalg.yield %28 : f64
    } -> tensor<?x1xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%1, %5 : tensor<?x12xf64>, tensor<?x1xf64>) outs(%0 : tensor<?x12xf64>) {
    ^bb0(%in: f64, %in_12: f64, %out: f64):
      %28 = arith.subf %in, %in_12 : f64
      linalg.yield %28 : f64
    } -> tensor<?x12xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %6 : tensor<?x12xf64>, tensor<?x12xf64>) outs(%0 : tensor<?x12xf64>) {
    ^bb0(%in: f64, %in_12: f64, %out: f64):
      %28 = arith.mulf %in, %in_12 : f64
      linalg.yield %28 : f64
    } -> tensor<?x12xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<?x12xf64>) outs(%3 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %28 = arith.addf %in, %out : f64
      linalg.yield %28 : f64
    } -> tensor<?x1xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<?x1xf64>) outs(%2 : tensor<?x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %28 = arith.divf %in, %cst_10 : f64
      linalg.yield %28 : f64
    } -> tensor<?x1xf64>
    %10 = tensor.empty(%dim) : tensor<?x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<?x1xf64>) outs(%10 : tensor<?x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %28 = arith.truncf %in : f64 to f32
      linalg.yield %28 : f32
    } -> tensor<?x1xf32>
    %12 = linalg.fill ins(%cst_0 : f32) outs(%10 : tensor<?x1xf32>) -> tensor<?x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<?x12xf32>) outs(%12 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = arith.addf %in, %out : f32
      linalg.yield %28 : f32
    } -> tensor<?x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<?x1xf32>) outs(%10 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = arith.divf %in, %cst_11 : f32
      linalg.yield %28 : f32
    } -> tensor<?x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<?x1xf32>) outs(%10 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = arith.truncf %cst_9 : f64 to f32
      %29 = arith.addf %in, %28 : f32
      linalg.yield %29 : f32
    } -> tensor<?x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<?x1xf32>) outs(%10 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = math.rsqrt %in : f32
      linalg.yield %28 : f32
    } -> tensor<?x1xf32>
    %17 = tensor.empty(%dim) : tensor<?x12xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %14 : tensor<?x12xf32>, tensor<?x1xf32>) outs(%17 : tensor<?x12xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %28 = arith.subf %in, %in_12 : f32
      linalg.yield %28 : f32
    } -> tensor<?x12xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%18, %16 : tensor<?x12xf32>, tensor<?x1xf32>) outs(%17 : tensor<?x12xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %28 = arith.mulf %in, %in_12 : f32
      linalg.yield %28 : f32
    } -> tensor<?x12xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%19, %cst_8 : tensor<?x12xf32>, tensor<12xf32>) outs(%17 : tensor<?x12xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %28 = arith.mulf %in, %in_12 : f32
      linalg.yield %28 : f32
    } -> tensor<?x12xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%20, %cst_7 : tensor<?x12xf32>, tensor<12xf32>) outs(%17 : tensor<?x12xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %28 = arith.addf %in, %in_12 : f32
      linalg.yield %28 : f32
    } -> tensor<?x12xf32>
    %22 = tensor.empty() : tensor<12x12xf32>
    %transposed = linalg.transpose ins(%cst_6 : tensor<12x12xf32>) outs(%22 : tensor<12x12xf32>) permutation = [1, 0] 
    %23 = linalg.fill ins(%cst_0 : f32) outs(%17 : tensor<?x12xf32>) -> tensor<?x12xf32>
    %24 = linalg.matmul ins(%21, %transposed : tensor<?x12xf32>, tensor<12x12xf32>) outs(%23 : tensor<?x12xf32>) -> tensor<?x12xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%24, %cst_5 : tensor<?x12xf32>, tensor<12xf32>) outs(%17 : tensor<?x12xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %28 = arith.addf %in, %in_12 : f32
      linalg.yield %28 : f32
    } -> tensor<?x12xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%25 : tensor<?x12xf32>) outs(%17 : tensor<?x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %28 = math.fpowi %in, %c3_i64 : f32, i64
      %29 = arith.mulf %28, %cst_1 : f32
      %30 = arith.addf %in, %29 : f32
      %31 = arith.mulf %30, %cst_2 : f32
      %32 = math.tanh %31 : f32
      %33 = arith.addf %32, %cst_3 : f32
      %34 = arith.mulf %33, %cst_4 : f32
      %35 = arith.mulf %in, %34 : f32
      linalg.yield %35 : f32
    } -> tensor<?x12xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %26 : tensor<?x12xf32>, tensor<?x12xf32>) outs(%17 : tensor<?x12xf32>) {
    ^bb0(%in: f32, %in_12: f32, %out: f32):
      %28 = arith.addf %in, %in_12 : f32
      linalg.yield %28 : f32
    } -> tensor<?x12xf32>
    return %27 : tensor<?x12xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_12_torch.float32_2: "0x04000000FFC584BE89230CBE2147493E7647F5BAB6ED12BE398662BE0C528ABEDC7D79BE3ED66FBD531C223EB8D01F3E6D8B8EBE",
      torch_tensor_12_12_torch.float32: "0x04000000E8A30DBB13931E3E7E4B73BEC98B59BEB1B4E3BD53899E3D406BBBBB7A616A3E42DDD1BCD2709C3D9EABB2BDEA6B68BDBD338DBED6C543BE84B5F3BD08342F3C8DB9E93D665E313ED26648BE69B900BE83BCD63D2777753E435773BD15345D3EDA953EBD653BFA3CB5D4853E791C89BEF0173ABE48AC95BDCC73E6BDCA667F3EA49A3FBE701308BE3C854EBEDF6C8ABE3E8E2CBE9D197E3E55E7033E54450F3E67BD783C0B8D17BED50B483D6B008ABECE9755BE736418BEE2813A3E8A512D3E3F1903BE3DA82ABC680E3D3E3DEF923EAFA3EA3D50BC1F3DB032463E4B0D2EBEEE555C3DD22E65BEEAE04CBE2EB418BEA6C0053E8AC2ED3DF4192FBE949BB23D2847223EB83D15BDE195343C41FC883DA962373E15EB8D3E84CC63BECBA8D8BD9E59E83D06EC743E3B9E803EEF69823E44516B3D998680BEDB8BD93C58EE38BE8FBE89BE1752833ECFC3603EB16F93BE92505D3D7A3047BD4D9442BD805007BE285AE33D3F162FBE33BBD83D2F7D153E319D533E0B0FDD3DD64892BEC8C13FBE6499133E107B773D6E9866BED3362ABE580B8B3ECD2E473EF7E300BE38CC94BDACCB8CBEDC05AABB529B5EBEFF0364BE104D82BC9488313DF61DF2BD86672F3EDDE233BE5E1C863EB1934A3EFA4679BE5F2493BD146A553CF0832C3D11388C3D9701E83D4CA78D3CBE3B10BE52E00B3E51C78DBEC1342FBE26FF93BD09FE0FBEE6D2CEBD6C4872BE69847BBD9CBF7C3D519340BE08B972BC9F9B533ED21AF3BC9272033CD102CCBC664C6F3DCEF43B3E2B018C3E82B93B3E2D538C3E3607ABBC",
      torch_tensor_12_torch.float32_1: "0x04000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
      torch_tensor_12_torch.float32: "0x040000000000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F0000803F"
    }
  }
#-}
