#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
module {
  func.func @embedding(%arg0: tensor<2x5xi64>) -> tensor<2x5x6xf32> {
    %c0_i64 = arith.constant 0 : i64
    %c11 = arith.constant 11 : index
    %cst = arith.constant dense_resource<torch_tensor_16_6_torch.float32> : tensor<16x6xf32>
    %cst_0 = arith.constant dense_resource<torch_tensor_11_6_torch.float32> : tensor<11x6xf32>
    %0 = tensor.empty() : tensor<2x5x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x5xi64>) outs(%0 : tensor<2x5x6xf32>) {
    ^bb0(%in: i64, %out: f32):
      %3 = arith.index_cast %in : i64 to index
      %4 = linalg.index 2 : index
      %5 = arith.cmpi slt, %3, %c11 : index
      cf.assert %5, "index must be smaller than dim size"
      %6 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %6, "index must be larger or equal to 0"
      %extracted = tensor.extract %cst_0[%3, %4] : tensor<11x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x5x6xf32>
    %extracted_slice = tensor.extract_slice %cst[0, 0] [5, 6] [1, 1] : tensor<16x6xf32> to tensor<5x6xf32>
    %2 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %extracted_slice : tensor<2x5x6xf32>, tensor<5x6xf32>) outs(%0 : tensor<2x5x6xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %3 = arith.addf %in, %in_1 : f32
      linalg.yield %3 : f32
    } -> tensor<2x5x6xf32>
    return %2 : tensor<2x5x6xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_16_6_torch.float32: "0x04000000A51B3DBE71553BBFD52CA5BD43E57ABFE7C5773D4258FABE83DEC9BF4CCCB83EA71722BF86BAA53FFD3DBB3FBDD41EBF14077D3F7446DDBE37308FBF2CBBC13EAB33FABEF275493F8758DC3D2E2689BF06E5EEBD192C82BF5AFFB8BFB1C94EBF0E619DBF5A5DAFBFC792C53F100408BD3256D6BE93DD82BE06C6C6BE991AABBED312D13EC22C903FF6AFF73FD3FB803F1998803F4EF6DDBEA690953F1037453F719F793E3DC6073F4C126EBC02160FC0E0A6BB3F190A9CBF31C990BF795D74BA2AD2FEBD0737973E40EBC33E8ABA0CBF20797EBFA947AC3FDA0D10BF5D2F55BFD15D16C03C6804C0D2CF683F9FD231BF7ECFFA3F3B4A8DBF79C3B63EF30913C0A8038B3F338A9F3F79ACEB3D7845CF3F3D69ED3E807EA63F87E6A43ED902D0BD21F3453FFE5A78BFCB3E63BF5AFAA2BEF636ABBEDE97E83ED481FF3E3F69673D4065C73EC633BB3FD381F53EE78C08BF92EE0DBD9D44283F7AC68EBF9B3F0C40598CF7BE96D4A2BFD53132BE98DA0D3FD5033ABECB1970BEE9D7F2BFCCF911BB",
      torch_tensor_11_6_torch.float32: "0x040000003EE6953F0EACC73DB79F763F6C1F573FC277A0BF4AA17C3F6D43FDBEC13AA4BF6B89743F464CA43FE0752ABF9AAC103FDC4D933EFFB308BDF6EB87BF4558EABDB6C9AFBE351FC93FB136443EBD87C23E303B14BEEC3A233F460590BE5939AABF476B11BEC7BD08BF2BFC05BF8B8B5C3F051063BFF0B9563F1192933FAA6BE1BFAD26BDBFD5B9E0BFF8FC9B3DAD0F8ABF225DB83F357FE2BD1DAD133FF93B2DBE791F83BD21EB843F9625683F8D76F3BE0DE95EBF7B37143ECD90F33FF5E1C73E1A4521BD482D4DBF087E143FE45E893EA7C503C094B5083FA40F09BF26195DBF9C2968BFAF8217BFBA20CC3E157C4BBEDEF593BF8222A2BE60B7703F68CF92BF12F84A3F6873AA3D"
    }
  }
#-}
