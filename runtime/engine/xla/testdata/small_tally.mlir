module @small_tally {
  func.func public @main(%a0: tensor<3x3x1x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<16x3xf32>, %a5: tensor<3xf32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>, %a8: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %a9: tensor<f32> {tf.aliasing_output = 2 : i32}) -> (tensor<5xf32>, tensor<2xf32>, tensor<f32>) {
    %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
    %1 = stablehlo.reshape %a0 : (tensor<3x3x1x4xf32>) -> tensor<36xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<36xf32>
    %3 = stablehlo.reduce(%2 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<36xf32>, tensor<f32>) -> tensor<f32>
    %4 = stablehlo.add %0, %3 : tensor<f32>
    %5 = stablehlo.multiply %a1, %a1 : tensor<4xf32>
    %6 = stablehlo.reduce(%5 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %7 = stablehlo.add %4, %6 : tensor<f32>
    %8 = stablehlo.multiply %a2, %a2 : tensor<4xf32>
    %9 = stablehlo.reduce(%8 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %10 = stablehlo.add %7, %9 : tensor<f32>
    %11 = stablehlo.multiply %a3, %a3 : tensor<4xf32>
    %12 = stablehlo.reduce(%11 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %13 = stablehlo.add %10, %12 : tensor<f32>
    %14 = stablehlo.reshape %a4 : (tensor<16x3xf32>) -> tensor<48xf32>
    %15 = stablehlo.multiply %14, %14 : tensor<48xf32>
    %16 = stablehlo.reduce(%15 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<48xf32>, tensor<f32>) -> tensor<f32>
    %17 = stablehlo.add %13, %16 : tensor<f32>
    %18 = stablehlo.multiply %a5, %a5 : tensor<3xf32>
    %19 = stablehlo.reduce(%18 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %20 = stablehlo.add %17, %19 : tensor<f32>
    %21 = stablehlo.abs %a6 : tensor<4xf32>
    %22 = stablehlo.reduce(%21 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %23 = stablehlo.add %0, %22 : tensor<f32>
    %24 = stablehlo.abs %a7 : tensor<4xf32>
    %25 = stablehlo.reduce(%24 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %26 = stablehlo.add %23, %25 : tensor<f32>
    %27 = stablehlo.abs %a8 : tensor<2xf32>
    %28 = stablehlo.reduce(%27 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %29 = stablehlo.add %28, %20 : tensor<f32>
    %30 = stablehlo.add %29, %26 : tensor<f32>
    %31 = stablehlo.constant dense<3.402823466e+38> : tensor<f32>
    %32 = stablehlo.compare LE, %30, %31 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %33 = stablehlo.select %32, %a9, %0 : tensor<i1>, tensor<f32>
    %34 = stablehlo.reshape %20 : (tensor<f32>) -> tensor<1xf32>
    %35 = stablehlo.reshape %26 : (tensor<f32>) -> tensor<1xf32>
    %36 = stablehlo.reshape %33 : (tensor<f32>) -> tensor<1xf32>
    %37 = stablehlo.concatenate %a8, %34, %35, %36, dim = 0 : (tensor<2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<5xf32>
    %38 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    return %37, %38, %33 : tensor<5xf32>, tensor<2xf32>, tensor<f32>
  }
}
