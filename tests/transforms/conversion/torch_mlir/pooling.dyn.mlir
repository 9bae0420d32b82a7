#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d1)>
#map4 = affine_map<(d0, d1) -> (d0)>
#map5 = affine_map<(d0, d1) -> (d0, 0)>
module {
  func.func @pooling(%arg0: tensor<?x3x8x8xf32>) -> tensor<?x4xf32> {
    %c0_i64 = arith.constant 0 : i64
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant dense_resource<torch_tensor_4_torch.float32> : tensor<4xf32>
    %cst_3 = arith.constant dense_resource<torch_tensor_4_6_torch.float32> : tensor<4x6xf32>
    %cst_4 = arith.constant dense_resource<torch_tensor_6_torch.float32_1> : tensor<6xf32>
    %cst_5 = arith.constant dense_resource<torch_tensor_6_1_3_3_torch.float32> : tensor<6x1x3x3xf32>
    %cst_6 = arith.constant dense_resource<torch_tensor_6_3_3_3_torch.float32> : tensor<6x3x3x3xf32>
    %cst_7 = arith.constant dense_resource<torch_tensor_6_torch.float32> : tensor<6xf32>
    %cst_8 = arith.constant 4.000000e+00 : f32
    %dim = tensor.dim %arg0, %c0 : tensor<?x3x8x8xf32>
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
      tensor.yield %cst : f32
    } : tensor<?x3x8x8xf32> to tensor<?x3x10x10xf32>
    %0 = tensor.empty(%dim) : tensor<?x6x8x8xf32>
    %broadcasted = linalg.broadcast ins(%cst_7 : tensor<6xf32>) outs(%0 : tensor<?x6x8x8xf32>) dimensions = [0, 2, 3] 
    %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %cst_6 : tensor<?x3x10x10xf32>, tensor<6x3x3x3xf32>) outs(%broadcasted : tensor<?x6x8x8xf32>) -> tensor<?x6x8x8xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<?x6x8x8xf32>) outs(%0 : tensor<?x6x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.cmpf ugt, %in, %cst : f32
      %35 = arith.select %34, %in, %cst : f32
      linalg.yield %35 : f32
    } -> tensor<?x6x8x8xf32>
    %3 = tensor.empty(%dim) : tensor<?x6x4x4xf32>
    %4 = linalg.fill ins(%cst_0 : f32) outs(%3 : tensor<?x6x4x4xf32>) -> tensor<?x6x4x4xf32>
    %5 = tensor.empty() : tensor<2x2xf32>
    %6 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%2, %5 : tensor<?x6x8x8xf32>, tensor<2x2xf32>) outs(%4 : tensor<?x6x4x4xf32>) -> tensor<?x6x4x4xf32>
    %padded_9 = tensor.pad %6 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
      tensor.yield %cst : f32
    } : tensor<?x6x4x4xf32> to tensor<?x6x6x6xf32>
    %broadcasted_10 = linalg.broadcast ins(%cst_4 : tensor<6xf32>) outs(%3 : tensor<?x6x4x4xf32>) dimensions = [0, 2, 3] 
    %collapsed = tensor.collapse_shape %cst_5 [[0, 1], [2], [3]] : tensor<6x1x3x3xf32> into tensor<6x3x3xf32>
    %7 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_9, %collapsed : tensor<?x6x6x6xf32>, tensor<6x3x3xf32>) outs(%broadcasted_10 : tensor<?x6x4x4xf32>) -> tensor<?x6x4x4xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<?x6x4x4xf32>) outs(%3 : tensor<?x6x4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.negf %in : f32
      %35 = math.exp %34 : f32
      %36 = arith.addf %35, %cst_1 : f32
      %37 = arith.divf %cst_1, %36 : f32
      linalg.yield %37 : f32
    } -> tensor<?x6x4x4xf32>
    %9 = tensor.empty(%dim) : tensor<?x6x2x2xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<?x6x2x2xf32>) -> tensor<?x6x2x2xf32>
    %11 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%8, %5 : tensor<?x6x4x4xf32>, tensor<2x2xf32>) outs(%10 : tensor<?x6x2x2xf32>) -> tensor<?x6x2x2xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<?x6x2x2xf32>) outs(%9 : tensor<?x6x2x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.divf %in, %cst_8 : f32
      linalg.yield %34 : f32
    } -> tensor<?x6x2x2xf32>
    %13 = tensor.empty(%dim) : tensor<?x6xf32>
    %14 = linalg.fill ins(%cst : f32) outs(%13 : tensor<?x6xf32>) -> tensor<?x6xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%12 : tensor<?x6x2x2xf32>) outs(%14 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.addf %in, %out : f32
      linalg.yield %34 : f32
    } -> tensor<?x6xf32>
    %16 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<?x6xf32>) outs(%13 : tensor<?x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.divf %in, %cst_8 : f32
      linalg.yield %34 : f32
    } -> tensor<?x6xf32>
    %17 = tensor.empty() : tensor<6x4xf32>
    %transposed = linalg.transpose ins(%cst_3 : tensor<4x6xf32>) outs(%17 : tensor<6x4xf32>) permutation = [1, 0] 
    %18 = tensor.empty(%dim) : tensor<?x4xf32>
    %19 = linalg.fill ins(%cst : f32) outs(%18 : tensor<?x4xf32>) -> tensor<?x4xf32>
    %20 = linalg.matmul ins(%16, %transposed : tensor<?x6xf32>, tensor<6x4xf32>) outs(%19 : tensor<?x4xf32>) -> tensor<?x4xf32>
    %21 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel"]} ins(%20, %cst_2 : tensor<?x4xf32>, tensor<4xf32>) outs(%18 : tensor<?x4xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %34 = arith.addf %in, %in_11 : f32
      linalg.yield %34 : f32
    } -> tensor<?x4xf32>
    %22 = tensor.empty(%dim) : tensor<?xi64>
    %23 = linalg.fill ins(%c0_i64 : i64) outs(%22 : tensor<?xi64>) -> tensor<?xi64>
    %24 = tensor.empty(%dim) : tensor<?xf32>
    %25 = linalg.fill ins(%cst_0 : f32) outs(%24 : tensor<?xf32>) -> tensor<?xf32>
    %26:2 = linalg.generic {indexing_maps = [#map2, #map4, #map4], iterator_types = ["parallel", "reduction"]} ins(%21 : tensor<?x4xf32>) outs(%25, %23 : tensor<?xf32>, tensor<?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_11: i64):
      %34 = linalg.index 1 : index
      %35 = arith.index_cast %34 : index to i64
      %36 = arith.maximumf %in, %out : f32
      %37 = arith.cmpf ogt, %in, %out : f32
      %38 = arith.select %37, %35, %out_11 : i64
      linalg.yield %36, %38 : f32, i64
    } -> (tensor<?xf32>, tensor<?xi64>)
    %expanded = tensor.expand_shape %26#0 [[0, 1]] output_shape [%dim, 1] : tensor<?xf32> into tensor<?x1xf32>
    %27 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel"]} ins(%21, %expanded : tensor<?x4xf32>, tensor<?x1xf32>) outs(%18 : tensor<?x4xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %34 = arith.subf %in, %in_11 : f32
      linalg.yield %34 : f32
    } -> tensor<?x4xf32>
    %28 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%27 : tensor<?x4xf32>) outs(%18 : tensor<?x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = math.exp %in : f32
      linalg.yield %34 : f32
    } -> tensor<?x4xf32>
    %29 = tensor.empty(%dim) : tensor<?x1xf32>
    %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<?x1xf32>) -> tensor<?x1xf32>
    %31 = linalg.generic {indexing_maps = [#map2, #map5], iterator_types = ["parallel", "reduction"]} ins(%28 : tensor<?x4xf32>) outs(%30 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = arith.addf %in, %out : f32
      linalg.yield %34 : f32
    } -> tensor<?x1xf32>
    %32 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%31 : tensor<?x1xf32>) outs(%29 : tensor<?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %34 = math.log %in : f32
      linalg.yield %34 : f32
    } -> tensor<?x1xf32>
    %33 = linalg.generic {indexing_maps = [#map2, #map5, #map2], iterator_types = ["parallel", "parallel"]} ins(%27, %32 : tensor<?x4xf32>, tensor<?x1xf32>) outs(%18 : tensor<?x4xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %34 = arith.subf %in, %in_11 : f32
      linalg.yield %34 : f32
    } -> tensor<?x4xf32>
    return %33 : tensor<?x4xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_4_torch.float32: "0x040000008427543DC59496BEFD1EB7BE451121BE",
      torch_tensor_4_6_torch.float32: "0x0400000097A227BECACF813EC9C425BE98B9C2BDE0590E3C35D0BFBEE19285BB948C28BD183916BD6F23A7BD02CAA43EA3419A3EBDAA8DBE9531423E40F4A3BE23F2B1BE1194FF3D139AC43B700543BE859AC9BE3FD721BE93A00B3EDD78C1BE0B0FCBBE",
      torch_tensor_6_torch.float32_1: "0x04000000F05E143E2B48E8BCEB34A8BCD81356BE06ECF6BDB8CF5D3E",
      torch_tensor_6_1_3_3_torch.float32: "0x0400000040EDD7BC6BB2D8BD16148ABCEB84783D2A5D82BE8627A3BDF0F58DBEB87E513E9B5F59BE57E99B3E76FAAFBD9B8A43BEA3FE233EEB8A4B3DBB5B6C3E107F0E3EF268A4BEDBE3573E3B8E80BD06DC16BEDBC3583EDBF1783E120196BE80EAF6BC10278C3EA331043E0CC88F3EF0F2E9BD404B3CBE07C2923E8B460E3E47D6A33EE3920EBEA8285BBEE00820BD42B2A0BE50CB053E76C37B3EFBE0A33D80E706BD383C293E6BA958BE18F4A63E8AB3A9BE447DA3BEB650A1BD7B688B3E80B4083D6E16033E1E337ABE76F5F83D2B9118BD80D0083E6B10713E",
      torch_tensor_6_3_3_3_torch.float32: "0x0400000018FC413E8A6FA8BD57AB7CBC4B98ACBD0DA1D9BCAE522B3DFB90D23CB1E214BD990945BEA473213C59CDBABBD72BED3C0C01173E868D3F3EC5D5E9BD259C44BCAEEB9DBDB0A035BE23660FBE11F6383E71CEE53D28B6D33D160ADB3D2D911CBE7391A53C376A373E77F6DBBDB64F2F3E6D304F3D84A50A3E00D8A8BD5BB4B53DFCB22EBE363548BC1277833D44666C3DAAE8243EB1A6413EE948333E7E4F043E3A8D0A3E086CCBBC48EF18BE8D5092BDA2FDB0BC9CFCD4BDC578C93D655A8A3D2A61FE3C996A3E3D991D2D3EAE8E8F3D46D12CBE6B0C0FBE52B7AD3DE6D9D63CBB37C03D0FD144BE6CDE35BE19B2F13DC91BFC3D574A32BEE19B953D4FE119BEE73D153E745A773DF1DB423EF04E42BEAAB63DBE1A3D053E5AF62E3EF67AF13D6D04033E48FC25BE23A40E3EE10F3ABE221A303D441601BEBC8C9CBD3C940B3D94F79ABD4F72F9BC65C93ABE9DCF39BEA7AC983D7DD4A6BD12CAEFBD11859BBD091E21BE73891DBE56D7EB3D4351C83D8C00D23C334DD7BD4921833D5FA70D3CFCD60CBEFEA0293D9C70333E95D641BEB9F643BEDCFEC93CB465143E2DD4EFBD5A872D3D5A890A3ECB09733D60972A3DEA9E443E8F62003E7BACDDBD8645883CA65AC93D03CC2D3E011244BE7F6DD53D8BDC64BD5BF940BE09FA2E3DF292D6BDA16ADF3C8BE4FFBDD14C14BEA1C585BCA96684BD6D84E63D62ED873CE6D2193EA5B9133D9C7A7DBD3C7B053E2D4D2C3CE9F3133DFA867DBDAE0D353A719017BDBF0886BCA1B019BE3B219BBA6F9323BE169529BDCB6BE43D2B0809BEABD504BE777A40BDDA1758BDF671053DB6DD023DACDDC73DC6C107BEA6845EBC1570DC3D80752A3E2A0166BC5B0EE4BD8999623DD973E03DD03CF6BD2FB7E4BD4D35AE3DD9EC5CBC9D213ABE",
      torch_tensor_6_torch.float32: "0x040000000341E3BDF8D59F3D95AE85BDCE05083E73CA1B3E3B57E53C"
    }
  }
#-}
