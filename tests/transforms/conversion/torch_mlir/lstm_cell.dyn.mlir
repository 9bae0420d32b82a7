#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @lstm_cell(%arg0: tensor<?x5xf32>, %arg1: tensor<?x7xf32>, %arg2: tensor<?x7xf32>) -> (tensor<?x7xf32>, tensor<?x7xf32>) {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant dense_resource<torch_tensor_28_torch.float32_1> : tensor<28xf32>
    %cst_2 = arith.constant dense_resource<torch_tensor_28_5_torch.float32> : tensor<28x5xf32>
    %cst_3 = arith.constant dense_resource<torch_tensor_28_torch.float32> : tensor<28xf32>
    %cst_4 = arith.constant dense_resource<torch_tensor_28_7_torch.float32> : tensor<28x7xf32>
    %0 = tensor.empty() : tensor<7x28xf32>
    %transposed = linalg.transpose ins(%cst_4 : tensor<28x7xf32>) outs(%0 : tensor<7x28xf32>) permutation = [1, 0] 
    %dim = tensor.dim %arg1, %c0 : tensor<?x7xf32>
    %1 = tensor.empty(%dim) : tensor<?x28xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<?x28xf32>) -> tensor<?x28xf32>
    %3 = linalg.matmul ins(%arg1, %transposed : tensor<?x7xf32>, tensor<7x28xf32>) outs(%2 : tensor<?x28xf32>) -> tensor<?x28xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %cst_3 : tensor<?x28xf32>, tensor<28xf32>) outs(%1 : tensor<?x28xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %23 = arith.addf %in, %in_11 : f32
      linalg.yield %23 : f32
    } -> tensor<?x28xf32>
    %5 = tensor.empty() : tensor<5x28xf32>
    %transposed_5 = linalg.transpose ins(%cst_2 : tensor<28x5xf32>) outs(%5 : tensor<5x28xf32>) permutation = [1, 0] 
    %dim_6 = tensor.dim %arg0, %c0 : tensor<?x5xf32>
    %6 = tensor.empty(%dim_6) : tensor<?x28xf32>
    %7 = linalg.fill ins(%cst : f32) outs(%6 : tensor<?x28xf32>) -> tensor<?x28xf32>
    %8 = linalg.matmul ins(%arg0, %transposed_5 : tensor<?x5xf32>, tensor<5x28xf32>) outs(%7 : tensor<?x28xf32>) -> tensor<?x28xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%8, %cst_1 : tensor<?x28xf32>, tensor<28xf32>) outs(%6 : tensor<?x28xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %23 = arith.addf %in, %in_11 : f32
      linalg.yield %23 : f32
    } -> tensor<?x28xf32>
    %10 = arith.cmpi eq, %dim, %dim_6 : index
    cf.assert %10, "mismatched size for broadcast"
    %11 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %9 : tensor<?x28xf32>, tensor<?x28xf32>) outs(%1 : tensor<?x28xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %23 = arith.addf %in, %in_11 : f32
      linalg.yield %23 : f32
    } -> tensor<?x28xf32>
    %extracted_slice = tensor.extract_slice %11[0, 0] [%dim, 7] [1, 1] : tensor<?x28xf32> to tensor<?x7xf32>
    %extracted_slice_7 = tensor.extract_slice %11[0, 7] [%dim, 7] [1, 1] : tensor<?x28xf32> to tensor<?x7xf32>
    %extracted_slice_8 = tensor.extract_slice %11[0, 14] [%dim, 7] [1, 1] : tensor<?x28xf32> to tensor<?x7xf32>
    %extracted_slice_9 = tensor.extract_slice %11[0, 21] [%dim, 7] [1, 1] : tensor<?x28xf32> to tensor<?x7xf32>
    %12 = tensor.empty(%dim) : tensor<?x7xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice : tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = arith.negf %in : f32
      %24 = math.exp %23 : f32
      %25 = arith.addf %24, %cst_0 : f32
      %26 = arith.divf %cst_0, %25 : f32
      linalg.yield %26 : f32
    } -> tensor<?x7xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice_7 : tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = arith.negf %in : f32
      %24 = math.exp %23 : f32
      %25 = arith.addf %24, %cst_0 : f32
      %26 = arith.divf %cst_0, %25 : f32
      linalg.yield %26 : f32
    } -> tensor<?x7xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice_8 : tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = math.tanh %in : f32
      linalg.yield %23 : f32
    } -> tensor<?x7xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%extracted_slice_9 : tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = arith.negf %in : f32
      %24 = math.exp %23 : f32
      %25 = arith.addf %24, %cst_0 : f32
      %26 = arith.divf %cst_0, %25 : f32
      linalg.yield %26 : f32
    } -> tensor<?x7xf32>
    %dim_10 = tensor.dim %arg2, %c0 : tensor<?x7xf32>
    %17 = arith.cmpi eq, %dim, %dim_10 : index
    cf.assert %17, "mismatched size for broadcast"
    %18 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%14, %arg2 : tensor<?x7xf32>, tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %23 = arith.mulf %in, %in_11 : f32
      linalg.yield %23 : f32
    } -> tensor<?x7xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %15 : tensor<?x7xf32>, tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %23 = arith.mulf %in, %in_11 : f32
      linalg.yield %23 : f32
    } -> tensor<?x7xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%18, %19 : tensor<?x7xf32>, tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %23 = arith.addf %in, %in_11 : f32
      linalg.yield %23 : f32
    } -> tensor<?x7xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%20 : tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = math.tanh %in : f32
      linalg.yield %23 : f32
    } -> tensor<?x7xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%16, %21 : tensor<?x7xf32>, tensor<?x7xf32>) outs(%12 : tensor<?x7xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %23 = arith.mulf %in, %in_11 : f32
      linalg.yield %23 : f32
    } -> tensor<?x7xf32>
    return %22, %20 : tensor<?x7xf32>, tensor<?x7xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_28_torch.float32_1: "0x040000006A12AFBD9FF70C3D764687BEF3BAA43ECD2048BD7E898DBEF3A7E23D339889BECC8E99BE839FBC3CEA6D993EBF0CDBBD332A363E414BA63E515A803E18064BBE08B529BDA896F3BDB39C9BBECCC023390E9C913EB10AA33E5A71103D35CFAF3D5C8E27BE5013923E7E0C21BE7D6D86BE",
      torch_tensor_28_5_torch.float32: "0x04000000EE93893EC03230BDDBF85FBE2B92953E4781773EC928E63CB2BB36BE25DAB13E4C461E3E7CE892BE6B36B93ECDF3923E2A120DBEE692593ECEE85BBEB89D72BDF250A43E22DF7F3CFCDB88BE2C5C01BE2E1ED2BD335795BD7F28143D93F8B23EB3C6A53CA5F86EBEA5B29E3C2094393E38FC3F3E06DDB0BEA2838ABDCBCF8FBE7C2425BE45720B3E3F6C89BE1DDF0F3EF140A43E8A14CB3C2CFA80BE46AB0ABE8607A93DA98593BE8548403E5EB0AFBE0207BABE9C08BCBEDA079DBDB420823E1929B7BE7AD9A03EB6D21ABE92B6E23D1B338D3CAB7FAEBE6C7DA03E9465503E1A5BC03EFD88433E5F787FBEBF81A13E7868A63CE689373E102B9BBEB6A4DEBDC302BEBE5ABF16BEC4FDA63D5AF197BE07BFF63D6BC34F3EAEAB573DC37A81BEC50996BE58D0EEBD77E4293EA1E2BE3E848E5E3ECF552EBD78B3073E67DABDBEA848A5BE0998343E0D395BBE7F333A3E469C88BEF5B33FBE03669FBE8FF8493E85BF1DBD78EE943E8C866F3ECD29563E0321473C6753EFBDBF4EA8BDC2BF4D3D74DB3F3E9D9387BE4B6AA23E645428BD4B28A2BE9D6851BE5D3AAB3E30FAB03E6940B3BEDF7C883E6AF7413EF117653E88D1A33ECD9750BED46EF43D49631E3EA0BBE4BDCF85013EEFB5DEBD064A6F3E07C5D6BD044910BE27DFC23D7147093E39183DBE6DDA083D0C4D603EFC081ABD7E93EB3D26B2BABDE5A7073EE52E8CBE8D9663BEA37444BE50D8B13E4E4AD0BD984387BA5C843BBED92FC13EC900BD3ED4F291BE0AE19CBE65AF92BEB9EBEEBA",
      torch_tensor_28_torch.float32: "0x0400000063676E3DC6FB673E5979AEBE0EEFAE3E8F3A0B3EC09487BEA1BDA6BD65E4A73E3C7994BE4E3EE2BD4EE1FD3DBE89A9BE182C543E7178493EA80A703EE2C076BE72BEC03E796B65BE5832C13E9AB7B9BE276BACBE41B76D3E08CD213D5F9FB23C005356BE185A22BE2854E2BD3484BCBE",
      torch_tensor_28_7_torch.float32: "0x040000005450C5BD1E557DBEA3D10ABEF73E923DF7384ABE4A85AB3DBF81B1BD148B3BBE3BB1543D221F9F3E58D582BE2EC68F3CEBB90EBE77E6BD3E439AB7BE9C84B9BE85B0BE3EA1DF74BE5468943D389D05BD4310A3BD19E3ACBD2AF0753E37FE933C6969BCBE8B7D64BEC8F003BE3EC3423EBB767ABEC478B63E8A68ACBD67FE8ABDE7A1973EEF86423E5B20A43EEAE05F3E4AD1EABDCB6480BE7F5FE6BCA029A03E96E501BE6D76B3BE2BA81E3E5162BC3E775DDCBDC03CA0BE3E88AFBE55FBC13D2773EABCB37243BEE7769C3DEEFA123E8CE8993E693E963E52BB67BD3DA3AABEFEDDAEBE81AFB43E53172B3E30B6283E886FA7BE5633B33EE853B73E34B8AE3EAC3FA3BE9F0912BE341885BE3441B73E2C4D26BEEFB330BEE0C54A3E2B0A33BEA49F3EBE176B07BD85CE14BD07BF96BE6254A13ED5BA2ABE8C49093E9151A83E3D30433E912F5B3DEFA7A43E681C503D891033BE5811B73E2335B73DC6CFBCBE1E5FDCBD6BD183BED5AAA93E5AAB7FBD7465B0BE91A4C2BC3810733EA21AC93DC7C3F43DEEC70F3D4B4B103E9F9ABCBD7DF619BEFBE1B4BEBBC891BE02BE273E412B65BE461B5E3DB113F73D9F3ADB3C38EF7ABE0B11B93E9E0F61BE232B9F3EEDF199BEA033BABD0989523EA1221EBE3290A23EA82B85BEC082A2BE93852EBE04427A3DC32EB23E6AC538BE346A0A3EAA10C2BDECDDA7BD574B8E3E3CF995BEF16E243D65FCB53ED0BB54BD2E41963E6961EEBD46C69B3E1632BBBEBD1F5FBD7DF687BD68DDFA3D3DD8173E1496943ECAA666BD219175BCEE85843E6171D1BDECA4A93EB4D880BE368627BDEB4DA6BCFAB22C3EB24D843EEC6275BD6453A0BEECC53F3E9E8CE73DD1781B3EF0BF6EBE2B18793E964AB73E9E55063D48C1B4BEF9D8873EE97B8FBEF8EFB13DFFF8603D952535BE9BC3063EB216ADBE544DB03D915C75BE056827BDC322473DCEDDA43E9CA938BEF0F2773E9DAA44BD60D037BEE783A8BE5F8EB1BED6FDBC3E920DC1BDDFA79A3C39DCD13D508A833E9629A53E3EF29C3EC35F8FBED70978BD060665BE2C225DBE7B9DB73D25A5B53E23079BBE563C6A3E43AA48BEE8C496BDDB9B993E"
    }
  }
#-}
