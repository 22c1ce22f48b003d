module @small_extract {
  func.func public @main(%a0: tensor<4x6x6x1xf32>, %a1: tensor<4x1xi32>, %a2: tensor<4xf32>, %a3: tensor<i32>) -> (tensor<2x6x6x1xf32>, tensor<2x1xi32>, tensor<2xf32>) {
    %0 = stablehlo.constant dense<2> : tensor<i32>
    %1 = stablehlo.multiply %a3, %0 : tensor<i32>
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.dynamic_slice %a0, %1, %2, %2, %2, sizes = [2, 6, 6, 1] : (tensor<4x6x6x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x6x6x1xf32>
    %4 = stablehlo.dynamic_slice %a1, %1, %2, sizes = [2, 1] : (tensor<4x1xi32>, tensor<i32>, tensor<i32>) -> tensor<2x1xi32>
    %5 = stablehlo.dynamic_slice %a2, %1, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    return %3, %4, %5 : tensor<2x6x6x1xf32>, tensor<2x1xi32>, tensor<2xf32>
  }
}
