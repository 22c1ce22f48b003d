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
    %24 = stablehlo.slice %23 [0:2, 0:3:2, 0:3:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %25 = stablehlo.constant dense<0> : tensor<i32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %27 = stablehlo.slice %23 [0:2, 0:3:2, 1:4:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %28 = stablehlo.constant dense<1> : tensor<i32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %30 = stablehlo.compare GT, %27, %24 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %31 = stablehlo.select %30, %29, %26 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %32 = stablehlo.maximum %24, %27 : tensor<2x2x2x4xbf16>
    %33 = stablehlo.slice %23 [0:2, 1:4:2, 0:3:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %34 = stablehlo.constant dense<2> : tensor<i32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %36 = stablehlo.compare GT, %33, %32 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %37 = stablehlo.select %36, %35, %31 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %38 = stablehlo.maximum %32, %33 : tensor<2x2x2x4xbf16>
    %39 = stablehlo.slice %23 [0:2, 1:4:2, 1:4:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %40 = stablehlo.constant dense<3> : tensor<i32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %42 = stablehlo.compare GT, %39, %38 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %43 = stablehlo.select %42, %41, %37 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %44 = stablehlo.maximum %38, %39 : tensor<2x2x2x4xbf16>
    %45 = stablehlo.reshape %44 : (tensor<2x2x2x4xbf16>) -> tensor<2x16xbf16>
    %46 = stablehlo.convert %a4 : (tensor<16x3xf32>) -> tensor<16x3xbf16>
    %47 = stablehlo.dot_general %45, %46, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16xbf16>, tensor<16x3xbf16>) -> tensor<2x3xf32>
    %48 = stablehlo.broadcast_in_dim %a5, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %49 = stablehlo.add %47, %48 : tensor<2x3xf32>
    %50 = stablehlo.constant dense<1.000000000e+00> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %52 = stablehlo.multiply %a11, %51 : tensor<2xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %54 = stablehlo.reshape %53 : (tensor<2x1xf32>) -> tensor<2xf32>
    %55 = stablehlo.reshape %a10 : (tensor<2x1xi32>) -> tensor<2xi32>
    %56 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %57 = stablehlo.broadcast_in_dim %55, dims = [0] : (tensor<2xi32>) -> tensor<2x3xi32>
    %58 = stablehlo.compare EQ, %56, %57 : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %59 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %60 = stablehlo.reduce(%49 init: %59) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %62 = stablehlo.subtract %49, %61 : tensor<2x3xf32>
    %63 = stablehlo.exponential %62 : tensor<2x3xf32>
    %64 = stablehlo.reduce(%63 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %65 = stablehlo.convert %58 : (tensor<2x3xi1>) -> tensor<2x3xf32>
    %66 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %67 = stablehlo.select %58, %62, %66 : tensor<2x3xi1>, tensor<2x3xf32>
    %68 = stablehlo.reduce(%67 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %69 = stablehlo.log %64 : tensor<2xf32>
    %70 = stablehlo.subtract %69, %68 : tensor<2xf32>
    %71 = stablehlo.multiply %54, %70 : tensor<2xf32>
    %72 = stablehlo.reduce(%71 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %73 = stablehlo.reshape %72 : (tensor<f32>) -> tensor<1xf32>
    %74 = stablehlo.broadcast_in_dim %60, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %75 = stablehlo.compare EQ, %49, %74 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %76 = stablehlo.broadcast_in_dim %40, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %77 = stablehlo.select %75, %56, %76 : tensor<2x3xi1>, tensor<2x3xi32>
    %78 = stablehlo.reduce(%77 init: %40) applies stablehlo.minimum across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    %79 = stablehlo.compare EQ, %78, %55 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %80 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %81 = stablehlo.select %79, %54, %80 : tensor<2xi1>, tensor<2xf32>
    %82 = stablehlo.reduce(%81 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %83 = stablehlo.reshape %82 : (tensor<f32>) -> tensor<1xf32>
    %84 = stablehlo.broadcast_in_dim %64, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %85 = stablehlo.divide %63, %84 : tensor<2x3xf32>
    %86 = stablehlo.broadcast_in_dim %50, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %87 = stablehlo.multiply %65, %86 : tensor<2x3xf32>
    %88 = stablehlo.subtract %85, %87 : tensor<2x3xf32>
    %89 = stablehlo.concatenate %73, %83, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %90 = stablehlo.broadcast_in_dim %54, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %91 = stablehlo.multiply %88, %90 : tensor<2x3xf32>
    %92 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %93 = stablehlo.compare GT, %a11, %92 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0] : (tensor<2xi1>) -> tensor<2x3xi1>
    %95 = stablehlo.add %a8, %89 : tensor<2xf32>
    %96 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %97 = stablehlo.select %94, %49, %96 : tensor<2x3xi1>, tensor<2x3xf32>
    return %95, %97 : tensor<2xf32>, tensor<2x3xf32>
  }
}
