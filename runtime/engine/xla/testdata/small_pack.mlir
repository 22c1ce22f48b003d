module @small_pack {
  func.func public @main(%a0: tensor<3x3x1x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<16x3xf32>, %a5: tensor<3xf32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>) -> (tensor<107xf32>) {
    %0 = stablehlo.reshape %a0 : (tensor<3x3x1x4xf32>) -> tensor<36xf32>
    %1 = stablehlo.reshape %a4 : (tensor<16x3xf32>) -> tensor<48xf32>
    %2 = stablehlo.concatenate %0, %a1, %a2, %a3, %1, %a5, %a6, %a7, dim = 0 : (tensor<36xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<48xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<107xf32>
    return %2 : tensor<107xf32>
  }
}
