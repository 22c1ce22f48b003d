module @small_evaluate {
  func.func public @main(%a0: tensor<3x3x1x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>, %a3: tensor<4xf32>, %a4: tensor<16x3xf32>, %a5: tensor<3xf32>, %a6: tensor<4xf32>, %a7: tensor<4xf32>, %a8: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %a9: tensor<2x6x6x1xf32>, %a10: tensor<2x1xi32>, %a11: tensor<2xf32>) -> (tensor<2xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%a11 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.convert %a9 : (tensor<2x6x6x1xf32>) -> tensor<2x6x6x1xbf16>
    %3 = stablehlo.convert %a0 : (tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xbf16>
    %4 = stablehlo.convolution(%2, %3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x1xbf16>, tensor<3x3x1x4xbf16>) -> tensor<2x4x4x4xbf16>
    %5 = stablehlo.convert %a1 : (tensor<4xf32>) -> tensor<4xbf16>
    %6 = stablehlo.broadcast_in_dim %5, dims = [3] : (tensor<4xbf16>) -> tensor<2x4x4x4xbf16>
    %7 = stablehlo.add %4, %6 : tensor<2x4x4x4xbf16>
    %8 = stablehlo.constant dense<0.000000000e+00> : tensor<bf16>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %10 = stablehlo.maximum %7, %9 : tensor<2x4x4x4xbf16>
    %11 = stablehlo.convert %10 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %12 = stablehlo.constant dense<1.000000047e-03> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %14 = stablehlo.add %a7, %13 : tensor<4xf32>
    %15 = stablehlo.rsqrt %14 : tensor<4xf32>
    %16 = stablehlo.broadcast_in_dim %a6, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %17 = stablehlo.subtract %11, %16 : tensor<2x4x4x4xf32>
    %18 = stablehlo.multiply %15, %a2 : tensor<4xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %20 = stablehlo.multiply %17, %19 : tensor<2x4x4x4xf32>
    %21 = stablehlo.broadcast_in_dim %a3, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %22 = stablehlo.add %20, %21 : tensor<2x4x4x4xf32>
    %23 = stablehlo.convert %22 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16>
    %24 = stablehlo.slice %23 [0:2, 0:4, 0:4, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xbf16>
    %25 = stablehlo.slice %24 [0:2, 0:4, 0:4, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xbf16>
    %26 = stablehlo.reshape %25 : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x2x2x4xbf16>
    %27 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %28 = stablehlo.reduce(%26 init: %27) applies stablehlo.maximum across dimensions = [2, 4] : (tensor<2x2x2x2x2x4xbf16>, tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %29 = stablehlo.reshape %28 : (tensor<2x2x2x4xbf16>) -> tensor<2x16xbf16>
    %30 = stablehlo.convert %a4 : (tensor<16x3xf32>) -> tensor<16x3xbf16>
    %31 = stablehlo.dot_general %29, %30, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16xbf16>, tensor<16x3xbf16>) -> tensor<2x3xf32>
    %32 = stablehlo.broadcast_in_dim %a5, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %33 = stablehlo.add %31, %32 : tensor<2x3xf32>
    %34 = stablehlo.constant dense<1.000000000e+00> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %36 = stablehlo.multiply %a11, %35 : tensor<2xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %38 = stablehlo.reshape %37 : (tensor<2x1xf32>) -> tensor<2xf32>
    %39 = stablehlo.reshape %a10 : (tensor<2x1xi32>) -> tensor<2xi32>
    %40 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %41 = stablehlo.broadcast_in_dim %39, dims = [0] : (tensor<2xi32>) -> tensor<2x3xi32>
    %42 = stablehlo.compare EQ, %40, %41 : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %43 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %44 = stablehlo.reduce(%33 init: %43) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %46 = stablehlo.subtract %33, %45 : tensor<2x3xf32>
    %47 = stablehlo.exponential %46 : tensor<2x3xf32>
    %48 = stablehlo.reduce(%47 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %49 = stablehlo.convert %42 : (tensor<2x3xi1>) -> tensor<2x3xf32>
    %50 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %51 = stablehlo.select %42, %46, %50 : tensor<2x3xi1>, tensor<2x3xf32>
    %52 = stablehlo.reduce(%51 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %53 = stablehlo.log %48 : tensor<2xf32>
    %54 = stablehlo.subtract %53, %52 : tensor<2xf32>
    %55 = stablehlo.multiply %38, %54 : tensor<2xf32>
    %56 = stablehlo.reduce(%55 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %57 = stablehlo.reshape %56 : (tensor<f32>) -> tensor<1xf32>
    %58 = stablehlo.broadcast_in_dim %44, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %59 = stablehlo.compare EQ, %33, %58 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %60 = stablehlo.constant dense<3> : tensor<i32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %62 = stablehlo.select %59, %40, %61 : tensor<2x3xi1>, tensor<2x3xi32>
    %63 = stablehlo.reduce(%62 init: %60) applies stablehlo.minimum across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    %64 = stablehlo.compare EQ, %63, %39 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %65 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %66 = stablehlo.select %64, %38, %65 : tensor<2xi1>, tensor<2xf32>
    %67 = stablehlo.reduce(%66 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %68 = stablehlo.reshape %67 : (tensor<f32>) -> tensor<1xf32>
    %69 = stablehlo.broadcast_in_dim %48, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %70 = stablehlo.divide %47, %69 : tensor<2x3xf32>
    %71 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %72 = stablehlo.multiply %49, %71 : tensor<2x3xf32>
    %73 = stablehlo.subtract %70, %72 : tensor<2x3xf32>
    %74 = stablehlo.concatenate %57, %68, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %75 = stablehlo.broadcast_in_dim %38, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %76 = stablehlo.multiply %73, %75 : tensor<2x3xf32>
    %77 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %78 = stablehlo.compare GT, %a11, %77 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %79 = stablehlo.broadcast_in_dim %78, dims = [0] : (tensor<2xi1>) -> tensor<2x3xi1>
    %80 = stablehlo.add %a8, %74 : tensor<2xf32>
    %81 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %82 = stablehlo.select %79, %33, %81 : tensor<2x3xi1>, tensor<2x3xf32>
    return %80, %82 : tensor<2xf32>, tensor<2x3xf32>
  }
}
