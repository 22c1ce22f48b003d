module @small_split {
  func.func public @main(%a0: tensor<107xf32>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.slice %a0 [0:36] : (tensor<107xf32>) -> tensor<36xf32>
    %1 = stablehlo.reshape %0 : (tensor<36xf32>) -> tensor<3x3x1x4xf32>
    %2 = stablehlo.slice %a0 [36:40] : (tensor<107xf32>) -> tensor<4xf32>
    %3 = stablehlo.slice %a0 [40:44] : (tensor<107xf32>) -> tensor<4xf32>
    %4 = stablehlo.slice %a0 [44:48] : (tensor<107xf32>) -> tensor<4xf32>
    %5 = stablehlo.slice %a0 [48:96] : (tensor<107xf32>) -> tensor<48xf32>
    %6 = stablehlo.reshape %5 : (tensor<48xf32>) -> tensor<16x3xf32>
    %7 = stablehlo.slice %a0 [96:99] : (tensor<107xf32>) -> tensor<3xf32>
    %8 = stablehlo.slice %a0 [99:103] : (tensor<107xf32>) -> tensor<4xf32>
    %9 = stablehlo.slice %a0 [103:107] : (tensor<107xf32>) -> tensor<4xf32>
    return %1, %2, %3, %4, %6, %7, %8, %9 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
