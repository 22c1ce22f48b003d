module @small_train_adam_tallied {
  func.func public @main(%a0: tensor<3x3x1x4xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %a2: tensor<4xf32> {tf.aliasing_output = 2 : i32}, %a3: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %a4: tensor<16x3xf32> {tf.aliasing_output = 4 : i32}, %a5: tensor<3xf32> {tf.aliasing_output = 5 : i32}, %a6: tensor<4xf32> {tf.aliasing_output = 6 : i32}, %a7: tensor<4xf32> {tf.aliasing_output = 7 : i32}, %a8: tensor<3x3x1x4xf32> {tf.aliasing_output = 8 : i32}, %a9: tensor<4xf32> {tf.aliasing_output = 9 : i32}, %a10: tensor<4xf32> {tf.aliasing_output = 10 : i32}, %a11: tensor<4xf32> {tf.aliasing_output = 11 : i32}, %a12: tensor<16x3xf32> {tf.aliasing_output = 12 : i32}, %a13: tensor<3xf32> {tf.aliasing_output = 13 : i32}, %a14: tensor<4xf32> {tf.aliasing_output = 14 : i32}, %a15: tensor<4xf32> {tf.aliasing_output = 15 : i32}, %a16: tensor<3x3x1x4xf32> {tf.aliasing_output = 16 : i32}, %a17: tensor<4xf32> {tf.aliasing_output = 17 : i32}, %a18: tensor<4xf32> {tf.aliasing_output = 18 : i32}, %a19: tensor<4xf32> {tf.aliasing_output = 19 : i32}, %a20: tensor<16x3xf32> {tf.aliasing_output = 20 : i32}, %a21: tensor<3xf32> {tf.aliasing_output = 21 : i32}, %a22: tensor<4xf32> {tf.aliasing_output = 22 : i32}, %a23: tensor<4xf32> {tf.aliasing_output = 23 : i32}, %a24: tensor<2xf32> {tf.aliasing_output = 24 : i32}, %a25: tensor<f32> {tf.aliasing_output = 25 : i32}, %a26: tensor<11xf32>, %a27: tensor<2x6x6x1xf32>, %a28: tensor<2x1xi32>, %a29: tensor<2xf32>, %a30: tensor<2xui64>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<f32>, tensor<5xf32>) {
    %0 = stablehlo.constant dense<0.000000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%a29 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.convert %a27 : (tensor<2x6x6x1xf32>) -> tensor<2x6x6x1xbf16>
    %3 = stablehlo.convert %a0 : (tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xbf16>
    %4 = stablehlo.convolution(%2, %3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x1xbf16>, tensor<3x3x1x4xbf16>) -> tensor<2x4x4x4xbf16>
    %5 = stablehlo.convert %a1 : (tensor<4xf32>) -> tensor<4xbf16>
    %6 = stablehlo.broadcast_in_dim %5, dims = [3] : (tensor<4xbf16>) -> tensor<2x4x4x4xbf16>
    %7 = stablehlo.add %4, %6 : tensor<2x4x4x4xbf16>
    %8 = stablehlo.constant dense<0.000000000e+00> : tensor<bf16>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %10 = stablehlo.maximum %7, %9 : tensor<2x4x4x4xbf16>
    %11 = stablehlo.convert %10 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %12 = stablehlo.compare GT, %1, %0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %13 = stablehlo.constant dense<1.000000000e+00> : tensor<f32>
    %14 = stablehlo.select %12, %1, %13 : tensor<i1>, tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %16 = stablehlo.divide %a29, %15 : tensor<2xf32>
    %17 = stablehlo.constant dense<6.250000000e-02> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %19 = stablehlo.multiply %16, %18 : tensor<2xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<2xf32>) -> tensor<2x4x4x4xf32>
    %21 = stablehlo.multiply %11, %20 : tensor<2x4x4x4xf32>
    %22 = stablehlo.reduce(%21 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %24 = stablehlo.subtract %11, %23 : tensor<2x4x4x4xf32>
    %25 = stablehlo.multiply %24, %24 : tensor<2x4x4x4xf32>
    %26 = stablehlo.multiply %25, %20 : tensor<2x4x4x4xf32>
    %27 = stablehlo.reduce(%26 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %28 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %29 = stablehlo.multiply %22, %28 : tensor<4xf32>
    %30 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %31 = stablehlo.multiply %27, %30 : tensor<4xf32>
    %32 = stablehlo.constant dense<1.000000047e-03> : tensor<f32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %34 = stablehlo.add %27, %33 : tensor<4xf32>
    %35 = stablehlo.rsqrt %34 : tensor<4xf32>
    %36 = stablehlo.multiply %35, %a2 : tensor<4xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %38 = stablehlo.multiply %24, %37 : tensor<2x4x4x4xf32>
    %39 = stablehlo.broadcast_in_dim %a3, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %40 = stablehlo.add %38, %39 : tensor<2x4x4x4xf32>
    %41 = stablehlo.convert %40 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16>
    %42 = stablehlo.slice %41 [0:2, 0:3:2, 0:3:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %43 = stablehlo.constant dense<0> : tensor<i32>
    %44 = stablehlo.broadcast_in_dim %43, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %45 = stablehlo.slice %41 [0:2, 0:3:2, 1:4:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %46 = stablehlo.constant dense<1> : tensor<i32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %48 = stablehlo.compare GT, %45, %42 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %49 = stablehlo.select %48, %47, %44 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %50 = stablehlo.maximum %42, %45 : tensor<2x2x2x4xbf16>
    %51 = stablehlo.slice %41 [0:2, 1:4:2, 0:3:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %52 = stablehlo.constant dense<2> : tensor<i32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %54 = stablehlo.compare GT, %51, %50 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %55 = stablehlo.select %54, %53, %49 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %56 = stablehlo.maximum %50, %51 : tensor<2x2x2x4xbf16>
    %57 = stablehlo.slice %41 [0:2, 1:4:2, 1:4:2, 0:4] : (tensor<2x4x4x4xbf16>) -> tensor<2x2x2x4xbf16>
    %58 = stablehlo.constant dense<3> : tensor<i32>
    %59 = stablehlo.broadcast_in_dim %58, dims = [] : (tensor<i32>) -> tensor<2x2x2x4xi32>
    %60 = stablehlo.compare GT, %57, %56 : (tensor<2x2x2x4xbf16>, tensor<2x2x2x4xbf16>) -> tensor<2x2x2x4xi1>
    %61 = stablehlo.select %60, %59, %55 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xi32>
    %62 = stablehlo.maximum %56, %57 : tensor<2x2x2x4xbf16>
    %63 = stablehlo.constant dense<4995934865790634630> : tensor<ui64>
    %64 = stablehlo.broadcast_in_dim %63, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %65 = stablehlo.xor %a30, %64 : tensor<2xui64>
    %66 = stablehlo.constant dense<30> : tensor<ui64>
    %67 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %68 = stablehlo.shift_right_logical %65, %67 : tensor<2xui64>
    %69 = stablehlo.xor %65, %68 : tensor<2xui64>
    %70 = stablehlo.constant dense<13787848793156543929> : tensor<ui64>
    %71 = stablehlo.broadcast_in_dim %70, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %72 = stablehlo.multiply %69, %71 : tensor<2xui64>
    %73 = stablehlo.constant dense<27> : tensor<ui64>
    %74 = stablehlo.broadcast_in_dim %73, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %75 = stablehlo.shift_right_logical %72, %74 : tensor<2xui64>
    %76 = stablehlo.xor %72, %75 : tensor<2xui64>
    %77 = stablehlo.constant dense<10723151780598845931> : tensor<ui64>
    %78 = stablehlo.broadcast_in_dim %77, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %79 = stablehlo.multiply %76, %78 : tensor<2xui64>
    %80 = stablehlo.constant dense<31> : tensor<ui64>
    %81 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<ui64>) -> tensor<2xui64>
    %82 = stablehlo.shift_right_logical %79, %81 : tensor<2xui64>
    %83 = stablehlo.xor %79, %82 : tensor<2xui64>
    %84 = stablehlo.iota dim = 1 : tensor<2x8xui64>
    %85 = stablehlo.constant dense<1> : tensor<ui64>
    %86 = stablehlo.broadcast_in_dim %85, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %87 = stablehlo.add %84, %86 : tensor<2x8xui64>
    %88 = stablehlo.constant dense<11400714819323198485> : tensor<ui64>
    %89 = stablehlo.broadcast_in_dim %88, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %90 = stablehlo.multiply %87, %89 : tensor<2x8xui64>
    %91 = stablehlo.broadcast_in_dim %83, dims = [0] : (tensor<2xui64>) -> tensor<2x8xui64>
    %92 = stablehlo.add %91, %90 : tensor<2x8xui64>
    %93 = stablehlo.broadcast_in_dim %66, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %94 = stablehlo.shift_right_logical %92, %93 : tensor<2x8xui64>
    %95 = stablehlo.xor %92, %94 : tensor<2x8xui64>
    %96 = stablehlo.broadcast_in_dim %70, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %97 = stablehlo.multiply %95, %96 : tensor<2x8xui64>
    %98 = stablehlo.broadcast_in_dim %73, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %99 = stablehlo.shift_right_logical %97, %98 : tensor<2x8xui64>
    %100 = stablehlo.xor %97, %99 : tensor<2x8xui64>
    %101 = stablehlo.broadcast_in_dim %77, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %102 = stablehlo.multiply %100, %101 : tensor<2x8xui64>
    %103 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %104 = stablehlo.shift_right_logical %102, %103 : tensor<2x8xui64>
    %105 = stablehlo.xor %102, %104 : tensor<2x8xui64>
    %106 = stablehlo.constant dense<4294967295> : tensor<ui64>
    %107 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %108 = stablehlo.and %105, %107 : tensor<2x8xui64>
    %109 = stablehlo.constant dense<32> : tensor<ui64>
    %110 = stablehlo.broadcast_in_dim %109, dims = [] : (tensor<ui64>) -> tensor<2x8xui64>
    %111 = stablehlo.shift_right_logical %105, %110 : tensor<2x8xui64>
    %112 = stablehlo.reshape %108 : (tensor<2x8xui64>) -> tensor<2x8x1xui64>
    %113 = stablehlo.reshape %111 : (tensor<2x8xui64>) -> tensor<2x8x1xui64>
    %114 = stablehlo.concatenate %112, %113, dim = 2 : (tensor<2x8x1xui64>, tensor<2x8x1xui64>) -> tensor<2x8x2xui64>
    %115 = stablehlo.reshape %114 : (tensor<2x8x2xui64>) -> tensor<2x16xui64>
    %116 = stablehlo.slice %115 [0:2, 0:16] : (tensor<2x16xui64>) -> tensor<2x16xui64>
    %117 = stablehlo.constant dense<1073741824> : tensor<ui64>
    %118 = stablehlo.broadcast_in_dim %117, dims = [] : (tensor<ui64>) -> tensor<2x16xui64>
    %119 = stablehlo.compare GE, %116, %118 : (tensor<2x16xui64>, tensor<2x16xui64>) -> tensor<2x16xi1>
    %120 = stablehlo.reshape %119 : (tensor<2x16xi1>) -> tensor<2x2x2x4xi1>
    %121 = stablehlo.constant dense<1.333333373e+00> : tensor<bf16>
    %122 = stablehlo.broadcast_in_dim %121, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %123 = stablehlo.multiply %62, %122 : tensor<2x2x2x4xbf16>
    %124 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %125 = stablehlo.select %120, %123, %124 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xbf16>
    %126 = stablehlo.reshape %125 : (tensor<2x2x2x4xbf16>) -> tensor<2x16xbf16>
    %127 = stablehlo.convert %a4 : (tensor<16x3xf32>) -> tensor<16x3xbf16>
    %128 = stablehlo.dot_general %126, %127, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16xbf16>, tensor<16x3xbf16>) -> tensor<2x3xf32>
    %129 = stablehlo.broadcast_in_dim %a5, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %130 = stablehlo.add %128, %129 : tensor<2x3xf32>
    %131 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %132 = stablehlo.multiply %a29, %131 : tensor<2xf32>
    %133 = stablehlo.broadcast_in_dim %132, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %134 = stablehlo.reshape %133 : (tensor<2x1xf32>) -> tensor<2xf32>
    %135 = stablehlo.reshape %a28 : (tensor<2x1xi32>) -> tensor<2xi32>
    %136 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %137 = stablehlo.broadcast_in_dim %135, dims = [0] : (tensor<2xi32>) -> tensor<2x3xi32>
    %138 = stablehlo.compare EQ, %136, %137 : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %139 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %140 = stablehlo.reduce(%130 init: %139) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %141 = stablehlo.broadcast_in_dim %140, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %142 = stablehlo.subtract %130, %141 : tensor<2x3xf32>
    %143 = stablehlo.exponential %142 : tensor<2x3xf32>
    %144 = stablehlo.reduce(%143 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %145 = stablehlo.convert %138 : (tensor<2x3xi1>) -> tensor<2x3xf32>
    %146 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %147 = stablehlo.select %138, %142, %146 : tensor<2x3xi1>, tensor<2x3xf32>
    %148 = stablehlo.reduce(%147 init: %0) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %149 = stablehlo.log %144 : tensor<2xf32>
    %150 = stablehlo.subtract %149, %148 : tensor<2xf32>
    %151 = stablehlo.multiply %134, %150 : tensor<2xf32>
    %152 = stablehlo.reduce(%151 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %153 = stablehlo.reshape %152 : (tensor<f32>) -> tensor<1xf32>
    %154 = stablehlo.broadcast_in_dim %140, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %155 = stablehlo.compare EQ, %130, %154 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %156 = stablehlo.broadcast_in_dim %58, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %157 = stablehlo.select %155, %136, %156 : tensor<2x3xi1>, tensor<2x3xi32>
    %158 = stablehlo.reduce(%157 init: %58) applies stablehlo.minimum across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    %159 = stablehlo.compare EQ, %158, %135 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %160 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %161 = stablehlo.select %159, %134, %160 : tensor<2xi1>, tensor<2xf32>
    %162 = stablehlo.reduce(%161 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %163 = stablehlo.reshape %162 : (tensor<f32>) -> tensor<1xf32>
    %164 = stablehlo.broadcast_in_dim %144, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %165 = stablehlo.divide %143, %164 : tensor<2x3xf32>
    %166 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %167 = stablehlo.multiply %145, %166 : tensor<2x3xf32>
    %168 = stablehlo.subtract %165, %167 : tensor<2x3xf32>
    %169 = stablehlo.concatenate %153, %163, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %170 = stablehlo.broadcast_in_dim %134, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %171 = stablehlo.multiply %168, %170 : tensor<2x3xf32>
    %172 = stablehlo.reduce(%171 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %173 = stablehlo.convert %171 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    %174 = stablehlo.dot_general %126, %173, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16xbf16>, tensor<2x3xbf16>) -> tensor<16x3xf32>
    %175 = stablehlo.dot_general %173, %127, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3xbf16>, tensor<16x3xbf16>) -> tensor<2x16xf32>
    %176 = stablehlo.convert %175 : (tensor<2x16xf32>) -> tensor<2x16xbf16>
    %177 = stablehlo.reshape %176 : (tensor<2x16xbf16>) -> tensor<2x2x2x4xbf16>
    %178 = stablehlo.broadcast_in_dim %121, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %179 = stablehlo.multiply %177, %178 : tensor<2x2x2x4xbf16>
    %180 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x4xbf16>
    %181 = stablehlo.select %120, %179, %180 : tensor<2x2x2x4xi1>, tensor<2x2x2x4xbf16>
    %182 = stablehlo.iota dim = 2 : tensor<2x2x2x2x2x4xi32>
    %183 = stablehlo.iota dim = 4 : tensor<2x2x2x2x2x4xi32>
    %184 = stablehlo.broadcast_in_dim %52, dims = [] : (tensor<i32>) -> tensor<2x2x2x2x2x4xi32>
    %185 = stablehlo.multiply %182, %184 : tensor<2x2x2x2x2x4xi32>
    %186 = stablehlo.add %185, %183 : tensor<2x2x2x2x2x4xi32>
    %187 = stablehlo.broadcast_in_dim %181, dims = [0, 1, 3, 5] : (tensor<2x2x2x4xbf16>) -> tensor<2x2x2x2x2x4xbf16>
    %188 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 3, 5] : (tensor<2x2x2x4xi32>) -> tensor<2x2x2x2x2x4xi32>
    %189 = stablehlo.compare EQ, %188, %186 : (tensor<2x2x2x2x2x4xi32>, tensor<2x2x2x2x2x4xi32>) -> tensor<2x2x2x2x2x4xi1>
    %190 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x2x2x2x2x4xbf16>
    %191 = stablehlo.select %189, %187, %190 : tensor<2x2x2x2x2x4xi1>, tensor<2x2x2x2x2x4xbf16>
    %192 = stablehlo.reshape %191 : (tensor<2x2x2x2x2x4xbf16>) -> tensor<2x4x4x4xbf16>
    %193 = stablehlo.convert %192 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %194 = stablehlo.broadcast_in_dim %35, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %195 = stablehlo.multiply %24, %194 : tensor<2x4x4x4xf32>
    %196 = stablehlo.reduce(%193 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %197 = stablehlo.multiply %193, %195 : tensor<2x4x4x4xf32>
    %198 = stablehlo.reduce(%197 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %199 = stablehlo.broadcast_in_dim %196, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %200 = stablehlo.broadcast_in_dim %198, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %201 = stablehlo.multiply %195, %200 : tensor<2x4x4x4xf32>
    %202 = stablehlo.add %199, %201 : tensor<2x4x4x4xf32>
    %203 = stablehlo.multiply %20, %202 : tensor<2x4x4x4xf32>
    %204 = stablehlo.subtract %193, %203 : tensor<2x4x4x4xf32>
    %205 = stablehlo.multiply %a2, %35 : tensor<4xf32>
    %206 = stablehlo.broadcast_in_dim %205, dims = [3] : (tensor<4xf32>) -> tensor<2x4x4x4xf32>
    %207 = stablehlo.multiply %204, %206 : tensor<2x4x4x4xf32>
    %208 = stablehlo.convert %207 : (tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xbf16>
    %209 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %210 = stablehlo.compare GT, %10, %209 : (tensor<2x4x4x4xbf16>, tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xi1>
    %211 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<bf16>) -> tensor<2x4x4x4xbf16>
    %212 = stablehlo.select %210, %208, %211 : tensor<2x4x4x4xi1>, tensor<2x4x4x4xbf16>
    %213 = stablehlo.convert %212 : (tensor<2x4x4x4xbf16>) -> tensor<2x4x4x4xf32>
    %214 = stablehlo.reduce(%213 init: %0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %215 = stablehlo.convolution(%2, %212) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x6x6x1xbf16>, tensor<2x4x4x4xbf16>) -> tensor<3x3x1x4xbf16>
    %216 = stablehlo.convert %215 : (tensor<3x3x1x4xbf16>) -> tensor<3x3x1x4xf32>
    %217 = stablehlo.add %a24, %169 : tensor<2xf32>
    %218 = stablehlo.reshape %216 : (tensor<3x3x1x4xf32>) -> tensor<36xf32>
    %219 = stablehlo.multiply %218, %218 : tensor<36xf32>
    %220 = stablehlo.reduce(%219 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<36xf32>, tensor<f32>) -> tensor<f32>
    %221 = stablehlo.add %0, %220 : tensor<f32>
    %222 = stablehlo.multiply %214, %214 : tensor<4xf32>
    %223 = stablehlo.reduce(%222 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %224 = stablehlo.add %221, %223 : tensor<f32>
    %225 = stablehlo.multiply %198, %198 : tensor<4xf32>
    %226 = stablehlo.reduce(%225 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %227 = stablehlo.add %224, %226 : tensor<f32>
    %228 = stablehlo.multiply %196, %196 : tensor<4xf32>
    %229 = stablehlo.reduce(%228 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %230 = stablehlo.add %227, %229 : tensor<f32>
    %231 = stablehlo.reshape %174 : (tensor<16x3xf32>) -> tensor<48xf32>
    %232 = stablehlo.multiply %231, %231 : tensor<48xf32>
    %233 = stablehlo.reduce(%232 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<48xf32>, tensor<f32>) -> tensor<f32>
    %234 = stablehlo.add %230, %233 : tensor<f32>
    %235 = stablehlo.multiply %172, %172 : tensor<3xf32>
    %236 = stablehlo.reduce(%235 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %237 = stablehlo.add %234, %236 : tensor<f32>
    %238 = stablehlo.abs %29 : tensor<4xf32>
    %239 = stablehlo.reduce(%238 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %240 = stablehlo.add %0, %239 : tensor<f32>
    %241 = stablehlo.abs %31 : tensor<4xf32>
    %242 = stablehlo.reduce(%241 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %243 = stablehlo.add %240, %242 : tensor<f32>
    %244 = stablehlo.abs %217 : tensor<2xf32>
    %245 = stablehlo.reduce(%244 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %246 = stablehlo.add %245, %237 : tensor<f32>
    %247 = stablehlo.add %246, %243 : tensor<f32>
    %248 = stablehlo.constant dense<3.402823466e+38> : tensor<f32>
    %249 = stablehlo.compare LE, %247, %248 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %250 = stablehlo.select %249, %a25, %0 : tensor<i1>, tensor<f32>
    %251 = stablehlo.reshape %237 : (tensor<f32>) -> tensor<1xf32>
    %252 = stablehlo.reshape %243 : (tensor<f32>) -> tensor<1xf32>
    %253 = stablehlo.reshape %250 : (tensor<f32>) -> tensor<1xf32>
    %254 = stablehlo.concatenate %217, %251, %252, %253, dim = 0 : (tensor<2xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<5xf32>
    %255 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %256 = stablehlo.slice %a26 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %257 = stablehlo.reshape %256 : (tensor<1xf32>) -> tensor<f32>
    %258 = stablehlo.broadcast_in_dim %257, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %259 = stablehlo.multiply %216, %258 : tensor<3x3x1x4xf32>
    %260 = stablehlo.slice %a26 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %261 = stablehlo.reshape %260 : (tensor<1xf32>) -> tensor<f32>
    %262 = stablehlo.broadcast_in_dim %261, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %263 = stablehlo.multiply %262, %a0 : tensor<3x3x1x4xf32>
    %264 = stablehlo.add %259, %263 : tensor<3x3x1x4xf32>
    %265 = stablehlo.slice %a26 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %266 = stablehlo.reshape %265 : (tensor<1xf32>) -> tensor<f32>
    %267 = stablehlo.broadcast_in_dim %266, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %268 = stablehlo.slice %a26 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %269 = stablehlo.reshape %268 : (tensor<1xf32>) -> tensor<f32>
    %270 = stablehlo.broadcast_in_dim %269, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %271 = stablehlo.multiply %270, %a8 : tensor<3x3x1x4xf32>
    %272 = stablehlo.slice %a26 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %273 = stablehlo.reshape %272 : (tensor<1xf32>) -> tensor<f32>
    %274 = stablehlo.broadcast_in_dim %273, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %275 = stablehlo.multiply %274, %264 : tensor<3x3x1x4xf32>
    %276 = stablehlo.add %271, %275 : tensor<3x3x1x4xf32>
    %277 = stablehlo.slice %a26 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %278 = stablehlo.reshape %277 : (tensor<1xf32>) -> tensor<f32>
    %279 = stablehlo.broadcast_in_dim %278, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %280 = stablehlo.multiply %279, %a16 : tensor<3x3x1x4xf32>
    %281 = stablehlo.slice %a26 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %282 = stablehlo.reshape %281 : (tensor<1xf32>) -> tensor<f32>
    %283 = stablehlo.broadcast_in_dim %282, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %284 = stablehlo.multiply %264, %264 : tensor<3x3x1x4xf32>
    %285 = stablehlo.multiply %283, %284 : tensor<3x3x1x4xf32>
    %286 = stablehlo.add %280, %285 : tensor<3x3x1x4xf32>
    %287 = stablehlo.slice %a26 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %288 = stablehlo.reshape %287 : (tensor<1xf32>) -> tensor<f32>
    %289 = stablehlo.broadcast_in_dim %288, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %290 = stablehlo.multiply %a0, %289 : tensor<3x3x1x4xf32>
    %291 = stablehlo.sqrt %286 : tensor<3x3x1x4xf32>
    %292 = stablehlo.slice %a26 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %293 = stablehlo.reshape %292 : (tensor<1xf32>) -> tensor<f32>
    %294 = stablehlo.broadcast_in_dim %293, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %295 = stablehlo.divide %291, %294 : tensor<3x3x1x4xf32>
    %296 = stablehlo.slice %a26 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %297 = stablehlo.reshape %296 : (tensor<1xf32>) -> tensor<f32>
    %298 = stablehlo.broadcast_in_dim %297, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %299 = stablehlo.add %295, %298 : tensor<3x3x1x4xf32>
    %300 = stablehlo.divide %276, %299 : tensor<3x3x1x4xf32>
    %301 = stablehlo.multiply %267, %300 : tensor<3x3x1x4xf32>
    %302 = stablehlo.subtract %290, %301 : tensor<3x3x1x4xf32>
    %303 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %304 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %305 = stablehlo.compare GT, %303, %304 : (tensor<3x3x1x4xf32>, tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xi1>
    %306 = stablehlo.select %305, %302, %a0 : tensor<3x3x1x4xi1>, tensor<3x3x1x4xf32>
    %307 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %308 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %309 = stablehlo.compare GT, %307, %308 : (tensor<3x3x1x4xf32>, tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xi1>
    %310 = stablehlo.select %309, %276, %a8 : tensor<3x3x1x4xi1>, tensor<3x3x1x4xf32>
    %311 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %312 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %313 = stablehlo.compare GT, %311, %312 : (tensor<3x3x1x4xf32>, tensor<3x3x1x4xf32>) -> tensor<3x3x1x4xi1>
    %314 = stablehlo.select %313, %286, %a16 : tensor<3x3x1x4xi1>, tensor<3x3x1x4xf32>
    %315 = stablehlo.broadcast_in_dim %257, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %316 = stablehlo.multiply %214, %315 : tensor<4xf32>
    %317 = stablehlo.slice %a26 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %318 = stablehlo.reshape %317 : (tensor<1xf32>) -> tensor<f32>
    %319 = stablehlo.broadcast_in_dim %318, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %320 = stablehlo.slice %a26 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %321 = stablehlo.reshape %320 : (tensor<1xf32>) -> tensor<f32>
    %322 = stablehlo.broadcast_in_dim %321, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %323 = stablehlo.multiply %322, %a9 : tensor<4xf32>
    %324 = stablehlo.slice %a26 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %325 = stablehlo.reshape %324 : (tensor<1xf32>) -> tensor<f32>
    %326 = stablehlo.broadcast_in_dim %325, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %327 = stablehlo.multiply %326, %316 : tensor<4xf32>
    %328 = stablehlo.add %323, %327 : tensor<4xf32>
    %329 = stablehlo.slice %a26 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %330 = stablehlo.reshape %329 : (tensor<1xf32>) -> tensor<f32>
    %331 = stablehlo.broadcast_in_dim %330, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %332 = stablehlo.multiply %331, %a17 : tensor<4xf32>
    %333 = stablehlo.slice %a26 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %334 = stablehlo.reshape %333 : (tensor<1xf32>) -> tensor<f32>
    %335 = stablehlo.broadcast_in_dim %334, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %336 = stablehlo.multiply %316, %316 : tensor<4xf32>
    %337 = stablehlo.multiply %335, %336 : tensor<4xf32>
    %338 = stablehlo.add %332, %337 : tensor<4xf32>
    %339 = stablehlo.sqrt %338 : tensor<4xf32>
    %340 = stablehlo.slice %a26 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %341 = stablehlo.reshape %340 : (tensor<1xf32>) -> tensor<f32>
    %342 = stablehlo.broadcast_in_dim %341, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %343 = stablehlo.divide %339, %342 : tensor<4xf32>
    %344 = stablehlo.slice %a26 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %345 = stablehlo.reshape %344 : (tensor<1xf32>) -> tensor<f32>
    %346 = stablehlo.broadcast_in_dim %345, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %347 = stablehlo.add %343, %346 : tensor<4xf32>
    %348 = stablehlo.divide %328, %347 : tensor<4xf32>
    %349 = stablehlo.multiply %319, %348 : tensor<4xf32>
    %350 = stablehlo.subtract %a1, %349 : tensor<4xf32>
    %351 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %352 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %353 = stablehlo.compare GT, %351, %352 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %354 = stablehlo.select %353, %350, %a1 : tensor<4xi1>, tensor<4xf32>
    %355 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %356 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %357 = stablehlo.compare GT, %355, %356 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %358 = stablehlo.select %357, %328, %a9 : tensor<4xi1>, tensor<4xf32>
    %359 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %360 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %361 = stablehlo.compare GT, %359, %360 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %362 = stablehlo.select %361, %338, %a17 : tensor<4xi1>, tensor<4xf32>
    %363 = stablehlo.broadcast_in_dim %257, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %364 = stablehlo.multiply %198, %363 : tensor<4xf32>
    %365 = stablehlo.slice %a26 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %366 = stablehlo.reshape %365 : (tensor<1xf32>) -> tensor<f32>
    %367 = stablehlo.broadcast_in_dim %366, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %368 = stablehlo.slice %a26 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %369 = stablehlo.reshape %368 : (tensor<1xf32>) -> tensor<f32>
    %370 = stablehlo.broadcast_in_dim %369, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %371 = stablehlo.multiply %370, %a10 : tensor<4xf32>
    %372 = stablehlo.slice %a26 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %373 = stablehlo.reshape %372 : (tensor<1xf32>) -> tensor<f32>
    %374 = stablehlo.broadcast_in_dim %373, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %375 = stablehlo.multiply %374, %364 : tensor<4xf32>
    %376 = stablehlo.add %371, %375 : tensor<4xf32>
    %377 = stablehlo.slice %a26 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %378 = stablehlo.reshape %377 : (tensor<1xf32>) -> tensor<f32>
    %379 = stablehlo.broadcast_in_dim %378, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %380 = stablehlo.multiply %379, %a18 : tensor<4xf32>
    %381 = stablehlo.slice %a26 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %382 = stablehlo.reshape %381 : (tensor<1xf32>) -> tensor<f32>
    %383 = stablehlo.broadcast_in_dim %382, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %384 = stablehlo.multiply %364, %364 : tensor<4xf32>
    %385 = stablehlo.multiply %383, %384 : tensor<4xf32>
    %386 = stablehlo.add %380, %385 : tensor<4xf32>
    %387 = stablehlo.sqrt %386 : tensor<4xf32>
    %388 = stablehlo.slice %a26 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %389 = stablehlo.reshape %388 : (tensor<1xf32>) -> tensor<f32>
    %390 = stablehlo.broadcast_in_dim %389, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %391 = stablehlo.divide %387, %390 : tensor<4xf32>
    %392 = stablehlo.slice %a26 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %393 = stablehlo.reshape %392 : (tensor<1xf32>) -> tensor<f32>
    %394 = stablehlo.broadcast_in_dim %393, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %395 = stablehlo.add %391, %394 : tensor<4xf32>
    %396 = stablehlo.divide %376, %395 : tensor<4xf32>
    %397 = stablehlo.multiply %367, %396 : tensor<4xf32>
    %398 = stablehlo.subtract %a2, %397 : tensor<4xf32>
    %399 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %400 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %401 = stablehlo.compare GT, %399, %400 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %402 = stablehlo.select %401, %398, %a2 : tensor<4xi1>, tensor<4xf32>
    %403 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %404 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %405 = stablehlo.compare GT, %403, %404 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %406 = stablehlo.select %405, %376, %a10 : tensor<4xi1>, tensor<4xf32>
    %407 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %408 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %409 = stablehlo.compare GT, %407, %408 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %410 = stablehlo.select %409, %386, %a18 : tensor<4xi1>, tensor<4xf32>
    %411 = stablehlo.broadcast_in_dim %257, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %412 = stablehlo.multiply %196, %411 : tensor<4xf32>
    %413 = stablehlo.slice %a26 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %414 = stablehlo.reshape %413 : (tensor<1xf32>) -> tensor<f32>
    %415 = stablehlo.broadcast_in_dim %414, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %416 = stablehlo.slice %a26 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %417 = stablehlo.reshape %416 : (tensor<1xf32>) -> tensor<f32>
    %418 = stablehlo.broadcast_in_dim %417, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %419 = stablehlo.multiply %418, %a11 : tensor<4xf32>
    %420 = stablehlo.slice %a26 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %421 = stablehlo.reshape %420 : (tensor<1xf32>) -> tensor<f32>
    %422 = stablehlo.broadcast_in_dim %421, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %423 = stablehlo.multiply %422, %412 : tensor<4xf32>
    %424 = stablehlo.add %419, %423 : tensor<4xf32>
    %425 = stablehlo.slice %a26 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %426 = stablehlo.reshape %425 : (tensor<1xf32>) -> tensor<f32>
    %427 = stablehlo.broadcast_in_dim %426, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %428 = stablehlo.multiply %427, %a19 : tensor<4xf32>
    %429 = stablehlo.slice %a26 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %430 = stablehlo.reshape %429 : (tensor<1xf32>) -> tensor<f32>
    %431 = stablehlo.broadcast_in_dim %430, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %432 = stablehlo.multiply %412, %412 : tensor<4xf32>
    %433 = stablehlo.multiply %431, %432 : tensor<4xf32>
    %434 = stablehlo.add %428, %433 : tensor<4xf32>
    %435 = stablehlo.sqrt %434 : tensor<4xf32>
    %436 = stablehlo.slice %a26 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %437 = stablehlo.reshape %436 : (tensor<1xf32>) -> tensor<f32>
    %438 = stablehlo.broadcast_in_dim %437, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %439 = stablehlo.divide %435, %438 : tensor<4xf32>
    %440 = stablehlo.slice %a26 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %441 = stablehlo.reshape %440 : (tensor<1xf32>) -> tensor<f32>
    %442 = stablehlo.broadcast_in_dim %441, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %443 = stablehlo.add %439, %442 : tensor<4xf32>
    %444 = stablehlo.divide %424, %443 : tensor<4xf32>
    %445 = stablehlo.multiply %415, %444 : tensor<4xf32>
    %446 = stablehlo.subtract %a3, %445 : tensor<4xf32>
    %447 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %448 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %449 = stablehlo.compare GT, %447, %448 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %450 = stablehlo.select %449, %446, %a3 : tensor<4xi1>, tensor<4xf32>
    %451 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %452 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %453 = stablehlo.compare GT, %451, %452 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %454 = stablehlo.select %453, %424, %a11 : tensor<4xi1>, tensor<4xf32>
    %455 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %456 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %457 = stablehlo.compare GT, %455, %456 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %458 = stablehlo.select %457, %434, %a19 : tensor<4xi1>, tensor<4xf32>
    %459 = stablehlo.broadcast_in_dim %257, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %460 = stablehlo.multiply %174, %459 : tensor<16x3xf32>
    %461 = stablehlo.slice %a26 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %462 = stablehlo.reshape %461 : (tensor<1xf32>) -> tensor<f32>
    %463 = stablehlo.broadcast_in_dim %462, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %464 = stablehlo.multiply %463, %a4 : tensor<16x3xf32>
    %465 = stablehlo.add %460, %464 : tensor<16x3xf32>
    %466 = stablehlo.slice %a26 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %467 = stablehlo.reshape %466 : (tensor<1xf32>) -> tensor<f32>
    %468 = stablehlo.broadcast_in_dim %467, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %469 = stablehlo.slice %a26 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %470 = stablehlo.reshape %469 : (tensor<1xf32>) -> tensor<f32>
    %471 = stablehlo.broadcast_in_dim %470, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %472 = stablehlo.multiply %471, %a12 : tensor<16x3xf32>
    %473 = stablehlo.slice %a26 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %474 = stablehlo.reshape %473 : (tensor<1xf32>) -> tensor<f32>
    %475 = stablehlo.broadcast_in_dim %474, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %476 = stablehlo.multiply %475, %465 : tensor<16x3xf32>
    %477 = stablehlo.add %472, %476 : tensor<16x3xf32>
    %478 = stablehlo.slice %a26 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %479 = stablehlo.reshape %478 : (tensor<1xf32>) -> tensor<f32>
    %480 = stablehlo.broadcast_in_dim %479, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %481 = stablehlo.multiply %480, %a20 : tensor<16x3xf32>
    %482 = stablehlo.slice %a26 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %483 = stablehlo.reshape %482 : (tensor<1xf32>) -> tensor<f32>
    %484 = stablehlo.broadcast_in_dim %483, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %485 = stablehlo.multiply %465, %465 : tensor<16x3xf32>
    %486 = stablehlo.multiply %484, %485 : tensor<16x3xf32>
    %487 = stablehlo.add %481, %486 : tensor<16x3xf32>
    %488 = stablehlo.slice %a26 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %489 = stablehlo.reshape %488 : (tensor<1xf32>) -> tensor<f32>
    %490 = stablehlo.broadcast_in_dim %489, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %491 = stablehlo.multiply %a4, %490 : tensor<16x3xf32>
    %492 = stablehlo.sqrt %487 : tensor<16x3xf32>
    %493 = stablehlo.slice %a26 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %494 = stablehlo.reshape %493 : (tensor<1xf32>) -> tensor<f32>
    %495 = stablehlo.broadcast_in_dim %494, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %496 = stablehlo.divide %492, %495 : tensor<16x3xf32>
    %497 = stablehlo.slice %a26 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %498 = stablehlo.reshape %497 : (tensor<1xf32>) -> tensor<f32>
    %499 = stablehlo.broadcast_in_dim %498, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %500 = stablehlo.add %496, %499 : tensor<16x3xf32>
    %501 = stablehlo.divide %477, %500 : tensor<16x3xf32>
    %502 = stablehlo.multiply %468, %501 : tensor<16x3xf32>
    %503 = stablehlo.subtract %491, %502 : tensor<16x3xf32>
    %504 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %505 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %506 = stablehlo.compare GT, %504, %505 : (tensor<16x3xf32>, tensor<16x3xf32>) -> tensor<16x3xi1>
    %507 = stablehlo.select %506, %503, %a4 : tensor<16x3xi1>, tensor<16x3xf32>
    %508 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %509 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %510 = stablehlo.compare GT, %508, %509 : (tensor<16x3xf32>, tensor<16x3xf32>) -> tensor<16x3xi1>
    %511 = stablehlo.select %510, %477, %a12 : tensor<16x3xi1>, tensor<16x3xf32>
    %512 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %513 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %514 = stablehlo.compare GT, %512, %513 : (tensor<16x3xf32>, tensor<16x3xf32>) -> tensor<16x3xi1>
    %515 = stablehlo.select %514, %487, %a20 : tensor<16x3xi1>, tensor<16x3xf32>
    %516 = stablehlo.broadcast_in_dim %257, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %517 = stablehlo.multiply %172, %516 : tensor<3xf32>
    %518 = stablehlo.slice %a26 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %519 = stablehlo.reshape %518 : (tensor<1xf32>) -> tensor<f32>
    %520 = stablehlo.broadcast_in_dim %519, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %521 = stablehlo.slice %a26 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %522 = stablehlo.reshape %521 : (tensor<1xf32>) -> tensor<f32>
    %523 = stablehlo.broadcast_in_dim %522, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %524 = stablehlo.multiply %523, %a13 : tensor<3xf32>
    %525 = stablehlo.slice %a26 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %526 = stablehlo.reshape %525 : (tensor<1xf32>) -> tensor<f32>
    %527 = stablehlo.broadcast_in_dim %526, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %528 = stablehlo.multiply %527, %517 : tensor<3xf32>
    %529 = stablehlo.add %524, %528 : tensor<3xf32>
    %530 = stablehlo.slice %a26 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %531 = stablehlo.reshape %530 : (tensor<1xf32>) -> tensor<f32>
    %532 = stablehlo.broadcast_in_dim %531, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %533 = stablehlo.multiply %532, %a21 : tensor<3xf32>
    %534 = stablehlo.slice %a26 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %535 = stablehlo.reshape %534 : (tensor<1xf32>) -> tensor<f32>
    %536 = stablehlo.broadcast_in_dim %535, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %537 = stablehlo.multiply %517, %517 : tensor<3xf32>
    %538 = stablehlo.multiply %536, %537 : tensor<3xf32>
    %539 = stablehlo.add %533, %538 : tensor<3xf32>
    %540 = stablehlo.sqrt %539 : tensor<3xf32>
    %541 = stablehlo.slice %a26 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %542 = stablehlo.reshape %541 : (tensor<1xf32>) -> tensor<f32>
    %543 = stablehlo.broadcast_in_dim %542, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %544 = stablehlo.divide %540, %543 : tensor<3xf32>
    %545 = stablehlo.slice %a26 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %546 = stablehlo.reshape %545 : (tensor<1xf32>) -> tensor<f32>
    %547 = stablehlo.broadcast_in_dim %546, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %548 = stablehlo.add %544, %547 : tensor<3xf32>
    %549 = stablehlo.divide %529, %548 : tensor<3xf32>
    %550 = stablehlo.multiply %520, %549 : tensor<3xf32>
    %551 = stablehlo.subtract %a5, %550 : tensor<3xf32>
    %552 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %553 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %554 = stablehlo.compare GT, %552, %553 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %555 = stablehlo.select %554, %551, %a5 : tensor<3xi1>, tensor<3xf32>
    %556 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %557 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %558 = stablehlo.compare GT, %556, %557 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %559 = stablehlo.select %558, %529, %a13 : tensor<3xi1>, tensor<3xf32>
    %560 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %561 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %562 = stablehlo.compare GT, %560, %561 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %563 = stablehlo.select %562, %539, %a21 : tensor<3xi1>, tensor<3xf32>
    %564 = stablehlo.slice %a26 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %565 = stablehlo.reshape %564 : (tensor<1xf32>) -> tensor<f32>
    %566 = stablehlo.broadcast_in_dim %565, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %567 = stablehlo.multiply %29, %566 : tensor<4xf32>
    %568 = stablehlo.constant dense<8.999999762e-01> : tensor<f32>
    %569 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %570 = stablehlo.multiply %a6, %569 : tensor<4xf32>
    %571 = stablehlo.constant dense<1.000000238e-01> : tensor<f32>
    %572 = stablehlo.broadcast_in_dim %571, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %573 = stablehlo.multiply %567, %572 : tensor<4xf32>
    %574 = stablehlo.add %570, %573 : tensor<4xf32>
    %575 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %576 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %577 = stablehlo.compare GT, %575, %576 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %578 = stablehlo.select %577, %574, %a6 : tensor<4xi1>, tensor<4xf32>
    %579 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %580 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %581 = stablehlo.compare GT, %579, %580 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %582 = stablehlo.select %581, %a14, %a14 : tensor<4xi1>, tensor<4xf32>
    %583 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %584 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %585 = stablehlo.compare GT, %583, %584 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %586 = stablehlo.select %585, %a22, %a22 : tensor<4xi1>, tensor<4xf32>
    %587 = stablehlo.slice %a26 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %588 = stablehlo.reshape %587 : (tensor<1xf32>) -> tensor<f32>
    %589 = stablehlo.broadcast_in_dim %588, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %590 = stablehlo.multiply %31, %589 : tensor<4xf32>
    %591 = stablehlo.broadcast_in_dim %568, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %592 = stablehlo.multiply %a7, %591 : tensor<4xf32>
    %593 = stablehlo.broadcast_in_dim %571, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %594 = stablehlo.multiply %590, %593 : tensor<4xf32>
    %595 = stablehlo.add %592, %594 : tensor<4xf32>
    %596 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %597 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %598 = stablehlo.compare GT, %596, %597 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %599 = stablehlo.select %598, %595, %a7 : tensor<4xi1>, tensor<4xf32>
    %600 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %601 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %602 = stablehlo.compare GT, %600, %601 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %603 = stablehlo.select %602, %a15, %a15 : tensor<4xi1>, tensor<4xf32>
    %604 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %605 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %606 = stablehlo.compare GT, %604, %605 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %607 = stablehlo.select %606, %a23, %a23 : tensor<4xi1>, tensor<4xf32>
    return %306, %354, %402, %450, %507, %555, %578, %599, %310, %358, %406, %454, %511, %559, %582, %603, %314, %362, %410, %458, %515, %563, %586, %607, %255, %250, %254 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<f32>, tensor<5xf32>
  }
}
